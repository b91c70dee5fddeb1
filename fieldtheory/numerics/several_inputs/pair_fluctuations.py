"""Fluctuations of the kernels of several inputs to order 1/N: covariances, vertex, mean shift.

Fields are the p = P(P+1)/2 pairs of inputs α <= β in the order of `np.triu_indices`. The average
⟨g(h_α, h_β)⟩ moves with K_αβ, K_αα and K_ββ alone, so that sources are propagated in O(L p) steps;
what fluctuates are correlators of up to four inputs, ⟨g_αβ ; g_γδ⟩ in two layers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fieldtheory.networks.coefficients import LayerCoefficients
from fieldtheory.numerics.recursion import accumulate, add_skip
from fieldtheory.numerics.several_inputs.pair_expansions import Signals


@dataclass(frozen=True, eq=False)
class PairGains:
    """Derivatives of ⟨g_αβ⟩ in every layer by K_αβ, K_αα and K_ββ, times a_l."""

    # (L + 2, P): a_l M' of the variances.
    own: np.ndarray
    # (L + 2, P(P−1)/2): a_l ⟨φ'_α φ'_β⟩, a_l ⟨φ''_α φ_β⟩/2, a_l ⟨φ_α φ''_β⟩/2.
    pair: np.ndarray
    first: np.ndarray
    second: np.ndarray

    @cached_property
    def places(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Places of variances and covariances among the pairs, and α and β of the latter."""
        alpha, beta = np.triu_indices(self.own.shape[1])
        same = alpha == beta
        return np.nonzero(same)[0], np.nonzero(~same)[0], alpha[~same], beta[~same]

    def kernel_change(self, l: int, K: np.ndarray) -> np.ndarray:
        """The change of a_l ⟨g⟩ for changes of the kernels of layer l − 1, shape (p, ...)."""
        own, others, alpha, beta = self.places
        variances = K[own]
        shape = (-1, *[1] * (K.ndim - 1))
        changes = np.empty_like(K)
        changes[own] = self.own[l].reshape(shape) * variances
        changes[others] = self.pair[l].reshape(shape) * K[others]
        changes[others] += self.first[l].reshape(shape) * variances[alpha]
        changes[others] += self.second[l].reshape(shape) * variances[beta]
        return changes

    def of_inputs(self, kept: np.ndarray) -> PairGains:
        """Those of some of the inputs, in their order."""
        _, _, alpha, beta = self.places
        pairs = np.isin(alpha, kept) & np.isin(beta, kept)
        parts = (gain[:, pairs] for gain in (self.pair, self.first, self.second))
        return PairGains(self.own[:, kept], *parts)

    def traced(self, l: int, weights: np.ndarray) -> np.ndarray:
        """The transpose of `kernel_change`: weights of pairs of K^(l-1) by those of C^(l)."""
        own, others, alpha, beta = self.places
        size, of_pairs = len(own), weights[others]
        sources = np.empty_like(weights)
        sources[own] = self.own[l] * weights[own]
        sources[own] += np.bincount(alpha, self.first[l] * of_pairs, size)
        sources[own] += np.bincount(beta, self.second[l] * of_pairs, size)
        sources[others] = self.pair[l] * of_pairs
        return sources


def propagated(skips: np.ndarray, gains: PairGains, rows: np.ndarray) -> np.ndarray:
    """N G12 rows: the response of all layers and pairs to sources, shape (L + 2, p, ...)."""
    response = np.array(rows, dtype=float)
    kernel = response[0]
    for l in range(1, len(response)):
        response[l] += gains.kernel_change(l, kernel)
        kernel = add_skip(skips[l], kernel, response[l])
    return response


def traced_back(skips: np.ndarray, gains: PairGains, weights: np.ndarray, m: int) -> np.ndarray:
    """Rows of N G21: weights of the pairs of C^(m) as weights of all sources, shape (L + 2, p)."""
    rows = np.zeros((len(gains.own), len(weights)))
    rows[m] = weights
    kernel = np.zeros_like(weights)
    for l in range(m, 0, -1):
        kernel = add_skip(skips[l], kernel, gains.traced(l, rows[l]))
        rows[l - 1] = kernel
    return rows


def weighted(layers: LayerCoefficients, correlators: np.ndarray) -> np.ndarray:
    """S22/N = a_k a_l ⟨g(h_α, h_β)^(k-1) ; g(h_γ, h_δ)^(l-1)⟩ from (..., L + 1, p, L + 1, p)."""
    size, p = correlators.shape[-2:]
    a = layers.weights[1:].ravel()
    S22 = np.zeros((*correlators.shape[:-4], size + 1, p, size + 1, p))
    S22[..., 1:, :, 1:, :] = a[:, None, None, None] * a[:, None] * correlators
    return S22


def kernel_covariance(
    layers: LayerCoefficients, gains: PairGains, S22: np.ndarray, width: int
) -> np.ndarray:
    """G11 = G12 S22 G21 of all layers and pairs, shape (L + 2, L + 2, p, p)."""
    skips = layers.skips
    half = propagated(skips, gains, S22)
    G11 = propagated(skips, gains, np.transpose(half, (2, 3, 0, 1))) / width
    return np.ascontiguousarray(np.transpose(G11, (0, 2, 1, 3)))


def covariance_with_neurons(
    layers: LayerCoefficients, gains: PairGains, signals: Signals
) -> np.ndarray:
    """N Cov(K_αβ^(l), h_iγ h_iδ) beyond Cov(K_αβ, K_γδ), for one neuron i, shape (L + 1, p, p)."""
    size = len(signals.K)
    first, second = signals.pairs
    p = len(first)
    covariances = np.empty((size, p, p))
    for l in range(size):
        rows = np.zeros((size + 1, p, p))
        for m in range(1, l + 1):
            X = signals.K[m - 1] * signals.passed[l, m - 1]
            x, y = X[:, first], X[:, second]
            rows[m] = gains.kernel_change(m, x[first] * y[second] + x[second] * y[first])
        covariances[l] = accumulate(layers.skips, propagated(layers.skips, gains, rows))[l]
    return covariances
