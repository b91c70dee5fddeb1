"""Residual networks, and feed-forward ones as their special case."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import sympy as sp

from fieldtheory import validation
from fieldtheory.networks.activations import Activation
from fieldtheory.networks.dispatch import reasons
from fieldtheory.networks.family import (
    Coefficients,
    DeepNetwork,
    LayeredNetwork,
    Parameters,
    checked_network,
)
from fieldtheory.networks.parameters import named_arguments, named_parameters
from fieldtheory.networks.schedules import (
    Schedule,
    layer_values,
    require_positive,
    require_squares,
)
from fieldtheory.validation import number

_OPTIONAL = (
    "readin_weight_variance",
    "readin_bias_variance",
    "readout_weight_variance",
    "readout_bias_variance",
)


@named_parameters
@dataclass(frozen=True, kw_only=True)
class ResidualNetwork(LayeredNetwork):
    """A fully connected residual network with Gaussian weights and biases.

    The network, with independent entries of all weights and biases, is

        h^(0) = W_in x + b_in
        h^(l) = γ_l h^(l-1) + ρ_l [W^(l) φ(h^(l-1)) + b^(l)],   l = 1, ..., L
        y     = W_out φ(h^(L)) + b_out

    with W_in ~ N(0, σ²_w,in/d_in), W^(l) ~ N(0, σ²_w/N), W_out ~ N(0, σ²_w,out/N) and biases of
    variance σ²_b,in, σ²_b, σ²_b,out (F25 eq. (1) for γ = 1 and constant ρ).

    Parameters
    ----------
    depth : int
        Number of residual layers L >= 1.
    activation : str, Activation, sympy.Expr or callable
        φ: a name such as "softplus", text such as "x/(1 + abs(x))", a SymPy expression in one
        symbol, or a function such as ``np.tanh``, ``torch.nn.GELU()``, ``lambda x: x/(1 + x**2)``.
        `fieldtheory.networks.activations.as_activation` lists the names.
    branch_scale : float, array_like, str or callable
        ρ_l >= 0, zero for a layer without a branch: one number for all layers or L numbers, where
        leading axes are a batch, (..., L) or (..., 1); the name of a schedule, "uniform" 1/√L,
        "decreasing" 1/(√l ln(l+1)) or "none" 1 (λ_{l,L} of SR eq. (2) and sections 3, 4); or a
        function of (l, L), l = 1, ..., L, that returns positive numbers. Names and functions
        follow ``replace(depth=...)``.
    skip_scale : float, array_like or callable
        γ_l, in the same form but for names, of any sign, as functions may return.
    weight_variance, bias_variance : float
        σ²_w and σ²_b of the residual layers, >= 0.
    readin_weight_variance, readin_bias_variance : float, optional
        σ²_w,in and σ²_b,in; as the residual layers if left out.
    readout_weight_variance, readout_bias_variance : float, optional
        σ²_w,out and σ²_b,out; as the residual layers if left out.
    width, input_dim : int
        N and d_in, >= 1.

    Raises
    ------
    TypeError, ValueError
        If an argument is not of the stated kind; the message names it and what is allowed.

    Notes
    -----
    The defaults are those of F25 Fig. 4. All quantities are dimensionless.

    Examples
    --------
    >>> net = ResidualNetwork(depth=50, branch_scale=0.3)
    >>> net.replace(depth=100).depth
    100
    >>> net = ResidualNetwork(depth=2, branch_scale="uniform")
    >>> net.replace(depth=4).branch_scales
    array([0.5, 0.5, 0.5, 0.5])
    """

    layer_parameters: ClassVar[tuple[str, ...]] = ("branch_scale", "skip_scale")

    depth: int
    activation: Activation = "erf"  # type: ignore[assignment]
    branch_scale: Any = 1.0
    skip_scale: Any = 1.0
    weight_variance: float = 1.25
    bias_variance: float = 0.05
    readin_weight_variance: float | None = None
    readin_bias_variance: float | None = None
    readout_weight_variance: float | None = None
    readout_bias_variance: float | None = None
    width: int = 500
    input_dim: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("weight_variance", "bias_variance", *_OPTIONAL):
            value = getattr(self, name)
            if value is not None or name not in _OPTIONAL:
                object.__setattr__(self, name, validation.nonnegative(name, number(value)))
        require_positive("branch_scale", self.branch_scale, self.branch_scales)
        variances = max(1.0, self.weight_variance, self.bias_variance)
        require_squares("branch_scale", self.branch_scales, variances)
        require_squares("skip_scale", self.skip_scales)
        branch, skip = self.branch_scales.shape, self.skip_scales.shape
        try:
            np.broadcast_shapes(branch, skip)
        except ValueError:
            raise ValueError(
                f"branch_scale and skip_scale must broadcast, got shapes {branch} and {skip}"
            ) from None

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters as numbers, ρ_l and γ_l as arrays (..., L)."""
        numbers: dict[str, Any] = {
            "branch_scale": self.branch_scales,
            "skip_scale": self.skip_scales,
            "weight_variance": self.weight_variance,
            "bias_variance": self.bias_variance,
        }
        for name in _OPTIONAL:
            own, of_layers = getattr(self, name), name.partition("_")[2]
            numbers[name] = numbers[of_layers] if own is None else own
        return numbers

    @staticmethod
    def features(
        phi: Callable[[Any], sp.Expr], h: sp.Expr, parameters: Parameters
    ) -> tuple[Any, ...]:
        """φ(h) alone."""
        return (phi(h),)

    @staticmethod
    def layer(parameters: Parameters) -> Coefficients:
        """a_l = ρ_l² σ²_w, c_l = ρ_l² σ²_b and γ_l."""
        square = parameters["branch_scale"] ** 2
        return Coefficients(
            square * parameters["weight_variance"],
            square * parameters["bias_variance"],
            parameters["skip_scale"],
        )

    @staticmethod
    def branch(
        features: tuple[Any, ...], affine: Callable[..., Any], parameters: Parameters
    ) -> Any:
        """ρ_l [W^(l) φ(h^(l-1)) + b^(l)]."""
        (activity,) = features
        variances = parameters["weight_variance"], parameters["bias_variance"]
        return parameters["branch_scale"] * affine(activity, *variances)

    @property
    def readin_variances(self) -> tuple[float, float]:
        """(σ²_w,in, σ²_b,in), those of the residual layers where not given."""
        parameters = self.parameters
        return parameters["readin_weight_variance"], parameters["readin_bias_variance"]

    @property
    def readout_variances(self) -> tuple[float, float]:
        """(σ²_w,out, σ²_b,out), those of the residual layers where not given."""
        parameters = self.parameters
        return parameters["readout_weight_variance"], parameters["readout_bias_variance"]

    @cached_property
    def branch_scales(self) -> np.ndarray:
        """ρ_l for every layer, shape (..., L)."""
        return layer_values("branch_scale", self.branch_scale, self.depth)

    @cached_property
    def skip_scales(self) -> np.ndarray:
        """γ_l for every layer, shape (..., L)."""
        return layer_values("skip_scale", self.skip_scale, self.depth)

    @property
    def schedule(self) -> Schedule:
        """Branch scales ρ_l, Σ_l ρ_l², and whether that stays bounded as the depth grows."""
        return Schedule(self.branch_scale, self.branch_scales)


@named_parameters
@dataclass(frozen=True, kw_only=True)
class FeedForwardNetwork(ResidualNetwork):
    """A feed-forward network: the residual family with γ = 0 and ρ = 1 (F23 section 3).

    Parameters
    ----------
    **parameters
        As for `ResidualNetwork`; ``skip_scale`` and ``branch_scale`` are fixed.

    Raises
    ------
    TypeError
        If ``skip_scale`` or ``branch_scale`` is given another value.

    Examples
    --------
    >>> FeedForwardNetwork(depth=3).skip_scale
    0.0
    """

    without: ClassVar[Mapping[str, str]] = {
        **LayeredNetwork.without,
        **reasons(
            {
                "optimal_scaling, spread_scaling": "ρ = 1 and γ = 0 by definition",
                "depth_limit, critical_block": (
                    "every layer replaces the kernel: deep networks are at its fixed points, "
                    "see critical_network"
                ),
            }
        ),
    }

    branch_scale: Any = 1.0
    skip_scale: Any = 0.0

    def __post_init__(self) -> None:
        for name, fixed in (("skip_scale", 0.0), ("branch_scale", 1.0)):
            value = getattr(self, name)
            if not (np.ndim(value) == 0 and value == fixed):
                raise TypeError(f"{name} is fixed in a feed-forward network, got {value!r}")
        super().__post_init__()


@named_arguments
def input_kernel(X: Any, network: DeepNetwork) -> np.ndarray:
    """The kernel of the inputs, K^(0) = σ²_w,in/d X Xᵀ + σ²_b,in (F25 eqs. (16), (101)).

    Parameters
    ----------
    X : array_like, shape (P, d)
        Inputs in rows.
    network : DeepNetwork
        Of any family; supplies the read-in variances. The number of columns d is used, not
        ``input_dim``.

    Returns
    -------
    ndarray, shape (P, P)

    Raises
    ------
    ValueError
        If ``X`` is not two-dimensional or not finite.
    TypeError
        If ``network`` is not a network.

    Examples
    --------
    >>> net = ResidualNetwork(depth=2, readin_weight_variance=1.0, readin_bias_variance=0.0)
    >>> input_kernel([[1.0, 1.0], [1.0, -1.0]], net)
    array([[1., 0.],
           [0., 1.]])
    """
    of_layers = isinstance(network, DeepNetwork)
    parameters = (network if of_layers else checked_network(network)).parameters
    samples = input_rows("X", X)
    weight, bias = (parameters[f"readin_{kind}_variance"] for kind in ("weight", "bias"))
    return weight * (samples @ samples.T) / samples.shape[1] + bias


def input_rows(name: str, values: Any) -> np.ndarray:
    """Inputs in rows, (P, d), or ValueError."""
    array = validation.finite_array(name, values)
    if array.ndim != 2:
        one = ": one input x is [x]" if array.ndim == 1 else ""
        raise ValueError(f"{name} must have shape (P, d), got shape {array.shape}{one}")
    return array
