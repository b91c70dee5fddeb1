"""Transformers: blocks of attention and of two matrices, whose Gram matrices are a chain too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fieldtheory import validation
from fieldtheory.networks.activations import Activation, as_activation
from fieldtheory.networks.block import BlockNetwork
from fieldtheory.networks.dispatch import reasons
from fieldtheory.networks.family import NetworkFamily
from fieldtheory.networks.parameters import named_parameters
from fieldtheory.networks.schedules import layer_values, require_positive
from fieldtheory.transformers.attention import rotations
from fieldtheory.transformers.registration import FAMILY
from fieldtheory.validation import excerpt

_VARIANCES = tuple(f"{name}_weight_variance" for name in ("query", "key", "value", "out"))
_PER_LAYER = (*_VARIANCES, "logit_scale")
_BIASES = tuple(f"{name}_bias_variance" for name in ("query", "key", "value", "out"))
# Of the stream, which the MLP shares with attention.
_OF_STREAM = ("depth", "width", "normalization", "norm_position", "epsilon", "skip_scale")
_FLAGS = ("parallel", "query_key_norm")
_WITHOUT = reasons(
    {
        "digits, proven, log_kernels, log_response": "averages over softmax are sampled in float64",
        "order, mean_shift_2, kernel_shift_2, variance_2, third_cumulant, four_point_2, "
        "order_ratio, resummed_mean, resummed_variance": (
            "order 1/N² takes third derivatives of averages over softmax"
        ),
        "decorrelation": "correlation has what tokens share, with its error",
        "residual_response, full_response, output_response, convention": (
            "response has the derivatives of all pairs of tokens by all pairs"
        ),
        "response_shift, response_shift_error, residual_response_shift, output_response_shift, "
        "simulate_response": "of responses only those of infinite width are there",
        "stream_variance, four_point, four_point_error, output_kurtosis": (
            "Gram matrices of the stream are its kernels: see kernel_variance, stream_covariance"
        ),
        "covariance_with": "G11 and stream_covariance have all pairs of tokens",
        "tangent_kernels, output_tangent_kernel": (
            "averages of gradients by the weights of attention are not computed"
        ),
        "torch_module": "attention in torch is that of other libraries, which `audit` reads",
        "kernel, spectrum, power_coefficients, NetworkGPRegressor, posterior, tilted_posterior, "
        "data_variability, X": "an input is a sequence of tokens and not one vector",
        "optimal_scaling, spread_scaling, optimal_output_variance, critical_block, "
        "susceptibilities, component_kernels": (
            "tokens move each other, through two branches: see response and shares"
        ),
        "depth_limit": "what attention adds is sampled layer by layer, and has no flow over l/L",
        "method, variance_reduction": "draws of its Gram matrices are exact at every width",
        "sweep": "its scales have no batch axes: call solve for each",
    }
)
_OF_BLOCKS = (
    *("abbreviate", "misprints", "tangent_kernel", "saturation", "large_depth"),
    *("diagrams", "correction"),
)
_WITHOUT |= {name: BlockNetwork.without[name] for name in _OF_BLOCKS}


@named_parameters
@dataclass(frozen=True, kw_only=True)
class TransformerNetwork(NetworkFamily):
    """A transformer: a stream of N units for every token, to which attention and MLPs add.

        x' = γ x + ρ W_O [o^1, ..., o^H],   o_a = Σ_c A_ac v_c,   A_a = softmax_c(s q_a·k_c/√d)
        q_a = W_Q n(x_a),   k_a = W_K n(x_a),   v_a = W_V n(x_a)   of d numbers for every head

    then x' = γ x + ρ' times the branch of a `BlockNetwork`, both L times, and a linear readout of
    n(x). Entries of W_Q, W_K, W_V have the variances σ²/N, of W_O σ²/(H d), all independent, and
    all four may have biases, those of W_O inside ρ; n is the norm of `BlockNetwork`, in its two
    positions. Tokens are inputs: K0 is the matrix (T, T) of the stream before the first block,
    K0_ab = (1/N) x_a·x_b of the embeddings.

    Parameters
    ----------
    depth : int
        Number of blocks L >= 1.
    heads : int
        H, which divides the width if ``head_width`` is left out.
    head_width : int, optional
        d; width/heads if left out.
    causal : bool or array_like of bool, shape (T, T)
        Whether a token sees those up to itself alone; False for all of its sequence, or a matrix
        that says what a token (row) sees.
    sequences : int
        S; K0 is then (S T, S T), and tokens see those of their own sequence alone.
    normalization : {"layer", "rms"}, optional
        The norm; None for none.
    norm_position : {"pre", "post"}
    epsilon : float
        ε >= 0 of all norms.
    branch_scale : float, pair of float or array_like, shape (L, 2)
        ρ and ρ' >= 0: one number, two, or two for every block.
    skip_scale : float
        γ of all branches.
    query_weight_variance, key_weight_variance, value_weight_variance, out_weight_variance : float
        or array_like, shape (L,): σ_q², σ_k², σ_v², σ_o², >= 0.
    query_bias_variance, key_bias_variance, value_bias_variance, out_bias_variance : float
    logit_scale : float or array_like, shape (L,)
        s.
    mlp : mapping or BlockNetwork, optional
        Parameters of the MLP by their names in `BlockNetwork`, apart from those of the stream;
        ``{}`` for its own. None for attention alone.
    parallel : bool
        Whether attention and MLP of a block read the same and are added at once.
    grouped_heads : int
        Number of heads that share keys and values, a divisor of H.
    rotary : float, optional
        θ of rotary positions, which turn plane j of q_a and k_a by a θ^(−2j/d).
    query_key_norm : bool
        Whether q and k are divided by √(q·q/d + ε).
    readout_weight_variance, readout_bias_variance : float
    width : int
        N >= 1.

    Raises
    ------
    TypeError, ValueError
        If an argument is not of the stated kind; the message names it and what is allowed.

    Examples
    --------
    >>> net = TransformerNetwork(depth=12, heads=12, width=768, branch_scale=24**-0.5)
    >>> net.d, net.steps, net.branches[0], net.mlp.hidden_width
    (64, 24, ('attention',), 3072)
    >>> TransformerNetwork(depth=2, heads=3, width=64)
    Traceback (most recent call last):
        ...
    ValueError: heads must divide the width unless head_width is given, got 3 for width 64
    """

    functions: ClassVar[Mapping[str, str]] = FAMILY.functions
    layer_parameters: ClassVar[tuple[str, ...]] = ()
    batch_shape: ClassVar[tuple[int, ...]] = ()
    without: ClassVar[Mapping[str, str]] = _WITHOUT
    markov: ClassVar[bool] = True

    depth: int
    heads: int
    head_width: int | None = None
    causal: Any = True
    sequences: int = 1
    normalization: str | None = "layer"
    norm_position: str = "pre"
    epsilon: float = 1e-5
    branch_scale: Any = 1.0
    skip_scale: float = 1.0
    query_weight_variance: Any = 1.0
    key_weight_variance: Any = 1.0
    value_weight_variance: Any = 1.0
    out_weight_variance: Any = 1.0
    query_bias_variance: float = 0.0
    key_bias_variance: float = 0.0
    value_bias_variance: float = 0.0
    out_bias_variance: float = 0.0
    logit_scale: Any = 1.0
    mlp: Any = ()
    parallel: bool = False
    grouped_heads: int = 1
    rotary: float | None = None
    query_key_norm: bool = False
    readout_weight_variance: float = 1.0
    readout_bias_variance: float = 0.0
    width: int = 768

    def __post_init__(self) -> None:
        given = {f: getattr(self, f) for f in self.__dataclass_fields__}
        for name in ("depth", "heads", "sequences", "grouped_heads", "width"):
            given[name] = validation.integer(name, given[name], 1)
        if given["head_width"] is not None:
            given["head_width"] = validation.integer("head_width", given["head_width"], 1)
        elif given["width"] % given["heads"]:
            raise ValueError(
                "heads must divide the width unless head_width is given, got "
                f"{given['heads']} for width {given['width']}"
            )
        if given["heads"] % given["grouped_heads"]:
            raise ValueError(
                f"grouped_heads must divide heads, got {given['grouped_heads']} for "
                f"{given['heads']} heads"
            )
        for name in _FLAGS:
            if not isinstance(given[name], bool | np.bool_):
                raise TypeError(f"{name} must be True or False, got {excerpt(given[name])}")
        for name in _PER_LAYER:
            given[name] = validation.layer_scales(name, given[name], given["depth"])
            values = layer_values(name, given[name], given["depth"])
            if values.ndim > 1:
                raise ValueError(f"{name} must be a number or (L,) of them, got {values.shape}")
            if name in _VARIANCES:
                require_positive(name, given[name], values)
        given["branch_scale"] = _pairs_of_scales(given["branch_scale"], given["depth"])
        given["causal"] = _checked_mask(given["causal"])
        scale = validation.finite_array("skip_scale", given["skip_scale"])
        if scale.ndim:
            raise ValueError(f"skip_scale must be one number, got shape {scale.shape}")
        given["skip_scale"] = float(scale)
        for name in ("epsilon", "readout_weight_variance", "readout_bias_variance", *_BIASES):
            given[name] = validation.nonnegative(name, given[name])
        if given["value_bias_variance"] and not np.all(given["value_weight_variance"]):
            raise ValueError("value_bias_variance must be 0 where value_weight_variance is 0")
        if given["rotary"] is not None:
            given["rotary"] = validation.positive("rotary", given["rotary"])
        for name, value in given.items():
            object.__setattr__(self, name, value)
        if self.rotary is not None and self.d % 2:
            raise ValueError(f"rotary needs heads of even width, got head_width {self.d}")
        object.__setattr__(self, "mlp", self._checked_mlp())
        _ = self.block

    def _checked_mlp(self) -> BlockNetwork | None:
        """The MLP as a network of blocks on the same stream."""
        if self.mlp is None:
            return None
        own = {name: getattr(self, name) for name in _OF_STREAM}
        own["branch_scale"] = tuple(self.branch_scales[:, 1].tolist())
        if isinstance(self.mlp, BlockNetwork):
            return self.mlp.replace(**own)
        if not isinstance(self.mlp, Mapping | tuple):
            raise TypeError(
                "mlp must be a mapping of parameters of BlockNetwork, a BlockNetwork or None, got "
                f"{excerpt(self.mlp)}"
            )
        given = dict(self.mlp)
        for name in own:
            if name in given:
                raise ValueError(f"mlp must not have {name}, which is that of the transformer")
        return BlockNetwork(**given, **own)

    def replace(self, **changes: Any) -> TransformerNetwork:
        """A copy with some arguments changed; with the width alone, heads grow in number."""
        if "width" in changes and not {"heads", "head_width"} & {*changes}:
            width = validation.integer("width", changes["width"], 1)
            heads, rest = divmod(self.heads * width, self.width)
            if rest or heads % self.grouped_heads:
                raise ValueError(
                    f"width must be a multiple of {self.width // self.heads * self.grouped_heads} "
                    f"for heads of width {self.d}, got {width}"
                )
            changes["heads"] = heads
        return super().replace(**changes)

    @property
    def block(self) -> BlockNetwork:
        """Blocks on the same stream: the MLP, or ones of its norm where there is none."""
        own = {name: getattr(self, name) for name in _OF_STREAM}
        return self.mlp or BlockNetwork(activation=as_activation("linear"), expansion=1.0, **own)

    @property
    def d(self) -> int:
        """The width of a head."""
        return self.head_width or self.width // self.heads

    @property
    def activation(self) -> Activation:
        """φ of the MLP; the identity without."""
        return self.mlp.activation if self.mlp else as_activation("linear")

    @property
    def centred(self) -> bool:
        """Whether the stream is what is left without its mean over the units: of LayerNorm."""
        return self.normalization == "layer"

    @property
    def branches(self) -> tuple[tuple[str, ...], ...]:
        """What is added in the steps of a block: attention and MLP, one after the other or not."""
        kinds = ("attention", "mlp")[: 1 + (self.mlp is not None)]
        return (kinds,) if self.parallel else tuple((kind,) for kind in kinds)

    @property
    def steps(self) -> int:
        """Number of steps of all blocks; layers of results count them."""
        return self.depth * len(self.branches)

    @property
    def branch_scales(self) -> np.ndarray:
        """ρ and ρ' of the blocks, (L, 2)."""
        return np.broadcast_to(np.asarray(self.branch_scale, dtype=float), (self.depth, 2))

    @property
    def parameters(self) -> dict[str, Any]:
        """Variances and s of the blocks, (L,), and what else there is as numbers."""
        layers = {name: layer_values(name, getattr(self, name), self.depth) for name in _PER_LAYER}
        numbers = "epsilon", "skip_scale", "readout_weight_variance", "readout_bias_variance"
        return layers | {name: getattr(self, name) for name in (*numbers, *_BIASES)}

    def mask(self, tokens: int) -> np.ndarray:
        """Which tokens c (columns) a token sees, of K0 with so many rows: bool, (P, P)."""
        T, rest = divmod(tokens, self.sequences)
        given = np.asarray(self.causal)
        if rest:
            raise ValueError(
                f"K0 must have rows for {self.sequences} sequences of T tokens each, got {tokens}"
            )
        if given.ndim and len(given) != T:
            raise ValueError(
                f"causal must be a matrix (T, T) for the T = {T} tokens of a sequence, got "
                f"shape {given.shape}"
            )
        own = given if given.ndim else np.tri(T, dtype=bool) | (not self.causal)
        return np.kron(np.eye(self.sequences, dtype=bool), own)

    def turns(self, tokens: int) -> np.ndarray | None:
        """e^(i a ω_j) of rotary positions a of so many tokens, (P, d/2)."""
        if self.rotary is None:
            return None
        places = np.tile(np.arange(tokens // self.sequences), self.sequences)
        return rotations(places, self.rotary, self.d)


def _pairs_of_scales(value: Any, depth: int) -> Any:
    """ρ, (ρ, ρ') or (L, 2) of them."""
    scales = validation.finite_array("branch_scale", value)
    if scales.shape not in ((), (2,), (depth, 2)):
        raise ValueError(
            "branch_scale must be a number, two for attention and MLP, or an array "
            f"({depth}, 2), got shape {scales.shape}"
        )
    if scales.min() < 0:
        raise ValueError(f"branch_scale must be >= 0 in every layer, got {scales.min():.6g}")
    return validation.as_tuples(scales.tolist())


def _checked_mask(value: Any) -> Any:
    """A bool or a matrix of them as tuples."""
    mask = np.asarray(value)
    if mask.dtype != bool or mask.ndim not in (0, 2) or mask.shape[:1] != mask.shape[1:]:
        raise TypeError(
            f"causal must be True, False or a matrix (T, T) of them, got {excerpt(value)}"
        )
    if mask.ndim and not mask.any(axis=1).all():
        blind = int(np.flatnonzero(~mask.any(axis=1))[0])
        raise ValueError(f"causal must let every token see one at least, got none for {blind}")
    return validation.as_tuples(mask.tolist())
