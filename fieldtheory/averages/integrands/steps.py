"""Functions with kinks and jumps in a normal form whose derivatives are distributions.

|x|, max, min, sign and piecewise functions become polynomials in steps θ(x) with θ² = θ, so that
products of a δ-function with a step at the same point, which have no meaning, never arise.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import sympy as sp
from sympy import Abs, DiracDelta, Heaviside, sign

from fieldtheory.averages.integrands.breakpoints import SWITCHING, has_steps, pieces_of
from fieldtheory.averages.integrands.roots import normal

# Smaller numbers are roundings of zero; points of larger denominators count as irrational.
_ROUNDED, _LARGE = sp.Rational(1, 10**30), 10**25


@lru_cache(maxsize=256)
def step_form(expr: sp.Expr) -> sp.Expr:
    """The expression with every kink and jump written by steps, products of steps reduced."""
    if not has_steps(expr):
        return expr
    if expr.is_Add:
        return _expand(sp.Add(*map(step_form, expr.args)))
    factors, product = _factors(expr), sp.S.One
    if len(factors) == 1:
        return reduce_steps(_expand(_resolve(expr)))
    # One by one, as most terms of a whole product are the same once they are reduced.
    for factor in factors:
        product = reduce_steps(_expand(product * step_form(factor)))
    return product


def _factors(expr: sp.Expr) -> list[sp.Expr]:
    """The factors of a product, those of natural powers that have steps repeated."""
    factors = []
    for factor in sp.Mul.make_args(expr):
        base, power = factor.as_base_exp()
        natural = power.is_Integer and power > 0 and has_steps(base)
        factors.extend([base] * int(power) if natural else [factor])
    return factors


def reduce_steps(expr: sp.Expr) -> sp.Expr:
    """Replace θ(x)^n by θ(x) and θ(x−a) θ(x−b) by the later step; equal almost everywhere."""
    expr = expr.replace(
        lambda e: e.is_Pow and isinstance(e.base, Heaviside) and e.exp.is_positive,
        lambda e: e.base,
    )
    return expr.replace(lambda e: e.is_Mul and e.count(Heaviside) > 1, _latest_steps)


def second_derivative(expr: sp.Expr, x: sp.Expr, y: sp.Expr) -> sp.Expr:
    """∂_x ∂_y of an expression, as a distribution where it has kinks or jumps."""
    if x != y and (sides := _sides(expr, x, y)) is not None:
        slopes = [first_derivative(side, v) for side, v in zip(sides, (x, y), strict=True)]
        smooth = sp.Mul(*slopes).replace(DiracDelta, lambda *_: sp.S.Zero)
        if not any(slope.has(DiracDelta) for slope in slopes):
            return smooth
        terms = sp.Add.make_args(_expand(sp.Mul(*slopes)))
        return smooth + sp.Add(*[term for term in terms if term.has(DiracDelta)])
    if not has_steps(expr):
        return expr.diff(x, y)
    first = sift(step_form(expr).diff(x), (x, y))
    second = sift(reduce_steps(_expand(first)).diff(y), (x, y))
    return reduce_steps(_expand(second))


def _sides(expr: sp.Expr, x: sp.Expr, y: sp.Expr) -> tuple[sp.Expr, sp.Expr] | None:
    """A product as a function of x and one of y, None if it is none."""
    factors = sp.Mul.make_args(expr)
    if any(factor.has(x) and factor.has(y) for factor in factors):
        return None
    of_y = [factor for factor in factors if factor.has(y)]
    return sp.Mul(*[factor for factor in factors if not factor.has(y)]), sp.Mul(*of_y)


def first_derivative(expr: sp.Expr, x: sp.Expr) -> sp.Expr:
    """∂_x of an expression, as a distribution where it has kinks or jumps."""
    return sift(step_form(expr).diff(x), (x,)) if has_steps(expr) else expr.diff(x)


def reduced_product(first: sp.Expr, second: sp.Expr, variables: Sequence[sp.Expr]) -> sp.Expr:
    """The product of two expressions, the steps and δ-functions in it reduced."""
    if not (first.has(Heaviside, DiracDelta) and second.has(Heaviside, DiracDelta)):
        return first * second
    return sift(reduce_steps(_expand(first * second)), variables)


def sift(expr: sp.Expr, variables: Sequence[sp.Expr]) -> sp.Expr:
    """Apply f(x) δ(x−a) = f(a) δ(x−a) and f(x) δ'(x−a) = f(a) δ'(x−a) − f'(a) δ(x−a)."""
    terms = sp.Add.make_args(expr)
    singular = sp.Add(*[term for term in terms if term.has(DiracDelta)])
    if singular == 0:
        return expr
    # What has none stands as it is: products, multiplied out, may be none.
    smooth = [term for term in terms if not term.has(DiracDelta)]
    sifted = [_sift_term(term, variables) for term in sp.Add.make_args(_expand(singular))]
    return sp.Add(*smooth, *_without_rounding(sp.Add(*sifted)))


def _without_rounding(singular: sp.Expr) -> list[sp.Expr]:
    """Terms with δ-functions but for those whose numbers add up to zero, at irrational points."""
    sums: dict[sp.Expr, sp.Expr] = {}
    for term in sp.Add.make_args(_expand(singular)):
        number, monomial = term.as_independent(*term.free_symbols, as_Add=False)
        sums[monomial] = sums.get(monomial, sp.S.Zero) + number
    return [number * monomial for monomial, number in sums.items() if not _is_rounding(number)]


def _is_rounding(number: sp.Expr) -> bool:
    value = number.evalf(15, maxn=100)
    return bool(value.is_number and abs(value) < _ROUNDED)


def _resolve(expr: sp.Expr) -> sp.Expr:
    """Kinks and jumps written by steps: pieces of one variable, |u|, sign and θ of several."""
    if not has_steps(expr):
        return expr
    switching = expr.atoms(*SWITCHING)
    symbols = set().union(*(part.free_symbols for part in switching))
    for x in sorted(symbols, key=sp.default_sort_key):
        try:
            pieces = pieces_of(expr, x)
        except ValueError:
            if len(symbols) == 1:
                raise
            continue
        if pieces.points:
            return _step_sum([_resolve(branch) for branch in pieces.branches], pieces.points, x)
        if pieces.branches[0] != expr:
            return _resolve(pieces.branches[0])
    args = [_resolve(arg) for arg in expr.args]
    if isinstance(expr, Abs):
        return args[0] * (2 * _step(args[0]) - 1)
    if isinstance(expr, sign):
        return 2 * _step(args[0]) - 1
    return _step(args[0]) if isinstance(expr, Heaviside) else expr.func(*args)


def _step(x: sp.Expr) -> sp.Expr:
    """θ(x) with a positive leading coefficient, so that θ(−x) = 1 − θ(x) is one function."""
    x = _expand(x)
    if x.is_number:
        return sp.Heaviside(x)
    symbols = x.free_symbols
    if len(symbols) == 1:
        (variable,) = symbols
        if not _is_linear(x, variable):
            try:
                pieces = pieces_of(Heaviside(x), variable)
            except ValueError:
                return Heaviside(x)
            return _step_sum(pieces.branches, pieces.points, variable)
        point = _root(x, variable)
        if not point.is_Rational or point.q > _LARGE:
            step = Heaviside(variable - point)
            return step if x.coeff(variable).is_positive else 1 - step
    if x.could_extract_minus_sign():
        return 1 - Heaviside(-x)
    content, primitive = x.as_content_primitive()
    return Heaviside(primitive if content.is_positive else x)


def _is_linear(x: sp.Expr, variable: sp.Expr) -> bool:
    return x.is_polynomial(variable) and sp.degree(x, variable) == 1


def _step_sum(branches: Sequence[sp.Expr], points: Sequence[sp.Expr], x: sp.Symbol) -> sp.Expr:
    """Smooth pieces between breakpoints, by steps."""
    changes = zip(points, branches[1:], branches, strict=False)
    terms = [_expand((after - before) * _step(x - point)) for point, after, before in changes]
    return _expand(branches[0]) + sp.Add(*terms)


def _root(x: sp.Expr, variable: sp.Expr) -> sp.Expr:
    return normal(-x.coeff(variable, 0) / x.coeff(variable, 1))


def _latest_steps(term: sp.Expr) -> sp.Expr:
    steps = [f for f in term.args if isinstance(f, Heaviside) and len(f.free_symbols) == 1]
    latest: dict[sp.Expr, tuple[sp.Expr, sp.Expr]] = {}
    for step in steps:
        x, (variable,) = step.args[0], step.free_symbols
        if not _is_linear(x, variable):
            return term
        point = _root(x, variable)
        if variable not in latest or point > latest[variable][0]:
            latest[variable] = (point, step)
    kept = [step for _, step in latest.values()]
    return sp.Mul(*[f for f in term.args if f not in steps], *kept)


def _expand(expr: sp.Expr) -> sp.Expr:
    """Expand products and powers, but not denominators."""
    masks = {p: sp.Dummy(real=True) for p in expr.atoms(sp.Pow) if p.exp.is_negative}
    expanded = sp.expand(expr.xreplace(masks), power_exp=False)
    return expanded.xreplace({mask: p for p, mask in masks.items()})


def _sift_term(term: sp.Expr, variables: Sequence[sp.Expr]) -> sp.Expr:
    for delta in [f for f in sp.Mul.make_args(term) if isinstance(f, DiracDelta)]:
        argument, order = delta.args[0], delta.args[1] if len(delta.args) > 1 else 0
        variable = next((v for v in variables if argument.has(v)), None)
        if variable is None or order > 1:
            continue
        cofactor = term / delta
        if any(other.args[0].has(variable) for other in cofactor.atoms(DiracDelta)):
            continue
        slope = argument.diff(variable)
        if slope.has(variable):
            continue
        point = -argument.subs(variable, 0) / slope
        value = _value_at(cofactor, variable, point)
        if order == 0:
            term = value * delta
        else:
            change = cofactor.diff(variable)
            if change.has(DiracDelta):
                continue
            change = _value_at(change, variable, point) / slope
            return value * delta - _sift_term(change * DiracDelta(argument), variables)
    return term


def _value_at(factor: sp.Expr, variable: sp.Expr, point: sp.Expr) -> sp.Expr:
    """Factor of a δ-function at its point; the limit from both sides where it is 0/0."""
    value = factor.subs(variable, point)
    if not value.has(sp.nan, sp.zoo, sp.oo, -sp.oo):
        return value
    pieces, away = pieces_of(factor, variable), sp.Dummy("t", positive=True)
    above, below = (
        sp.limit(pieces.at(point + side).subs(variable, point + side * away), away, 0)
        for side in (1, -1)
    )
    if above != below or above.has(sp.nan, sp.zoo, sp.oo, -sp.oo):
        raise ValueError(
            "activation must have finite slopes on both sides of its kinks, so that it has "
            f"derivatives as distributions; got the factor {factor} at {variable} = {point}"
        )
    return above
