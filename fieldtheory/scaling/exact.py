"""The residual scaling with the largest response of the output, from the exact recursion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev

from fieldtheory.averages.quadrature.panels import nodes, transform
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.infinite_width.layer_functions import network_functions
from fieldtheory.numerics.pair_maps.pair_averages import pair_functions
from fieldtheory.scaling.responses import stacked

# ρ² L σ²_w is searched here; the optimum of saturating activations is of order one.
SEARCHED = np.concatenate([[0.0], np.geomspace(1e-4, 1e4 * 10 ** (1 / 3), 26)])


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
_POLYNOMIAL = np.linalg.inv(
    np.vander(np.arange(_SETTINGS.steps) - _SETTINGS.steps // 2.0, increasing=True)
)


def optima(
    networks: Sequence[LayeredNetwork], p: np.ndarray, q: np.ndarray, r: np.ndarray
) -> np.ndarray:
    """ρ* of the covariances r of inputs with the variances p and q, for networks of one activation.

    Parameters
    ----------
    networks : sequence of LayeredNetwork
    p, q, r : ndarray, shape (m,)
        Where all three are equal it is the variance of one input.

    Returns
    -------
    ndarray, shape (n, m)
        NaN for covariances whose response has no maximum.

    Raises
    ------
    ValueError
        If the response of a variance has no maximum.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> p = np.array([0.05, 0.05])
    >>> optima([ResidualNetwork(depth=50)], p, p, np.array([0.05, 0.03])).round(4)
    array([[0.1384, 0.4214]])
    """
    stack = stacked(networks, pair_functions(network_functions(networks[0])))
    shape = (len(networks), len(p))
    index = np.repeat(np.arange(shape[0]), shape[1])
    fields = tuple(np.tile(f, shape[0]) for f in (p, q, r))
    each = stack.of(index)
    entries = stack.averages.entries
    rough = replace(each, averages=pair_functions(entries, _SETTINGS.rough, searching=True))
    grid = SEARCHED[:, None] / (each.depths * each.weights)
    with np.errstate(all="ignore"):
        values = rough.height(grid, *fields)
        squares = maxima(each, grid, values, True, *fields)
        (left,) = np.nonzero(np.isnan(squares))
        if len(left):
            part, own = each.of(left), [f[left] for f in fields]
            grid = grid[: _searched_rows(values[:, left]), left]
            exact = replace(part, averages=pair_functions(entries, searching=True))
            values = exact.height(grid, *own)
            squares[left] = maxima(part, grid, values, False, *own)
            missing = np.isnan(squares[left]) & (own[0] == own[1]) & (own[1] == own[2])
            if missing.any():
                name = networks[0].activation.name
                raise _without_maximum(name, grid[:, missing], values[:, missing])
    return np.sqrt(squares).reshape(shape)


def _searched_rows(values: np.ndarray) -> int:
    """Number of rows of a grid to search again: those that are known, all if an element rises."""
    last = int(np.flatnonzero(~np.isnan(values).all(axis=1)).max(initial=0))
    rises = (np.where(np.isnan(values), -np.inf, values).argmax(axis=0) >= last - 1).any()
    return len(values) if rises else last + 1


def _without_maximum(name: str, grid: np.ndarray, values: np.ndarray) -> ValueError:
    said = f"has none up to ρ = {np.sqrt(grid[~np.isnan(values)].max(initial=0.0)):.3g}"
    if (values == -np.inf).all(axis=0).any():
        said = "vanishes for every ρ"
    return ValueError(f"network must have a response with a maximum in ρ; that of {name} {said}")


def maxima(
    each: Any, grid: np.ndarray, values: np.ndarray, rough: bool, *fields: np.ndarray
) -> np.ndarray:
    """ρ² at the highest maximum, from the values on a grid; NaN where there is none.

    ``each`` is a `Stack`, or what has its height, slope, of and near_zero. Maxima that are about
    the highest are all found and compared. From rough values the result is also NaN where one of
    them is not found at once. It is not s = 0 where the grid ends higher.
    """
    tops = np.full(values.shape, -np.inf)
    inside = (values[1:-1] > values[:-2]) & (values[1:-1] >= values[2:])
    tops[1:-1][inside] = values[1:-1][inside]
    tops[0] = values[0]
    chosen = (tops >= tops.max(axis=0) - _SETTINGS.margin) & np.isfinite(tops)
    squares, heights = np.full(values.shape, np.nan), np.where(chosen, tops, -np.inf)
    (at_zero,) = np.nonzero(chosen[0])
    if len(at_zero):
        falls, heights[0, at_zero] = _at_zero(each.of(at_zero), *(f[at_zero] for f in fields))
        squares[0, at_zero[falls]] = 0.0
        rising = at_zero[~falls]
        chosen[0, rising], heights[0, rising] = False, -np.inf
        (others,) = np.nonzero(~chosen.any(axis=0) & np.isfinite(tops[1:].max(axis=0)))
        chosen[tops[1:, others].argmax(axis=0) + 1, others] = True
    top, column = np.nonzero(chosen[1:])
    top += 1
    low, middle, high = (grid[top + d, column] for d in (-1, 0, 1))
    bounds = low, high
    if rough:
        bounds = _around_vertex(grid[:, column], values[:, column], top)
    peaks, highest = _interpolated_maxima(each, column, bounds, (low, high), *fields)
    missing = np.isnan(peaks)
    if missing.any() and not rough:
        own = each.of(column[missing]), [f[column[missing]] for f in fields]
        peaks[missing] = _bracketed(own[0], middle[missing], (low[missing], high[missing]), *own[1])
        highest[missing] = own[0].height(peaks[None, missing], *own[1])[0]
    squares[top, column] = peaks
    heights[top, column] = np.where(np.isnan(peaks), np.inf, highest)
    ends_higher = np.fmax.reduce(values) > heights.max(axis=0) + _SETTINGS.margin
    highest_square = squares[heights.argmax(axis=0), np.arange(values.shape[1])]
    return np.where(ends_higher & (highest_square == 0), np.nan, highest_square)


def _at_zero(each: Any, *fields: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whether the height falls from s = 0 on, and the height there."""
    # Without a branch, and with γ = 1, all layers are the first one.
    each, zero = each.near_zero(), np.zeros(len(fields[0]))
    return each.slope(zero, *fields) <= 0, each.height(zero[None], *fields)[0]


def _around_vertex(
    grid: np.ndarray, values: np.ndarray, top: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds around the highest point of the polynomials in ln s through the values by a top."""
    columns, half = np.arange(len(top)), _SETTINGS.steps // 2
    middle = np.clip(top, half + 1, len(grid) - 1 - half)
    around = _POLYNOMIAL @ values[middle + np.arange(-half, half + 1)[:, None], columns]
    # Networks and inputs with common places share the averages of their variances.
    parts = np.arange(-_SETTINGS.parts, _SETTINGS.parts + 1) / _SETTINGS.parts
    heights = np.polynomial.polynomial.polyval(top - middle + parts[:, None], around, tensor=False)
    step = np.log(grid[-1] / grid[-2])
    vertex = parts[heights.argmax(axis=0)] * step
    return tuple(
        grid[top, columns] * np.exp(vertex + d * step) for d in (-_SETTINGS.near, _SETTINGS.near)
    )


def _bracketed(
    each: Any,
    middle: np.ndarray,
    bounds: tuple[np.ndarray, ...],
    *fields: np.ndarray,
) -> np.ndarray:
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
    each: Any,
    chosen: np.ndarray,
    bounds: tuple[np.ndarray, ...],
    limits: tuple[np.ndarray, ...],
    *fields: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The highest points of the chosen elements around the bounds and how high they are.

    Both are NaN where they are not resolved.

    The height is interpolated in ln s at Chebyshev nodes, which are computed at once and are common
    to all inputs of a network. Where an end is highest the bounds move there, up to the limits.
    """
    result, heights = np.full((2, len(chosen)), np.nan)
    left = np.flatnonzero(limits[0] > 0)
    with np.errstate(divide="ignore"):
        low, high, lowest, highest = (np.log(bound[left]) for bound in (*bounds, *limits))
    for _ in range(_SETTINGS.tries):
        if not len(left):
            break
        places = low + (high - low) * (nodes(_SETTINGS.nodes)[:, None] + 1) / 2
        part = chosen[left]
        values = each.of(part).height(np.exp(places), *(f[part] for f in fields))
        coefficients = transform(_SETTINGS.nodes) @ values
        size, before, last = (np.abs(coefficients[i:]).max(axis=0) for i in (1, -4, -2))
        resolved = (last <= _SETTINGS.resolved * size) | (
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
        narrow = [
            places[np.clip(top + d, 0, _SETTINGS.nodes - 1), columns]
            for d in (-_SETTINGS.closer, _SETTINGS.closer)
        ]
        half, middle = (high - low) / 2, np.where(top == 0, low, high)
        new = [
            np.clip(np.where(at_end, shifted, closer), lowest, highest)
            for shifted, closer in zip((middle - half, middle + half), narrow, strict=True)
        ]
        # What is resolved without a maximum, up to the limits, has none.
        goes_on = ~inside & (~resolved | (at_end & (middle > lowest) & (middle < highest)))
        left, low, high, lowest, highest = (k[goes_on] for k in (left, *new, lowest, highest))
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
