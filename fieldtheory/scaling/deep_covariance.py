"""The deep limit of a covariance: the flow of two inputs, followed to its largest response."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from fieldtheory.averages.quadrature.panels import nodes, transform
from fieldtheory.networks.coefficients import unit_branch
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.infinite_width.block_functions import network_functions
from fieldtheory.numerics.pair_maps.pair_averages import pair_functions
from fieldtheory.scaling.covariance_flow import Flow, compiled
from fieldtheory.scaling.exact import roots
from fieldtheory.scaling.output_variance import second_order
from fieldtheory.theory.elementary_averages import network_averages


@dataclass(frozen=True)
class _Settings:
    """Numbers of the search for the largest response along the flow.

    Parameters
    ----------
    searched, step, rough : float
        σ²_w T is searched up to here, in steps of ln(1 + T/τ), with averages of few digits.
    nodes, newton : int
        Chebyshev nodes between bounds of the largest response, and steps of Newton's method
        from there.
    alike : float
        Inputs are the same, up to sign, if p + q − 2|r| is below this part of p + q.
    largest : float
        The flow ends where variances are larger.
    flat, margin : float
        Errors of heights, and the least difference of heights that is trusted.
    fewest : int
        The fewest times among which a maximum is looked for where the flow could not be
        followed further.
    block : int
        Pairs whose states are interpolated at once.
    """

    searched: float = 1e4
    step: float = 0.2
    rough: float = 1e-4
    nodes: int = 16
    newton: int = 4
    alike: float = 1e-12
    largest: float = 1e12
    flat: float = 1e-3
    margin: float = 0.05
    fewest: int = 8
    block: int = 64


_SETTINGS = _Settings()
_COARSE: dict[str, Any] = {"method": "DOP853", "rtol": 1e-6, "atol": 1e-10}
_EXACT: dict[str, Any] = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-14, "dense_output": True}


def covariance_scaling(
    network: LayeredNetwork, p: np.ndarray, q: np.ndarray, r: np.ndarray, order: int
) -> np.ndarray:
    """ρ* of the covariances r of inputs with the variances p and q, each (pairs,).

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> net = ResidualNetwork(depth=50)
    >>> pair = np.array([[0.05], [0.05], [0.03]])
    >>> covariance_scaling(net, *pair, 1), covariance_scaling(net, *pair, 2)
    (array([0.4062]), array([0.4212]))
    """
    start, entries, branch = np.stack([p, q, r]), network_functions(network), unit_branch(network)
    rough = Flow(pair_functions(entries, _SETTINGS.rough, searching=True), *branch)
    at_zero, tops = _located(rough, start, branch.weight)
    pair, low, high = tops
    # Without a maximum it is NaN.
    result = np.where(at_zero | np.isin(np.arange(len(at_zero)), pair), 0.0, np.nan)
    if not len(pair):
        return result
    flow, scales, rates = Flow(pair_functions(entries), *branch), np.sqrt(branch), None
    if order == 2:
        curvature, rates, change, change_slope = compiled(network_averages(network))
    state_at = _trajectories(flow, rates, start[:, pair], high.max(), scales)
    time = _roots(lambda t: flow.slope(*state_at(t)[:3]), low, high)
    if not ((time < high) & ((time > low) | (low == 0))).all():
        raise ArithmeticError("the maximum of the response was not found")
    state = state_at(time)
    heights = flow.height(*state[:3]) + state[3]
    highest = np.where(at_zero, flow.height(*start), -np.inf)
    np.maximum.at(highest, pair, heights)
    wins = heights >= highest[pair]
    state, time = state[:, wins], time[wins]
    if order == 1:
        result[pair[wins]] = np.sqrt(time / network.depth)
        return result
    # With the modified flow the logarithm changes by (T/L) B: T_1 = −∂_T(T B) / ∂²_T ln χ^out.
    state = np.delete(state, 3, axis=0)
    slope = change(*state, *scales) + time * change_slope(*state, *scales)
    later = -slope / curvature(*state[:3], *scales)
    result[pair[wins]] = second_order(network, time, later)
    return result


def _roots(
    slope: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """Times (pairs,) at which a function of them falls through zero between bounds."""
    times = low + (high - low) * (nodes(_SETTINGS.nodes)[:, None] + 1) / 2
    coefficients = transform(_SETTINGS.nodes) @ [slope(t) for t in times]
    zeros = roots(coefficients)
    half = (high - low) / 2
    change = chebyshev.chebval(zeros, chebyshev.chebder(coefficients), tensor=False) / half
    time = low + half * (zeros + 1)
    for _ in range(_SETTINGS.newton):
        time = np.clip(time - slope(time) / change, low, high)
    return time


class _Tops(NamedTuple):
    """Local maxima: which pair's, and bounds of the time of each."""

    pair: np.ndarray
    low: np.ndarray
    high: np.ndarray


def _located(flow: Flow, start: np.ndarray, weight: float) -> tuple[np.ndarray, _Tops]:
    """Pairs whose responses fall from the input on, and other candidates of the largest of each."""
    from scipy.integrate import solve_ivp

    pairs = start.shape[1]
    with np.errstate(all="ignore"):
        doubling = start[:2] / flow.rates(*start)[:2]
    usual = doubling[(doubling > 0) & np.isfinite(doubling)]
    # In u = ln(1 + t/τ) flows change evenly, with the time τ in which the first variance doubles.
    tau = usual.min() if usual.size else 1 / weight
    last = np.log1p(_SETTINGS.searched / weight / tau)
    times = tau * np.expm1(np.linspace(0, last, int(np.ceil(last / _SETTINGS.step)) + 1))

    def overflows(t: float, y: np.ndarray) -> float:
        return _SETTINGS.largest - np.abs(y[: 2 * pairs]).max()

    # Variances of unbounded activations grow exponentially.
    overflows.terminal = True  # type: ignore[attr-defined]

    def rate(t: float, y: np.ndarray) -> np.ndarray:
        return flow.rates(*y.reshape(4, pairs)[:3]).ravel()

    state = np.append(start, np.zeros(pairs))
    solved = solve_ivp(rate, (0, times[-1]), state, t_eval=times, events=overflows, **_COARSE)
    if len(solved.t) < _SETTINGS.fewest:
        _successful(solved)
    # Where averages stop to be known the flow ends.
    times, y = solved.t, solved.y.reshape(4, pairs, -1)
    size = y[0, :, 1] + y[1, :, 1]
    # Rounding would grow until it parts them.
    alike = size - 2 * np.abs(y[2, :, 1]) <= _SETTINGS.alike * size
    flat = y.reshape(4, -1)
    heights = (flow.height(*flat[:3]) + flat[3]).reshape(pairs, -1)
    # Slopes are costly: they are looked at where the response may fall from the start.
    (level,) = np.nonzero(heights[:, 0] + _SETTINGS.flat >= heights[:, 1])
    falls = np.zeros(pairs, dtype=bool)
    if len(level):
        falls[level] = flow.slope(*start[:, level]) <= 0
    tops = _tops(heights, falls, times)
    kept = ~alike[tops.pair]
    return falls & ~alike, _Tops(*(field[kept] for field in tops))


def _tops(heights: np.ndarray, falls: np.ndarray, times: np.ndarray) -> _Tops:
    """Maxima of heights (pairs, times) that stand out of their errors and may be the highest."""
    inside = np.zeros(heights.shape, dtype=bool)
    # Of a maximum before the first step nothing else is seen.
    inside[:, 0] = ~falls & (heights[:, 0] >= heights[:, 1])
    inside[:, 1:-1] = (heights[:, 1:-1] > heights[:, :-2]) & (heights[:, 1:-1] >= heights[:, 2:])
    pair, top = np.nonzero(inside)
    height = heights[pair, top][:, None]
    place, last = np.arange(len(times)), len(times) - 1
    lower = heights[pair] < height - _SETTINGS.flat
    low = np.where(lower & (place < top[:, None]), place, 0).max(axis=1)
    high = np.where(lower & (place > top[:, None]), place, last + 1).min(axis=1)
    between = (place >= low[:, None]) & (place <= high[:, None])
    kept = (high <= last) & ~(between & (heights[pair] > height)).any(axis=1)
    highest = np.where(falls, heights[:, 0], -np.inf)
    np.maximum.at(highest, pair[kept], height[kept, 0])
    kept &= height[:, 0] + _SETTINGS.margin >= highest[pair]
    return _Tops(pair[kept], times[low[kept]], times[high[kept]])


def _trajectories(
    flow: Flow,
    change_rates: Callable[..., Any] | None,
    start: np.ndarray,
    end: float,
    scales: np.ndarray,
) -> Callable[[np.ndarray], np.ndarray]:
    """The state of each pair at its time: p, q, r, ln ∂r/∂r_0, for order 2 also z and b."""
    from scipy.integrate import solve_ivp

    pairs = start.shape[1]
    # All but p, q and r start from 0.
    start = np.concatenate([start, np.zeros((5 if change_rates else 1, pairs))])
    size = len(start)

    def rate(t: float, y: np.ndarray) -> np.ndarray:
        state = y.reshape(size, pairs)
        rates = [*flow.rates(*state[:3])]
        if change_rates:
            rates += change_rates(*state[:3], *state[4:], *scales)
        return np.ravel(rates)

    follow = _successful(solve_ivp(rate, (0, end), start.ravel(), **_EXACT)).sol

    def state_at(time: np.ndarray) -> np.ndarray:
        states = np.empty((size, pairs))
        for first in range(0, pairs, _SETTINGS.block):
            own = np.arange(first, min(first + _SETTINGS.block, pairs))
            values = follow(time[own]).reshape(size, pairs, len(own))
            states[:, own] = values[:, own, np.arange(len(own))]
        return states

    return state_at


def _successful(solution: Any) -> Any:
    if not solution.success:
        raise ArithmeticError(f"the flow of the covariances was not followed: {solution.message}")
    return solution
