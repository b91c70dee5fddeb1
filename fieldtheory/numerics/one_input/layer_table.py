"""⟨φ²(x) ; φ²(y)⟩ of all pairs of layers from a table, where every skip connection is 1.

Signals then only add up, y = x + √D w with the variance K of x and an independent w, so that the
average is a function of K and D alone:

    F(K, D) = ⟨φ²(x) ; (P_D φ²)(x)⟩,  (P_D ψ)(x) = ⟨ψ(x + √D w)⟩,  ∂F/∂D = ∂⟨φ²(x);φ²(y)⟩/∂K_yy

P_D φ² serves all K. F is analytic in the logarithms of K and D: few Chebyshev nodes serve all
layers. They are compared with other quadrature rules between the nodes.
"""

from __future__ import annotations

from math import ceil, log, pi, sqrt
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.quadrature.one_variable import interpolation
from fieldtheory.averages.quadrature.panelled_functions import Function
from fieldtheory.averages.quadrature.panels import legendre as gauss
from fieldtheory.numerics.neurons.quadrature_nodes import split_panels

# Deviations of signals and of noise beyond which the Gaussian is negligible; widths of panels.
_REACH, _NOISE, _WIDEST, _SMOOTHED, _PART = 9.5, 8.5, 1.7, 6.0, 4.25
# Nodes of a panel of x and of w, and those that check them at so many random pairs of K and D.
_NODES, _CHECKS, _PAIRS = (20, 16), (24, 20), 6
# What Chebyshev series leave out, as a power of e, and orders beyond what the strip tells.
_DIGITS, _MORE = 22.0, 8


class Squares(NamedTuple):
    """F and ∂F/∂D for the earlier of two layers in the rows, (n, n); F is symmetric."""

    connected: np.ndarray
    slope: np.ndarray


class _Rule(NamedTuple):
    """Nodes and weights (n,) of integrals over x, and φ² there."""

    x: np.ndarray
    weights: np.ndarray
    values: np.ndarray


def of_sums(square: Function, K: np.ndarray, added: np.ndarray, allowed: float) -> Squares:
    """F and its slope for all pairs of layers.

    Parameters
    ----------
    square : Function
        φ².
    K, added : ndarray, shape (n,)
        Variances > 0, and by how much every layer increases them; the first counts for nothing.
    allowed : float
        Error of F and of K_yy ∂F/∂D relative to their natural size, or to the largest value.

    Raises
    ------
    QuadratureError
        If pairs between the nodes differ by more from other rules.

    Examples
    --------
    >>> K = np.linspace(0.1, 0.2, 30)
    >>> found = of_sums(Function(np.square), K, np.full(30, 0.1 / 29), 1e-9)
    >>> float((found.connected[10, 20] / (2 * K[10] ** 2)).round(9))
    1.0
    """
    steps = np.cumsum(np.append(0.0, added[1:]))
    least, most = float(added[1:].min()), float(steps[-1])
    edges = square.edges(_REACH * sqrt(K[-1] + most))
    # Without breakpoints F is analytic in D at zero, on the scale of φ².
    scale = 0.0 if len(square.kinks) else (np.diff(edges).min() / 2) ** 2
    ends = np.log([K[0], K[-1]]), np.log([least + scale, most + scale])
    nodes = [chebyshev.chebpts1(_count(*end)) for end in ends]
    on_K, on_D = (np.exp(_between(end, x)) for end, x in zip(ends, nodes, strict=True))
    rule = _rule(square, edges, (K[0], least), _NODES[0])
    table = _over_variance(square, rule, on_K, on_D - scale, _NODES[1])
    _check(square, (K[0], least), ends, scale, nodes, table, allowed)
    rows = interpolation(_inside(ends[0], K), nodes[0]) @ table
    spread = np.maximum(steps - steps[:, None], least)
    y = _inside(ends[1], spread + scale)
    size = len(nodes[1])
    coefficients = np.moveaxis(rows, -1, 0).reshape(size, -1)
    coefficients = chebyshev.chebfit(nodes[1], coefficients, size - 1).reshape(size, 2, len(K), 1)
    ratio, slope = (chebyshev.chebval(y, coefficients[:, i], tensor=False) for i in (0, 1))
    own = _variances(rule, K)[0]
    natural = np.sqrt(np.outer(own, own))
    upper = np.triu(ratio * natural, 1)
    slope = np.triu(slope * natural / K, 1)
    return Squares(upper + upper.T + np.diag(own), slope)


def _count(low: float, high: float) -> int:
    """Chebyshev nodes on an interval for what is analytic in the strip |Im| < π/2."""
    ratio = pi / max(high - low, 1e-3)
    return _MORE + ceil(_DIGITS / log(ratio + sqrt(1 + ratio**2)))


def _between(ends: np.ndarray, x: np.ndarray) -> np.ndarray:
    return (ends[0] + ends[1]) / 2 + (ends[1] - ends[0]) / 2 * x


def _inside(ends: np.ndarray, values: np.ndarray) -> np.ndarray:
    return (2 * np.log(values) - ends[0] - ends[1]) / (ends[1] - ends[0])


def _rule(square: Function, edges: np.ndarray, smallest: tuple[float, float], count: int) -> _Rule:
    """On panels that resolve φ², the Gaussian of the smallest K and φ² after the smallest D."""
    features = np.array([[0.0, _WIDEST * sqrt(smallest[0])]])
    smoothed = [[kink, _SMOOTHED * sqrt(smallest[1])] for kink in square.kinks]
    features = np.concatenate([features, np.reshape(smoothed, (-1, 2))]).T
    even = square.parity == 1
    edges = split_panels(edges, features, np.inf)
    if even:
        edges = np.append(0.0, edges[edges > 0])
    nodes, weights = gauss(count)
    half = np.diff(edges)[:, None] / 2
    x = ((edges[1:] + edges[:-1])[:, None] / 2 + half * nodes).ravel()
    values = np.asarray(square(x), dtype=float) - float(square(np.zeros(1))[0])
    return _Rule(x, (half * weights).ravel() * (2 if even else 1), values)


def _over_variance(
    square: Function, rule: _Rule, K: np.ndarray, D: np.ndarray, count: int
) -> np.ndarray:
    """F and K_yy ∂F/∂D over their natural sizes, for all K (n,) and D (m,), shape (2, n, m).

    They are the geometric mean of the variances of φ² at K and at K_yy = K + D.
    """
    own, mean, weights = _variances(rule, K)
    smooth = np.stack([_smoothed(square, rule.x, each, count) for each in D], axis=-1)
    found = weights @ (rule.values[:, None] * smooth) - mean[:, None] * (weights @ smooth)
    later = K[:, None] + D
    others = _variances(rule, later.ravel())[0].reshape(later.shape)
    natural = np.sqrt(own[:, None] * others)
    found[1] *= later
    return np.where(natural > 0, found / natural, 0.0)


def _variances(rule: _Rule, K: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """⟨φ²;φ²⟩, ⟨φ²⟩ less φ²(0), and the weights of averages, for variances (n,)."""
    density = np.exp(-(rule.x**2) / (2 * K[:, None])) / np.sqrt(2 * pi * K[:, None])
    weights = density * rule.weights
    mean = weights @ rule.values
    return ((rule.values - mean[:, None]) ** 2 * weights).sum(axis=1), mean, weights


def _smoothed(square: Function, x: np.ndarray, D: float, count: int) -> np.ndarray:
    """P_D φ² and ∂/∂D of it at x, less φ²(0), by parts that end at the edges of φ²."""
    reach = _NOISE * sqrt(D)
    edges = square.edges(float(np.abs(x).max()) + reach)
    first = np.clip(np.searchsorted(edges, x - reach, side="right") - 1, 0, len(edges) - 2)
    last = np.clip(np.searchsorted(edges, x + reach, side="left") - 1, first, len(edges) - 2)
    sizes = last - first + 1
    row = np.repeat(np.arange(len(x)), sizes)
    panel = np.arange(sizes.sum()) + np.repeat(first - np.cumsum(sizes) + sizes, sizes)
    low = np.maximum(edges[panel], x[row] - reach)
    high = np.minimum(edges[panel + 1], x[row] + reach)
    parts = np.maximum(np.ceil((high - low) / (_PART * sqrt(D))).astype(int), 1)
    pair = np.repeat(np.arange(len(parts)), parts)
    step = ((high - low) / parts)[pair]
    place = np.arange(len(pair)) - np.repeat(np.cumsum(parts) - parts, parts)
    nodes, weights = gauss(count)
    y = (low[pair] + place * step)[:, None] + step[:, None] * (nodes + 1) / 2
    w2 = (y - x[row[pair], None]) ** 2 / D
    own = np.asarray(square(x), dtype=float)
    weighted = np.exp(-w2 / 2) * weights * (step[:, None] / (2 * sqrt(2 * pi * D)))
    # Without what (w² − 1) averages to zero.
    values = weighted * (np.asarray(square(y), dtype=float) - own[row[pair], None])
    sums = np.stack([values.sum(axis=1), (values * (w2 - 1)).sum(axis=1) / (2 * D)])
    starts = np.searchsorted(row[pair], np.arange(len(x)))
    found = np.add.reduceat(sums, starts, axis=1)
    found[0] += own - float(square(np.zeros(1))[0])
    return found


def _check(
    square: Function,
    smallest: tuple[float, float],
    ends: tuple[np.ndarray, np.ndarray],
    scale: float,
    nodes: list[np.ndarray],
    table: np.ndarray,
    allowed: float,
) -> None:
    """Raise QuadratureError where the table differs from other rules between its nodes."""
    x, y = np.random.default_rng(0).uniform(-1, 1, (2, _PAIRS))
    K, D = (np.exp(_between(end, at)) for end, at in zip(ends, (x, y), strict=True))
    rule = _rule(
        square,
        square.edges(_REACH * sqrt(np.exp(ends[0][1]) + np.exp(ends[1][1]))),
        smallest,
        _CHECKS[0],
    )
    known = _over_variance(square, rule, K, D - scale, _CHECKS[1])
    found = interpolation(x, nodes[0]) @ table @ interpolation(y, nodes[1]).T
    sizes = np.maximum(np.abs(known).max(axis=(1, 2)), 1.0)
    error = float((np.abs(found - known).max(axis=(1, 2)) / sizes).max())
    if not error <= allowed:
        raise QuadratureError(
            f"averages of two layers, interpolated, leave a relative error of {error:.1g}, allowed "
            f"is {allowed:.1g}; solve(..., rtol={2 * error:.1g}) takes it"
        )
