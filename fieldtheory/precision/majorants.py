"""Polynomials that bound functions on the real line and in strips around it."""

from __future__ import annotations

from typing import Any

import sympy as sp

from fieldtheory.precision.balls import arb, arb_poly, constant


def majorant(F: sp.Expr, variable: sp.Symbol, height: Any = 0) -> Any:
    """P with |F(x + iy)| <= P(|x|) for all real x and |y| <= height.

    Examples
    --------
    >>> h = sp.Symbol("h", real=True)
    >>> majorant(2 * h - sp.tanh(h) ** 3, h)
    2.00000000000000*x + 1.00000000000000
    """
    if F == variable:
        return arb_poly([height, 1])
    if not F.has(variable):
        return arb_poly([abs(constant(F))])
    if F.is_Add or F.is_Mul:
        total = arb_poly([0 if F.is_Add else 1])
        for part in F.args:
            bound = majorant(part, variable, height)
            total = total + bound if F.is_Add else total * bound
        return total
    if F.is_Pow and F.exp.is_Integer and F.exp > 0:
        return majorant(F.base, variable, height) ** int(F.exp)
    argument = F.args[0] if F.args else F
    if isinstance(F, sp.exp | sp.erf | sp.tanh | sp.sin | sp.cos) and argument.is_polynomial(
        variable
    ):
        bound = _of_function(F.func, sp.Poly(argument, variable).all_coeffs(), height)
        if bound is not None:
            return arb_poly([bound])
    raise ValueError(
        f"{F} has no bound in a strip here: enclosures are for φ made of erf, tanh, sin, cos, "
        "exp(−h²) and polynomials, with kinks or without"
    )


def _of_function(function: Any, terms: list[sp.Expr], height: Any) -> Any | None:
    """A bound of a function of a polynomial with these coefficients, highest first."""
    if function is sp.exp:
        if len(terms) != 3 or not terms[0].is_negative:
            return None
        square, slope, offset = map(constant, terms)
        return (offset - slope * slope / (4 * square) - square * height * height).exp()
    if len(terms) != 2:
        return None
    y = abs(constant(terms[0])) * height
    if function is sp.erf:
        return 1 + arb(y).erfi()
    if function is sp.tanh:
        if not y < arb.pi() / 2:
            return None
        return max(arb(1), arb(y).tan(), key=lambda bound: bound.upper())
    return arb(y).cosh()
