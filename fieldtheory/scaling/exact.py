"""The residual scaling with the largest response of the output, from the exact recursion."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev

from fieldtheory import validation
from fieldtheory.averages.quadrature.panels import nodes, transform
from fieldtheory.scaling.responses import SEARCHED


@dataclass(frozen=True)
class _Settings:
    """Numbers of the search for the highest maximum of the response.

    Parameters
    ----------
    rough, margin, near, parts : float, float, float, int
        Rough averages of pairs of the search: what their series leave out, the least
        difference of heights that is trusted, and how far around the vertex the maximum is
        sought, of a step, which is divided into so many parts.
    steps : int
        From values at equal steps around a top to the polynomial through them.
    nodes : int
        Chebyshev nodes between bounds.
    resolved, rounding, falls : float
        The last coefficients allowed: of the largest, and where they no longer fall by this
        factor, as heights of nearly parallel inputs are right to 1e-16/(1 − c).
    tries, closer : int
        How often the bounds are moved, or drawn closer around the highest node by so many
        nodes.
    """

    rough: float = 1e-3
    margin: float = 0.05
    near: float = 0.2
    parts: int = 8
    steps: int = 7
    nodes: int = 12
    resolved: float = 3e-10
    rounding: float = 5e-11
    falls: float = 4.0
    tries: int = 5
    closer: int = 3


_SETTINGS = _Settings()
_SIDES = np.array([[-1], [1]])
_POLYNOMIAL = np.linalg.inv(
    np.vander(np.arange(_SETTINGS.steps) - _SETTINGS.steps // 2.0, increasing=True)
)


def optima(
    each: Any, name: str, must: bool, p: np.ndarray, q: np.ndarray, r: np.ndarray
) -> np.ndarray:
    """ρ* of the covariances r of inputs with the variances p and q, (networks, m).

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> from fieldtheory.scaling.responses import Solved
    >>> p, each = np.array([0.05, 0.05]), Solved(ResidualNetwork(depth=50), 1e-12)
    >>> optima(each, "erf", True, p, p, np.array([0.05, 0.03])).round(4)
    array([[0.1384, 0.4214]])
    """
    # ``each`` is a `Stack` or a `Solved`; the variance of one input, p = q = r, ``must`` have a ρ*,
    # or is NaN with a warning.
    count = len(each.growth)
    index = np.repeat(np.arange(count), len(p))
    fields = np.tile([p, q, r], count)
    each = each.of(index)
    grid = SEARCHED[:, None] / np.broadcast_to(each.growth, len(index))
    with np.errstate(all="ignore"):
        values = each.searching(_SETTINGS.rough).height(grid, *fields)
        squares = maxima(each, grid, values, True, fields)
        (left,) = np.nonzero(np.isnan(squares))
        if len(left):
            part, own, found = each.of(left), fields[:, left], values[:, left]
            # The rows that are known, all if an element rises at their end.
            last = int(np.flatnonzero(~np.isnan(found).all(axis=1)).max(initial=0))
            rises = (np.where(np.isnan(found), -np.inf, found).argmax(axis=0) >= last - 1).any()
            grid = grid[: len(found) if rises else last + 1, left]
            values = part.searching().height(grid, *own)
            squares[left] = maxima(part, grid, values, False, own)
            missing = np.isnan(squares[left]) & (own[0] == own[1]) & (own[1] == own[2])
            if missing.any():
                _say_none(name, must, grid[:, missing], values[:, missing])
    return np.sqrt(squares).reshape(count, len(p))


def _say_none(name: str, must: bool, grid: np.ndarray, values: np.ndarray) -> None:
    said = f"has none up to ρ = {np.sqrt(grid[~np.isnan(values)].max(initial=0.0)):.3g}"
    if (values == -np.inf).all(axis=0).any():
        said = "vanishes for every ρ"
    if must:
        raise ValueError(f"network must have a response with a maximum in ρ; that of {name} {said}")
    warnings.warn(
        f"K0 has variances without ρ*, which are NaN: the response of {name} {said}",
        stacklevel=validation.level_of_user(),
    )


def maxima(
    each: Any, grid: np.ndarray, values: np.ndarray, rough: bool, fields: np.ndarray
) -> np.ndarray:
    """ρ² at the highest maximum, from the values on a grid; NaN where there is none."""
    # Maxima that are about the highest are all found and compared. From rough values the result is
    # also NaN where one of them is not found at once. It is not s = 0 where the grid ends higher.
    tops = np.full(values.shape, -np.inf)
    inside = (values[1:-1] > values[:-2]) & (values[1:-1] >= values[2:])
    tops[1:-1][inside] = values[1:-1][inside]
    tops[0] = values[0]
    chosen = (tops >= tops.max(axis=0) - _SETTINGS.margin) & np.isfinite(tops)
    squares, heights = np.full(values.shape, np.nan), np.where(chosen, tops, -np.inf)
    (at_zero,) = np.nonzero(chosen[0])
    if len(at_zero):
        # Without a branch, and with γ = 1, all layers are the first one.
        start, own, zero = each.of(at_zero).near_zero(), fields[:, at_zero], np.zeros(len(at_zero))
        falls, heights[0, at_zero] = start.slope(zero, *own) <= 0, start.height(zero[None], *own)[0]
        squares[0, at_zero[falls]] = 0.0
        rising = at_zero[~falls]
        chosen[0, rising], heights[0, rising] = False, -np.inf
        (others,) = np.nonzero(~chosen.any(axis=0) & np.isfinite(tops[1:].max(axis=0)))
        chosen[tops[1:, others].argmax(axis=0) + 1, others] = True
    top, column = np.nonzero(chosen[1:])
    top += 1
    low, middle, high = grid[top + np.array([[-1], [0], [1]]), column]
    bounds = limits = np.stack([low, high])
    if rough:
        bounds = _around_vertex(grid[:, column], values[:, column], top)
    peaks, highest = _interpolated_maxima(each, column, bounds, limits, fields)
    missing = np.isnan(peaks)
    if missing.any() and not rough:
        part, own = each.of(column[missing]), fields[:, column[missing]]
        peaks[missing] = _bracketed(part, middle[missing], limits[:, missing], own)
        highest[missing] = part.height(peaks[None, missing], *own)[0]
    squares[top, column] = peaks
    heights[top, column] = np.where(np.isnan(peaks), np.inf, highest)
    ends_higher = np.fmax.reduce(values) > heights.max(axis=0) + _SETTINGS.margin
    highest_square = squares[heights.argmax(axis=0), np.arange(values.shape[1])]
    return np.where(ends_higher & (highest_square == 0), np.nan, highest_square)


def _around_vertex(grid: np.ndarray, values: np.ndarray, top: np.ndarray) -> np.ndarray:
    """Bounds (2, m) around the highest point of polynomials in ln s through values by a top."""
    columns, half = np.arange(len(top)), _SETTINGS.steps // 2
    middle = np.clip(top, half + 1, len(grid) - 1 - half)
    around = _POLYNOMIAL @ values[middle + np.arange(-half, half + 1)[:, None], columns]
    # Networks and inputs with common places share the averages of their variances.
    parts = np.arange(-_SETTINGS.parts, _SETTINGS.parts + 1) / _SETTINGS.parts
    heights = np.polynomial.polynomial.polyval(top - middle + parts[:, None], around, tensor=False)
    step = np.log(grid[-1] / grid[-2])
    vertex = parts[heights.argmax(axis=0)]
    return np.asarray(grid[top, columns] * np.exp((vertex + _SETTINGS.near * _SIDES) * step))


def _bracketed(each: Any, middle: np.ndarray, bounds: np.ndarray, fields: np.ndarray) -> np.ndarray:
    """Zeros of the slopes, by a root finder within brackets."""
    # SciPy's optimisers take a third of the import time of the package.
    from scipy.optimize import elementwise

    low, high = bounds
    falls = each.slope(middle, *fields) <= 0
    solved = elementwise.find_root(
        lambda s, i, *f: each.of(i).slope(s, *f),
        (np.where(falls, low, middle), np.where(falls, middle, high)),
        args=(np.arange(len(middle)), *fields),
        tolerances={"xrtol": 1e-14},
    )
    if not solved.success.all():
        raise ArithmeticError("the maximum of the response was not found")
    return solved.x


def _interpolated_maxima(
    each: Any, chosen: np.ndarray, bounds: np.ndarray, limits: np.ndarray, fields: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The highest points of the chosen elements around the bounds and how high they are."""
    # The height is interpolated in ln s at Chebyshev nodes, which are common to all inputs of a
    # network. Where an end is highest the bounds move there, up to the limits; NaN if not resolved.
    result, heights = np.full((2, len(chosen)), np.nan)
    left = np.flatnonzero(limits[0] > 0)
    with np.errstate(divide="ignore"):
        bounds, limits = np.log(bounds[:, left]), np.log(limits[:, left])
    for _ in range(_SETTINGS.tries):
        if not len(left):
            break
        low, high = bounds
        places = low + (high - low) * (nodes(_SETTINGS.nodes)[:, None] + 1) / 2
        part = chosen[left]
        values = each.of(part).height(np.exp(places), *fields[:, part])
        coefficients = transform(_SETTINGS.nodes) @ values
        sizes = np.abs(coefficients)
        last, before = sizes[-2:].max(axis=0), sizes[-4:].max(axis=0)
        resolved = (last <= _SETTINGS.resolved * sizes[1:].max(axis=0)) | (
            (last <= _SETTINGS.rounding) & (_SETTINGS.falls * last >= before)
        )
        slopes = chebyshev.chebder(coefficients)
        vertex = roots(slopes)
        logarithms = low + (high - low) * (vertex + 1) / 2
        inside = resolved & (chebyshev.chebval(1.0, slopes) < 0) & np.isfinite(logarithms)
        result[left[inside]] = np.exp(logarithms[inside])
        heights[left] = chebyshev.chebval(vertex, coefficients, tensor=False)
        top, columns = values.argmax(axis=0), np.arange(len(left))
        at_end = (top == 0) | (top == _SETTINGS.nodes - 1)
        closer = top + _SETTINGS.closer * _SIDES
        narrow = places[np.clip(closer, 0, _SETTINGS.nodes - 1), columns]
        middle = np.where(top == 0, low, high)
        shifted = middle + (high - low) / 2 * _SIDES
        bounds = np.clip(np.where(at_end, shifted, narrow), *limits)
        # What is resolved without a maximum, up to the limits, has none.
        goes_on = ~inside & (~resolved | (at_end & (middle > limits[0]) & (middle < limits[1])))
        left, bounds, limits = left[goes_on], bounds[:, goes_on], limits[:, goes_on]
    return result, heights


def roots(coefficients: np.ndarray) -> np.ndarray:
    """Roots in (-1, 1) of Chebyshev series (count, m), NaN where their ends have one sign.

    Examples
    --------
    >>> roots(np.array([[0.5, 0.0], [1.0, 1.0]])).round(12) + 0.0
    array([-0.5,  0. ])
    """
    # SciPy's optimisers take a third of the import time of the package.
    from scipy.optimize import elementwise

    def series(x: np.ndarray, i: np.ndarray) -> np.ndarray:
        return chebyshev.chebval(x, coefficients[:, i], tensor=False)

    ends = np.full((2, coefficients.shape[1]), [[-1.0], [1.0]])
    return elementwise.find_root(series, tuple(ends), args=(np.arange(ends.shape[1]),)).x
