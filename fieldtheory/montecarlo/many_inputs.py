"""Covariances of the kernels of many inputs with one weighted sum of them, without G11.

With the weights w = G21 U of the sources of all layers, which are sparse products,

    Cov(C^(l), Tr U C^(m)) = Σ_k G12^lk a_k ⟨φ_α φ_β(h^(k-1)) ; Ψ⟩,
    Ψ = Σ_j a_j φ(h^(j-1))ᵀ w^(j) φ(h^(j-1))

(F25 eq. (131), contracted). The average is over the signals of one neuron along all layers, for all
inputs at once: paths of a Gaussian with the residual kernels C*, from which it is sampled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.averages.tolerance import relative_tolerance
from fieldtheory.montecarlo.forward import feature_functions
from fieldtheory.montecarlo.plan import BATCHES
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics import chunks
from fieldtheory.numerics.fields import Field, fields_of
from fieldtheory.numerics.infinite_width.vanishing_variances import limit_input_kernel
from fieldtheory.numerics.result import Result
from fieldtheory.numerics.several_inputs.pair_fluctuations import propagated, traced_back
from fieldtheory.numerics.several_inputs.pair_theory import PairTheory
from fieldtheory.numerics.several_inputs.sampled_paths import paths
from fieldtheory.numerics.solution import Solution
from fieldtheory.numerics.symmetric_matrices import unpacked
from fieldtheory.plotting.curves import Curve, over_layers

# Paths have random numbers other than those of the networks of `simulate`.
_PATHS = 100
_FEWEST = 20


FIELDS = fields_of(
    r"""
    weights | - | U_{\alpha\beta} | weights of the kernel of one layer
    values | layer | \mathrm{Cov}(C^{(l)}, \mathrm{Tr}\, U C^{(m)})
        | covariances of the residual kernels with the weighted one
        | order_1 panel=covariances column=covariance
    error | layer | \sigma[\mathrm{Cov}(C^{(l)}, \mathrm{Tr}\, U C^{(m)})]
        | standard errors of the covariances, zero without sampling | order_1 column=error
    """
)


@dataclass(frozen=True, eq=False)
class TraceCovariance(Result):
    """Cov(C^(l), Tr U C^(m)) of all layers l to order 1/N, the result of `covariance_with`.

    Parameters
    ----------
    network : LayeredNetwork
    input_kernel : ndarray, shape (P, P)
        K0.
    weights : ndarray, shape (P, P)
        U.
    values : ndarray, shape (L + 2, P, P)
    error : ndarray, shape (L + 2, P, P)
        Standard errors; zero without sampling.
    layer : int
        m.
    samples : int or None
        Number of sampled paths.
    seed : int

    Examples
    --------
    >>> import fieldtheory as ft
    >>> s = ft.solve(ft.ResidualNetwork(depth=2), [[0.3, 0.1], [0.1, 0.2]])
    >>> covariance_with(s, np.eye(2))
    TraceCovariance(layer=3, inputs=2, samples=None, seed=0)
    """

    table = FIELDS
    settings = {"layer": int, "samples": int, "seed": int}  # noqa: RUF012

    network: LayeredNetwork
    input_kernel: np.ndarray
    weights: np.ndarray
    values: np.ndarray
    error: np.ndarray
    layer: int
    samples: int | None = None
    seed: int = 0

    def __repr__(self) -> str:
        return (
            f"TraceCovariance(layer={self.layer}, inputs={self.values.shape[-1]}, "
            f"samples={self.samples}, seed={self.seed})"
        )

    def _lines(self, field: Field) -> list[Curve]:
        values, errors = (self._over_layers(field, x) for x in (self.values, self.error))
        symbol = f"${field.symbol}$"
        pairs = zip(values, errors, strict=True)
        return [over_layers(field.panel, symbol, value, error) for value, error in pairs]


@named_arguments
def covariance_with(
    solution: Solution,
    U: Any,
    layer: int = -1,
    *,
    samples: int | None = None,
    seed: int = 0,
    progress: bool = False,
) -> TraceCovariance:
    """Covariances of all kernels with Tr U C^(m), to order 1/N, for up to hundreds of inputs.

    They are G11 contracted with U: what the kernels of all layers learn, to this order, from a
    weight U of the kernel of one layer.

    Parameters
    ----------
    solution : Solution
        Of one network and a kernel (P, P).
    U : array_like, shape (P, P)
        Its symmetric part matters.
    layer : int
        m, from 0 to L + 1; negative ones count from the output, −1.
    samples : int, optional
        Sample so many paths of one neuron, at least 20, instead of contracting the G11 of the
        solution, which takes memory that grows as L² P⁴. For paths the memory grows as L P², the
        time as samples L P².
    seed : int
        Seed of the random numbers, >= 0.
    progress : bool
        Show a progress bar on stderr.

    Returns
    -------
    TraceCovariance
        With standard errors from independent batches of paths.

    Raises
    ------
    TypeError, ValueError
        If an argument is not allowed, or G11 needs more memory than there is.

    Notes
    -----
    Signals are drawn with the kernels of infinite width, and the means of Ψ and φφ are those of
    the theory, so the estimate has no bias at any number of paths.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> s = ft.solve(ft.ResidualNetwork(depth=3), [[0.3, 0.1], [0.1, 0.2]])
    >>> U = [[1.0, 0.5], [0.5, -1.0]]
    >>> exact, sampled = covariance_with(s, U), covariance_with(s, U, samples=4000, seed=1)
    >>> sampled.values.shape
    (5, 2, 2)
    >>> bool((np.abs(sampled.values - exact.values) <= 4 * sampled.error).all())
    True
    """
    if not isinstance(solution, Solution):
        raise TypeError(f"solution must be a Solution, got {solution!r}")
    if solution.input_kernel.ndim != 2 or solution.network.batch_shape:
        raise ValueError(f"solution must be of one network and a kernel (P, P), got {solution!r}")
    weights = validation.finite_array("U", U)
    if weights.shape != solution.input_kernel.shape:
        raise ValueError(f"U must have shape {solution.input_kernel.shape}, got {weights.shape}")
    size = solution.network.depth + 2
    if isinstance(layer, bool) or layer not in range(-size, size):
        raise ValueError(f"layer must be an integer from {-size} to {size - 1}, got {layer!r}")
    m, seed = int(layer) % size, validation.integer("seed", seed, 0)
    if samples is not None:
        samples = validation.integer("samples", samples, _FEWEST)
    first, second = np.triu_indices(len(weights))
    packed = (weights + weights.T)[first, second] / np.where(first == second, 2.0, 1.0)
    if samples is None:
        values = solution.G11[:, m] @ packed
        error = np.zeros_like(values)
    else:
        with relative_tolerance(solution.rtol):
            theory = solution.pair_theory
        values, error = _sampled(solution, theory, packed, m, samples, seed, progress)
    found = unpacked(values, True), unpacked(error, True)
    return TraceCovariance(
        solution.network, solution.input_kernel, weights, *found, m, samples, seed
    )


def _sampled(
    solution: Solution,
    theory: PairTheory,
    packed: np.ndarray,
    m: int,
    samples: int,
    seed: int,
    progress: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard errors over the batches, shape (L + 2, p)."""
    skips = theory.layers.skips
    weights = traced_back(skips, theory.gains, packed, m)
    count = min(BATCHES, samples)
    sizes = np.diff(np.linspace(0, samples, count + 1).astype(int))
    batches: Any = _sources(solution, theory, weights, sizes, seed)
    if progress:
        batches = chunks.with_progress(batches, count, "covariance_with")
    mean, squares, done = np.zeros_like(weights), np.zeros_like(weights), 0
    for size, source in zip(sizes, batches, strict=True):
        step = propagated(skips, theory.gains, source) - mean
        done += size
        mean += step * (size / done)
        squares += size * step**2 * ((done - size) / done)
    width = solution.network.width
    # Of batches of about one size.
    return mean / width, np.sqrt(squares / samples / (count - 1)) / width


def _sources(
    solution: Solution, theory: PairTheory, weights: np.ndarray, sizes: np.ndarray, seed: int
) -> Iterator[np.ndarray]:
    """a_k ⟨φ_α φ_β(h^(k-1)) ; Ψ⟩ from every batch of paths, shape (L + 2, p)."""
    psi = feature_functions(solution.network)
    layers, C = theory.layers, solution.residual_kernels
    inputs = C.shape[-1]
    first, second = np.triu_indices(inputs)
    a = layers.weights.reshape(len(C), -1)[:, 0]
    drawn = np.concatenate([limit_input_kernel(solution.network, C[0])[None], C[1:-1]])
    skips = np.asarray(solution.network.skip_scales)
    # ⟨g⟩ a, and the weights as matrices whose sum over all entries is that over the pairs.
    means = (C - layers.biases.reshape(len(C), -1)[:, :1, None])[1:]
    matrices = np.zeros((len(C) - 1, inputs, inputs))
    matrices[:, first, second] += weights[1:] / 2
    matrices[:, second, first] += weights[1:] / 2
    expected = float(np.sum(matrices * means))
    for number, size in enumerate(sizes):
        key = np.random.SeedSequence(seed, spawn_key=(_PATHS, number))
        sums = np.zeros_like(means)
        for h in paths(drawn, skips, size, key):
            n = h.shape[-1]
            features, Psi = [psi(row) for row in h], np.full(n, -expected)
            for l, row in enumerate(features):
                for x in row:
                    Psi += a[l + 1] * np.einsum("in,in->n", x, matrices[l] @ x)
            for l, values in enumerate(features):
                for x in values:
                    sums[l] += a[l + 1] * ((x * Psi) @ x.T)
                sums[l] -= Psi.sum() * means[l]
        source = np.zeros_like(weights)
        source[1:] = (sums / size)[:, first, second]
        yield source
