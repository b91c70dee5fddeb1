"""Removable singularities: functions such as sin(h)/h and their derivatives.

Zero is where the denominator vanishes, h = a of sin(h − a)/(h − a). There the Taylor series takes
the place of the quotient, its coefficients by Cauchy's integral over a circle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp
from numpy.polynomial import polynomial

from fieldtheory.averages.integrands.breakpoints import has_steps


@dataclass(frozen=True)
class CircleSettings:
    """Numbers that decide where a Taylor series is used."""

    # On the circle.
    points: int = 64
    # Coefficients.
    terms: int = 40
    # Part of the radius within which the series is used.
    within: float = 0.5
    # Radii that are tried, each half the one before.
    radii: int = 12
    # Coefficients below this part of the largest value on the circle are rounding.
    rounding: float = 2e-15
    # The same of steep functions, quotients of high powers, on small circles.
    steep: float = 2e-14
    # Difference from the function at the end of the range.
    allowed: float = 1e-11


_CIRCLE = CircleSettings()
# Of what the circle gives, the part that must be rounding: the highest powers, positive ones.
_LAST = slice(40, 60)


def has_quotient(F: sp.Expr, variable: sp.Expr) -> bool:
    """Whether a denominator vanishes where the variable does.

    >>> h = sp.Symbol("h")
    >>> has_quotient(sp.sin(h) / h, h), has_quotient(1 / (1 + h**2), h)
    (True, False)
    """
    if has_steps(F):
        return False
    powers = [p.base for p in F.atoms(sp.Pow) if p.exp.is_negative and p.base.has(variable)]
    return any(base.subs(variable, 0) == 0 for base in powers)


def singular_points(F: sp.Expr, variable: sp.Expr) -> list[sp.Expr]:
    """Zeros of denominators: zero itself, and those of linear ones.

    >>> h = sp.Symbol("h")
    >>> singular_points(sp.sin(h) / h, h), singular_points(sp.sin(2 * h - 3) / (2 * h - 3), h)
    ([0], [3/2])
    """
    if has_steps(F):
        return []
    points = {sp.S.Zero} if has_quotient(F, variable) else set()
    for power in F.atoms(sp.Pow):
        slope = power.base.diff(variable)
        if power.exp.is_negative and slope.is_number and slope != 0:
            points.add(-power.base.subs(variable, 0) / slope)
    return sorted(point for point in points if point.is_number and point.is_real)


def continued(function: Callable, F: sp.Expr, variables: Sequence[sp.Expr]) -> Callable:
    """A NumPy function of F, by the Taylor series where its first variable makes it 0/0.

    >>> h = sp.Symbol("h")
    >>> float(continued(lambda h: np.sin(h) / h, sp.sin(h) / h, [h])(np.zeros(1))[0])
    1.0
    """
    for point in singular_points(F, variables[0]):
        function = _continued_at(point, function, F, variables)
    return function


def _continued_at(
    point: sp.Expr, function: Callable, F: sp.Expr, variables: Sequence[sp.Expr]
) -> Callable:
    if point != 0:
        a, shifted = float(point), F.subs(variables[0], variables[0] + point)
        inner = _continued_at(sp.S.Zero, lambda h, *of: function(h + a, *of), shifted, variables)
        return lambda h, *others: inner(np.asarray(h, dtype=float) - a, *others)
    on_circle = sp.lambdify(list(variables), F, modules=["scipy", "numpy"], cse=True)
    radius = _radius(function, on_circle, len(variables) - 1)
    if radius is None:
        return function

    def everywhere(h: Any, *others: Any) -> np.ndarray:
        arrays = np.broadcast_arrays(*(np.asarray(v, dtype=float) for v in (h, *others)))
        with np.errstate(all="ignore"):
            values = np.array(np.broadcast_to(function(*arrays), arrays[0].shape), dtype=float)
        near = np.abs(arrays[0]) <= _CIRCLE.within * radius
        if near.any():
            x, *parameters = (array[near] for array in arrays)
            values[near] = _series(on_circle, radius, x, parameters)
        return values

    return everywhere


def by_series(function: Callable, F: sp.Expr, x: sp.Symbol, order: int) -> Callable | None:
    """A NumPy function of F by its Taylor series close to zero, where it starts as x^order.

    >>> h = sp.Symbol("h")
    >>> shrunk = by_series(lambda h: h - np.tanh(h), h - sp.tanh(h), h, 3)
    >>> (3 * shrunk(np.array([1e-8])) * 1e24).round(12)
    array([1.])
    """
    on_circle = sp.lambdify([x], F, modules=["scipy", "numpy"], cse=True)
    radius = _radius(function, on_circle, 0)
    if radius is None:
        return None
    roots, powers = _circle(radius)
    coefficients = (on_circle(roots) @ powers).real[order:]
    smallest = _CIRCLE.rounding * np.abs(coefficients).max()
    coefficients = np.where(np.abs(coefficients) < smallest, 0.0, coefficients)

    def everywhere(h: Any) -> np.ndarray:
        with np.errstate(all="ignore"):
            values = np.array(function(h), dtype=float)
        near = np.abs(h) <= _CIRCLE.within * radius
        if np.any(near):
            z = np.asarray(h)[near] / radius
            values[near] = polynomial.polyval(z, coefficients) * z**order
        return values[()]

    return everywhere


def _series(on_circle: Callable, radius: float, x: np.ndarray, others: Sequence) -> np.ndarray:
    roots, powers = _circle(radius)
    with np.errstate(all="ignore"):
        # One row for each point, or one for all where nothing but the first variable enters.
        values = on_circle(roots, *(other[:, None] for other in others))
    values = np.broadcast_to(values, (len(x) if others else 1, _CIRCLE.points))
    coefficients = (values @ powers).real
    largest = np.abs(values).max(axis=1, keepdims=True)
    coefficients = np.where(np.abs(coefficients) < _CIRCLE.rounding * largest, 0.0, coefficients)
    total = np.zeros(len(x))
    for column in coefficients.T[::-1]:
        total = total * (x / radius) + column
    return total


@lru_cache(maxsize=16)
def _circle(radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Points on the circle, and what gives the coefficients of powers of h/radius."""
    units = np.exp(2j * np.pi * (np.arange(_CIRCLE.points) + 0.5) / _CIRCLE.points)
    return radius * units, units[:, None] ** -np.arange(_CIRCLE.terms) / _CIRCLE.points


def _radius(function: Callable, on_circle: Callable, others: int) -> float | None:
    """The largest radius whose disk holds no singularity, None for a pole at zero."""
    ones = [np.ones(2)] * others
    for radius in 0.5 ** np.arange(_CIRCLE.radii):
        try:
            with np.errstate(all="ignore"):
                values = on_circle(_circle(radius)[0], *(1.0 for _ in ones))
                spectrum = np.abs(np.fft.fft(np.broadcast_to(values, _CIRCLE.points)))
        except TypeError:
            # A function that has no complex arguments.
            return None
        if not spectrum[_LAST].max() <= _CIRCLE.steep * spectrum.max():
            continue
        x = _CIRCLE.within * radius * np.array([1.0, -1.0])
        with np.errstate(all="ignore"):
            expected, continued = function(x, *ones), _series(on_circle, radius, x, ones)
        if (np.abs(continued - expected) <= _CIRCLE.allowed * np.abs(expected).max()).all():
            return radius
    return None
