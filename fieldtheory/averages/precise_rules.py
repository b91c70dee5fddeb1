"""What mpmath's integrals are made of: compiled functions, panels, Hermite functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import count, pairwise
from math import isqrt
from typing import Any

import mpmath
import numpy as np
import sympy as sp

from fieldtheory.averages.integrands.breakpoints import break_points, has_steps, pieces_of

# Digits beyond those asked for.
GUARD = 8
# Widest panel in standard deviations, over which the density falls by no more than e^28.
_WIDEST, _FALLS = 2, 28


def number(value: Any) -> Any:
    """A number of SymPy, or any other, as an mpmath number of the current precision."""
    if isinstance(value, sp.Rational):
        return mpmath.mpf(value.p) / value.q
    if isinstance(value, sp.Basic):
        return sp.lambdify([], value, modules="mpmath")()
    return mpmath.mpf(value)


def compiled(F: sp.Expr, variable: sp.Expr) -> Callable[[Any], Any]:
    """A function of one variable; with kinks by its pieces, whose steps would cancel elsewhere."""
    if has_steps(F) and F.has(variable):
        F = pieces_of(F, variable).expression
    return sp.lambdify([variable], F, modules="mpmath", cse=True)


def kinks_of(F: sp.Expr, variable: sp.Expr) -> list[Any]:
    """Points where F has kinks or jumps."""
    cuts = break_points(F, variable) if has_steps(F) and F.has(variable) else []
    return [number(cut) for cut in cuts]


def start_of(F: sp.Expr, variable: sp.Expr) -> Any:
    """The distance from zero at which F begins: 0 unless it vanishes around zero."""
    if not (has_steps(F) and F.has(variable)):
        return mpmath.mpf(0)
    parts = pieces_of(F, variable)
    ends = [-mpmath.inf, *map(number, parts.points), mpmath.inf]
    pieces = zip(ends, ends[1:], parts.branches, strict=False)
    return min(max(low, -high, mpmath.mpf(0)) for low, high, branch in pieces if branch != 0)


def rule_order(digits: int, level: int) -> int:
    """Of the rule on one panel."""
    return int((0.6 * digits + 10) * 1.3**level)


def reach_of(digits: int, level: int, start: Any = 0) -> Any:
    """End of the panels, in deviations, for a function that begins at a distance from zero.

    Farther on each level, so that two differ if the tail matters after all.
    """
    reach = (mpmath.sqrt(2 * mpmath.log(10) * (digits + GUARD)) + 1) * mpmath.mpf(1.1) ** level
    return mpmath.hypot(reach, start)


def hermite_bits(digits: int, reach: Any) -> int:
    """Bits of `hermite_functions` on [−reach, reach] for that many digits.

    Where h_n is the exponentially growing solution, errors grow as it does.
    """
    return int(3.33 * (digits + 2 * GUARD) + 0.37 * reach**2)


def hermite_functions(z: Sequence[Any], bits: int) -> Iterator[np.ndarray]:
    """h_n(z) e^(−z²/4) for n = 0, 1, ..., as integers over 2^bits."""
    current = integers([mpmath.exp(-point * point / 4) for point in z], bits)
    points, previous, root_n = integers(z, bits), 0 * current, 0
    for n in count(1):
        yield current
        root_next = isqrt(n << 2 * bits)
        inverse = (1 << 2 * bits) // root_next
        step = (points * current - root_n * previous) >> bits
        current, previous, root_n = (step * inverse) >> bits, current, root_next


def integers(values: Sequence[Any], bits: int) -> np.ndarray:
    """Numbers over 2^bits."""
    return np.array([int(mpmath.ldexp(value, bits)) for value in values], dtype=object)


def panel_ends(kinks: list, scale: Any, reach: Any) -> list[Any]:
    """Ends of panels in [−reach, reach]: they double from the scale of f at zero and at kinks."""
    cuts = {-reach, reach}
    for centre in {mpmath.mpf(0), *kinks}:
        for sign in (1, -1):
            point, width = centre, scale
            while abs(point) < reach:
                cuts.add(point)
                point += sign * min(width, _WIDEST, _FALLS / max(abs(point), 1))
                width = max(abs(point - centre), scale)
    return sorted(cuts)


def composite(cuts: list, order: int) -> list[tuple[Any, Any]]:
    """Nodes and weights of the Gauss-Legendre rule on every panel."""
    rule = []
    for left, right in pairwise(cuts):
        middle, half = (left + right) / 2, (right - left) / 2
        rule += [(middle + half * x, half * w) for x, w in legendre(order, mpmath.mp.prec)]
    return rule


@lru_cache(maxsize=32)
def legendre(order: int, precision: int) -> list[tuple[Any, Any]]:
    """Nodes and weights of the Gauss-Legendre rule on [−1, 1], by Newton's method."""
    with mpmath.workprec(precision + 20):
        rule = []
        for i in range(1, order + 1):
            x = mpmath.cos(mpmath.pi * (i - mpmath.mpf(1) / 4) / (order + mpmath.mpf(1) / 2))
            for _ in range(100):
                value, slope = _legendre_polynomial(order, x)
                x -= value / slope
                if abs(value / slope) < mpmath.mpf(2) ** (-precision - 8):
                    break
            slope = _legendre_polynomial(order, x)[1]
            rule.append((x, 2 / ((1 - x * x) * slope**2)))
    return rule


def _legendre_polynomial(order: int, x: Any) -> tuple[Any, Any]:
    previous, current = mpmath.mpf(1), x
    for k in range(2, order + 1):
        previous, current = current, ((2 * k - 1) * x * current - (k - 1) * previous) / k
    return current, order * (x * current - previous) / (x * x - 1)
