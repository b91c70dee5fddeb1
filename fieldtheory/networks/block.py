"""Networks whose branches have two matrices, a norm and perhaps a gate, as transformers have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import sympy as sp

from fieldtheory import validation
from fieldtheory.averages.quadrature.compiled import function_of
from fieldtheory.averages.quadrature.one_variable import coefficients_of
from fieldtheory.networks.activations import Activation, as_activation, h
from fieldtheory.networks.family import Coefficients, Parameters
from fieldtheory.networks.gram import GramEntry, GramNetwork
from fieldtheory.networks.parameters import named_parameters
from fieldtheory.networks.schedules import layer_values, require_positive, require_squares
from fieldtheory.validation import number

_SCALARS = (
    "inner_bias_variance",
    "outer_bias_variance",
    "readin_weight_variance",
    "readin_bias_variance",
    "readout_weight_variance",
    "readout_bias_variance",
    "epsilon",
)
# Share by which M may differ from a whole number by rounding.
_WHOLE = 1e-9
_WEIGHTS = "inner_weight_variance", "gate_weight_variance", "outer_weight_variance"


@named_parameters
@dataclass(frozen=True, kw_only=True)
class BlockNetwork(GramNetwork):
    """A residual network of blocks of two matrices, with norms and gates (PDLT-B.4, PF section 5).

    The network, with independent entries of all weights and biases, is

        x^(0) = W_in x + b_in
        x^(l) = γ_l x^(l-1) + ρ_l [W'^(l) a^(l) + b'^(l)],   l = 1, ..., L
        a^(l) = φ(u^(l)),  or φ(u^(l)) v^(l) with a gate
        u^(l) = W^(l) n(x^(l-1)) + b^(l),   v^(l) = V^(l) n(x^(l-1))
        y     = W_out n(x^(L)) + b_out

    with M hidden units in every block, W ~ N(0, σ²_w/N), V ~ N(0, σ²_v/N), W' ~ N(0, σ²_w'/M),
    W_in ~ N(0, σ²_w,in/d_in), W_out ~ N(0, σ²_w,out/N), biases of variance σ²_b, σ²_b', σ²_b,in,
    σ²_b,out, and the norm

        n(x) = x/√(x·x/N + ε)   "rms" (RMSNorm),   the same of x − mean(x)   "layer" (LayerNorm).

    For "post" the norm follows the sum, n(γ x + f), and branches and the readout read what it
    gives; the read-in is normalised too. With LayerNorm everything is about the mean over the
    units: kernels are those of x − mean(x).

    Parameters
    ----------
    depth : int
        Number of blocks L >= 1.
    activation : str, Activation, sympy.Expr or callable
        φ in any form that `ResidualNetwork` takes.
    branch_scale, skip_scale : float, array_like, str or callable
        ρ_l and γ_l in the forms that `ResidualNetwork` takes; arrays may have batch axes.
    normalization : {"rms", "layer"}, optional
        The norm; None for none.
    norm_position : {"pre", "post"}
    epsilon : float
        ε >= 0.
    gated : bool
    expansion : float
        M/N; M = expansion · width must be a whole number.
    inner_weight_variance, gate_weight_variance, outer_weight_variance : float, array or callable
        σ²_w, σ²_v and σ²_w', >= 0, one number or one for every layer. Left out, a gate has
        σ²_v = 1, and σ²_w' = 1/⟨a²⟩ for what is read of mean square 1, so that a branch adds ρ².
    inner_bias_variance, outer_bias_variance : float
        σ²_b and σ²_b', >= 0.
    readin_weight_variance, readin_bias_variance : float
        σ²_w,in and σ²_b,in, >= 0.
    readout_weight_variance, readout_bias_variance : float
        σ²_w,out and σ²_b,out, >= 0.
    width, input_dim : int
        N and d_in, >= 1.

    Raises
    ------
    TypeError, ValueError
        If an argument is not of the stated kind; the message names it and what is allowed.

    Examples
    --------
    >>> net = BlockNetwork(depth=12, width=64)
    >>> net.hidden_width, float(net.parameters["outer_weight_variance"][0].round(6))
    (256, 2.351716)
    >>> BlockNetwork(depth=2, width=10, expansion=2.25)
    Traceback (most recent call last):
        ...
    ValueError: expansion must give a whole number of hidden units, got 2.25 for width 10: 22.5
    """

    layer_parameters: ClassVar[tuple[str, ...]] = ("branch_scale", "skip_scale", *_WEIGHTS)

    depth: int
    activation: Activation = "gelu"  # type: ignore[assignment]
    branch_scale: Any = 1.0
    skip_scale: Any = 1.0
    normalization: str | None = "rms"
    norm_position: str = "pre"
    epsilon: float = 0.0
    gated: bool = False
    expansion: float = 4.0
    inner_weight_variance: Any = 1.0
    gate_weight_variance: Any = None
    outer_weight_variance: Any = None
    inner_bias_variance: float = 0.0
    outer_bias_variance: float = 0.0
    readin_weight_variance: float = 1.0
    readin_bias_variance: float = 0.0
    readout_weight_variance: float = 1.0
    readout_bias_variance: float = 0.0
    width: int = 500
    input_dim: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.normalization is not None:
            validation.choice("normalization", self.normalization, ("rms", "layer"), "None, ")
        validation.choice("norm_position", self.norm_position, ("pre", "post"))
        if not isinstance(self.gated, bool | np.bool_):
            raise TypeError(f"gated must be True or False, got {self.gated!r}")
        if self.gate_weight_variance is not None and not self.gated:
            raise ValueError(
                "gate_weight_variance must be left out without a gate, got "
                f"{self.gate_weight_variance!r} for gated=False"
            )
        for name in _SCALARS:
            value = validation.nonnegative(name, number(getattr(self, name)))
            object.__setattr__(self, name, value)
        object.__setattr__(self, "expansion", validation.positive("expansion", self.expansion))
        units = self.expansion * self.width
        if abs(units - round(units)) > _WHOLE * units or round(units) < 1:
            raise ValueError(
                f"expansion must give a whole number of hidden units, got {self.expansion:g} for "
                f"width {self.width}: {units:g}"
            )
        for name, values in self._given_layers.items():
            require_squares(name, values)
            if name != "skip_scale":
                require_positive(name, getattr(self, name), values)
        _ = self.batch_shape

    @property
    def hidden_width(self) -> int:
        """M, the number of hidden units of a block."""
        return round(self.expansion * self.width)

    @property
    def centred(self) -> bool:
        """Whether the stream is what is left without its mean over the units: of LayerNorm."""
        return self.normalization == "layer"

    @property
    def factors(self) -> tuple[Activation, ...]:
        """φ, and the identity for a gate."""
        return (self.activation, as_activation("linear"))[: 1 + self.gated]

    @property
    def signal_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """inner, and gate."""
        return ("inner", "gate")[: 1 + self.gated]

    @property
    def _given_layers(self) -> dict[str, Any]:
        scales = {name: getattr(self, name) for name in self.layer_parameters}
        return {n: layer_values(n, x, self.depth) for n, x in scales.items() if x is not None}

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters as numbers, those of layers as arrays (..., L)."""
        layers = self._given_layers
        if "gate_weight_variance" not in layers:
            layers["gate_weight_variance"] = np.ones(self.depth)
        if "outer_weight_variance" not in layers:
            layers["outer_weight_variance"] = self._keeping_the_signal(layers)
        return layers | {name: getattr(self, name) for name in _SCALARS}

    def _keeping_the_signal(self, layers: dict[str, Any]) -> np.ndarray:
        """1/⟨a²⟩ for what is read of mean square 1."""
        variances = self.signals(1.0, layers | {"inner_bias_variance": self.inner_bias_variance})
        square: Any = 1.0
        for factor, variance in zip(self.factors, variances, strict=True):
            values, places = np.unique(variance, return_inverse=True)
            moments = coefficients_of(function_of(factor.expression, h).square, 2)(values)[0][:, 0]
            square = square * moments[places].reshape(np.shape(variance))
        if not np.all(square > 0):
            raise ValueError(
                "outer_weight_variance must be given where the hidden units are zero, got None"
            )
        return np.asarray(1 / square)

    def _normalized(self, R: GramEntry, epsilon: Any) -> Any:
        """An entry of the Gram matrix of n(x)."""
        if self.normalization is None:
            return R.xy
        if R.xx is R.yy:
            return R.xy / (R.xx + epsilon)
        sqrt = sp.sqrt if isinstance(R.xx, sp.Expr) else np.sqrt
        return R.xy / sqrt((R.xx + epsilon) * (R.yy + epsilon))

    def stream(self, R: GramEntry, parameters: Parameters) -> Any:
        """R itself, or of n(x) for a norm behind the sum."""
        if self.norm_position == "post":
            return self._normalized(R, parameters["epsilon"])
        return R.xy

    def read(self, R: GramEntry, parameters: Parameters) -> Any:
        """Of n(x)."""
        return self._normalized(R, parameters["epsilon"])

    def signals(self, read: Any, parameters: Parameters) -> tuple[Any, ...]:
        """Q of u, and of v with a gate."""
        inner = parameters["inner_weight_variance"] * read + parameters["inner_bias_variance"]
        return (inner, parameters["gate_weight_variance"] * read)[: 1 + self.gated]

    @staticmethod
    def layer(parameters: Parameters) -> Coefficients:
        """a_l = ρ_l² σ²_w', c_l = ρ_l² σ²_b' and γ_l."""
        square = parameters["branch_scale"] ** 2
        return Coefficients(
            square * parameters["outer_weight_variance"],
            square * parameters["outer_bias_variance"],
            parameters["skip_scale"],
        )

    def branch(
        self,
        read: np.ndarray,
        affine: Callable[..., Any],
        activity: Callable[..., Any],
        parameters: Parameters,
    ) -> Any:
        """ρ_l [W' a(W n + b, V n) + b']."""
        M, inner = self.hidden_width, parameters["inner_weight_variance"]
        signals = [affine(read, M, inner, parameters["inner_bias_variance"])]
        if self.gated:
            signals.append(affine(read, M, parameters["gate_weight_variance"], 0.0))
        outer = parameters["outer_weight_variance"], parameters["outer_bias_variance"]
        return parameters["branch_scale"] * affine(activity(*signals), read.shape[-1], *outer)
