"""The deep limit of a covariance: the flow of two inputs, followed to its largest response."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from fieldtheory.networks.coefficients import unit_branch
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.infinite_width.layer_functions import network_functions
from fieldtheory.numerics.interpolation import nodes, roots, transform
from fieldtheory.numerics.pair_maps.pair_averages import pair_functions
from fieldtheory.scaling.covariance_flow import InterpolatedFlow, compiled
from fieldtheory.scaling.flow_series import Clock, Path, followed
from fieldtheory.scaling.output_variance import second_order
from fieldtheory.theory.elementary_averages import network_averages

# σ²_w T is searched up to here, in steps of ln(1 + T/τ) at which the response is looked at.
_SEARCHED, _STEP = 1e4, 0.2
_COARSE: dict[str, Any] = {"method": "DOP853", "rtol": 1e-6, "atol": 1e-10}
_NEWTON = 4
# Nodes between bounds of the largest response, and along its flow for the slope there, how far
# around it these reach, of the time; steps to it, and where they end, of the time.
_NODES, _SIDES, _REACH, _VERTEX, _SETTLED = 16, 15, 0.1, 8, 1e-6
_ALIKE = 1e-12
_NEAR = 1e-4
# Pairs whose states are interpolated at once.
_BLOCK = 64
_LARGEST = 1e12
# Chebyshev nodes of a stretch of so many steps, and of one to the largest response and its length.
_COARSE_NODES, _STRETCH, _FINE_NODES, _LENGTH = 8, 5, 18, 1.2
# Errors of heights and series there, and the least difference of heights that is trusted.
_FLAT, _ROUGH, _RESOLVED, _MARGIN = 1e-3, 1e-4, 1e-4, 0.05
# The fewest times among which a maximum is looked for where the flow could not be followed further.
_FEWEST = 8
_EXACT: dict[str, Any] = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-14}


def covariance_scaling(
    network: LayeredNetwork, p: np.ndarray, q: np.ndarray, r: np.ndarray, order: int
) -> np.ndarray:
    """ρ* of the covariances r of inputs with the variances p and q, each (pairs,).

    The response is σ²_w,out P exp ∫_0^T σ²_w P dt with P = ⟨φ'φ'⟩ along the flow; the flow is
    followed to its largest value, at the time T_0 = ρ*² L. With the modified flow the logarithm
    changes by (T/L) B, and T_0 by T_1/L with T_1 = −∂_T(T B) / ∂²_T ln χ^out.

    Parameters and errors are those of `optimal_scaling`.

    Notes
    -----
    c* is right to 1e-10 but for nearly identical inputs, whose distance the flow has to amplify: to
    2e-10 where p + q − 2r is 1e-6 of p + q, to 2e-7 where it is 1e-9, to 1e-4 where it is 1e-12.
    Closer ones, and opposite ones of an odd activation without biases, are an error.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> net = ResidualNetwork(depth=50)
    >>> pair = np.array([[0.05], [0.05], [0.03]])
    >>> covariance_scaling(net, *pair, 1), covariance_scaling(net, *pair, 2)
    (array([0.4062]), array([0.4212]))
    """
    start = np.stack([p, q, r])
    entries = network_functions(network)
    flow: Any = InterpolatedFlow(pair_functions(entries))
    rough: Any = InterpolatedFlow(pair_functions(entries, _ROUGH, searching=True))
    near = bool((p + q - 2 * np.abs(r) <= _NEAR * (p + q)).any())
    if near:
        # Their distance is amplified, with the rounding of what is interpolated and of series.
        flow = rough = compiled(network_averages(network))
    scales = tuple(np.sqrt(unit_branch(network)))
    clock = _clock(rough, start, scales)
    path, at_zero, tops = _located(rough, start, scales, clock, near, network.activation.name)
    result, (pair, low, high) = np.zeros(len(at_zero)), tops
    if not len(pair):
        return result
    known = path.of(pair, 4) if path else None
    state_at = _trajectories(flow, start[:, pair], high.max(), scales, clock, near, known, order)
    if near:
        time = _roots(lambda t: flow.slope(*state_at(t)[:3], *scales), low, high)
    else:
        time = _highest(flow, state_at, low, high, scales, clock)
    if not ((time < high) & ((time > low) | (low == 0))).all():
        raise ArithmeticError("the maximum of the response was not found")
    y = state_at(time)
    heights = flow.height(*y[:3], *scales) + y[3]
    highest = np.where(at_zero, flow.height(*start, *scales), -np.inf)
    np.maximum.at(highest, pair, heights)
    wins = heights >= highest[pair]
    moved = pair[wins]
    if order == 1:
        result[moved] = np.sqrt(time[wins] / network.depth)
        return result
    whole = compiled(network_averages(network))
    for _ in range(_NEWTON):
        y = state_at(time)[:3]
        step = whole.slope(*y, *scales) / whole.curvature(*y, *scales)
        time = np.clip(time - step, low, high)
    state, time = np.delete(state_at(time), 3, axis=0)[:, wins], time[wins]
    change, growth = whole.change(*state, *scales), whole.change_slope(*state, *scales)
    change = -(change + time * growth) / whole.curvature(*state[:3], *scales)
    result[moved] = second_order(network, time, change)
    return result


def _roots(
    slope: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """Where a function of times (pairs,), one of each pair, falls through zero between bounds."""
    times = low + (high - low) * (nodes(_NODES)[:, None] + 1) / 2
    coefficients = transform(_NODES) @ [slope(t) for t in times]
    found = roots(coefficients)
    half = (high - low) / 2
    change = chebyshev.chebval(found, chebyshev.chebder(coefficients), tensor=False) / half
    time = low + half * (found + 1)
    for _ in range(_NEWTON):
        time = np.clip(time - slope(time) / change, low, high)
    return time


def _highest(
    flow: Any,
    state_at: Callable[[np.ndarray], np.ndarray],
    low: np.ndarray,
    high: np.ndarray,
    scales: tuple[float, float],
    clock: Clock,
) -> np.ndarray:
    """The times of the largest responses between bounds, from heights and one step by slopes."""
    bounds = clock.reading(low), clock.reading(high)
    center, half = (bounds[0] + bounds[1]) / 2, (bounds[1] - bounds[0]) / 2
    places = center + half * nodes(_NODES)[:, None]
    states = np.stack([state_at(t) for t in clock.time(places)], axis=1)
    heights = flow.height(*states[:3], *scales) + states[3]
    slopes = chebyshev.chebder(transform(_NODES) @ heights)
    found = _vertex(slopes, heights.argmax(axis=0))
    place = center + half * found
    time = clock.time(place)
    curvature = chebyshev.chebval(found, chebyshev.chebder(slopes), tensor=False)
    curvature /= (half * clock.rate(place)) ** 2
    # The heights know the times to the root of their rounding only.
    for _ in range(_NEWTON):
        y = state_at(time)[:3]
        rates = flow.rates(*y, *scales)
        reach = _REACH * time
        sides = nodes(_SIDES)[:, None] * reach
        along = [k + sides * rate for k, rate in zip(y, rates, strict=False)]
        moved = transform(_SIDES) @ flow.height(*along, *scales)
        slope = chebyshev.chebval(0.0, chebyshev.chebder(moved)) / reach + rates[3]
        step = slope / curvature
        time = np.clip(time - step, low, high)
        if (np.abs(step) <= _SETTLED * time).all():
            break
    return time


def _vertex(slopes: np.ndarray, top: np.ndarray) -> np.ndarray:
    """Where the series of slopes vanish next to the highest of the nodes."""
    ends = np.concatenate([[-1.0], nodes(_NODES), [1.0]])
    low, found, high = ends[top], ends[top + 1], ends[top + 2]
    curvatures = chebyshev.chebder(slopes)
    for _ in range(_VERTEX):
        slope, curvature = (
            chebyshev.chebval(found, series, tensor=False) for series in (slopes, curvatures)
        )
        found = np.clip(found - slope / curvature, low, high)
    return found


def _clock(flow: Any, start: np.ndarray, scales: tuple[float, float]) -> Clock:
    """Of the input whose variance doubles first."""
    with np.errstate(all="ignore"):
        times = start[:2] / np.asarray(flow.rates(*start, *scales)[:2])
    usual = times[(times > 0) & np.isfinite(times)]
    return Clock(float(usual.min()) if usual.size else 1 / scales[0] ** 2)


def _located(
    flow: Any, start: np.ndarray, scales: tuple[float, float], clock: Clock, near: bool, name: str
) -> tuple[Path | None, np.ndarray, _Tops]:
    """About the path, and what may be the largest response of every pair.

    That is the response of the input itself, where it falls from there, and local maxima.
    """
    pairs = start.shape[1]
    last = clock.reading(_SEARCHED / scales[0] ** 2)
    readings = np.linspace(0, last, int(np.ceil(last / _STEP)) + 1)
    times = clock.time(readings)

    def rate(t: Any, y: np.ndarray) -> np.ndarray:
        rates = flow.rates(*y.reshape(4, pairs, *y.shape[1:])[:3], *scales)
        return np.reshape(rates, y.shape)

    def linearised(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rates, slopes = flow.rates_and_slopes(*y.reshape(4, pairs, -1)[:3], *scales)
        return np.reshape(rates, y.shape), np.reshape(slopes, y.shape)

    def overflows(t: float, y: np.ndarray) -> float:
        return _LARGEST - np.abs(y[: 2 * pairs]).max()

    # Variances of unbounded activations grow exponentially.
    overflows.terminal = True  # type: ignore[attr-defined]
    state = np.concatenate([start, np.zeros((1, pairs))]).ravel()
    cuts = readings[np.unique([*range(0, len(readings), _STRETCH), len(readings) - 1])]
    path = None if near else followed(linearised, state, cuts, clock, _COARSE_NODES, _RESOLVED)
    if path is None:
        from scipy.integrate import solve_ivp

        solved = solve_ivp(rate, (0, times[-1]), state, t_eval=times, events=overflows, **_COARSE)
        if len(solved.t) < _FEWEST:
            _successful(solved)
        # Where averages stop to be known the flow ends.
        times, found = solved.t, solved.y
    else:
        found = path(readings)
    *y, growth = found.reshape(4, pairs, len(times))
    size = y[0][:, 1] + y[1][:, 1]
    if (size - 2 * np.abs(y[2][:, 1]) <= _ALIKE * size).any():
        # Rounding would grow until it parts them.
        raise ValueError(
            "K0 must have pairs of inputs that differ by more than sign and rounding, got some "
            f"with p + q - 2 |r| below {_ALIKE:g} (p + q)"
        )
    heights = flow.height(*y, *scales) + growth
    # Slopes are costly: they are looked at where the response may fall from the start.
    (level,) = np.nonzero(heights[:, 0] + _FLAT >= heights[:, 1])
    falls = np.zeros(pairs, dtype=bool)
    if len(level):
        falls[level] = flow.slope(*(k[level, 0] for k in y), *scales) <= 0
    tops = _tops(heights, falls, times)
    if not (falls | np.isin(np.arange(pairs), tops.pair)).all():
        raise ValueError(
            f"network must have a response with a maximum in ρ; that of {name} has none up to "
            f"ρ²L = {times[-1]:.3g}"
        )
    return path, falls, tops


class _Tops(NamedTuple):
    """Local maxima: which pair's, and bounds of the time of each."""

    pair: np.ndarray
    low: np.ndarray
    high: np.ndarray


def _tops(heights: np.ndarray, falls: np.ndarray, times: np.ndarray) -> _Tops:
    """Maxima of heights (pairs, times) that stand out of their errors and may be the highest.

    ``falls`` (pairs,) says for which pairs the start is a maximum, which is not among them.
    """
    inside = np.zeros(heights.shape, dtype=bool)
    # Of a maximum before the first step nothing else is seen.
    inside[:, 0] = ~falls & (heights[:, 0] >= heights[:, 1])
    inside[:, 1:-1] = (heights[:, 1:-1] > heights[:, :-2]) & (heights[:, 1:-1] >= heights[:, 2:])
    pair, top = np.nonzero(inside)
    height = heights[pair, top][:, None]
    place, last = np.arange(len(times)), len(times) - 1
    lower = heights[pair] < height - _FLAT
    low = np.where(lower & (place < top[:, None]), place, 0).max(axis=1)
    high = np.where(lower & (place > top[:, None]), place, last + 1).min(axis=1)
    between = (place >= low[:, None]) & (place <= high[:, None])
    kept = (high <= last) & ~(between & (heights[pair] > height)).any(axis=1)
    highest = np.where(falls, heights[:, 0], -np.inf)
    np.maximum.at(highest, pair[kept], height[kept, 0])
    kept &= height[:, 0] + _MARGIN >= highest[pair]
    return _Tops(pair[kept], times[low[kept]], times[high[kept]])


def _trajectories(
    flow: Any,
    start: np.ndarray,
    end: float,
    scales: tuple[float, float],
    clock: Clock,
    near: bool,
    path: Path | None,
    order: int,
) -> Callable[[np.ndarray], np.ndarray]:
    """The state of every pair at a time of its own: p, q, r, ln ∂r/∂r_0, for order 2 also z and b.

    All pairs are followed at common times, at which they share the averages of their variances.
    """
    pairs = start.shape[1]
    # All but p, q and r start from 0.
    start = np.concatenate([start, np.zeros((5 if order == 2 else 1, pairs))])
    size = len(start)

    def rate(t: Any, y: np.ndarray) -> np.ndarray:
        state = y.reshape(size, pairs, *y.shape[1:])
        rates = flow.rates(*state[:3], *scales)
        if order == 2:
            rates = [*rates, *flow.change_rates(*state[:3], *state[4:], *scales)]
        return np.reshape(rates, y.shape)

    def linearised(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        state = y.reshape(size, pairs, -1)
        rates, slopes = flow.rates_and_slopes(*state[:3], *scales)
        if order == 2:
            # Changes grow as the states do.
            rates = [*rates, *flow.change_rates(*state[:3], *state[4:], *scales)]
            slopes = slopes * 2
        return np.reshape(rates, y.shape), np.reshape(slopes, y.shape)

    last = float(clock.reading(end))
    cuts = np.linspace(0, last, int(np.ceil(last / _LENGTH)) + 1)
    known = path if order == 1 else None
    accurate = _FINE_NODES, _EXACT["rtol"], known
    found = None if near else followed(linearised, start.ravel(), cuts, clock, *accurate)
    if found is not None:
        return lambda time: found.of_each(clock.reading(time), size)

    from scipy.integrate import solve_ivp

    solver = solve_ivp(rate, (0, end), start.ravel(), dense_output=True, **_EXACT)
    follow = _successful(solver).sol

    def state_at(time: np.ndarray) -> np.ndarray:
        states = np.empty((size, pairs))
        for first in range(0, pairs, _BLOCK):
            own = np.arange(first, min(first + _BLOCK, pairs))
            values = follow(time[own]).reshape(size, pairs, len(own))
            states[:, own] = values[:, own, np.arange(len(own))]
        return states

    return state_at


def _successful(found: Any) -> Any:
    if not found.success:
        raise ArithmeticError(f"the flow of the covariances was not followed: {found.message}")
    return found
