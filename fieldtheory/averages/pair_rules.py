"""Averages of two functions of one variable each: every pair of signals by a rule that holds.

The Mehler series where it converges fast, Fourier transforms where the variables are strongly
correlated, logarithms of signals where they are wide, and what is given for the pairs left.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
import sympy as sp

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrals import hermite, narrow_pairs, spectral, two_variables
from fieldtheory.averages.integrals.vectorising import increment, vectorised
from fieldtheory.averages.integrands import exact_differences
from fieldtheory.averages.integrands.narrow import cuts_of, has_short_waves, narrow_cuts
from fieldtheory.averages.integrands.tails import fades
from fieldtheory.averages.polynomial_pieces import ramps, sectors
from fieldtheory.averages.sizes import size_logarithms

_x = sp.Dummy("x", real=True)
# Pairs for each variance from which on high orders of a series pay.
_PAIRS_PER_VARIANCE = 4
# Correlations below which a series of 64 orders converges at once.
_WEAK = 0.1
# Variances of which two have a product in float64.
_WIDEST = 1e150
# Variances from which on the logarithms of radius and angle are tried, and those from which on
# smooth functions are seen in the logarithms of signals alone.
_ANGLES, _SIZES = 0.05, 1e14
# Larger ones, and 1 − c², of which panels see nothing narrow.
_FARTHEST, _PARALLEL = 1e20, 1e-2
# Variances and correlations from which on Fourier transforms are tried before series.
_SPREAD, _CLOSE = 4.0, 0.8


def pairs(
    F: sp.Expr,
    G: sp.Expr,
    variables: tuple,
    without_means: bool,
    otherwise: Callable,
    cusps: bool = False,
) -> Callable:
    """⟨F(x) G(y)⟩ or ⟨F(x) ; G(y)⟩, each pair by the first rule that holds."""
    make = _increment_of_one if without_means else _of_one
    sides = [part.xreplace({v: _x}) for v, part in zip(variables, (F, G), strict=True)]
    f, g = (make(side) for side in sides)
    kinks = tuple(tuple(cuts_of(side, _x)) for side in sides)
    first = not any(kinks) or any(side.has(sp.sin, sp.cos) for side in sides)
    first |= any(narrow_cuts(side, _x) for side in sides)

    def means(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return two_variables.means(f, a, kinks[0]), two_variables.means(g, b, kinks[1])

    subtracted = means if without_means else None
    otherwise = narrow_pairs.beside(otherwise, f, g, kinks, subtracted, first)
    parity = _parity(sides[0], _x) or _parity(sides[1], _x)
    lowest, every = int(without_means), 1
    if parity:
        lowest, every = 1 if parity < 0 else 2 * lowest, 2

    def series(stages: tuple, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple:
        return hermite.series(f, g, a, b, c, lowest, stages, kinks, every)

    def high(stages: tuple, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple:
        # The coefficients belong to the variances, so that it takes many pairs to pay.
        if len(c) < _PAIRS_PER_VARIANCE * (len(np.unique(a)) + len(np.unique(b))):
            return np.zeros(len(c)), np.zeros(len(c), dtype=bool)
        return series(stages, a, b, c)

    def transforms(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple:
        if not without_means:
            return spectral.average(f, g, a, b, c)
        try:
            known = means(a, b)
        except QuadratureError:
            return np.zeros(len(c)), np.zeros(len(c), dtype=bool)
        return spectral.average(f, g, a, b, c, known)

    def transforms_of_wide(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple:
        # Their series hardly ever converge.
        wide = (np.minimum(a, b) >= _SPREAD) & (c >= _CLOSE * np.sqrt(a) * np.sqrt(b))
        values, good = np.zeros(len(c)), np.zeros(len(c), dtype=bool)
        if wide.any():
            values[wide], good[wide] = transforms(a[wide], b[wide], c[wide])
        return values, good

    waves = any(side.has(sp.sin, sp.cos) for side in sides)
    away_from_zero = any(place for cuts in kinks for place in cuts)
    of_sizes = not (without_means or away_from_zero or waves)
    if any(kinks) or any(has_short_waves(side, _x) for side in sides):
        stages = hermite.CUSP_ORDERS if cusps else hermite.PANEL_ORDERS
        rules: list[Callable] = [partial(series, stages)]
    else:
        many, more = (partial(high, s) for s in (hermite.HIGH_ORDERS, hermite.HIGHEST_ORDERS))
        rules = [partial(series, hermite.LOW_ORDERS), many, transforms, more]
        if not without_means:
            rules = [transforms_of_wide, *rules]

    def compute(*K: np.ndarray) -> np.ndarray:
        a, b, c = np.broadcast_arrays(*(np.asarray(k, dtype=float) for k in K))
        flat = [np.atleast_1d(k).ravel() for k in (a, b, c)]
        if max(np.max(flat[0], initial=0), np.max(flat[1], initial=0)) > _WIDEST:
            raise QuadratureError(
                f"an average of two variables needs variances below {_WIDEST:.0e}, whose products "
                f"float64 holds, got {max(flat[0].max(), flat[1].max()):.6g}"
            )
        values, good = np.zeros(len(flat[0])), np.zeros(len(flat[0]), dtype=bool)
        grows = ~fades(f, g, flat[0], flat[1], flat[2], hermite.REACH)
        if grows.any() and not without_means and not any(kinks):
            values[grows], good[grows] = (
                size_logarithms.pairs(f, g, *(k[grows] for k in flat)),
                True,
            )
        for rule in rules:
            left = ~(good | grows)
            if left.any():
                values[left], good[left] = rule(*(k[left] for k in flat))
        if of_sizes and not good.all():
            left = ~good
            values[left], good[left] = sectors.average(f, g, *(k[left] for k in flat))
            left = ~good & (np.minimum(*flat[:2]) >= _ANGLES)
            values[left], good[left] = size_logarithms.by_angles(f, g, *(k[left] for k in flat))
        wide = ~good & (np.minimum(*flat[:2]) >= _SIZES) & of_sizes
        for pair in np.nonzero(wide)[0]:
            given = [k[[pair]] for k in flat]
            try:
                values[pair] = size_logarithms.pairs(f, g, *given)[0]
                good[pair] = True
            except QuadratureError:
                if _is_unresolved(*given):
                    raise
        if not good.all():
            values[~good] = once(otherwise, *(k[~good] for k in flat))
        return values.reshape(a.shape)

    return compute


def weak_by_series(
    F: sp.Expr, G: sp.Expr, variables: tuple, strong: Callable, lost: Callable
) -> Callable:
    """⟨F(x) ; G(y)⟩ of weak correlations c by the Mehler series where another rule loses digits.

    The terms of a closed form of ⟨F'G'⟩ may cancel where it is of order c.
    """
    f, g = (
        _increment_of_one(part.xreplace({v: _x})) for v, part in zip(variables, (F, G), strict=True)
    )

    def compute(*K: np.ndarray) -> np.ndarray:
        a, b, c = np.broadcast_arrays(*(np.asarray(k, dtype=float) for k in K))
        flat = [np.atleast_1d(k).ravel() for k in (a, b, c)]
        found, known = np.zeros(len(flat[0])), np.zeros(len(flat[0]), dtype=bool)
        weak = lost(*flat) & (np.abs(flat[2]) < _WEAK * np.sqrt(flat[0] * flat[1]))
        weak &= fades(f, g, flat[0], flat[1], flat[2], hermite.REACH)
        if weak.any():
            first, second, mixed = (k[weak] for k in flat)
            of_orders = hermite.series(f, g, first, second, mixed, 1, hermite.LOW_ORDERS)
            found[weak], known[weak] = of_orders
        if not known.all():
            found[~known] = strong(*(k[~known] for k in flat))
        return found.reshape(a.shape)

    return compute


def of_ramps(
    f: ramps.Ramps, g: ramps.Ramps, row: int, otherwise: Callable, *K: np.ndarray
) -> np.ndarray:
    """⟨FG⟩ (row 0) or ⟨F'G'⟩ (row 1) of ramps; where their terms cancel, by another rule."""
    a, b, c = np.broadcast_arrays(*(np.asarray(k, dtype=float) for k in K))
    flat = [np.atleast_1d(k).ravel() for k in (a, b, c)]
    found, known = ramps.average(f, g, flat[0], flat[1], flat[2])
    values, left = found[row], ~known[row]
    if left.any():
        values[left] = otherwise(*(k[left] for k in flat))
    return values.reshape(a.shape)


def once(rule: Callable, *K: np.ndarray) -> np.ndarray:
    """A rule of arrays (m,), of equal entries once: deep layers may have reached a fixed point."""
    different, places = np.unique(np.stack(K), axis=1, return_inverse=True)
    return rule(*different)[places.ravel()]


def of_equal_parity(F: sp.Expr, G: sp.Expr, x: sp.Symbol, y: sp.Symbol) -> tuple:
    """F(x) and G(y) without the parts that do not contribute to ⟨FG⟩.

    Where F is odd, ⟨F⟩ = 0 would come out as rounding times the mean of G.
    """
    sign = _parity(F, x) or _parity(G, y)
    return (_part(F, x, sign), _part(G, y, sign)) if sign else (F, G)


def _parity(F: sp.Expr, x: sp.Symbol) -> int:
    """1 of an even function, −1 of an odd one, 0 of others."""
    return next((sign for sign in (1, -1) if _part(F, x, -sign) == 0), 0)


def _part(F: sp.Expr, x: sp.Symbol, sign: int) -> sp.Expr:
    """The even (sign 1) or odd (−1) part of F; F as it stands where there is no other."""
    mirrored = sign * F.subs(x, -x)
    return F if mirrored == F else sp.expand((F + mirrored) / 2)


@lru_cache(maxsize=256)
def _of_one(F: sp.Expr) -> Callable:
    """`vectorised` for one variable; one function for one expression, as `hermite` needs it."""
    return vectorised([_x], F)


@lru_cache(maxsize=256)
def _increment_of_one(F: sp.Expr) -> Callable:
    """F(x) − F(0), again one function for one expression."""
    return increment(F, _x)


def _is_unresolved(K_xx: np.ndarray, K_yy: np.ndarray, K_xy: np.ndarray) -> bool:
    """Whether panels of signals that are wide and nearly parallel miss what is narrow in them."""
    size = K_xx * K_yy
    narrow = exact_differences.determinant(K_xx, K_yy, K_xy) < _PARALLEL * size
    return bool((narrow & (np.minimum(K_xx, K_yy) > _FARTHEST)).any())
