"""Functions with kinks and jumps in a normal form whose derivatives are distributions.

|x|, max, min, sign and piecewise functions become polynomials in steps θ(x) with θ² = θ, so that
products of a δ-function with a step at the same point, which have no meaning, never arise.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp
from sympy import Abs, DiracDelta, Heaviside, Max, Min, Piecewise, sign

_KINKED = (Abs, Max, Min, sign, Heaviside, Piecewise)


def has_steps(expr: sp.Expr) -> bool:
    """Whether the expression has kinks or jumps."""
    return expr.has(*_KINKED)


def step_form(expr: sp.Expr) -> sp.Expr:
    """The expression with every kink and jump written by steps, powers of steps reduced."""
    if not has_steps(expr):
        return expr
    expr = expr.replace(lambda e: isinstance(e, Piecewise), lambda e: e.rewrite(Heaviside))
    expr = expr.replace(lambda e: isinstance(e, Max), lambda e: _extremum(e.args, 1))
    expr = expr.replace(lambda e: isinstance(e, Min), lambda e: _extremum(e.args, -1))
    expr = expr.replace(lambda e: isinstance(e, Abs), lambda e: e.args[0] * _sign(e.args[0]))
    expr = expr.replace(lambda e: isinstance(e, sign), lambda e: _sign(e.args[0]))
    expr = expr.replace(lambda e: isinstance(e, Heaviside), lambda e: _step(e.args[0]))
    return reduce_powers(sp.expand(expr))


def reduce_powers(expr: sp.Expr) -> sp.Expr:
    """Replace θ(x)^n by θ(x); the two differ on a set of measure zero only."""
    return expr.replace(
        lambda e: e.is_Pow and isinstance(e.base, Heaviside) and e.exp.is_positive,
        lambda e: e.base,
    )


def second_derivative(expr: sp.Expr, x: sp.Expr, y: sp.Expr) -> sp.Expr:
    """∂_x ∂_y of an expression, as a distribution where it has kinks or jumps."""
    if not has_steps(expr):
        return expr.diff(x, y)
    first = sift(step_form(expr).diff(x), (x, y))
    return sift(reduce_powers(sp.expand(first)).diff(y), (x, y))


def sift(expr: sp.Expr, variables: Sequence[sp.Expr]) -> sp.Expr:
    """Apply f(x) δ(x−a) = f(a) δ(x−a) and f(x) δ'(x−a) = f(a) δ'(x−a) − f'(a) δ(x−a)."""
    if not expr.has(DiracDelta):
        return expr
    return sp.Add(*[_sift_term(term, variables) for term in sp.Add.make_args(sp.expand(expr))])


def break_points(expr: sp.Expr, variable: sp.Expr) -> list[sp.Expr]:
    """Where an expression in one variable has kinks or jumps, sorted and real."""
    points: set[sp.Expr] = set()
    for step in step_form(expr).atoms(Heaviside):
        if not step.has(variable):
            continue
        solutions = sp.solveset(step.args[0], variable, sp.S.Reals)
        if not isinstance(solutions, sp.FiniteSet):
            raise ValueError(f"cannot locate the kinks of {expr} in {variable}")
        points.update(solutions)
    return sorted(points, key=float)


def _extremum(args: Sequence[sp.Expr], direction: int) -> sp.Expr:
    value, *rest = args
    for other in rest:
        value = other + (value - other) * _step(direction * (value - other))
    return value


def _sign(x: sp.Expr) -> sp.Expr:
    return 2 * _step(x) - 1


def _step(x: sp.Expr) -> sp.Expr:
    """θ(x) with a positive leading coefficient, so that θ(−x) = 1 − θ(x) is one function."""
    x = sp.expand(x)
    if x.is_number:
        return sp.Heaviside(x)
    if x.could_extract_minus_sign():
        return 1 - Heaviside(-x)
    content, primitive = x.as_content_primitive()
    return Heaviside(primitive if content.is_positive else x)


def _sift_term(term: sp.Expr, variables: Sequence[sp.Expr]) -> sp.Expr:
    for delta in [f for f in sp.Mul.make_args(term) if isinstance(f, DiracDelta)]:
        argument, order = delta.args[0], delta.args[1] if len(delta.args) > 1 else 0
        variable = next((v for v in variables if argument.has(v)), None)
        if variable is None or order > 1:
            continue
        rest = term / delta
        if any(other.args[0].has(variable) for other in rest.atoms(DiracDelta)):
            continue
        slope = argument.diff(variable)
        point = -argument.subs(variable, 0) / slope
        value = rest.subs(variable, point)
        if order == 0:
            term = value * delta
        else:
            change = rest.diff(variable).subs(variable, point) / slope
            return value * delta - _sift_term(change * DiracDelta(argument), variables)
    return term
