"""`solve` for a `TransformerNetwork`: kernels of all tokens, and what is of order 1/N in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import Any, ClassVar

import numpy as np

from fieldtheory import validation
from fieldtheory.averages.routes import DEFAULT as DEFAULT_TOLERANCE
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics.fields import FIELDS, Field, fields_of
from fieldtheory.numerics.markov.chain_fluctuations import Fluctuations
from fieldtheory.numerics.memory import require_memory
from fieldtheory.numerics.recursion import ratio
from fieldtheory.numerics.result import Computed, field
from fieldtheory.numerics.symmetric_matrices import packed, unpacked
from fieldtheory.numerics.validity import SHIFT, warn_if_not_small
from fieldtheory.transformers.attention import RUNS
from fieldtheory.transformers.transformer_chain import TransformerKernels
from fieldtheory.transformers.transformer_network import TransformerNetwork

_SHARED = (
    "residual_kernels kernels G11 stream_covariance kernel_variance mean_shift kernel_shift shares"
).split()
_PAIRS = "pair", "pair_"
TRANSFORMER_FIELDS: Mapping[str, Field] = {
    **{name: replace(FIELDS[name], error=True) for name in _SHARED},
    **{name: replace(FIELDS[name], error=True, of_inputs=_PAIRS) for name in ("G12",)},
    **fields_of(
        r"""
        response | hidden_layer | \partial R^{(l)} / \partial K^{(0)}
            | responses of the kernels to all entries of the input kernel
            | finite if_asked of_pairs with_error
        attention_shares | hidden_layer | C_{\mathrm{A}}^{(l)} / (\gamma^2 K^{(l-1)} + C^{(l)})
            | shares of attention in the mean squares behind a step | of_input with_error
        correlation | hidden_layer | K_{ab} / \sqrt{K_{aa} K_{bb}} | correlations of tokens
            | always with_error
        correlation_deviation | hidden_layer | \sigma[R_{ab} / \sqrt{R_{aa} R_{bb}}]
            | standard deviations of the correlations of tokens over networks
            | finite if_asked with_error
        """
    ),
}
# Matrices (p, p) of every step and run that order 1/N holds at once.
_HELD = 3


def _estimated(of_run: Callable[[Fluctuations], np.ndarray]) -> tuple[Any, Any]:
    """A field and its standard error: the mean over the runs of draws, and its scatter."""
    name = of_run.__name__

    @wraps(of_run)
    def value(result: TransformerSolution) -> np.ndarray:
        if result.table[name].order or result.table[name].of_inputs == _PAIRS:
            result._require_memory()
        total: Any = 0.0
        squares: Any = 0.0
        for n, run in enumerate(result._runs, start=1):
            change = of_run(run) - total
            total = total + change / n
            squares = squares + change**2 * (n - 1) / n
        count = len(result._runs)
        vars(result)[f"{name}_error"] = np.sqrt(squares / max(count * (count - 1), 1))
        return np.asarray(total)

    def error(result: TransformerSolution) -> np.ndarray:
        vars(result).pop(name, None)
        getattr(result, name)
        return np.asarray(vars(result)[f"{name}_error"])

    return field(value), cached_property(error)


def residual_kernels(run: Fluctuations) -> np.ndarray:
    """C^(l) of every step, last that of the output."""
    return unpacked(run.chain.states[0], True)


def kernels(run: Fluctuations) -> np.ndarray:
    """K^(l) of the stream behind every step, last that of the output."""
    return unpacked(np.concatenate([run.chain.stream, run.chain.states[0][-1:]]), True)


def correlation(run: Fluctuations) -> np.ndarray:
    """K_ab/√(K_aa K_bb)."""
    K = unpacked(run.chain.stream, True)
    own = np.sqrt(np.diagonal(K, axis1=1, axis2=2))
    return ratio(K, own[:, :, None] * own[:, None])


def correlation_deviation(run: Fluctuations) -> np.ndarray:
    """The standard deviation of R_ab/√(R_aa R_bb) over networks, to leading order."""
    c = packed(correlation(run))
    K, V = run.chain.stream, run.stream_variances
    a, b = np.triu_indices(run.chain.field.input_kernel.shape[-1])
    own = np.flatnonzero(a == b)
    joint = np.arange(len(a))
    # δc/c = δR_ab/R_ab − δR_aa/(2 R_aa) − δR_bb/(2 R_bb), without R_ab below.
    first, second = own[a], own[b]
    size = np.sqrt(K[:, first] * K[:, second])
    slopes = [1 / size, -c / (2 * K[:, first]), -c / (2 * K[:, second])]
    total = np.zeros_like(c)
    for x, i in zip(slopes, (joint, first, second), strict=True):
        for y, j in zip(slopes, (joint, first, second), strict=True):
            total += x * y * V[:, i, j]
    variance = np.clip(total, 0, None) / run.chain.field.network.width
    variance[:, own] = 0.0
    return unpacked(np.sqrt(variance), True)


def G11(run: Fluctuations) -> np.ndarray:
    """Cov(C^(l), C^(m)) of all pairs of tokens."""
    return _let_go(run, run.covariances.residual)


def stream_covariance(run: Fluctuations) -> np.ndarray:
    """Cov(R^(l), R^(m)) of the Gram matrices of the stream."""
    return _let_go(run, run.stream_covariances)


def _let_go(run: Fluctuations, values: np.ndarray) -> np.ndarray:
    """Values of a run that are not to be kept, for all pairs of layers."""
    for name in ("covariances", "stream_covariances"):
        vars(run).pop(name, None)
    return values


def kernel_variance(run: Fluctuations) -> np.ndarray:
    """Var R^(l)."""
    own = np.diagonal(run.stream_variances, axis1=1, axis2=2)
    return unpacked(own, True) / run.chain.field.network.width


def mean_shift(run: Fluctuations) -> np.ndarray:
    """⟨C^(l)⟩ − C*^(l)."""
    return unpacked(run.shifts[0], True) / run.chain.field.network.width


def kernel_shift(run: Fluctuations) -> np.ndarray:
    """⟨R^(l)⟩ − K^(l), last that of the output."""
    residual, stream = run.shifts
    shifts = np.concatenate([stream, residual[-1:]])
    return unpacked(shifts, True) / run.chain.field.network.width


def response(run: Fluctuations) -> np.ndarray:
    """∂R^(l)_ab/∂K0_cd, of a pair c < d taken as one variable."""
    change = np.eye(run.chain.states[0].shape[1])
    each = [run._reported(0, change)]
    for l in range(1, len(run.chain.states[1])):
        change = run._carried(l, change) + run._branch(l, change)
        each.append(run._reported(l, change))
    return np.array(each)


def G12(run: Fluctuations) -> np.ndarray:
    """⟨C^(l) C̃^(m)⟩: 1/N times the response of C^(l) to a change of C^(m), with all pairs."""
    size, p = run.chain.states[0].shape
    responses = np.zeros((size, size, p, p))
    for m in range(size):
        responses[m, m] = change = np.eye(p)
        for l in range(m + 1, size):
            responses[l, m] = run._branch(l, change)
            if l < size - 1:
                change = run._carried(l, change) + responses[l, m]
    return responses / run.chain.field.network.width


def _shares(run: Fluctuations, added: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    chain: Any = run.chain
    parts = np.diagonal(chain.kernels.parts[chain.number], axis1=-2, axis2=-1)
    X = np.diagonal(chain.kernels.states[1][chain.number], axis1=-2, axis2=-1)
    return ratio(added(parts), X)


def shares(run: Fluctuations) -> np.ndarray:
    """C_aa over K_aa behind the sum."""
    return _shares(run, lambda parts: parts.sum(1))


def attention_shares(run: Fluctuations) -> np.ndarray:
    """C_aa of attention over K_aa behind the sum."""
    return _shares(run, lambda parts: parts[:, 0])


@dataclass(frozen=True, eq=False)
class TransformerSolution(Computed):
    """The theory of a transformer in numbers; every field is computed when first asked for.

    Layers are its S steps: attention and MLP of every block one after the other, or both at once.
    With P tokens, of all sequences, p = P(P+1)/2 pairs of them and R the Gram matrix of the stream:

    =====================  ==================  =====================================================
    field                  shape               meaning
    =====================  ==================  =====================================================
    residual_kernels       (S+2, P, P)         C^(l), what step l adds, last entry the output kernel
    kernels                (S+2, P, P)         K^(l), last entry the output kernel
    correlation            (S+1, P, P)         K_ab/√(K_aa K_bb)
    correlation_deviation  (S+1, P, P)         its standard deviation over networks, to order 1/√N
    shares                 (S+1, P)            of the mean square behind a step what it adds
    attention_shares       (S+1, P)            and what attention adds, if both are one step
    response               (S+1, p, p)         ∂K^(l)_ab/∂K^(0)_cd
    kernel_variance        (S+1, P, P)         Var R^(l)
    kernel_shift           (S+2, P, P)         ⟨R^(l)⟩ − K^(l) to order 1/N
    mean_shift             (S+2, P, P)         ⟨C^(l)⟩ − C*^(l) to order 1/N
    stream_covariance      (S+1, S+1, p, p)    Cov(R^(l), R^(m))
    G11                    (S+2, S+2, p, p)    Cov(C^(l), C^(m))
    G12                    (S+2, S+2, p, p)    response propagator, with its 1/N
    =====================  ==================  =====================================================

    Each has its standard error in ``<name>_error``: averages over softmax are means over heads,
    ``samples`` of them, drawn in eight independent runs with the same random numbers in every step.
    They are exact, and errors zero, where the softmax is the same for all weights: for one token
    that is seen, or σ_q² σ_k² s = 0. In the errors, MLPs are taken to first order.

    Given R the heads of a layer are independent, and given what they add the N units of the stream:
    R^(0), R^(1), ... is a Markov chain at every N, of which these are the leading orders for
    N, H → ∞ at fixed N/H and head width d.

    Examples
    --------
    >>> import numpy as np
    >>> import fieldtheory as ft
    >>> net = ft.TransformerNetwork(depth=2, heads=4, width=64)
    >>> s = ft.solve(net, np.eye(3), samples=512)
    >>> s.kernels.shape, s.shares.shape, s.G11.shape
    ((6, 3, 3), (5, 3), (6, 6, 6, 6))
    >>> bool((s.correlation[-1][0, 1:] > 0).all())   # attention makes tokens alike
    True
    """

    table = TRANSFORMER_FIELDS
    settings: ClassVar = {"samples": int, "seed": int, "rtol": float}

    network: TransformerNetwork  # type: ignore[assignment]
    input_kernel: np.ndarray
    samples: int = 4096
    seed: int = 0
    rtol: float = DEFAULT_TOLERANCE

    residual_kernels, residual_kernels_error = _estimated(residual_kernels)
    kernels, kernels_error = _estimated(kernels)
    correlation, correlation_error = _estimated(correlation)
    correlation_deviation, correlation_deviation_error = _estimated(correlation_deviation)
    shares, shares_error = _estimated(shares)
    attention_shares, attention_shares_error = _estimated(attention_shares)
    response, response_error = _estimated(response)
    kernel_variance, kernel_variance_error = _estimated(kernel_variance)
    kernel_shift, kernel_shift_error = _estimated(kernel_shift)
    mean_shift, mean_shift_error = _estimated(mean_shift)
    stream_covariance, stream_covariance_error = _estimated(stream_covariance)
    G11, G11_error = _estimated(G11)
    G12, G12_error = _estimated(G12)

    def __repr__(self) -> str:
        net = self.network
        return (
            f"TransformerSolution(depth={net.depth}, heads={net.heads}, tokens={self.inputs}, "
            f"width={net.width}, samples={self.samples})"
        )

    @cached_property
    def _runs(self) -> list[Fluctuations]:
        kernels = TransformerKernels(self.network, self.input_kernel, self.samples, self.seed)
        return [Fluctuations(kernels.run(r)) for r in range(kernels.runs)]

    def _require_memory(self) -> None:
        p = self.inputs * (self.inputs + 1) // 2
        needed = 8.0 * _HELD * RUNS * self.network.steps * p**2
        require_memory(f"order 1/N of {self.inputs} tokens", needed, "use fewer tokens or layers")

    @cached_property
    def _shift(self) -> np.ndarray:
        return warn_if_not_small(self.network, SHIFT, self.kernel_shift, self.kernels)  # type: ignore[arg-type]

    @cached_property
    def _spread(self) -> np.ndarray:
        deviation = np.sqrt(self.kernel_variance)
        return warn_if_not_small(self.network, "standard deviation", deviation, self.kernels)  # type: ignore[arg-type]

    def _shown(self) -> dict[str, Any]:
        return super()._shown() | {"mlp": validation.excerpt(self.network.mlp)}


@named_arguments
def solve_transformer(
    network: TransformerNetwork,
    K0: Any,
    samples: int = 4096,
    seed: int = 0,
    rtol: float = DEFAULT_TOLERANCE,
) -> TransformerSolution:
    """Kernels, responses and fluctuations of a transformer for tokens of the Gram matrix K0.

    ``samples`` is the number of heads whose average stands for that over the weights, ``seed`` that
    of their random numbers; ``rtol`` is for MLPs, as everywhere.
    """
    kernel = checked_tokens(network, K0)
    samples = validation.integer("samples", samples, 2 * RUNS)
    seed = validation.integer("seed", seed, 0)
    rtol = validation.within("rtol", rtol, 1e-14, 0.1)
    return TransformerSolution(network, kernel, samples, seed, rtol)


def checked_tokens(network: TransformerNetwork, K0: Any) -> np.ndarray:
    """K0 as a matrix over the tokens of the sequences of a network, or raise."""
    kernel = np.atleast_2d(validation.input_kernel_array("K0", K0))
    if kernel.ndim != 2 or kernel.shape[0] != kernel.shape[1]:
        raise ValueError(f"K0 must be a matrix (P, P) over the tokens, got shape {np.shape(K0)}")
    network.mask(len(kernel))
    return kernel
