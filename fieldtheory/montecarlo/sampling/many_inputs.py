"""Covariances of the kernels of many inputs with one weighted sum of them, without G11.

With the weights w = G21 U of the sources of all layers, which are sparse products,

    Cov(C^(l), Tr U C^(m)) = Σ_k G12^lk a_k ⟨φ_α φ_β(h^(k-1)) ; Ψ⟩,
    Ψ = Σ_j a_j φ(h^(j-1))ᵀ w^(j) φ(h^(j-1))

(F25 eq. (131), contracted). The average is over the signals of one neuron along all layers, for all
inputs at once: paths of a Gaussian with the residual kernels C*. The parts of φφ and Ψ of first and
second order in Hermite polynomials are products of kernels; only the rest is sampled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.averages.routes import relative_tolerance
from fieldtheory.montecarlo.sampling.forward import feature_functions
from fieldtheory.networks.dispatch import not_there
from fieldtheory.networks.family import DeepNetwork, LayeredNetwork
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics import chunks
from fieldtheory.numerics.fields import Field, fields_of
from fieldtheory.numerics.infinite_width.kernels import limit_input_kernel
from fieldtheory.numerics.result import Computed
from fieldtheory.numerics.several_inputs.pair_curvatures import mean_slopes
from fieldtheory.numerics.several_inputs.pair_fluctuations import propagated, traced_back
from fieldtheory.numerics.several_inputs.pair_theory import PairTheory
from fieldtheory.numerics.several_inputs.sampled_paths import paths
from fieldtheory.numerics.solution import Solution
from fieldtheory.numerics.symmetric_matrices import packed as packed_pairs
from fieldtheory.numerics.symmetric_matrices import unpacked
from fieldtheory.plotting.curves import Curve

# Paths have random numbers other than those of the networks of `simulate`.
_PATHS = 100
_FEWEST = 20
# Batches, whose scatter is the error; scrambling the points of one costs as much as 100 paths.
BATCHES = 16


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
class TraceCovariance(Computed):
    """Cov(C^(l), Tr U C^(m)) of all layers l to order 1/N, the result of `covariance_with`.

    Parameters
    ----------
    network : DeepNetwork
    input_kernel : ndarray, shape (P, P)
        K0.
    weights : ndarray, shape (P, P)
        U.
    values : ndarray, shape (L + 2, P, P)
    error : ndarray, shape (L + 2, P, P)
        Standard errors; without sampling zero, of blocks what is left out of G11.
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

    network: DeepNetwork
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
        bars = super()._lines(self.table["error"])
        lines = zip(super()._lines(field), bars, strict=True)
        return [replace(line, error=bar.y) for line, bar in lines]


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
        Sample so many paths of one neuron of residual networks, at least 20, instead of
        contracting the G11 of the solution, which takes memory that grows as L² P⁴. For paths the
        memory grows as L P², the time as samples L P².
    seed : int
        Seed of the random numbers, >= 0.
    progress : bool
        Show a progress bar on stderr.

    Returns
    -------
    TraceCovariance
        With standard errors from independent batches of paths, of blocks with what is left out of
        their G11.

    Raises
    ------
    TypeError, ValueError
        If an argument is not allowed, or G11 needs more memory than there is.

    Notes
    -----
    Signals are drawn with the kernels of infinite width, and the means of Ψ and φφ are those of
    the theory, so the estimate has no bias at any number of paths, up to 1e-3 of the part of first
    order where φ has kinks and inputs are nearly parallel.

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
    network = getattr(solution, "network", None)
    if "covariance_with" in getattr(network, "without", {}):
        raise not_there("covariance_with", network)
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
        if solution.network.markov:
            raise not_there("samples", solution.network)
        samples = validation.integer("samples", samples, _FEWEST)
    batches, shares = covariance_batches(solution, weights, m, samples, seed, progress)
    values, error = mean_and_error(batches, shares)
    if solution.network.markov:
        error = solution.G11_error[:, m] @ np.abs(pair_weights(weights))
    values, error = unpacked(values, True), unpacked(error, True)
    return TraceCovariance(
        solution.network, solution.input_kernel, weights, values, error, m, samples, seed
    )


def pair_weights(U: np.ndarray) -> np.ndarray:
    """Weights of the pairs α <= β, of which the sum is Tr U C."""
    return packed_pairs(U + U.T) / packed_pairs(1.0 + np.eye(len(U)))


def covariance_batches(
    solution: Solution,
    weights: np.ndarray,
    m: int,
    samples: int | None,
    seed: int,
    progress: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Independent estimates (n, L + 2, p) and their shares of the paths; the exact one for None."""
    packed = pair_weights(weights)
    if samples is None:
        return (solution.G11[:, m] @ packed)[None], np.ones(1)
    with relative_tolerance(solution.rtol):
        theory = solution.chain.pairs
    skips = theory.layers.skips
    weighted = Weighted(solution, theory, packed, m)
    count = min(BATCHES, samples)
    sizes = np.diff(np.linspace(0, samples, count + 1).astype(int))
    batches: Any = (weighted.sampled(size, seed, number) for number, size in enumerate(sizes))
    if progress:
        batches = chunks.with_progress(batches, count, "covariance_with")
    unsampled = propagated(skips, theory.gains, weighted.low_orders())
    estimates = np.array(
        [propagated(skips, theory.gains, source) + unsampled for source in batches]
    )
    return estimates / solution.network.width, sizes / samples


def mean_and_error(batches: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean of independent estimates of about one size, and its standard error, without axis 0.

    The error of a single estimate is zero.
    """
    mean = np.tensordot(shares, batches, 1)
    squares = np.tensordot(shares, (batches - mean) ** 2, 1)
    return mean, np.sqrt(squares / max(len(batches) - 1, 1))


class Weighted:
    """Correlators of a_k φφ(h^(k-1)) with Ψ = Σ_j a_j φ(h^(j-1))ᵀ w^(j) φ(h^(j-1)).

    The parts of first and second order in Hermite polynomials of both are products of kernels;
    what is left of one is orthogonal to these parts of the other, and sampled. Of φ that jumps
    nothing is taken apart: slopes of nearly parallel signals cancel.
    """

    def __init__(self, solution: Solution, theory: PairTheory, packed: np.ndarray, m: int) -> None:
        network, C = solution.network, solution.residual_kernels
        assert isinstance(network, LayeredNetwork)
        self.gains, self.skips = theory.gains, theory.layers.skips
        self.hidden_skips, self.K = np.asarray(network.skip_scales), theory.signals.K
        self.C = np.concatenate([limit_input_kernel(network, C[0])[None], C[1:-1]])
        self.features = feature_functions(network)
        a = theory.layers.weights.reshape(len(C), -1)[1:, :1, None]
        # ⟨g⟩ a, and the weights as matrices whose sum over all entries is that over the pairs.
        self.means = (C[1:] - theory.layers.biases.reshape(len(C), -1)[1:, :1, None]).copy()
        weights = traced_back(self.skips, theory.gains, packed, m)
        self.a, self.weights = a[:, 0, 0], _halved(weights[1:])
        self.slopes, self.squares = np.zeros((2, *self.K.shape))
        self.taken_apart = not any(len(psi.jumping) for psi in theory.signals.functions)
        if self.taken_apart:
            traced = [theory.gains.traced(l, weights[l]) for l in range(1, len(C))]
            self.squares = _halved(np.stack(traced))
            if not all(psi.parity for psi in theory.signals.functions):
                self.slopes = a * mean_slopes(theory.signals)
        self.vector = 2 * (self.weights * self.slopes).sum(axis=2)

    def low_orders(self) -> np.ndarray:
        """The correlators of the parts of first and second order, shape (L + 2, p)."""
        products, vectors = self.kernels_with()
        correlators = np.zeros((len(self.K) + 1, *packed_pairs(self.K[0]).shape))
        for k, parts in enumerate(zip(products, vectors, strict=True)):
            correlators[k + 1] = self._source(k, *parts)
        return correlators

    def kernels_with(self) -> tuple[np.ndarray, np.ndarray]:
        """Correlators of h h and of h with these parts of Ψ, (L + 1, P, P) and (L + 1, P)."""
        size = len(self.K)
        products, vectors = np.zeros_like(self.K), np.zeros_like(self.vector)
        # Cov(h^(k), h^(j)) is K of the earlier layer times the skips between them.
        later, vector = np.zeros_like(self.K), np.zeros_like(self.vector)
        V, v, skips = self.squares, self.vector, np.append(self.hidden_skips, 0.0)
        for k in range(size - 1, -1, -1):
            next_V, next_v = (later[k + 1], vector[k + 1]) if k + 1 < size else (0.0, 0.0)
            later[k] = V[k] + skips[k] ** 2 * next_V
            vector[k] = v[k] + skips[k] * next_v
        earlier, before = np.zeros_like(self.K[0]), np.zeros_like(v[0])
        for k, K in enumerate(self.K):
            products[k] = 2 * (K @ later[k] @ K + earlier)
            vectors[k] = K @ vector[k] + before
            earlier = skips[k] ** 2 * (earlier + K @ V[k] @ K)
            before = skips[k] * (before + K @ v[k])
        return products, vectors

    def _source(self, k: int, products: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Parts of first and second order of a_k φφ, averaged with h h and h, (p,)."""
        linear = self.slopes[k] * z[:, None]
        source = packed_pairs(linear + linear.T)
        if self.taken_apart:
            source = source + self.gains.kernel_change(k + 1, packed_pairs(products))
        return np.asarray(source)

    def sampled(self, size: int, seed: int, number: int) -> np.ndarray:
        """Remainders of higher order, from one batch of paths, shape (L + 2, p)."""
        sums, squares = np.zeros((2, *self.K.shape))
        linear = np.zeros(self.K.shape[:2])
        for h, features, Psi in self.remainders(size, seed, number):
            for l, row in enumerate(features):
                for x in row:
                    sums[l] += self.a[l] * ((x * Psi) @ x.T)
                sums[l] -= Psi.sum() * self.means[l]
                squares[l] += (h[l] * Psi) @ h[l].T - Psi.sum() * self.K[l]
                linear[l] += h[l] @ Psi
        remainders = np.zeros((len(self.K) + 1, *packed_pairs(self.K[0]).shape))
        for l in range(len(self.K)):
            remainders[l + 1] = packed_pairs(sums[l]) - self._source(l, squares[l], linear[l])
        return remainders / size

    def remainders(
        self, size: int, seed: int, number: int
    ) -> Iterator[tuple[np.ndarray, list[tuple[Any, ...]], np.ndarray]]:
        """Signals of a batch of paths in parts, their features, and Ψ of higher order."""
        key = np.random.SeedSequence(seed, spawn_key=(_PATHS, number))
        expected = float(np.sum(self.weights * self.means) - np.sum(self.squares * self.K))
        for h in paths(self.C, self.hidden_skips, size, key):
            features, Psi = [self.features(row) for row in h], np.full(h.shape[-1], -expected)
            for l, row in enumerate(features):
                Psi -= np.einsum("in,in->n", h[l], self.squares[l] @ h[l]) + self.vector[l] @ h[l]
                for x in row:
                    Psi += self.a[l] * np.einsum("in,in->n", x, self.weights[l] @ x)
            yield h, features, Psi


def _halved(packed: np.ndarray) -> np.ndarray:
    """Symmetric matrices (n, P, P) whose sums over all entries are those over the pairs."""
    halves = unpacked(packed, True) / 2
    diagonal = np.arange(halves.shape[-1])
    halves[:, diagonal, diagonal] *= 2
    return halves
