"""Integrands as NumPy functions: `quadrature.compiled`, and increments of them from zero."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import sympy as sp

from fieldtheory.averages.integrands.steps import slope_of_pieces
from fieldtheory.averages.quadrature.compiled import in_float64, kinks_of, vectorised
from fieldtheory.averages.quadrature.gauss_legendre import legendre

__all__ = ["centres_of", "in_float64", "increment", "kinks_of", "vectorised"]

# Where a function is compared with its value at zero, to tell jumps from slopes.
_SMALLEST = 1e-14
# How far from zero, and on how many panels, a function is found from its slope; no farther than
# where it has changed by a fraction of itself.
_FARTHEST, _PANELS, _VISIBLE = 16.0, (1, 4, 16, 64), 1e-3
# Slopes inside functions, as that of erf(10 x), from which they are steep.
_STEEP = 3.0


def centres_of(F: sp.Expr, x: sp.Symbol) -> list[float]:
    """Kinks, and where functions that are steep change: erf(10 x − 15) and its like at 1.5.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> centres_of(sp.erf(10 * x - 15) ** 2 + sp.erf(x - 1), x)
    [1.5]
    """
    places = set(kinks_of(F, x))
    for node in F.atoms(sp.Function):
        (u, *others) = node.args
        if others or not u.is_polynomial(x) or sp.degree(u, x) not in (1, 2):
            continue
        highest, second, *_ = sp.Poly(u, x).all_coeffs()
        degree = int(sp.degree(u, x))
        if highest.is_number and abs(float(highest)) > _STEEP**degree and second != 0:
            places.add(-float(second / highest) / degree)
    return sorted(places)


def increment(F: sp.Expr, x: sp.Symbol) -> Callable:
    """F(x) − F(0) as a NumPy function with small relative errors near zero.

    There it is the integral of F', which does not cancel. F itself where it vanishes or jumps at
    zero.
    """
    f = vectorised([x], F)
    with np.errstate(all="ignore"):
        value, *sides = f(np.array([0.0, _SMALLEST, -_SMALLEST])) + np.zeros(3)
    if value == 0 or not np.allclose(sides, value, rtol=1e-9, atol=0):
        return f
    slope = vectorised([x], slope_of_pieces(F, x))
    farthest = min((abs(k) for k in kinks_of(F, x) if k), default=_FARTHEST)
    for panels in _PANELS:
        edges, sums = _sums_of_slope(slope, farthest, panels)
        with np.errstate(all="ignore"):
            if (np.abs(f(edges[[0, -1]]) - value) >= _VISIBLE * abs(value)).any():
                break
    width = edges[-1] / panels

    def increments(x: np.ndarray) -> np.ndarray:
        x = np.asarray(x, dtype=float)
        values = np.asarray(f(x) - value)
        near = np.abs(x) < edges[-1]
        if near.any():
            number = np.fix(x[near] / width).astype(int) + panels
            values[near] = sums[number] + _integrals(slope, edges[number], x[near], 12)
        return values

    return increments


def _integrals(slope: Callable, start: np.ndarray, end: np.ndarray, order: int) -> np.ndarray:
    nodes, weights = legendre(order)
    half = (end - start)[:, None] / 2
    return (half * slope(start[:, None] + half * (1 + nodes))) @ weights


def _sums_of_slope(slope: Callable, reach: float, panels: int) -> tuple[np.ndarray, np.ndarray]:
    """Edges of panels on either side of zero, and the integral of the slope from zero to each.

    They reach as far as twelve nodes on a panel are enough.
    """
    while True:
        edges = np.linspace(-reach, reach, 2 * panels + 1)
        with np.errstate(all="ignore"):
            few, many = (_integrals(slope, edges[:-1], edges[1:], order) for order in (12, 18))
            sizes = _integrals(lambda x: np.abs(slope(x)), edges[:-1], edges[1:], 18)
        below, above = -np.cumsum(many[panels - 1 :: -1])[::-1], np.cumsum(many[panels:])
        if (np.abs(few - many) <= 1e-13 * sizes).all() or reach < _SMALLEST:
            return edges, np.concatenate([below, np.zeros(1), above])
        reach /= 2
