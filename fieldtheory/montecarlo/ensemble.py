"""The result of `simulate` and the estimates in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fieldtheory.montecarlo.sampling.moments import Moments, Summary
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.fields import fields_of
from fieldtheory.numerics.recursion import accumulate, ratio
from fieldtheory.numerics.result import Computed
from fieldtheory.numerics.symmetric_matrices import packed, positions, unpacked

FIELDS = fields_of(
    r"""
    mean | layer | \langle C^{(l)} \rangle | means of the residual kernels
        | with_error panel=kernels column=C
    kernel_mean | layer | \langle K^{(l)} \rangle | means of the kernels
        | with_error panel=kernels column=K
    covariance | layer layer_ | \mathrm{Cov}(C^{(l)}, C^{(m)})
        | covariances of the residual kernels of two layers
        | with_error order_1 diagonal=\mathrm{Var}\,C^{(l)} panel=fluctuations column=var_C
    kernel_covariance | layer layer_ | \mathrm{Cov}(K^{(l)}, K^{(m)})
        | covariances of the kernels of two layers
        | with_error order_1 diagonal=\mathrm{Var}\,K^{(l)} panel=fluctuations column=var_K
    kernel_variance | hidden_layer | \mathrm{Var}\,K^{(l)}
        | variances of the kernels of the hidden layers | with_error order_1
    four_point | hidden_layer | V^{(l)} | four-point vertices of the hidden layers
        | with_error panel=four-point_vertex column=V
    output_kurtosis | - | \langle y^4 \rangle / \langle y^2 \rangle^2 - 3
        | excess kurtosis of the outputs | with_error order_1 of_input
    cross_covariance | layer layer_ input input_ other_input other_input_
        | \mathrm{Cov}(C_{\alpha\beta}^{(l)}, C_{\gamma\delta}^{(m)})
        | covariances of the residual kernels of two layers and two pairs of inputs
        | with_error order_1 of_none
    cross_four_point | hidden_layer input input_ other_input other_input_
        | V_{\alpha\beta, \gamma\delta}^{(l)}
        | four-point vertices of the hidden layers of two pairs of inputs | with_error of_none
    residual_kernels | sample layer | C^{(l)} | residual kernels of every network
    """
)
# Relative fluctuations that are rounding.
_ROUNDING = 1e-14


@dataclass(frozen=True, eq=False)
class Ensemble(Computed):
    """Statistics of random finite networks, each with its standard error in ``<name>_error``.

    With L the depth, P the number of inputs, C^(l) the residual kernels of one network (C^(0) is
    the input kernel, C^(L+1) that of the output) and K^(l) = γ_l² K^(l-1) + C^(l) its kernels
    (K^(L+1) = C^(L+1)), as in `Solution`:

    =====================  ================================  ======================================
    field                  shape                             meaning
    =====================  ================================  ======================================
    mean                   (L+2,) or (L+2, P, P)             ⟨C^(l)⟩
    covariance             (L+2, L+2) or (L+2, L+2, P, P)    Cov(C^(l), C^(m)), same pair of inputs
    kernel_mean            as mean                           ⟨K^(l)⟩
    kernel_covariance      as covariance                     Cov(K^(l), K^(m))
    kernel_variance        (L+1,) or (L+1, P, P)             Var K^(l) of the hidden layers
    four_point             the same                          V^(l), see below; None for width 1
    output_kurtosis        () or (P,)                        excess kurtosis of the outputs
    cross_covariance       (L+2, L+2, P, P, P, P)            Cov(C_αβ^(l), C_γδ^(m)), or None
    cross_four_point       (L+1, P, P, P, P)                 V^(l) of two pairs, or None
    residual_kernels       (samples, L+2) or (..., P, P)     C^(l) of every network, or None
    =====================  ================================  ======================================

    The four-point vertex is V^(l) = N Cov(h_i² , h_j²) for two neurons i ≠ j of layer l, for pairs
    of inputs N Cov(h_iα h_iβ, h_jα h_jβ), and of two pairs N Cov(h_iα h_iβ, h_jγ h_jδ). Given
    C^(L+1) an output is Gaussian, so its excess kurtosis is ⟨y⁴⟩/⟨y²⟩² − 3 =
    3 Var C^(L+1) / ⟨C^(L+1)⟩²; 0 where the output vanishes. Of blocks of two matrices the K^(l) are
    Gram matrices of the stream, and the h_i its units, see `Solution`.

    Standard errors come from the jackknife over ``batches`` independent batches. A confidence
    interval is estimate ± t error with the quantile t of Student's distribution of
    ``batches`` − 1 degrees of freedom. Entries that do not fluctuate, such as C^(0), have error 0.
    A 95 % interval of a mean covers at any number of samples; that of a variance, if the kernels
    are about normal, covers 89 % of the time for 20 samples, 92 % for 80, 94 % from 200 on.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> e = ft.simulate(ft.ResidualNetwork(depth=2, width=100), 0.3, samples=400, seed=1)
    >>> e.mean.shape, e.mean_error.shape, float(e.mean_error[0])
    ((4,), (4,), 0.0)
    """

    table = FIELDS
    settings = {"samples": int, "seed": int, "method": str, "batches": int}  # noqa: RUF012

    network: LayeredNetwork
    input_kernel: np.ndarray
    samples: int
    seed: int
    method: str
    batches: int
    mean: np.ndarray
    mean_error: np.ndarray
    covariance: np.ndarray
    covariance_error: np.ndarray
    kernel_mean: np.ndarray
    kernel_mean_error: np.ndarray
    kernel_covariance: np.ndarray
    kernel_covariance_error: np.ndarray
    kernel_variance: np.ndarray
    kernel_variance_error: np.ndarray
    output_kurtosis: np.ndarray
    output_kurtosis_error: np.ndarray
    four_point: np.ndarray | None = None
    four_point_error: np.ndarray | None = None
    cross_covariance: np.ndarray | None = None
    cross_covariance_error: np.ndarray | None = None
    cross_four_point: np.ndarray | None = None
    cross_four_point_error: np.ndarray | None = None
    residual_kernels: np.ndarray | None = None

    def __repr__(self) -> str:
        net = self.network
        return (
            f"Ensemble(depth={net.depth}, activation={net.activation.name}, "
            f"inputs={self.inputs}, width={net.width}, samples={self.samples}, "
            f"method={self.method}, seed={self.seed})"
        )


def estimates(
    network: LayeredNetwork, kernel: np.ndarray, across: bool, summary: Summary
) -> dict[Any, Any]:
    """The estimates of `Ensemble` from the moments of a sample."""
    first = packed(np.atleast_2d(kernel))
    second = summary["second"].covariance
    mean, covariance = of_layers(summary["residual"], len(first), across)
    shape = (*mean.shape, len(first)) if across else mean.shape
    spread = summary["spread"].mean.reshape(shape)
    vertex = network.width * second.reshape(shape) - spread
    kernels = None
    if "kernels" in summary:
        kernels = _without_rounding(*of_layers(summary["kernels"], len(first), across))
        mean, covariance = _without_rounding(mean, covariance)
    mean = np.concatenate([first[None], mean])
    return fields(network, kernel, mean, covariance, vertex, kernels)


def _without_rounding(mean: np.ndarray, covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same, covariances of what fluctuates by rounding alone 0: a norm may fix a variance."""
    own = np.diagonal(_of_own_pairs(covariance, covariance.ndim > 3)).T
    moving = own > (_ROUNDING * mean) ** 2
    if covariance.ndim > 3:
        both = moving[:, None, :, None] & moving[None, :, None]
    else:
        both = moving[:, None] & moving
    return mean, np.where(both, covariance, 0.0)


def groups_of(values: np.ndarray, across: bool) -> np.ndarray:
    """C^(l), l >= 1, of networks (n, L+1, p): a group for each pair, ``across`` one of all."""
    return values.reshape(len(values), 1, -1) if across else values.swapaxes(1, 2)


def of_layers(moments: Moments, pairs: int, across: bool) -> tuple[np.ndarray, np.ndarray]:
    """Means (L+1, p) and covariances (L+1, L+1, p) of `groups_of`, ``across`` (L+1, L+1, p, p)."""
    if not across:
        return moments.mean.T, np.moveaxis(moments.covariance, 0, -1)
    mean = moments.mean.reshape(-1, pairs)
    return mean, moments.covariance.reshape(2 * mean.shape).swapaxes(1, 2)


def fields(
    network: LayeredNetwork,
    kernel: np.ndarray,
    mean: np.ndarray,
    covariance: np.ndarray,
    vertex: np.ndarray,
    kernels: tuple[np.ndarray, np.ndarray] | None = None,
) -> dict[str, np.ndarray]:
    """The fields of `Ensemble`, from ⟨C^(l)⟩ (L+2, p), Cov of C^(l), l >= 1, and V^(l)."""
    matrix, across = kernel.ndim > 0, vertex.ndim > 2
    covariance = with_input_layer(covariance)
    own = _of_own_pairs(covariance, across)
    if kernels is None:
        skips = layer_coefficients(network).skips
        kernel_mean = accumulate(skips, mean)
        kernel_covariance = accumulate(skips, accumulate(skips, own).swapaxes(0, 1))
    else:
        kernel_mean, kernel_covariance = kernels[0], _of_own_pairs(kernels[1], across)
    statistics = {
        "mean": mean,
        "covariance": own,
        "kernel_mean": kernel_mean,
        "kernel_covariance": kernel_covariance,
        "kernel_variance": np.diagonal(kernel_covariance)[:, :-1].T,
    }
    if network.width > 1:
        statistics["four_point"] = np.diagonal(vertex, axis1=1, axis2=2) if across else vertex
    statistics = {name: unpacked(values, matrix) for name, values in statistics.items()}
    output = statistics["mean"][-1], statistics["covariance"][-1, -1]
    size, variance = map(np.diagonal, output) if matrix else output
    statistics["output_kurtosis"] = 3 * ratio(variance, size**2)
    if across:
        statistics["cross_covariance"] = _of_inputs(covariance)
        if network.width > 1:
            statistics["cross_four_point"] = _of_inputs(vertex)
    return statistics


def with_input_layer(covariance: np.ndarray) -> np.ndarray:
    """Zeros for C^(0), which does not fluctuate: (L+1, L+1, ...) -> (L+2, L+2, ...)."""
    return np.pad(covariance, [(1, 0), (1, 0)] + [(0, 0)] * (covariance.ndim - 2))


def _of_own_pairs(covariance: np.ndarray, across: bool) -> np.ndarray:
    """Those of every pair of inputs with itself."""
    return np.diagonal(covariance, axis1=-2, axis2=-1) if across else covariance


def _of_inputs(pairs: np.ndarray) -> np.ndarray:
    """(..., p, p) -> (..., P, P, P, P)."""
    places = positions(pairs.shape[-1])
    return pairs[..., places, :][..., places]
