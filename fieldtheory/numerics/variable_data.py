r"""Variances of kernels from variable data beside those from the weights.

F25 names the variability of data as its outlook. Over inputs, K^(0) is random with mean K̄ and
covariance Σ, and over networks of width N the kernels of given inputs fluctuate by G11. Together

    Var K^(l) = J^(l) Σ J^(l)ᵀ + Σ_km A²_lk A²_lm G11^km,   J^(l) = ∂K^(l)/∂K^(0) at K̄,

to first order in Σ and 1/N, by the law of total variance. For two inputs J has the entries of
`Solution.full_response`, between (K_αα, K_αβ, K_ββ). With the spread δ of K^(0) and q = ½ J' δδ,
c = J'' δδδ/6 the next order is ⟨q⟩ in the mean of K^(l), and in its variance

    2 Cov(J δ, q) + Var q + 2 Cov(J δ, c).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.networks.family import DeepNetwork, LayeredNetwork, single_network
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.networks.residual import input_kernel, input_rows
from fieldtheory.numerics.fields import fields_of
from fieldtheory.numerics.recursion import ratio
from fieldtheory.numerics.result import Computed
from fieldtheory.numerics.solution import solve
from fieldtheory.numerics.symmetric_matrices import packed, unpacked
from fieldtheory.numerics.validity import ValidityWarning

# Second order of the variance, relative to the first, from which on the linear order is doubtful.
_DOUBTFUL = 0.2
# Of differences of responses, relative to the smallest eigenvalue of K̄: J' to 1e-6, J'' to 1e-5.
_STEP = 1e-3

FIELDS = fields_of(
    r"""
    input_covariance | - | \Sigma | covariances of the entries of the input kernel over the data
        | always of_pairs
    kernels | hidden_layer | K^{(l)}(\bar K^{(0)}) | kernels of the mean input kernel
        | always column=K
    mean_correction | hidden_layer | \langle q^{(l)} \rangle
        | mean kernels over the data less those of the mean input kernel, second order
        | always column=mean_correction
    data_variance | hidden_layer | J^{(l)} \Sigma J^{(l)\mathsf{T}}
        | variances of the kernels over the data, linear order
        | always panel=variances column=var_data
    data_variance_2 | hidden_layer
        | 2 \mathrm{Cov}(J^{(l)} \delta, q^{(l)} + c^{(l)}) + \mathrm{Var}\,q^{(l)}
        | second order of the variances over the data | always column=var_data_2
    network_variance | hidden_layer | \mathrm{Var}_W K^{(l)}
        | variances of the kernels over networks
        | always order_1 panel=variances column=var_networks
    data_share | hidden_layer
        | J \Sigma J^\mathsf{T} / (J \Sigma J^\mathsf{T} + \mathrm{Var}_W K^{(l)})
        | share of the data in the variances of the kernels | always panel=share column=share
    """
)


@dataclass(frozen=True, eq=False)
class DataVariability(Computed):
    """Variances of kernels over data and over networks, the result of `data_variability`.

    ``input_kernel`` is the mean K̄ of K0. With p = 1 for one input, p = 3 for two:

    ================  ==========================  ==============================================
    field             shape                       meaning
    ================  ==========================  ==============================================
    input_covariance  () or (p, p)                Σ, of the entries (00), (01), (11) of K0
    kernels           (L+1,) or (L+1, 2, 2)       K^(l) at K̄
    mean_correction   the same                    ⟨K^(l)⟩ − K^(l) over the data, second order
    data_variance     the same                    J Σ Jᵀ
    data_variance_2   the same                    what the second order adds to the variance
    network_variance  the same                    Var K^(l) over networks of width N, at K̄
    data_share        the same                    data_variance/(data_variance + network_variance)
    ================  ==========================  ==============================================

    Examples
    --------
    >>> import fieldtheory as ft
    >>> data_variability(ft.ResidualNetwork(depth=2), [0.04, 0.05, 0.06])
    DataVariability(samples=3, inputs=1, depth=2, width=500)
    """

    table = FIELDS
    settings = {"samples": int}  # noqa: RUF012

    network: LayeredNetwork
    input_kernel: np.ndarray
    samples: int
    input_covariance: np.ndarray
    kernels: np.ndarray
    mean_correction: np.ndarray
    data_variance: np.ndarray
    data_variance_2: np.ndarray
    network_variance: np.ndarray
    data_share: np.ndarray

    def __repr__(self) -> str:
        net = self.network
        return (
            f"DataVariability(samples={self.samples}, inputs={self.inputs}, depth={net.depth}, "
            f"width={net.width})"
        )


@named_arguments
def data_variability(
    network: LayeredNetwork, K0: Any = None, *, X: Any = None, inputs: int = 1
) -> DataVariability:
    """Variances of the kernels of all layers from variable data and from the weights.

    The equations are those at the head of `fieldtheory.numerics.variable_data`.

    Parameters
    ----------
    network : LayeredNetwork
        Of any family, a `BlockNetwork` too; without batch axes.
    K0 : array_like, shape (n,) or (n, 2, 2)
        Kernels of n >= 2 samples of one input or of two, the law of the data.
    X : array_like, shape (n, d)
        The data themselves instead of K0.
    inputs : {1, 2}
        With X: one input, each of the n; or two, each pair of different ones in both orders.

    Returns
    -------
    DataVariability

    Raises
    ------
    TypeError, ValueError
        If an argument is not allowed, the mean of two-input kernels is singular, or φ has no
        response there.

    Warns
    -----
    ValidityWarning
        If the second order changes the variance over the data by more than a fifth in some layer.

    Notes
    -----
    Averages are those over the samples, each with the weight 1/n. ``data_variance_2`` has all terms
    up to δ⁴, and J', J'' are differences of responses, see the settings. Weights fluctuate by
    ``network_variance`` at K̄ alone: its mean over the data differs by terms of order Σ/N.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.ResidualNetwork(depth=3, branch_scale=0.5, width=100)
    >>> X = np.random.default_rng(0).uniform(0.2, 1.0, (50, 8))
    >>> found = data_variability(net, X=X, inputs=2)
    >>> found.data_share[:, 0, 1].round(2)
    array([1.  , 0.99, 0.97, 0.93])
    """
    single_network(network, DeepNetwork, function="data_variability")
    samples = _samples(network, K0, X, inputs)
    matrix = samples.ndim == 3
    mean = samples.mean(axis=0)
    size = float(np.linalg.eigvalsh(mean)[0] if matrix else mean)
    if size <= len(samples) * np.finfo(float).eps * np.max(mean):
        raise ValueError(
            f"K0 must have a mean that is positive definite, got {mean.tolist()}: there are no "
            "responses at inputs that are zero or parallel"
        )
    solution = solve(network, mean)
    spread = packed(samples - mean) if matrix else (samples - mean)[:, None]
    J, slopes, curvatures = _derivatives(network, mean, _STEP * size)
    count, p = spread.shape
    squares = (spread[:, :, None] * spread[:, None]).reshape(count, -1)
    covariance, third = spread.T @ spread / count, (squares.T @ spread / count).reshape(p, p, p)
    fourth = (squares.T @ squares / count).reshape(p, p, p, p)
    joint = fourth - np.multiply.outer(covariance, covariance)
    correction = np.einsum("flqe,ef->lq", slopes, covariance) / 2
    data = np.einsum("lqe,lqf,ef->lq", J, J, covariance)
    second = (
        np.einsum("lqe,glqf,efg->lq", J, slopes, third)
        + np.einsum("flqe,hlqg,efgh->lq", slopes, slopes, joint, optimize=True) / 4
        + np.einsum("lqe,ghlqf,efgh->lq", J, curvatures, fourth) / 3
    )
    worst = ratio(np.abs(second), data).max()
    if worst > _DOUBTFUL:
        warnings.warn(
            f"the second order changes variances over the data by {worst:.2g} of the linear order "
            f"at depth {network.depth}: the spread of K0 is too large for responses alone",
            ValidityWarning,
            stacklevel=validation.level_of_user(),
        )
    correction, data, second = (unpacked(each, matrix) for each in (correction, data, second))
    weights = solution.kernel_variance
    return DataVariability(
        network, mean, count, covariance if matrix else covariance[0, 0],
        solution.kernels[: network.depth + 1], correction, data, second, weights,
        ratio(data, data + weights),
    )  # fmt: skip


def _samples(network: LayeredNetwork, K0: Any, X: Any, inputs: Any) -> np.ndarray:
    """Kernels of the samples, (n,) or (n, 2, 2)."""
    if (K0 is None) == (X is None):
        raise ValueError("one of K0 and X must be given")
    if X is not None:
        if inputs not in (1, 2):
            raise ValueError(f"inputs must be 1 or 2, got {inputs!r}")
        kernel = input_kernel(input_rows("X", X), network)
        own = np.diagonal(kernel)
        if inputs == 1:
            samples = own
        else:
            alpha, beta = np.nonzero(~np.eye(len(kernel), dtype=bool))
            entries = own[alpha], kernel[alpha, beta], kernel[beta, alpha], own[beta]
            samples = np.stack(entries, axis=-1).reshape(-1, 2, 2)
    else:
        samples = validation.input_kernel_array("K0", K0)
    if samples.shape[1:] not in ((), (2, 2)) or samples.ndim == 0 or len(samples) < 2:
        raise ValueError(
            f"K0 must have shape (n,) or (n, 2, 2) with n >= 2 samples, got {samples.shape}"
        )
    return samples


def _jacobian(solution: Any) -> np.ndarray:
    """J, (..., L+1, p, p), between the packed entries of K^(l) and of K^(0)."""
    if solution.inputs == 1:
        return np.asarray(solution.response[..., None, None])
    full = solution.full_response
    J = np.zeros((*full.shape[:-3], 3, 3))
    J[..., 0, 0], J[..., 2, 2] = full[..., 0, 0, 2], full[..., 1, 1, 2]
    # Sources are (αα, ββ, αβ), packed entries (αα, αβ, ββ).
    J[..., 1, :] = full[..., 0, 1, (0, 2, 1)]
    return J


def _derivatives(network: LayeredNetwork, mean: np.ndarray, step: float) -> tuple[Any, ...]:
    """J (L+1, p, p), and ∂J/∂K_f and ∂²J/∂K_f∂K_g with the axes f, g of K^(0) in front."""
    unit = np.eye(1 if mean.ndim == 0 else 3)
    first, second = np.triu_indices(len(unit))
    along = np.where((first == second)[:, None], unit[first], unit[first] + unit[second])
    moves = np.concatenate([0 * unit[:1], along, -along])
    shifted = mean + step * unpacked(moves, mean.ndim > 0)
    centre, *around = _jacobian(solve(network, shifted))
    plus, minus = np.reshape(around, (2, len(along), *centre.shape))
    own = first == second
    slopes = (plus - minus)[own] / (2 * step)
    # The second derivative along e + f has those along e and f, and twice the mixed one.
    bends = (plus + minus - 2 * centre) / step**2
    curvatures = np.empty((len(unit), *slopes.shape))
    for f, g, bend in zip(first, second, bends, strict=True):
        mixed = bend if f == g else (bend - bends[own][f] - bends[own][g]) / 2
        curvatures[f, g] = curvatures[g, f] = mixed
    return centre, slopes, curvatures
