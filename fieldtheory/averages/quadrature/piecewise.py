"""Activations, given by expressions, as numeric functions between their breakpoints."""

from __future__ import annotations

from functools import lru_cache

import sympy as sp

from fieldtheory.averages.integrands.steps import slope_of_pieces
from fieldtheory.averages.quadrature.compiled import kinks_of, vectorised
from fieldtheory.averages.quadrature.functions import Function


@lru_cache(maxsize=256)
def function_of(expression: sp.Expr, variable: sp.Symbol) -> Function:
    """The numeric function of an expression in one variable, with its slope and breakpoints.

    Examples
    --------
    >>> h = sp.Symbol("h", real=True)
    >>> function_of(sp.Max(0, h - 1), h).kinks.tolist()
    [1.0]
    """
    slope = vectorised([variable], slope_of_pieces(expression, variable))
    return Function(vectorised([variable], expression), slope, kinks_of(expression, variable))
