"""Networks linearised about infinite width: the order 1/N of the kernels of many inputs, sampled.

Every neuron follows a path h^(0), ..., h^(L) with the kernels of infinite width, and the averages
over n of them fluctuate. To first order these fluctuations move the kernels of later layers,

    δC^(l) = a_l [Σ_i g(h_i^(l-1)) − n ⟨g⟩]/√n + a_l ∂⟨g⟩/∂K · δK^(l-1),
    δK^(l) = γ_l² δK^(l-1) + δC^(l)

with ⟨δC δC⟩ = N G11 for every n. To second order they shift the means (theory of `mean_shift`),

    N (⟨C⟩ − C*)^(l) = a_l ∂⟨g⟩/∂K · N (⟨K⟩ − K*)^(l-1)
                     + a_l ⟨½ δK · ∂²⟨g⟩/∂K² · δK + [Σ_i ∂_K g(h_i) − n ⟨∂_K g⟩]/√n · δK⟩.

The parts of δK that come from ∂⟨g⟩/∂K · (h hᵀ − K), of second order in Hermite polynomials, add a
known term, since their correlators are products of kernels; what comes from the rest of g is
sampled. There ∂_K g of a neuron needs no second derivative of φ: by Gaussian integration over its
last noise ζ ~ N(0, C), independent of δK, ⟨φ''_α φ_β⟩ = ⟨ζ_α φ'_α φ_β − C_αβ φ'_α φ'_β⟩/C_αα.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from fieldtheory.montecarlo.sampling.forward import feature_functions
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.covariance_roots import psd_root
from fieldtheory.numerics.memory import require_memory
from fieldtheory.numerics.recursion import add_skip
from fieldtheory.numerics.several_inputs.four_signals import means
from fieldtheory.numerics.several_inputs.pair_curvatures import curvatures
from fieldtheory.numerics.several_inputs.pair_theory import PairTheory
from fieldtheory.numerics.symmetric_matrices import unpacked

# Neurons of one linearised network: its kernels cost as much as ten neurons, and more of them
# make the estimates of second moments of a given number of neurons worse.
NEURONS = 8
# Pairs whose second derivatives are found at once, and the memory in arrays (L + 2, P, P).
_TOGETHER, COPIES = 500, 150


class Linearised(NamedTuple):
    """Of a batch δC^(L+1), shape (n, P, P), and the estimate of N (⟨C⟩ − C*), (L + 2, P, P)."""

    outputs: np.ndarray
    shift: np.ndarray


def linear_networks(
    network: LayeredNetwork, theory: PairTheory, own: np.ndarray, sizes: np.ndarray, seed: int
) -> Iterator[Linearised]:
    """Batches of linearised networks; ``own`` is N (⟨C⟩ − C*) of the variances, (L + 2, P)."""
    # Random numbers other than those of `covariance_with`.
    stream = 101
    inputs = own.shape[-1]
    if any(len(psi.jumping) for psi in theory.signals.functions):
        raise ValueError(
            f"the mean shift of {network.activation.name}, which jumps, cannot be sampled: "
            "use fewer inputs or layers"
        )
    require_memory(
        f"the order 1/N of {inputs} inputs",
        8.0 * inputs**2 * (COPIES * len(own) + 8 * int(np.max(sizes))),
        "use fewer inputs or layers",
    )
    distinct, collinear = theory.distinct, theory.collinear
    place, factor = (unpacked(each, True) for each in collinear.of_pairs())
    layers = _Layers(network, distinct, own[:, collinear.kept])
    alpha, beta = distinct.signals.pairs
    for number, size in enumerate(sizes):
        key = np.random.SeedSequence(seed, spawn_key=(stream, number))
        batch = layers.batch(int(size), key)
        yield Linearised(*(each[..., alpha, beta][..., place] * factor for each in batch))


class _Layers:
    """Gains, second derivatives and means, for the recursions over the layers."""

    def __init__(self, network: LayeredNetwork, theory: PairTheory, own: np.ndarray) -> None:
        signals, gains = theory.signals, theory.gains
        self.signals, self.own, self.features = signals, own, feature_functions(network)
        self.slopes = feature_functions(network, slopes=True)
        self.a = np.asarray(theory.layers.weights).reshape(len(own), -1)[:, 0]
        self.skips = theory.layers.skips
        self.means, self.roots = unpacked(means(signals), True), psd_root(signals.C)
        self.pair, self.first = np.zeros((2, *own.shape, own.shape[-1]))
        alpha, beta = gains.places[2:]
        self.pair[:, alpha, beta] = self.pair[:, beta, alpha] = gains.pair
        self.first[:, alpha, beta], self.first[:, beta, alpha] = gains.first, gains.second
        diagonal = np.arange(own.shape[-1])
        self.pair[:, diagonal, diagonal] = gains.own
        self.curvature, self.mean_sources = (
            np.zeros((4, *self.means.shape)),
            np.zeros_like(self.pair),
        )
        first, second = signals.pairs
        (others,) = np.nonzero(first != second)
        for some in np.array_split(others, -(-len(others) // _TOGETHER) or 1):
            self._add_pairs(some)

    def _add_pairs(self, some: np.ndarray) -> None:
        """Second derivatives of some pairs of inputs, and what is known of their shifts."""
        signals = self.signals
        a, b = (members[some] for members in signals.pairs)
        # Kernels of layers that nothing was added to do not fluctuate.
        used = np.logical_or.accumulate(np.append(False, ~signals.idle))
        H = curvatures(signals, some, np.repeat(used[:, None], len(some), axis=1))
        for row, (e, f), (g, h) in (
            (0, (0, 0), (1, 1)),
            (1, (0, 1), (0, 1)),
            (2, (0, 2), (1, 2)),
            (3, (2, 2), (2, 2)),
        ):
            self.curvature[row][:, a, b], self.curvature[row][:, b, a] = H[e, f], H[g, h]
        self.mean_sources[1:, a, b] = self.mean_sources[1:, b, a] = self._mean_sources(
            np.moveaxis(H, 3, 0), a, b
        )

    def _mean_sources(self, H: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """The sources of the shift from parts of δK of second order in h, (L + 1, pairs)."""
        covariance, mixed = np.zeros((2, len(a), 3, 3))
        sources = np.zeros((len(self.means), len(a)))
        for l, K in enumerate(self.signals.K):
            sources[l] = np.einsum("pef,pef->p", H[..., l], covariance / 2 + mixed)
            if l + 1 < len(sources):
                # The skips of layers are the squares of γ.
                skip, G = self.skips[l + 1], self._gains(l + 1, a, b)
                # Covariances of h_α², h_β² and h_α h_β.
                x, y, t = K[a, a], K[b, b], K[a, b]
                rows = [[2 * x * x, 2 * t * t, 2 * x * t], [2 * t * t, 2 * y * y, 2 * y * t]]
                V = np.moveaxis(np.array([*rows, [2 * x * t, 2 * y * t, x * y + t * t]]), 2, 0)
                propagated = G + skip * np.eye(3)
                crossed = propagated @ mixed @ _transposed(G)
                covariance = propagated @ covariance @ _transposed(
                    propagated
                ) + G @ V @ _transposed(G)
                covariance += crossed + _transposed(crossed)
                mixed = skip * (propagated @ mixed + G @ V)
        return sources * self.a[1:, None]

    def _gains(self, l: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """∂(C_αα, C_ββ, C_αβ)^(l) by those of K^(l-1), (pairs, 3, 3)."""
        G, own = np.zeros((len(a), 3, 3)), np.diagonal(self.pair[l])
        G[:, 0, 0], G[:, 1, 1], G[:, 2, 2] = own[a], own[b], self.pair[l][a, b]
        G[:, 2, 0], G[:, 2, 1] = self.first[l][a, b], self.first[l][b, a]
        return G

    def batch(self, size: int, key: np.random.SeedSequence) -> tuple[np.ndarray, np.ndarray]:
        """δC^(L+1) of linearised networks, and N (⟨C⟩ − C*) from them."""
        signals, neurons = self.signals, NEURONS
        generator, inputs = np.random.default_rng(key), signals.K.shape[1]
        sources = self.mean_sources.copy()
        K = second = np.zeros((size, inputs, inputs))
        # Signals and their noise by network, input and neuron.
        signal = noise = np.zeros((size, inputs, neurons))
        C, deltaC = signals.C[0], K
        for l, added in enumerate(signals.C):
            skip = signals.skips[l - 1] if l else 0.0
            if added.any():
                noise, C = self.roots[l] @ generator.standard_normal(signal.shape), added
                signal = skip * signal + noise
            else:
                signal, noise, C = skip * signal, skip * noise, skip**2 * C
            if second.any():
                sources[l + 1] += self._second_order(l, second, signal, noise, C)
            g = _products(self.features(signal)) - neurons * self.means[l]
            squares = _products((signal,)) - neurons * signals.K[l]
            left = (self.a[l + 1] * g - self._kernel_change(l + 1, squares)) / np.sqrt(neurons)
            squares = squares / np.sqrt(neurons)
            deltaC = left + self._kernel_change(l + 1, K + squares)
            if l + 1 < len(signals.C):
                K = add_skip(self.skips[l + 1], K, deltaC)
                second = add_skip(
                    self.skips[l + 1], second, left + self._kernel_change(l + 1, second)
                )
        return deltaC, self._propagated(sources)

    def _kernel_change(self, l: int, K: np.ndarray) -> np.ndarray:
        """The change of a_l ⟨g⟩ for changes of the kernels, (..., P, P)."""
        own, diagonal = np.diagonal(K, axis1=-2, axis2=-1), np.arange(K.shape[-1])
        by_own = self.first[l] * own[..., :, None]
        change = self.pair[l] * K + by_own + np.swapaxes(by_own, -1, -2)
        change[..., diagonal, diagonal] = np.diagonal(self.pair[l]) * own
        return np.asarray(change)

    def _second_order(
        self, l: int, K: np.ndarray, signal: np.ndarray, noise: Any, C: np.ndarray
    ) -> np.ndarray:
        """The source of the mean of C^(l+1) of second order in fluctuations, (P, P)."""
        neurons, a, size = signal.shape[-1], self.a[l + 1], len(K)
        own = np.diagonal(K, axis1=1, axis2=2)
        twice, mixed, crossed, pair = self.curvature[:, l]
        by_own = (
            twice * (own**2).mean(axis=0)[:, None]
            + 2 * crossed * np.einsum("nab,na->ab", K, own) / size
        )
        source = by_own + by_own.T + 2 * mixed * (own.T @ own) / size + pair * (K**2).mean(axis=0)
        # Signals of both signs of the noise: what is divided by C is a difference.
        slopes_squared, weighted = np.zeros_like(K), np.zeros_like(K)
        for sign in (1, -1):
            h = signal if sign == 1 else signal - 2 * noise
            slopes, features = self.slopes(h), self.features(h)
            slopes_squared += _products(slopes) / 2
            for slope, feature in zip(slopes, features, strict=True):
                weighted += sign * (noise * slope) @ np.swapaxes(feature, 1, 2) / 2
        own_C = np.diagonal(C)[:, None]
        inverse = np.divide(1.0, own_C, out=np.zeros_like(own_C), where=own_C > 0)
        by_pair = slopes_squared - neurons / a * self.pair[l + 1]
        by_own = (weighted - C * slopes_squared) * inverse / 2 - neurons / a * self.first[l + 1]
        by_own = np.einsum("nab,na->ab", by_own, own)
        by_neurons = np.einsum("nab,nab->ab", by_pair, K) + by_own + by_own.T
        return np.asarray(a * (source / 2 + by_neurons / size / np.sqrt(neurons)))

    def _propagated(self, sources: np.ndarray) -> np.ndarray:
        """The shift of all layers from its sources, with that of the variances as it is known."""
        shift, K, diagonal = np.zeros_like(sources), np.zeros_like(sources[0]), self.own.shape[-1]
        for l in range(1, len(sources)):
            shift[l] = sources[l] + self._kernel_change(l, K)
            shift[l].flat[:: diagonal + 1] = self.own[l]
            K = add_skip(self.skips[l], K, shift[l])
        return shift


def _transposed(matrices: np.ndarray) -> np.ndarray:
    return np.swapaxes(matrices, -1, -2)


def _products(values: tuple[np.ndarray, ...]) -> np.ndarray:
    """Σ over neurons and features of products of all pairs of inputs, (n, P, P)."""
    return np.asarray(sum(x @ np.swapaxes(x, 1, 2) for x in values))
