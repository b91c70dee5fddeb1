"""Jumps and kinks of functions that SymPy does not see, as that of atan(1/h) at zero.

Derivatives as distributions need them: without its δ-function the slope of atan(1/h) is that of a
smooth function, and everything made of it is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import sympy as sp

from fieldtheory.averages.integrands.steps import break_points, has_steps

Numbers = Callable[[np.ndarray], np.ndarray]
Precise = Callable[[Any], Any]

# Functions with jumps, kinks or poles for arguments that have none.
_ROUGH: tuple[type[sp.Function], ...] = (
    sp.asin,
    sp.acos,
    sp.acot,
    sp.asec,
    sp.acsc,
    sp.acosh,
    sp.asech,
)
_ROUGH += (sp.tan, sp.cot, sp.sec, sp.csc, sp.coth, sp.csch)
# Halvings of an interval: in float64 down to neighbouring numbers, then with more digits. After the
# first some, only intervals are left across which the function changes by a part of what it did.
_HALVINGS, _PRECISE = 60, 110
_SOME, _LEFT = 8, 1 / 16
# Within this distance, relative and at zero, float64 may misplace a jump.
_MISPLACED = mpmath.mpf("1e-7")
# What is no slope between neighbouring numbers, relative to the function; places looked at.
_APART, _PLACES = 1e-9, 8
# Where the two sides are compared, and by how much a side may change in between to have a limit.
_BESIDE, _LIMIT = (mpmath.mpf("1e-30"), mpmath.mpf("1e-32")), 1e-6


def hidden_jump(
    F: sp.Expr, h: sp.Symbol, numbers: Numbers, precise: Precise, grid: np.ndarray
) -> tuple[float, float, float] | None:
    """A place where a function jumps though no sign, step or condition says so.

    Parameters
    ----------
    F : sympy.Expr
        A function of ``h`` alone.
    h : sympy.Symbol
    numbers, precise : callable
        F of an array, NaN where it has no value; of one number with the digits in force, None
        where it has no value.
    grid : ndarray
        Sorted; a jump between two of its points is found.

    Returns
    -------
    tuple of float or None
        The place, and the values on its left and right.

    Examples
    --------
    >>> h = sp.Symbol("h", real=True)
    >>> with mpmath.workdps(60):
    ...     precise = lambda x: mpmath.atan(1 / mpmath.mpf(x)) if x else None
    ...     hidden_jump(
    ...         sp.atan(1 / h), h, lambda x: np.arctan(1 / x), precise, np.linspace(-1.1, 1, 8)
    ...     )
    (0.0, -1.5707963267948966, 1.5707963267948966)
    """
    if _is_smooth(F, h):
        return None
    try:
        known = [float(point) for point in break_points(F, h)] if has_steps(F) else []
    except ValueError:
        return None
    for left, right, size in _steepest(numbers, grid):
        if any(abs(left - point) <= 1e-9 * max(1.0, abs(point)) for point in known):
            continue
        found = _jump(precise, left, right, size)
        if found is not None:
            return found
    return None


def _is_smooth(F: sp.Expr, h: sp.Symbol) -> bool:
    """Whether F is made of smooth functions and steps whose arguments have no denominators."""
    inner = [node.args[0] for node in F.atoms(sp.Function)]
    powers = [power for power in F.atoms(sp.Pow) if power.has(h)]
    inner += [power.exp for power in powers]
    if any(argument.has(h) and _has_denominator(argument, h) for argument in inner):
        return False
    if any(not power.exp.is_integer for power in powers if power.base.has(h)):
        return False
    return not F.has(*_ROUGH)


def _has_denominator(F: sp.Expr, h: sp.Symbol) -> bool:
    return any(p.base.has(h) and p.exp.could_extract_minus_sign() for p in F.atoms(sp.Pow))


def _steepest(numbers: Numbers, grid: np.ndarray) -> list[tuple[float, float, float]]:
    """Neighbouring numbers between which a function changes most, and its size beside them.

    Those closest to zero alone.
    """

    def known(points: np.ndarray) -> np.ndarray:
        return np.nan_to_num(numbers(points), nan=0.0)

    left, right = grid[:-1], grid[1:]
    low, high = known(left), known(right)
    with np.errstate(all="ignore"):
        before, size = np.abs(high - low), np.abs(high) + np.abs(low)
        for halving in range(_HALVINGS):
            middle = (left + right) / 2
            value = known(middle)
            first = np.abs(high - value) <= np.abs(value - low)
            left, low = np.where(first, left, middle), np.where(first, low, value)
            right, high = np.where(first, middle, right), np.where(first, value, high)
            if halving == _SOME:
                kept = np.abs(high - low) > _LEFT * before
                left, right, low, high, size = (
                    each[kept] for each in (left, right, low, high, size)
                )
        (apart,) = np.nonzero(np.abs(high - low) > _APART * size)
    nearest = apart[np.argsort(np.abs(left[apart]))][:_PLACES]
    return [(float(left[i]), float(right[i]), float(size[i])) for i in nearest]


def _jump(
    precise: Precise, left: float, right: float, size: float
) -> tuple[float, float, float] | None:
    place = _narrowed(precise, mpmath.mpf(left), mpmath.mpf(right))
    sides = []
    for sign in (-1, 1):
        near, nearer = (precise(place + sign * distance) for distance in _BESIDE)
        if near is None or nearer is None or abs(near - nearer) > _LIMIT * (size + abs(near)):
            return None
        sides.append(nearer)
    below, above = sides
    # Beyond float64 on either side, sizes are known here alone.
    if abs(above - below) <= _APART * max(mpmath.mpf(size), abs(above), abs(below)):
        return None
    return float(mpmath.chop(place, 1e-20)), float(below), float(above)


def _narrowed(precise: Precise, left: Any, right: Any) -> Any:
    """Where a function changes most about two numbers, or has no value."""
    if left <= 0 <= right:
        return mpmath.mpf(0)
    left, right = left - _MISPLACED * abs(left), right + _MISPLACED * abs(right)
    low, high = precise(left), precise(right)
    for end, value in ((left, low), (right, high)):
        if value is None:
            return end
    for _ in range(_PRECISE):
        middle = (left + right) / 2
        value = precise(middle)
        if value is None:
            return middle
        if abs(high - value) > abs(value - low):
            left, low = middle, value
        else:
            right, high = middle, value
    return (left + right) / 2
