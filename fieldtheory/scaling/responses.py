"""ln χ^out of many networks and pairs of inputs at many scalings, and its derivative."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from fieldtheory.averages.routes import DEFAULT as DEFAULT_TOLERANCE
from fieldtheory.compiling.translation import is_closed
from fieldtheory.networks.coefficients import unit_branch
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.pair_maps.pair_averages import PairFunctions, pair_functions
from fieldtheory.numerics.recursion import add_skip, residual_kernel
from fieldtheory.numerics.solution import solve

# Numbers of closed forms that are found together, of as many layers as they are, and of a layer up
# to which gains of many layers at once cost less than those that share terms with the averages.
_TOGETHER, _FEW = 2**15, 2**11
_GAINS = "susceptibility", "covariance_susceptibility"
# ρ² L σ²_w is searched here; the optimum of saturating activations is of order one.
SEARCHED = np.concatenate([[0.0], np.geomspace(1e-4, 1e4 * 10 ** (1 / 3), 26)])
# Of any network: entries times layers that are solved at once; the steps of differences by ρ²,
# relative to it and, from zero, to the first of the search; responses of one input that are
# rounding.
_AT_ONCE, _STEP, _VANISHING = 2**14, 1e-3, 1e-13


@dataclass(frozen=True, eq=False)
class Stack:
    """Networks of one activation, as long as the deepest: what each element has of its own.

    ``depths``, ``weights`` and ``biases`` (...) are L, σ²_w and σ²_b, ``skips`` (max L, ...) γ_l²,
    ``numbers`` (...) those of the networks.
    """

    averages: PairFunctions
    numbers: np.ndarray
    depths: np.ndarray
    weights: np.ndarray
    biases: np.ndarray
    skips: np.ndarray

    @property
    def growth(self) -> np.ndarray:
        """L σ²_w, over which ρ² is searched."""
        return self.depths * self.weights

    def searching(self, allowed: float = DEFAULT_TOLERANCE) -> Stack:
        """With averages to these errors, NaN where they do not converge."""
        averages = pair_functions(self.averages.entries, allowed, searching=True)
        return replace(self, averages=averages)

    def of(self, index: np.ndarray) -> Stack:
        """The networks of these numbers."""
        numbers, depths = self.numbers[index], self.depths[index]
        weights, biases = self.weights[index], self.biases[index]
        return Stack(self.averages, numbers, depths, weights, biases, self.skips[:, index])

    def height(self, s: np.ndarray, p: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
        """ln|χ^out| at s = ρ² (rows, m), in one pass of the signals and of all pairs of them."""
        alone = (p == r) & (q == r)
        signals, (pair_columns,) = _signals(self, s, p, q, alone), np.nonzero(~alone)
        columns = np.concatenate([signals.chosen, pair_columns])
        # The rows of a column lie together in memory: operations on some columns are fast.
        stack, s = self.of(columns), np.asfortranarray(s[:, columns])
        weight, bias = s * stack.weights, s * stack.biases
        averages, pairs, count = self.averages, signals.at[:, pair_columns], len(signals.chosen)
        # Gains that are formulas of their own are found of many layers at once.
        closed = s.size <= _FEW and is_closed(averages.averages.moment)
        closed = closed and (not pairs.size or averages.closed)

        def joined(kernel: np.ndarray, of_signals: str, of_pairs: str) -> np.ndarray:
            """Formulas of signals and of pairs; what is not asked for is not derived."""
            K, values = kernel[..., :count], np.empty_like(kernel)
            values[..., :count] = getattr(averages.entries, of_signals)(K)
            if pairs.size:
                of = (K.take(one, axis=-1) for one in pairs)
                both = getattr(averages.entries, of_pairs)
                values[..., count:] = both(*of, kernel[..., count:])
            return values

        def with_gains(kernel: np.ndarray) -> np.ndarray:
            """Averages and their derivatives by the variance or the covariance, together."""
            both = np.empty((2, *s.shape[::-1])).swapaxes(1, 2)
            K = kernel[..., :count]
            both[..., :count] = averages.moments(K, 1)
            both[1, ..., signals.responding : count] = 0.0
            if pairs.size:
                both[..., count:] = averages.covariance_gain(K, pairs, kernel[..., count:])
            return both

        start = np.concatenate([signals.start, r[pair_columns]])
        kernel, value = np.broadcast_to(start, s.shape), np.zeros(s.shape)
        block = max(1, _TOGETHER // s.size)
        for first in range(0, len(stack.skips), block):
            skips = stack.skips[first : first + block]
            kernels = np.empty((len(skips), *s.shape[::-1])).swapaxes(1, 2)
            gains = np.empty_like(kernels)
            for l, skip in enumerate(skips):
                kernels[l] = kernel
                if closed:
                    moment = joined(kernel, "second_moment", "covariance")
                else:
                    moment, gains[l] = with_gains(kernel)
                new = add_skip(skip, kernel, residual_kernel(weight, bias, moment))
                kernel = np.where(first + l < stack.depths, new, kernel)
            if closed:
                gains = joined(kernels, *_GAINS)
            changes = np.log(np.abs(skips[:, None] + weight * gains))
            runs = np.arange(first, first + len(skips))[:, None, None] < stack.depths
            value = value + np.where(runs, changes, 0.0).sum(axis=0)
        gains = joined(kernel, *_GAINS) if closed else with_gains(kernel)[1]
        value = value + np.log(np.abs(gains))
        own = signals.at[0].copy()
        own[pair_columns] = len(signals.chosen) + np.arange(len(pair_columns))
        return value[:, own]

    def slope(self, s: np.ndarray, p: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
        """The derivative of ln|χ^out| by s, at s (m,)."""
        result, alone = np.empty(len(s)), (p == r) & (q == r)
        if alone.any():
            result[alone] = _variance_slope(self.of(alone), s[alone], p[alone])
        if not alone.all():
            fields = (f[~alone] for f in (p, q, r))
            result[~alone] = _covariance_slope(self.of(~alone), s[~alone], *fields)
        return result

    def near_zero(self) -> Stack:
        """For s = 0: with γ = 1 one layer of L times the weights and biases in place of L."""
        if (self.skips != 1).any():
            return self
        weights, biases = self.depths * self.weights, self.depths * self.biases
        depths = np.ones_like(self.depths)
        return replace(self, depths=depths, weights=weights, biases=biases, skips=self.skips[:1])

    def layers(self, step: Callable[..., Any], *start: np.ndarray) -> Iterator[list[np.ndarray]]:
        """The state before every layer, and after the last, by ``step(γ², *state)``."""
        state = list(start)
        for l, skip in enumerate(self.skips):
            yield state
            new = step(skip, *state)
            runs = l < self.depths
            state = [np.where(runs, *both) for both in zip(new, state, strict=True)]
        yield state


@dataclass(frozen=True, eq=False)
class Solved:
    """One network of any family in the place of a `Stack`: the response is that of `solve`."""

    network: Any
    rtol: float

    @cached_property
    def growth(self) -> np.ndarray:
        """L times the mean weight variance of a layer, over which ρ² is searched, (1,)."""
        unit = self.network.layer(self.network.parameters | {"branch_scale": 1.0})
        return np.atleast_1d(self.network.depth * np.mean(unit.weight))

    def of(self, index: Any = None) -> Solved:
        """All are of the same network, to the same accuracy, and near ρ = 0 as elsewhere."""
        return self

    near_zero = searching = of

    def height(self, s: np.ndarray, p: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
        """ln|χ^out| at s = ρ² (rows, m); NaN where numbers are beyond float64."""
        result, alone = np.empty(s.shape), (p == r) & (q == r)
        kernels = np.stack([p, r, r, q], axis=-1).reshape(-1, 2, 2)
        size = max(1, _AT_ONCE // self.network.depth)
        for some, K0, entry in ((alone, p, ()), (~alone, kernels, (0, 1))):
            for at in np.split(np.flatnonzero(some), range(size, some.sum(), size)):
                if len(at):
                    result[:, at] = self._logarithms(s[:, at], K0[at], entry)
        return result

    def _logarithms(self, s: np.ndarray, K0: np.ndarray, entry: Any) -> np.ndarray:
        scales = np.sqrt(s)[..., None] * np.ones(self.network.depth)
        solution = solve(self.network.replace(branch_scale=scales), K0, rtol=self.rtol)
        try:
            response, output = solution.output_response, solution.output_kernel
        except OverflowError:
            if len(s) == 1:
                return np.full(s.shape, np.nan)
            halves = np.array_split(s, 2)
            return np.concatenate([self._logarithms(half, K0, entry) for half in halves])
        if not entry:
            response = np.where(np.abs(response) * K0 > _VANISHING * output, response, 0.0)
        return np.log(np.abs(response[(..., *entry)]))

    def slope(self, s: np.ndarray, *fields: np.ndarray) -> np.ndarray:
        """The derivative of the height by s (m,), by differences."""
        low = np.where(s > 0, s * (1 - _STEP), 0.0)
        high = np.where(s > 0, s * (1 + _STEP), _STEP * SEARCHED[1] / self.growth)
        first, last = self.height(np.stack([low, high]), *fields)
        return (last - first) / (high - low)


def stacked(networks: Sequence[LayeredNetwork], averages: PairFunctions) -> Stack:
    """The stack of networks with these averages.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> from fieldtheory.numerics.infinite_width.block_functions import network_functions
    >>> from fieldtheory.numerics.pair_maps.pair_averages import pair_functions
    >>> net = ResidualNetwork(depth=50)
    >>> stack, K = stacked([net], pair_functions(network_functions(net))), np.array([0.05])
    >>> stack.height(np.array([[0.01], [0.02], [0.03]]), K, K, K).ravel().round(4)
    array([0.374 , 0.4563, 0.3743])
    """
    depths = np.array([network.depth for network in networks])
    weights, biases = np.array([unit_branch(network) for network in networks]).T
    skips = np.zeros((depths.max(), len(networks)))
    for i, network in enumerate(networks):
        skips[: network.depth, i] = network.skip_scales**2
    return Stack(averages, np.arange(len(networks)), depths, weights, biases, skips)


def _variance_slope(stack: Stack, s: np.ndarray, K0: np.ndarray) -> np.ndarray:
    average, weight, bias = stack.averages, stack.weights, stack.biases

    def step(skip: Any, K: Any, dK: Any, slope: Any) -> list[Any]:
        M, gain, curvature = average.moments(K)
        C = residual_kernel(weight, bias, M)
        factor = skip + s * weight * gain
        slope = slope + weight * (gain + s * curvature * dK) / factor
        return [add_skip(skip, K, s * C), add_skip(factor, dK, C), slope]

    K = np.broadcast_to(K0, np.broadcast_shapes(s.shape, K0.shape))
    *_, (K, dK, slope) = stack.layers(step, K, *np.zeros((2, *K.shape)))
    _, gain, curvature = average.moments(K)
    return slope + curvature * dK / gain


class _Signals(NamedTuple):
    """The different signals of pairs."""

    start: np.ndarray
    # A pair that has the network and the s of each; which two each pair has, (2, pairs).
    chosen: np.ndarray
    at: np.ndarray
    # So many of them, the first ones, are asked for the responses of their variances.
    responding: int


def _signals(
    stack: Stack, s: np.ndarray, p: np.ndarray, q: np.ndarray, alone: np.ndarray
) -> _Signals:
    """Those of pairs with the variances p and q, of which some are ``alone``, one input."""
    count = len(p)
    keys = np.concatenate([stack.numbers[None], s.reshape(-1, count)])
    own = np.concatenate([p, q])
    keys = np.concatenate([own[None], np.tile(keys, 2)])
    # The first of all equal columns, and to which of these each is equal; faster than NumPy's.
    order = np.lexsort(keys[::-1])
    ordered = keys[:, order]
    new = np.append(True, (ordered[:, 1:] != ordered[:, :-1]).any(axis=0))
    number = np.empty(len(order), dtype=int)
    number[order] = np.cumsum(new) - 1
    chosen, at = order[new], number.reshape(2, count)
    # The order of what does not respond is after what does.
    silent = np.ones(len(chosen), dtype=bool)
    silent[at[0, alone]] = False
    order = np.argsort(silent, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    chosen = chosen[order]
    return _Signals(own[chosen], chosen % count, place[at], len(chosen) - int(silent.sum()))


def _covariance_slope(
    stack: Stack, s: np.ndarray, p0: np.ndarray, q0: np.ndarray, r0: np.ndarray
) -> np.ndarray:
    average, weight, bias = stack.averages, stack.weights, stack.biases
    start, chosen, pairs, _ = _signals(stack, s, p0, q0, np.zeros(len(p0), dtype=bool))
    signals, of_signals = stack.of(chosen), s[chosen]

    def own_step(skip: Any, K: Any, dK: Any) -> list[Any]:
        M, gain = average.moments(K, 1)
        C = residual_kernel(signals.weights, signals.biases, M)
        factor = skip + of_signals * signals.weights * gain
        return [add_skip(skip, K, of_signals * C), add_skip(factor, dK, C)]

    own = signals.layers(own_step, start, np.zeros(start.shape))

    def changes(r: Any, dr: Any) -> tuple[Any, ...]:
        """⟨φφ⟩ and ⟨φ'φ'⟩ with their derivatives by s."""
        K, dK = next(own)
        G, by_p, by_q, gain, *curvature = average.covariance_flow(K, pairs, r)
        down = dK[..., pairs[0]], dK[..., pairs[1]], dr
        dG = by_p * down[0] + by_q * down[1] + gain * dr
        return G, dG, gain, sum(by * d for by, d in zip(curvature, down, strict=True))

    def step(skip: Any, r: Any, dr: Any, slope: Any) -> list[Any]:
        G, dG, gain, dgain = changes(r, dr)
        factor = skip + s * weight * gain
        slope = slope + weight * (gain + s * dgain) / factor
        C = residual_kernel(weight, bias, G)
        return [add_skip(skip, r, s * C), add_skip(skip, dr, C + s * weight * dG), slope]

    none = np.zeros(s.shape)
    *_, (r, dr, slope) = stack.layers(step, np.broadcast_to(r0, s.shape), none, none)
    _, _, gain, dgain = changes(r, dr)
    return slope + dgain / gain
