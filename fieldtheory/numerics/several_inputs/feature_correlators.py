"""Connected correlators ⟨g_αβ^(k) ; g_γδ^(l)⟩ of g_αβ = φ(h_α)φ(h_β) in all layers.

Those of φ that is a line on either side of zero are closed forms, see `piecewise_linear`. Those of
other φ are series in the Hermite coefficients of both pairs, by Mehler's formula: orders n
contribute sⁿ, with s < 1 the largest correlation of their signals, whatever kinks φ has. Within a
layer, where pairs that share an input would have s = 1, averages of two different inputs are exact,
see `four_signals`, and those of more are split into the two pairs that correlate least. Where the
series of φ with kinks take too long or leave too much, `sampled_paths` are averaged instead.

Gains are D_αβ = ∂⟨φ(h_α)φ(h_β)⟩/∂K_αβ without the average: φ'(h_α)φ'(h_β), and φ'² + φφ'' of one
input. Their correlators with one weighted sum of products φφ are such series for analytic φ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fieldtheory.averages import routes
from fieldtheory.averages.routes import SETTINGS, tolerance
from fieldtheory.numerics.recursion import ratio
from fieldtheory.numerics.several_inputs import piecewise_linear
from fieldtheory.numerics.several_inputs.four_signals import WithinLayers, means, of_three
from fieldtheory.numerics.several_inputs.pair_expansions import (
    Expansion,
    Signals,
    applied,
    packed_size,
    singular_values,
)
from fieldtheory.numerics.several_inputs.sampled_paths import sampled_within_layers
from fieldtheory.numerics.symmetric_matrices import positions

# Powers of correlations, relative to the error, that are left out.
_SHARE = 1e-2
# Layers from which on two of them tell how many orders all others take.
_MANY = 6
# Coefficients of one pair that are turned at once.
_TOGETHER = 1 << 23
# The three ways to split four inputs into two pairs.
_SPLITS = ((0, 1, 2, 3), (0, 2, 1, 3), (0, 3, 1, 2))


# Hermite coefficients of functions of pairs of inputs, (L + 1, r, orders), and the pairs.
Functions = tuple[np.ndarray, np.ndarray]


class Truncated(NamedTuple):
    """Averages by Hermite coefficients, and about what the orders that are left out add."""

    # How many are kept.
    orders: int
    values: np.ndarray
    left_out: np.ndarray
    # The relative error of the coefficients themselves, by that of ⟨φφ⟩: of nearly parallel inputs
    # of φ that jumps they are sums that converge slowly.
    missed: float = 0.0

    @property
    def error(self) -> float:
        """The largest that is left out, relative to the largest value."""
        scale = float(np.abs(self.values).max(initial=0.0))
        left_out = float(np.abs(self.left_out).max(initial=0.0))
        return max(left_out / scale, self.missed) if scale else 0.0


def _exact(values: np.ndarray) -> Truncated:
    return Truncated(0, values, np.zeros_like(values))


def allowed_error(signals: Signals, kinked: float = SETTINGS.pair_correlators_with_kinks) -> float:
    """The relative error that is asked for."""
    return max(tolerance(), SETTINGS.pair_correlators if signals.smooth else kinked)


def resolved(
    signals: Signals,
    expansion: Callable[[int], Truncated],
    allowed: float,
    fewest: int = 0,
    longest: float = np.inf,
) -> Truncated | None:
    """Expansion to as many orders as it takes, or to the most there are up to ``longest``."""
    truncated, every = None, np.arange(len(signals.pairs[0]))
    # The larger correlations of pairs with themselves in the next layer.
    layers = np.flatnonzero(~signals.idle).tolist()
    own = [singular_values(signals.between(k, every, k + 1, every))[2] for k in layers]
    correlation = min(float(np.max(own, initial=0.1)), 1 - 1e-9)
    least = (
        SETTINGS.pair_orders[0] if signals.smooth else np.log(1e4 * allowed) / np.log(correlation)
    )
    for count in SETTINGS.pair_orders:
        if count > longest:
            break
        if count >= min(max(least, fewest), SETTINGS.pair_orders[-1]):
            truncated = expansion(count)
            if truncated.error <= max(allowed, truncated.missed):
                break
    return truncated


def correlators(signals: Signals) -> Truncated | None:
    """⟨g ; g⟩ of all layers and pairs, shape (L + 1, p, L + 1, p)."""
    if signals.lines:
        return _exact(piecewise_linear.correlators(signals))
    functions = len(signals.K) * len(signals.pairs[0]) ** 2
    longest = np.inf if signals.smooth else (SETTINGS.pair_operations / functions) ** 0.4
    fewest, allowed = 0, allowed_error(signals)
    if len(signals.K) >= _MANY:
        # The layer with the largest variances, at the end if all are equal, and one next to it.
        variances = np.trace(signals.K, axis1=1, axis2=2)[::-1]
        k = min(len(variances) - 1 - int(np.argmax(variances)), len(variances) - 2)
        K, C = (each[k : k + 2] for each in (signals.K, signals.C))
        two = replace(signals, K=K, C=C, skips=signals.skips[k : k + 1])
        alone = resolved(two, lambda count: _correlators(two, count), allowed, longest=longest)
        fewest = alone.orders if alone else 0
    series = resolved(signals, lambda count: _correlators(signals, count), allowed, fewest, longest)
    if series is None:
        return None
    routes.record(routes.PAIRS, series.values.size)
    return _refined(signals, series)


def _refined(signals: Signals, series: Truncated) -> Truncated:
    """Correlators of up to three different signals, where series miss most, on panels."""
    jumps = any(len(psi.jumping) for psi in signals.functions)
    # Panels of three signals that jump take seconds each: their paths are sampled.
    if signals.smooth or jumps or len(signals.functions) > 1:
        return series
    values, left_out = series.values.copy(), np.abs(series.left_out)
    averages, mean = dict[tuple[tuple[int, int], ...], float | None](), means(signals)
    pairs = np.transpose(signals.pairs).tolist()
    order = np.argsort(-left_out, axis=None)
    order = order[left_out.ravel()[order] > SETTINGS.three_signals_missed * np.abs(values).max()]
    for place in zip(*np.unravel_index(order, values.shape), strict=True):
        k, row, l, column = map(int, place)
        four = [(layer, a) for layer, pair in ((k, row), (l, column)) for a in pairs[pair]]
        key = tuple(sorted(four))
        if len(set(four)) < 4 and (key in averages or len(averages) < SETTINGS.three_signals_count):
            if key not in averages:
                averages[key] = of_three(signals, key)
                routes.record(routes.THREE, 1)
            if (average := averages[key]) is not None:
                values[place] = average - mean[k, row] * mean[l, column]
                left_out[place] = 0.0
    return series._replace(values=values, left_out=left_out)


def _correlators(signals: Signals, count: int) -> Truncated:
    f = Expansion(signals, count).observables
    size, layers, every = len(f), np.arange(len(f)), np.arange(f.shape[1])
    values, left = from_layer_on(signals, (f, every), (f, every), count)
    if len(signals.functions) == 1:
        within = _within_layers(signals, f, count)
        values[layers, :, layers], left[layers, :, layers] = within
    for k in range(1, size):
        values[k, :, :k], left[k, :, :k] = (
            np.moveaxis(each[:k, :, k], 2, 0) for each in (values, left)
        )
    idle = np.flatnonzero(signals.idle)
    left[idle] = left[:, :, idle] = 0.0
    return Truncated(count, values, left, _missed(signals, f))


def from_layer_on(
    signals: Signals, one: Functions, other: Functions, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """⟨f^(k) ; g^(l)⟩, k <= l, and what is left out, both (L + 1, r, L + 1, c)."""
    (f, rows), (g, columns) = one, other
    size, r, orders = f.shape
    values, left = np.zeros((2, size, r, size, len(columns)))
    parts, few = _quarters(count), max(1, _TOGETHER // (r * orders))
    for k in signals.counted(range(size), "correlators, layers"):
        later, tail = given_layer(signals, g[k:], k, columns)
        for some in np.array_split(np.arange(len(columns)), -(-len(columns) // few)):
            X = signals.between(k, np.tile(rows, len(some)), k, np.repeat(columns[some], r))
            mapped = applied(X, np.tile(f[k].T, len(some)), count, _negligible(signals))
            for number, column in enumerate(some):
                part = mapped[:, number * r : (number + 1) * r].T
                whole, third, last = (part[:, of] @ later[:, column, of].T for of in parts)
                values[k, :, k:, column] = whole + third + last
                left[k, :, k:, column] = _left_out(third, last, tail[:, column], signals.smooth)
    return values, left


def _missed(signals: Signals, f: np.ndarray, pairs: np.ndarray | slice = slice(None)) -> float:
    exact = means(signals)
    own = exact[:, signals.pairs[0] == signals.pairs[1]]
    size = np.max(own, axis=1, initial=0.0, keepdims=True)
    return float(ratio(np.abs(f[..., 0] - exact[:, pairs]), size).max(initial=0.0))


def within_layers(signals: Signals) -> Truncated:
    """⟨g ; g⟩ of every layer with itself, shape (L + 1, p, p)."""
    if signals.lines:
        layers = [replace(signals, K=K[None], C=K[None], skips=np.zeros(0)) for K in signals.K]
        return _exact(np.array([piecewise_linear.correlators(each)[0, :, 0] for each in layers]))
    own, mean = WithinLayers.of(signals), means(signals)
    if own.exact.all():
        return _exact(own.averages[:, own.which] - mean[:, :, None] * mean[:, None])

    def expansion(count: int) -> Truncated:
        f = Expansion(signals, count).observables
        return Truncated(count, *_within_layers(signals, f, count), _missed(signals, f))

    longest = np.inf
    if not signals.smooth:
        longest = (SETTINGS.pair_operations / (len(mean) * len(mean[0]) ** 2)) ** 0.4
    series = resolved(signals, expansion, allowed_error(signals), longest=longest)
    if series is None or series.error > SETTINGS.sampled:
        values, error = sampled_within_layers(signals)
        exact = own.exact[:, own.which]
        values = np.where(exact, own.averages[:, own.which], values)
        return Truncated(0, values - mean[:, :, None] * mean[:, None], np.where(exact, 0.0, error))
    routes.record(routes.PAIRS, series.values.size)
    return series


def given_layer(
    signals: Signals, f: np.ndarray, k: int, pairs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Functions f of pairs in the last layers, from k on or later, given the signals of layer k."""
    layers = np.arange(len(signals.K) - len(f), len(signals.K))
    l, columns = np.repeat(layers, len(pairs)), np.tile(pairs, len(layers))
    X = np.swapaxes(signals.between(k, columns, l, columns), 0, 1)
    # Of how many orders there are so many coefficients.
    count = int((np.sqrt(8 * f.shape[-1] + 1) - 1) / 2 + 0.5)
    conditional = applied(X, f.reshape(len(l), -1).T, count, _negligible(signals)).T.reshape(
        f.shape
    )
    conditional[layers == k] = f[layers == k]
    tail = 2 * np.minimum(singular_values(X)[2], 1.0) ** (count / 4)
    return conditional, tail.reshape(len(layers), len(pairs))


def _negligible(signals: Signals) -> float:
    """Powers of correlations that are left out."""
    return _SHARE * allowed_error(signals)


def _quarters(count: int) -> tuple[slice, slice, slice]:
    """Slices of the coefficients of n > 0: the first half, the third and the last quarter."""
    third, last = packed_size(count // 2), packed_size(count - count // 4)
    return slice(1, third), slice(third, last), slice(last, None)


def _left_out(third: np.ndarray, last: np.ndarray, tail: np.ndarray, smooth: bool) -> np.ndarray:
    """Estimate of the orders beyond the last quarter, from this one and the one before."""
    if smooth:
        fall = np.divide(4 * last, third, out=np.ones_like(last), where=third != 0)
        tail = np.minimum(tail, np.abs(fall))
    return last * tail


def _within_layers(signals: Signals, f: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Correlators of layers with themselves and what is left out, both (L + 1, p, p)."""
    own, mean = WithinLayers.of(signals), means(signals)
    fourth, remainders = own.averages.copy(), np.zeros_like(own.averages)
    layers, which = np.nonzero(~own.exact)
    parts = -(-len(layers) * f.shape[-1] // _TOGETHER)
    for some in np.array_split(np.arange(len(layers)), max(1, parts)):
        at = layers[some], which[some]
        if len(some):
            fourth[at], remainders[at] = _split(signals, f, mean, at[0], own.four[:, at[1]], count)
    values = fourth[:, own.which] - mean[:, :, None] * mean[:, None]
    return values, remainders[:, own.which]


def _split(
    signals: Signals, f: np.ndarray, mean: np.ndarray, k: np.ndarray, four: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """⟨φφφφ⟩ of inputs (4, m) of layers k (m,), by the two pairs that correlate least."""
    place = positions(len(signals.pairs[0]))
    splits = np.array(
        [[place[four[a], four[b]], place[four[c], four[d]]] for a, b, c, d in _SPLITS]
    )
    X = np.array([signals.between(k, rows, k, columns) for rows, columns in splits])
    correlation = np.array([singular_values(each)[2] for each in X])
    best, every = np.argmin(correlation, axis=0), np.arange(four.shape[1])
    rows, columns = splits[best, :, every].T
    X = np.moveaxis(X, 0, -1)[..., every, best]
    mapped = applied(X, f[k, rows].T, count, _negligible(signals)).T
    terms = mapped * f[k, columns]
    whole, third, last = (terms[:, some].sum(axis=1) for some in _quarters(count))
    tail = 2 * np.minimum(correlation[best, every], 1.0) ** (count / 4)
    fourth = whole + third + last + mean[k, rows] * mean[k, columns]
    return fourth, _left_out(third, last, tail, signals.smooth)


def correlators_by_kernels(signals: Signals, pairs: np.ndarray, least: int = 0) -> Truncated:
    """⟨∂_e g^(l) ; g_e'^(k)⟩, k < l, with the derivatives of g_αβ by K_e, e = αα, ββ, αβ."""
    if signals.lines:
        return _exact(piecewise_linear.correlators_by_kernels(signals, pairs))
    allowed = allowed_error(signals, SETTINGS.pair_derivatives_with_kinks)
    series = resolved(
        signals, lambda count: _correlators_by_kernels(signals, pairs, count), allowed, least
    )
    assert series is not None
    return series


def _correlators_by_kernels(signals: Signals, pairs: np.ndarray, count: int) -> Truncated:
    expansion, size = Expansion(signals, count, pairs), len(signals.K)
    own = np.stack([*expansion.squares, expansion.observables])
    values, left = np.zeros((2, size, size, 3, 3, len(pairs)))
    for k in signals.counted(range(size - 1), "mean_shift, layers"):
        for e, derivatives in enumerate(expansion.by_kernels):
            conditional, tail = given_layer(signals, derivatives[k + 1 :], k, pairs)
            whole, third, last = (
                np.einsum("lpn,fpn->lfp", conditional[..., some], own[:, k, :, some])
                for some in _quarters(count)
            )
            values[k, k + 1 :, e] = whole + third + last
            left[k, k + 1 :, e] = _left_out(third, last, tail[:, None], signals.smooth)
    left[np.flatnonzero(signals.idle)] = 0.0
    return Truncated(count, values, left, _missed(signals, expansion.observables, pairs))


# What the series leave out, relative to the largest: asked for, and allowed.
_ASKED, _ALLOWED = 1e-7, 1e-4


def gain_correlators(
    signals: Signals, weights: np.ndarray, chi: np.ndarray, covariance_response: np.ndarray
) -> np.ndarray | None:
    """The derivatives of ⟨φ_αφ_β^(l) ; Ψ⟩ by K_αβ^(0), Ψ = Σ_k Σ_γδ weights_γδ^(k) φ_γφ_δ^(k)."""
    if not signals.smooth:
        return None
    if not weights.any():
        return np.zeros((1, *chi.shape))
    weights = np.broadcast_to(weights, (chi.shape[-1], *weights.shape[-2:]))
    some = np.flatnonzero(np.abs(weights).max(axis=(0, 1)))
    parts = weights[..., some], some, chi, covariance_response
    series = resolved(signals, lambda count: _series(signals, *parts, count), _ASKED)
    return series.values[None] if series and series.error <= _ALLOWED else None


def _series(
    signals: Signals,
    weights: np.ndarray,
    some: np.ndarray,
    chi: np.ndarray,
    covariance_response: np.ndarray,
    count: int,
) -> Truncated:
    alpha, beta = signals.pairs
    (own,) = np.nonzero(alpha == beta)
    every, layers = np.arange(len(alpha)), np.arange(len(signals.K))
    pairs, alone = Expansion(signals, count, some), Expansion(signals, count, own)
    gains = Expansion(signals, count).products(1, 1)
    gains[:, own] += alone.products(2, 0)
    sides = (
        (2 * alone.products(1, 0), own, pairs.products(*orders)) for orders in ((1, 0), (0, 1))
    )
    values, left = chi * _summed(signals, (gains, every), (pairs.observables, some), count, weights)
    # Cov(h^(l), h^(k)) is K of the earlier layer times the skips between them.
    earlier = np.minimum(layers[:, None], layers)
    passed = signals.passed + np.tril(signals.passed, -1).T
    for (f, rows, g), members in zip(sides, (alpha[some], beta[some]), strict=True):
        turned = covariance_response[earlier][..., members] * passed[:, :, None, None]
        turned = np.swapaxes(turned, 1, 2) * weights[own]
        more = _summed(signals, (f, rows), (g, some), count, turned)
        # These are no connected correlators.
        values[:, own] += more[0] + np.einsum("lqkp,lq,kp->lq", turned, f[..., 0], g[..., 0])
        left[:, own] += more[1]
    return Truncated(count, values, left)


def _summed(
    signals: Signals, one: Functions, other: Functions, count: int, weights: np.ndarray
) -> np.ndarray:
    """Σ_k Σ_c weights_rc^(k) ⟨f_r^(l) ; g_c^(k)⟩ and what is left out, (2, L + 1, r)."""
    after = from_layer_on(signals, one, other, count)
    before = from_layer_on(signals, other, one, count)
    size, sums = len(one[0]), []
    for later, earlier in zip(after, before, strict=True):
        whole = later + np.transpose(earlier, (2, 3, 0, 1))
        layers = np.arange(size)
        whole[layers, :, layers] /= 2
        sums.append((whole * weights).sum(axis=(2, 3)))
    return np.array(sums)
