"""Activations, given by expressions, as numeric functions between their breakpoints."""

from __future__ import annotations

from functools import lru_cache

import sympy as sp

from fieldtheory.averages.integrands.breakpoints import pieces_of
from fieldtheory.averages.quadrature.compiled import vectorised
from fieldtheory.averages.quadrature.panelled_functions import Function


@lru_cache(maxsize=256)
def function_of(expression: sp.Expr, variable: sp.Symbol) -> Function:
    """The numeric function of an expression in one variable, with its slope and breakpoints.

    Examples
    --------
    >>> h = sp.Symbol("h", real=True)
    >>> function_of(sp.Max(0, h - 1), h).kinks.tolist()
    [1.0]
    """
    found = pieces_of(expression, variable)
    value, slope = (vectorised([variable], F) for F in (expression, found.slope))
    return Function(value, slope, tuple(map(float, found.points)))
