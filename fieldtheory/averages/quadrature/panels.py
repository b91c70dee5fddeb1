"""Panels: their nodes, and sums over them with an estimate of the error; Chebyshev interpolation.

Interpolants on [-1, 1] have their coefficients from values at the zeros of a polynomial.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.polynomial import chebyshev
from numpy.polynomial.legendre import leggauss, legval

from fieldtheory.averages.quadrature.panelled_functions import NODES, ORDER, WEIGHTS, Function

# Where panels end at least and how wide they are at most, in standard deviations. Those that end
# farther out are so narrow that the density falls by no more than e^12.
END, WIDEST, FALLS = 9.5, 1.9, 12.0
# The density of a standard Gaussian at zero.
DENSITY = 1 / np.sqrt(2 * np.pi)
# Cosines of so few numbers take less time than a recurrence.
_FEW = 2048
# Relative error of sums by rounding.
ROUNDING = 1e-15
# Integral and Legendre coefficients of an integrand, amid and last, by its values at the nodes.
_SUMS = np.stack(
    [WEIGHTS]
    + [
        (n + 0.5) * WEIGHTS * legval(NODES, np.eye(ORDER)[n])
        for n in (ORDER // 2 - 1, ORDER // 2, ORDER - 2, ORDER - 1)
    ],
    axis=1,
)


@lru_cache(maxsize=16)
def legendre(order: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of Gauss and Legendre on [−1, 1]."""
    return leggauss(order)


def composite(cuts: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on the panels between sorted cuts, which may carry leading axes.

    Examples
    --------
    >>> nodes, weights = composite(np.array([0.0, 1.0, 3.0]), 4)
    >>> float(round((nodes**5) @ weights, 9)), 3**6 / 6
    (121.5, 121.5)
    """
    x, w = legendre(order)
    middle = (cuts[..., 1:] + cuts[..., :-1])[..., None] / 2
    half = (cuts[..., 1:] - cuts[..., :-1])[..., None] / 2
    shape = (*cuts.shape[:-1], -1)
    return (middle + half * x).reshape(shape), (half * w).reshape(shape)


def subdivided(edges: np.ndarray, low: float, high: float, width: float) -> np.ndarray:
    """The edges between low and high, and as many more that no panel is wider than asked for.

    >>> subdivided(np.array([0.0]), -1.0, 2.0, 1.0).tolist()
    [-1.0, 0.0, 1.0, 2.0]
    """
    inner = edges[(edges > low) & (edges < high)]
    ends = np.concatenate([[low], inner, [high]])
    counts = np.maximum(np.ceil(np.diff(ends) / width).astype(int), 1)
    start, step = np.repeat(ends[:-1], counts), np.repeat(np.diff(ends) / counts, counts)
    place = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.append(start + place * step, high)


def nodes_of(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (..., ORDER) and half widths of panels."""
    half = (high - low) / 2
    return ((low + high) / 2)[..., None] + half[..., None] * NODES, half


def summed(
    values: np.ndarray, half: np.ndarray, least: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Integrals over panels of values (..., panels, ORDER), and their errors."""
    terms = values @ _SUMS
    size = np.abs(terms)
    amid, last = size[..., 1] + size[..., 2], size[..., 3] + size[..., 4]
    ratio = np.minimum(last / np.maximum(amid, 1e-300), 1.0) ** 2
    return terms[..., 0] * half, last * np.maximum(ratio, least) * half


def error_of(errors: np.ndarray, size: np.ndarray) -> np.ndarray:
    """The error of integrals from those of their panels (..., panels), and rounding."""
    return errors.sum(axis=-1) + ROUNDING * size


def edges_with_widths(function: Function, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Edges of panels and the width of the narrower panel at each, negative at breakpoints."""
    edges = function.edges(reach)
    sides = np.diff(edges)
    widths = np.minimum(np.append(np.inf, sides), np.append(sides, np.inf))
    return edges, np.where(np.isin(edges, function.kinks), -widths, widths)


def panels_of_lines(
    ends: np.ndarray, widths: np.ndarray, end: float = END
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Panels of the integrals along m lines that have edges (m, n) each."""
    widest = WIDEST if end == END else FALLS / end
    grid = np.linspace(-end, end, int(2 * end / widest) + 2)
    shape = len(ends), len(grid)
    ends = np.clip(np.concatenate([ends, np.broadcast_to(grid, shape)], axis=1), -end, end)
    widths = np.concatenate([widths, np.full(shape, widest)], axis=1)
    order = np.argsort(ends, axis=1)
    ends, widths = (np.take_along_axis(each, order, axis=1) for each in (ends, widths))
    fixed, widths = widths < 0, np.minimum(np.abs(widths), 1e3)
    for start in (0, 1, 0):
        left, middle, right = (slice(start + i, ends.shape[1] - 2 + i, 2) for i in range(3))
        least = np.minimum(np.minimum(widths[:, left], widths[:, right]), widths[:, middle])
        drop = ~fixed[:, middle] & (ends[:, right] - ends[:, left] <= 1.05 * least)
        # An edge that is left out moves to the next one, so that a panel has no width.
        ends[:, middle] = np.where(drop, ends[:, right], ends[:, middle])
        for side in (left, right):
            widths[:, side] = np.where(drop, least, widths[:, side])
    wide = np.diff(ends, axis=1) > 1e-13
    nodes, half = nodes_of(ends[:, :-1][wide], ends[:, 1:][wide])
    return np.nonzero(wide)[0], nodes, half


def averages_about(
    functions: list[Function], mean: np.ndarray, deviation: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """⟨ψ⟩ of Gaussian variables with means and standard deviations (m,)."""
    extents = [function.extent(deviation, mean).max(initial=END) for function in functions]
    end = max(extents)
    reach = float((np.abs(mean) + end * deviation).max(initial=0.0)) + 1
    edges, widths = edges_with_widths(functions[0], reach)
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.nan_to_num((edges - mean[:, None]) / deviation[:, None], nan=0.0)
        widths = np.nan_to_num(widths / deviation[:, None], nan=np.inf)
    line, z, half = panels_of_lines(ends, widths, end)
    h = deviation[line, None] * z + mean[line, None]
    rows = np.stack([function(h) for function in functions]) * np.exp(-(z**2) / 2) * DENSITY
    starts = np.searchsorted(line, np.arange(len(mean)))
    values, tails = (np.add.reduceat(each, starts, axis=1) for each in summed(rows, half))
    sizes = np.add.reduceat(summed(np.abs(rows), half)[0], starts, axis=1)
    errors, certain = tails + ROUNDING * sizes, deviation == 0
    sides = [np.nextafter(mean[certain], end) for end in (-np.inf, np.inf)]
    values[:, certain] = [(function(sides[0]) + function(sides[1])) / 2 for function in functions]
    return values, np.where(certain, 0.0, errors), sizes


@lru_cache(maxsize=64)
def nodes(count: int) -> np.ndarray:
    """The zeros of T_count, ascending, shape (count,)."""
    return _kept(chebyshev.chebpts1(count))


@lru_cache(maxsize=64)
def transform(count: int) -> np.ndarray:
    """The matrix from values at the nodes to the coefficients of T_0, ..., T_{count-1}.

    Examples
    --------
    >>> (transform(4) @ nodes(4) ** 2).round(12) + 0.0
    array([0.5, 0. , 0.5, 0. ])
    """
    matrix = chebyshev.chebvander(nodes(count), count - 1).T * (2 / count)
    matrix[0] /= 2
    return _kept(matrix)


def _kept(values: np.ndarray) -> np.ndarray:
    """Values that are shared by all that ask for them."""
    values.flags.writeable = False
    return values


def polynomials(x: np.ndarray, count: int) -> np.ndarray:
    """T_0, ..., T_{count-1} at points (m,) in [-1, 1], shape (count, m).

    Examples
    --------
    >>> polynomials(np.array([0.5]), 3).ravel()
    array([ 1. ,  0.5, -0.5])
    """
    if count * len(x) <= _FEW:
        return np.cos(np.multiply.outer(np.arange(count), np.arccos(np.clip(x, -1.0, 1.0))))
    values, twice = np.empty((count, len(x))), 2 * x
    values[0] = 1
    values[1:2] = x
    for k in range(2, count):
        np.multiply(twice, values[k - 1], out=values[k])
        values[k] -= values[k - 2]
    return values
