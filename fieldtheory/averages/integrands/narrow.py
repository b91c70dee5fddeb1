"""Where functions change within less than nodes between signals of size one can see.

exp(−1e6 (h − 1/3)²) lies between the nodes of every fixed rule, so that two of them agree on its
being nothing. Its place and width are those of the roots of polynomials that functions and powers
are taken of: a function of u changes where u is zero or at rest, 1/u and log u beside the complex
roots of u.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
import sympy as sp

from fieldtheory.averages.integrands.steps import break_points, has_steps

# Widths below which all panels are told, and those between kinks, in units of the argument.
_NARROW, _STEEP = 1 / 32, 1.0
# Cuts beside a place, in units of its width: the first, and the ratio of any two, up to one.
_FIRST, _RATIO = 2.0, 3.0
# Largest wave number that the grids of series and of transforms are made for.
_LONG = 6.0
# Largest degree of polynomials that are looked into.
_DEGREE = 8
# Places closer than this part of a width are one.
_SAME = 0.1


def cuts_of(F: sp.Expr, x: sp.Expr) -> list[float]:
    """Where panels of a variable end: at kinks, and on both sides of what is narrow.

    Parameters
    ----------
    F : sympy.Expr
    x : sympy.Symbol

    Returns
    -------
    list of float, sorted

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> cuts_of(sp.Abs(x - 2) + sp.tanh(x), x)
    [2.0]
    >>> [round(cut, 2) for cut in cuts_of(sp.exp(-400 * (x - 3) ** 2), x)]
    []
    >>> [round(cut, 2) for cut in cuts_of(sp.exp(-10000 * (x - 3) ** 2), x)]
    [2.46, 2.82, 2.94, 2.98, 3.0, 3.02, 3.06, 3.18, 3.54]
    """
    kinks = [float(p) for p in break_points(F, x)] if has_steps(F) and F.has(x) else []
    return sorted({*kinks, *narrow_cuts(F, x)})


@lru_cache(maxsize=256)
def narrow_cuts(F: sp.Expr, x: sp.Expr) -> tuple[float, ...]:
    """Cuts at and beside what is narrower than 1/32; none for waves, which are everywhere."""
    return _around_all(_narrower(F, x, _NARROW))


@lru_cache(maxsize=256)
def steep_cuts(F: sp.Expr, x: sp.Expr) -> tuple[float, ...]:
    """Cuts at and beside what changes within less than one, but for what is narrower than 1/32.

    Of that there would be too many for nested panels.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> steep_cuts(sp.tanh(x) + sp.tanh(4 * x - 8), x)
    (1.5, 2.0, 2.5)
    """
    return _around_all(each for each in _narrower(F, x, _STEEP) if each[1] >= _NARROW)


def _around_all(places: Iterable[tuple[float, float]]) -> tuple[float, ...]:
    return tuple(sorted({cut for place, width in places for cut in _around(place, width)}))


def steep_places(F: sp.Expr, x: sp.Expr) -> tuple[tuple[float, ...], float]:
    """Where a function changes within less than one, and the least such width; one if nowhere.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> steep_places(sp.erf(10 * x - 15) ** 2 + sp.erf(x - 1), x)
    ((1.5,), 0.1)
    """
    found = _narrower(F, x, _STEEP)
    return tuple(sorted({place for place, _ in found})), min((w for _, w in found), default=1.0)


@lru_cache(maxsize=256)
def _narrower(F: sp.Expr, x: sp.Expr, widest: float) -> tuple[tuple[float, float], ...]:
    """Places and widths of what is narrower than a width, but for waves."""
    places: dict[float, float] = {}
    for node in F.atoms(sp.Function, sp.Pow):
        waves = isinstance(node, sp.sin | sp.cos)
        if waves or (node.is_Pow and node.exp.is_nonnegative and node.exp.is_integer):
            continue
        if not (node.is_Pow or len(node.args) == 1) or not node.args[0].has(x):
            continue
        for place, width in _features(node.args[0], x):
            if width < widest:
                near = next((p for p in places if abs(p - place) < _SAME * width), place)
                places[near] = min(width, places.get(near, width))
    return tuple(places.items())


def is_fine(F: sp.Expr, x: sp.Expr) -> bool:
    """Whether even grids may overlook something of a function."""
    return bool(narrow_cuts(F, x)) or has_short_waves(F, x)


@lru_cache(maxsize=256)
def has_short_waves(F: sp.Expr, x: sp.Expr) -> bool:
    """Whether waves are so short that even grids take them for longer ones.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> has_short_waves(sp.sin(2 * x), x), has_short_waves(sp.tanh(x) * sp.sin(75 * x), x)
    (False, True)
    """
    places = np.linspace(-3, 3, 61)
    for wave in F.atoms(sp.sin, sp.cos):
        slope = sp.lambdify([x], wave.args[0].diff(x), ["scipy", "numpy"])
        with np.errstate(all="ignore"):
            if np.nanmax(np.abs(slope(places) + 0 * places)) > _LONG:
                return True
    return False


def _features(u: sp.Expr, x: sp.Expr) -> list[tuple[float, float]]:
    """Places where a function of u changes, and within how much."""
    if not u.is_polynomial(x) or u.free_symbols != {x} or sp.degree(u, x) > _DEGREE:
        return []
    polynomial = sp.Poly(u, x)
    # Roots of one factor each: those of squares would have imaginary parts by rounding.
    simple, whole = (
        np.poly1d([float(c) for c in each.all_coeffs()])
        for each in (polynomial.sqf_part(), polynomial)
    )
    slope, curvature = whole.deriv(), whole.deriv(2)
    found = []
    with np.errstate(divide="ignore"):
        for root in simple.roots:
            place, aside = float(root.real), float(abs(root.imag))
            found.append((place, aside if aside > 0 else float(1 / np.abs(slope(place)))))
        for root in slope.roots[np.abs(slope.roots.imag) == 0]:
            place = float(root.real)
            found.append((place, float(np.sqrt(2 / np.abs(curvature(place))))))
    return found


def _around(place: float, width: float) -> Sequence[float]:
    steps, step = [0.0], _FIRST * width
    while step < 1:
        steps += [step, -step]
        step *= _RATIO
    return [place + step for step in steps]
