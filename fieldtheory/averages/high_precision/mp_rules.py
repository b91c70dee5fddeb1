"""Gauss-Legendre rules and numbers for mpmath."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import mpmath
import sympy as sp


def number(value: Any) -> Any:
    """A SymPy number, or any other, as an mpmath number of the current precision."""
    if isinstance(value, sp.Basic):
        return sp.lambdify([], value, modules="mpmath")()
    return mpmath.mpf(value)


def reach_of(digits: int, level: int) -> Any:
    """Where to end, farther on each level, so that two differ if the tail matters after all."""
    return (mpmath.sqrt(2 * mpmath.log(10) * digits) + 1) * mpmath.mpf(1.1) ** level


@lru_cache(maxsize=32)
def legendre(order: int, precision: int) -> list[tuple[Any, Any]]:
    """Nodes and weights of the Gauss-Legendre rule on [−1, 1], by Newton's method."""
    with mpmath.workprec(precision + 20):
        rule = []
        for i in range(1, order + 1):
            x = mpmath.cos(mpmath.pi * (i - mpmath.mpf(1) / 4) / (order + mpmath.mpf(1) / 2))
            for _ in range(100):
                value, slope = _legendre_polynomial(order, x)
                step = value / slope
                x -= step
                if abs(step) < mpmath.mpf(2) ** (-precision - 8):
                    break
            slope = _legendre_polynomial(order, x)[1]
            rule.append((x, 2 / ((1 - x * x) * slope**2)))
    return rule


def _legendre_polynomial(order: int, x: Any) -> tuple[Any, Any]:
    previous, current = mpmath.mpf(1), x
    for k in range(2, order + 1):
        previous, current = current, ((2 * k - 1) * x * current - (k - 1) * previous) / k
    return current, order * (x * current - previous) / (x * x - 1)
