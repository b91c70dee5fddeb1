"""Fluctuations of the kernels of several inputs to order 1/N: covariances, vertex, mean shift.

Fields are the p = P(P+1)/2 pairs of inputs α <= β in the order of `np.triu_indices`. The average
⟨g(h_α, h_β)⟩ moves with K_αβ, K_αα and K_ββ alone, so that sources are propagated in O(L p) steps;
what fluctuates are correlators of up to four inputs, ⟨g_αβ ; g_γδ⟩ in two layers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.networks.coefficients import LayerCoefficients
from fieldtheory.numerics.correlators import four_inputs, sign_pairs, weak_pairs, wide_correlators
from fieldtheory.numerics.correlators.distinct_correlators import DistinctCorrelators
from fieldtheory.numerics.observables import pair_correlators
from fieldtheory.numerics.observables.pair_observables import PairObservables
from fieldtheory.numerics.one_input.fluctuations import connected_squares
from fieldtheory.numerics.recursion import carried
from fieldtheory.numerics.several_inputs import pair_blocks

# Seconds that averages may take before other ways are looked for.
_QUICK, _PATIENT = 2.0, 120.0


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

    By Hermite coefficients of two signals, and where they fall off slowly, with kinks and for wide
    signals, given an input that two pairs have in common, by factors that two inputs have in common
    and by the averages themselves.
    """
    return weighted(layers, _correlators(signals))


def _correlators(signals: PairObservables) -> np.ndarray:
    """⟨g ; g⟩, shape (L + 1, p, L + 1, p), in the way that takes least time."""
    if signals.resolved:
        seconds = pair_correlators.seconds_needed(signals)
    else:
        seconds = _seconds_of_averages(signals)
    slow = seconds > min(_digits_take(signals), four_inputs.LONGEST)
    if slow:
        distinct = DistinctCorrelators(signals)
        if distinct.resolved and distinct.seconds < seconds:
            _require_time(signals, distinct.seconds, orders=distinct.orders)
            return distinct.values()
    if signals.resolved:
        _require_time(signals, seconds, orders=signals.count)
        return pair_correlators.by_modes(signals)
    plan = wide_correlators.orders(signals) if slow else None
    if plan is None or plan.error > signals.allowed or plan.seconds(signals) > seconds:
        try:
            return _pair_by_pair(signals, seconds, plan.error if plan else 0.0)
        except QuadratureError:
            plan = plan or wide_correlators.orders(signals)
            if plan.error > signals.allowed:
                raise
    _require_time(signals, plan.seconds(signals), orders=int(plan.counts.max()))
    return wide_correlators.correlators(signals, plan)


def _digits_take(signals: PairObservables) -> float:
    """Seconds that are not too many: of inputs that hardly correlate series have fewer digits."""
    (others,) = np.nonzero(signals.pairs[0] != signals.pairs[1])
    hardly = pair_blocks.hardly_correlate(signals, others).size and not signals.resolved
    return _PATIENT if hardly else _QUICK


def _require_time(
    signals: PairObservables, seconds: float, left_out: float = 0.0, orders: int = 0
) -> None:
    """QuadratureError if G11 takes too long, with the error that Hermite polynomials leave."""
    error = "a larger rtol="
    if signals.allowed < left_out < 0.5:
        error = f"solve(..., rtol={2 * left_out:.1g}), which Hermite polynomials take"
    four_inputs.require_time(
        signals,
        "G11 of all pairs",
        seconds,
        f"use fewer inputs or layers, {error}, or "
        "ft.covariance_with(..., samples=10000), which contracts G11 with a matrix in seconds",
        orders,
    )


def _seconds_of_averages(signals: PairObservables) -> float:
    """About how many seconds `_pair_by_pair` takes."""
    size, p = len(signals.K), len(signals.pairs[0])
    if four_inputs.is_closed(signals):
        return four_inputs.seconds_of_closed(signals) * (size * p) ** 2 / 2
    found = np.full((size, p, size, p), np.nan)
    for chosen in _of_two_inputs(signals):
        found[:, chosen[:, None], :, chosen] = 0.0
    seconds = four_inputs.seconds_needed(signals, found)
    return seconds + pair_blocks.seconds_needed(signals, slopes=False)


def _of_two_inputs(signals: PairObservables) -> list[np.ndarray]:
    """Where the pairs αα, ββ and αβ of two inputs are, for each α < β."""
    first, second = signals.pairs
    (own,), (others,) = np.nonzero(first == second), np.nonzero(first != second)
    return [np.array([own[first[pair]], own[second[pair]], pair]) for pair in others]


def weighted(layers: LayerCoefficients, correlators: np.ndarray) -> np.ndarray:
    """S22/N = a_k a_l ⟨g(h_α, h_β)^(k-1) ; g(h_γ, h_δ)^(l-1)⟩ from (L + 1, p, L + 1, p)."""
    a = layers.weights[1:].reshape(len(correlators), -1)[:, 0]
    S22 = np.zeros([size + 1 - i % 2 for i, size in enumerate(correlators.shape)])
    S22[1:, :, 1:] = a[:, None, None, None] * a[:, None] * correlators
    return S22


def _pair_by_pair(
    signals: PairObservables, seconds: float = 0.0, left_out: float = 0.0
) -> np.ndarray:
    """⟨g ; g⟩, shape (L + 1, p, L + 1, p), without Hermite coefficients of two signals.

    It takes so many ``seconds``, and these leave out the relative error ``left_out`` at least.

    Of pairs that hardly correlate by few orders; of two inputs by `pair_blocks`, but by closed
    forms of averages where there are any; and of more by closed forms and integrals.
    """
    _require_time(signals, seconds, left_out)
    closed = four_inputs.is_closed(signals)
    first, second = signals.pairs
    size, p = len(signals.K), len(first)
    found = np.full((size, p, size, p), np.nan)
    (own_pairs,), (others,) = np.nonzero(first == second), np.nonzero(first != second)
    of_two = _of_two_inputs(signals)
    if closed:
        for alpha, place in enumerate(own_pairs):
            # Closed forms of more signals are differences where layers hardly correlate.
            K, C = signals.K[:, alpha, alpha], signals.C[:, alpha, alpha]
            own = connected_squares(signals.network, K, C)
            found[:, place, :, place] = own
        for pair, chosen in zip(others.tolist(), of_two, strict=True):
            pair_blocks.fill_weak(signals, pair, chosen, found)
            if (known := pair_blocks.of_one_input(signals, pair)) is not None:
                found[:, chosen[:, None], :, chosen] = np.moveaxis(known, (2, 3), (0, 1))
    else:
        blocks = pair_blocks.correlators(signals, others, "G11, two inputs")
        for number, chosen in enumerate(of_two):
            one = np.moveaxis(blocks[..., number], (2, 3), (0, 1))
            found[:, chosen[:, None], :, chosen] = one
    if not sign_pairs.have_two_values(signals):
        weak_pairs.fill(signals, found, closed)
    return four_inputs.by_averages(signals, found)


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
