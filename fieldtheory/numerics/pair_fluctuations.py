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
from fieldtheory.numerics import four_inputs, pair_blocks, shared_signals, weak_pairs
from fieldtheory.numerics.fluctuations import connected_squares
from fieldtheory.numerics.pair_modes import packed_size
from fieldtheory.numerics.pair_observables import PairObservables
from fieldtheory.numerics.pair_powers import correlated, orders_needed
from fieldtheory.numerics.recursion import carried

# Seconds of a function that changes its pair of signals, per power 2.5 of its Hermite orders, as
# measured, and of two functions that are multiplied, per square of them.
_CHANGED, _MULTIPLIED = 2.5e-9, 2e-10
# Coefficients that are held at once, of pairs that have no input in common.
_TOGETHER = 1 << 17


@dataclass(frozen=True, eq=False)
class PairGains:
    """What moves ⟨g_αβ⟩ in every layer: its derivatives by K_αβ, K_αα and K_ββ, times a_l.

    Parameters
    ----------
    own : ndarray, shape (L + 2, P)
        a_l M' of the variances.
    pair, first, second : ndarray, shape (L + 2, P(P−1)/2)
        a_l ⟨φ'_α φ'_β⟩, a_l ⟨φ''_α φ_β⟩/2, a_l ⟨φ_α φ''_β⟩/2.
    """

    own: np.ndarray
    pair: np.ndarray
    first: np.ndarray
    second: np.ndarray

    @cached_property
    def places(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Where variances and covariances are among the pairs, and α and β of the latter."""
        alpha, beta = np.triu_indices(self.own.shape[1])
        same = alpha == beta
        return np.nonzero(same)[0], np.nonzero(~same)[0], alpha[~same], beta[~same]

    def moved(self, l: int, K: np.ndarray) -> np.ndarray:
        """The change of a_l ⟨g⟩ for changes of the kernels of layer l − 1, shape (p, ...)."""
        own, others, alpha, beta = self.places
        variances = K[own]
        shape = (-1, *[1] * (K.ndim - 1))
        found = np.empty_like(K)
        found[own] = self.own[l].reshape(shape) * variances
        found[others] = self.pair[l].reshape(shape) * K[others]
        found[others] += self.first[l].reshape(shape) * variances[alpha]
        found[others] += self.second[l].reshape(shape) * variances[beta]
        return found

    def of_pair(self, number: int) -> PairGains:
        """Those of the two inputs of one covariance alone."""
        _, _, alpha, beta = self.places
        chosen, one = [alpha[number], beta[number]], slice(number, number + 1)
        parts = (gain[:, one] for gain in (self.pair, self.first, self.second))
        return PairGains(self.own[:, chosen], *parts)

    def traced(self, l: int, weights: np.ndarray) -> np.ndarray:
        """The transpose of `moved`: what weights of the pairs of C^(l) are for K^(l-1), (p,)."""
        own, others, alpha, beta = self.places
        size, of_pairs = len(own), weights[others]
        found = np.empty_like(weights)
        found[own] = self.own[l] * weights[own]
        found[own] += np.bincount(alpha, self.first[l] * of_pairs, size)
        found[own] += np.bincount(beta, self.second[l] * of_pairs, size)
        found[others] = self.pair[l] * of_pairs
        return found


def propagated(skips: np.ndarray, gains: PairGains, rows: np.ndarray) -> np.ndarray:
    """N G12 rows: the response of all layers and pairs to sources, shape (L + 2, p, ...)."""
    response = np.array(rows, dtype=float)
    kernel = response[0]
    for l in range(1, len(response)):
        response[l] += gains.moved(l, kernel)
        kernel = carried(skips[l], kernel, response[l])
    return response


def traced_back(skips: np.ndarray, gains: PairGains, weights: np.ndarray, m: int) -> np.ndarray:
    """Rows of N G21: weights of the pairs of C^(m) as weights of all sources, shape (L + 2, p)."""
    found = np.zeros((len(gains.own), len(weights)))
    found[m] = weights
    kernel = np.zeros_like(weights)
    for l in range(m, 0, -1):
        kernel = carried(skips[l], kernel, gains.traced(l, found[l]))
        found[l - 1] = kernel
    return found


def accumulated(skips: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Σ_m A²_lm rows_m for the hidden layers, shape (L + 1, p, ...)."""
    sums = np.array(rows[: len(skips) - 1], dtype=float)
    for l in range(1, len(sums)):
        sums[l] = carried(skips[l], sums[l - 1], sums[l])
    return sums


def source_covariance(layers: LayerCoefficients, signals: PairObservables) -> np.ndarray:
    """S22/N of all layers and pairs, shape (L + 2, p, L + 2, p).

    By Hermite coefficients, or where they fall off slowly, with kinks and for wide signals, by
    factors that two inputs have in common and by the averages themselves.
    """
    return weighted(layers, (_by_modes if signals.resolved else _pair_by_pair)(signals))


def weighted(layers: LayerCoefficients, correlators: np.ndarray) -> np.ndarray:
    """S22/N = a_k a_l ⟨g(h_α, h_β)^(k-1) ; g(h_γ, h_δ)^(l-1)⟩ from (L + 1, p, L + 1, p)."""
    a = layers.weights[1:].reshape(len(correlators), -1)[:, 0]
    S22 = np.zeros([size + 1 - i % 2 for i, size in enumerate(correlators.shape)])
    S22[1:, :, 1:] = a[:, None, None, None] * a[:, None] * correlators
    return S22


def _pair_by_pair(signals: PairObservables) -> np.ndarray:
    """⟨g ; g⟩, shape (L + 1, p, L + 1, p), without Hermite coefficients of two signals.

    Of pairs that hardly correlate by few orders; of two inputs by `pair_blocks`, but by closed
    forms of averages where there are any; and of more by closed forms and integrals.
    """
    closed = four_inputs.is_closed(signals)
    first, second = signals.pairs
    size, p = len(signals.K), len(first)
    found = np.full((size, p, size, p), np.nan)
    places = np.zeros((first.max() + 1,) * 2, dtype=int)
    places[first, second] = np.arange(p)
    others = np.flatnonzero(first != second)
    of_two = [
        np.array([places[first[pair], first[pair]], places[second[pair], second[pair]], pair])
        for pair in others
    ]
    if closed:
        for alpha, place in enumerate(np.diagonal(places)):
            # Closed forms of more signals are differences where layers hardly correlate.
            own = connected_squares(signals.network, signals.K[:, alpha, alpha])
            found[:, place, :, place] = own
        for pair, chosen in zip(others.tolist(), of_two, strict=True):
            pair_blocks.fill_weak(signals, pair, chosen, found)
            if (known := pair_blocks.of_one_input(signals, pair)) is not None:
                found[:, chosen[:, None], :, chosen] = np.moveaxis(known, (2, 3), (0, 1))
    else:
        for chosen in of_two:
            found[:, chosen[:, None], :, chosen] = 0.0
        seconds = four_inputs.seconds_needed(signals, found)
        seconds += pair_blocks.seconds_needed(signals, slopes=False)
        four_inputs.require_time(
            signals, "G11 of all pairs", seconds, four_inputs.ways_out(signals)
        )
        blocks = pair_blocks.correlators(signals, others, "G11, two inputs")
        for number, chosen in enumerate(of_two):
            one = np.moveaxis(blocks[..., number], (2, 3), (0, 1))
            found[:, chosen[:, None], :, chosen] = one
    if not four_inputs.are_signs(signals):
        weak_pairs.fill(signals, found, closed)
    return four_inputs.by_averages(signals, found)


def _by_modes(signals: PairObservables) -> np.ndarray:
    """⟨g ; g⟩, shape (L + 1, p, L + 1, p).

    A later observable is averaged over what the layers between add, given the signals of the
    earlier layer, where it meets the other pair.
    """
    quantity, seconds = "G11 of all pairs", _seconds_of_modes(signals)
    four_inputs.require_time(signals, quantity, seconds, four_inputs.ways_out(signals))
    f = signals.observables
    size, p = f.shape[:2]
    found = np.empty((size, p, size, p))
    every = np.arange(p)
    for k in signals.counted(range(size), "G11, layers"):
        later = signals.brought_back(f[k:], k, every)
        # Later ones are turned, once each, where that is less than to turn what they meet.
        shared = shared_signals.meetings(signals, k) & (p > size - k)
        # By the earlier pair, the later one and its layer.
        values = np.zeros((p, p, size - k))
        if shared.any():
            shared_signals.fill(signals, k, later, shared, values)
        _fill_apart(signals, k, later, ~shared, values)
        found[k, :, k:] = values.transpose(0, 2, 1)
        found[k:, :, k] = values.transpose(2, 1, 0)
    return found


def _fill_apart(
    signals: PairObservables, k: int, later: np.ndarray, chosen: np.ndarray, found: np.ndarray
) -> None:
    """Correlators of the ``chosen`` pairs in layer k and later ones, in place; see `_by_modes`.

    Those of which many orders matter first, as many at once as stay in the cache.
    """
    rows, columns = np.nonzero(chosen)
    X = signals.between(k, rows, k, columns)
    needed = orders_needed(X, signals.count)
    order = np.argsort(-needed, kind="stable")
    start = 0
    while start < len(order) and (count := int(needed[order[start]])):
        some = order[start : start + max(1, _TOGETHER // packed_size(count))]
        start += len(some)
        some = some[np.argsort(columns[some], kind="stable")]
        own = later[0, rows[some], : packed_size(count)].T
        seen = correlated(X[..., some], own, count).T
        ends = np.flatnonzero(np.diff(columns[some], append=-1)) + 1
        for first, last in zip([0, *ends[:-1]], ends, strict=True):
            column = columns[some[first]]
            values = seen[first:last] @ later[:, column, : packed_size(count)].T
            found[rows[some[first:last]], column] = values


def _seconds_of_modes(signals: PairObservables) -> float:
    """About how many seconds `_by_modes` takes."""
    size, p, orders = len(signals.K), len(signals.pairs[0]), float(signals.count)
    layers = size * (size + 1) / 2
    inputs = signals.K.shape[-1]
    changed = p * layers + p * size * min(p, size / 2)
    return changed * _CHANGED * orders**2.5 + inputs * p * layers * _MULTIPLIED * orders**2


def kernel_covariance(
    layers: LayerCoefficients, gains: PairGains, S22: np.ndarray, width: int
) -> np.ndarray:
    """G11 = G12 S22 G21 of all layers and pairs, shape (L + 2, L + 2, p, p)."""
    skips = layers.skips
    half = propagated(skips, gains, S22)
    G11 = propagated(skips, gains, np.transpose(half, (2, 3, 0, 1))) / width
    return np.ascontiguousarray(np.transpose(G11, (0, 2, 1, 3)))


def accumulated_covariance(layers: LayerCoefficients, G11: np.ndarray) -> np.ndarray:
    """Cov(K_αβ^(l), K_γδ^(l)) of the hidden layers, shape (L + 1, p, p)."""
    skips = layers.skips
    half = accumulated(skips, np.transpose(G11, (0, 2, 1, 3)))
    both = accumulated(skips, np.transpose(half, (2, 3, 0, 1)))
    return np.einsum("lplq->lqp", both)


def seen_by_neurons(
    layers: LayerCoefficients, gains: PairGains, signals: PairObservables
) -> np.ndarray:
    """N Cov(K_αβ^(l), h_iγ h_iδ) beyond Cov(K_αβ, K_γδ), for one neuron i, shape (L + 1, p, p).

    Σ_{k<=l} A²_lk Σ_m N G12^km β_m,   β_m = a_m ⟨g(h_α, h_β)^(m-1) ; h_γ^(l) h_δ^(l)⟩
    """
    size = len(signals.K)
    first, second = signals.pairs
    p = len(first)
    own, others, alpha, beta = gains.places
    found = np.empty((size, p, p))
    for l in range(size):
        rows = np.zeros((size + 1, p, p))
        for m in range(1, l + 1):
            X = signals.K[m - 1] * signals.carried[l, m - 1]
            x, y = X[:, first], X[:, second]
            own_terms = 2 * x * y
            rows[m, own] = gains.own[m][:, None] * own_terms
            crossed = x[alpha] * y[beta] + x[beta] * y[alpha]
            rows[m, others] = gains.pair[m][:, None] * crossed
            rows[m, others] += gains.first[m][:, None] * own_terms[alpha]
            rows[m, others] += gains.second[m][:, None] * own_terms[beta]
        found[l] = accumulated(layers.skips, propagated(layers.skips, gains, rows))[l]
    return found
