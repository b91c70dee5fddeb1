"""Functions with kinks and jumps in a normal form whose derivatives are distributions.

|x|, max, min, sign and piecewise functions become polynomials in steps θ(x) with θ² = θ, so that
products of a δ-function with a step at the same point, which have no meaning, never arise.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import sympy as sp
from sympy import Abs, DiracDelta, Heaviside, Max, Min, Piecewise, sign

_KINKED = (Abs, Max, Min, sign, Heaviside, Piecewise)

# Where a cusp at zero is told from a kink, how much derivatives then grow, and which: panels
# resolve what comes after.
_CLOSE, _GROWS, _UNBOUNDED = (sp.Rational(1, 10**4), sp.Rational(1, 10**12)), 10, 4
# Functions that are smooth everywhere, and what surely does not vanish.
_SMOOTH, _NOT_ZERO = (
    (sp.exp, sp.sin, sp.cos, sp.sinh, sp.cosh, sp.tanh, sp.erf, sp.erfc, sp.atan, sp.asinh),
    1e-3,
)


def has_steps(expr: sp.Expr) -> bool:
    """Whether the expression has kinks or jumps."""
    return expr.has(*_KINKED)


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
    """∂_x ∂_y of an expression, as a distribution where it has kinks or jumps.

    Products of functions of one variable each stay such beside the terms with δ-functions.
    """
    if x != y and (sides := _sides(expr, x, y)) is not None:
        slopes = [first_derivative(side, v) for side, v in zip(sides, (x, y), strict=True)]
        smooth = sp.Mul(*[_without_deltas(slope) for slope in slopes])
        if not any(slope.has(DiracDelta) for slope in slopes):
            return smooth
        terms = sp.Add.make_args(_expand(sp.Mul(*slopes)))
        return smooth + sp.Add(*[term for term in terms if term.has(DiracDelta)])
    if not has_steps(expr):
        return expr.diff(x, y)
    first = sift(step_form(expr).diff(x), (x, y))
    second = sift(reduce_steps(_expand(first)).diff(y), (x, y))
    return reduce_steps(_expand(second))


def _without_deltas(expr: sp.Expr) -> sp.Expr:
    return expr.replace(DiracDelta, lambda *_: sp.S.Zero)


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
    return sp.Add(*smooth, *sifted)


def break_points(expr: sp.Expr, variable: sp.Expr) -> list[sp.Expr]:
    """Where an expression has kinks or jumps in one variable, sorted and real."""
    return list(_break_points(expr, variable))


@lru_cache(maxsize=256)
def _break_points(expr: sp.Expr, variable: sp.Expr) -> tuple[sp.Expr, ...]:
    steps = [step for step in step_form(expr).atoms(Heaviside) if step.has(variable)]
    points: set[Any] = {_location(step, variable) for step in steps}
    if None in points:
        raise ValueError(f"cannot locate the kinks of {expr} in {variable}")
    return tuple(sorted(points, key=float))


def pieces(expr: sp.Expr, variables: Sequence[sp.Expr]) -> sp.Expr:
    """The expression as a Piecewise of smooth ones, none of which is used outside its piece."""
    if has_steps(expr) and not has_steps(form := step_form(expr)):
        # Steps that cancel, as in sign(x)², have δ-functions as derivatives all the same.
        return form
    for i, variable in enumerate(variables):
        if has_steps(expr) and (cuts := break_points(expr, variable)):
            values = [branch(expr, variable, middle) for middle in between(cuts)]
            values = [pieces(value, variables[i + 1 :]) for value in values]
            conditions = [*[variable < cut for cut in cuts], sp.true]
            return Piecewise(*zip(values, conditions, strict=True))
    return expr


def polynomial_pieces(expr: sp.Expr, variable: sp.Symbol) -> Piecewise | None:
    """A function of one variable as polynomials between its kinks, or None if it is not.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> polynomial_pieces(Max(0, x - 1) ** 2, x)
    Piecewise((0, x < 1), (x**2 - 2*x + 1, True))
    """
    split = pieces(expr, [variable])
    if not isinstance(split, Piecewise):
        return None
    values = [(sp.expand(value), condition) for value, condition in split.args]
    if not all(value.is_polynomial(variable) for value, _ in values):
        return None
    return Piecewise(*values)


def slope_of_pieces(expr: sp.Expr, variable: sp.Expr) -> sp.Expr:
    """The derivative between the kinks, without what jumps contribute."""
    split = pieces(expr, [variable])
    if not isinstance(split, Piecewise):
        return split.diff(variable)
    return Piecewise(*[(value.diff(variable), condition) for value, condition in split.args])


def jumps(expr: sp.Expr, variable: sp.Expr) -> list[tuple[sp.Expr, sp.Expr, sp.Expr]]:
    """Where an expression may jump, and what it is below and above.

    Examples
    --------
    >>> h = sp.Symbol("h", real=True)
    >>> jumps(sp.sign(h - 2) * h, h)
    [(2, -2, 2)]
    """
    cuts = break_points(expr, variable) if has_steps(expr) else []
    parts = [branch(expr, variable, middle) for middle in between(cuts)]
    return [
        (cut, below.subs(variable, cut), above.subs(variable, cut))
        for cut, (below, above) in zip(cuts, pairwise(parts), strict=True)
    ]


def _resolve(expr: sp.Expr) -> sp.Expr:
    """Kinks and jumps written by steps, innermost first."""
    if not has_steps(expr):
        return expr
    if isinstance(expr, Piecewise):
        return _pieces([(_resolve(value), condition) for value, condition in expr.args])
    args = [_resolve(arg) for arg in expr.args]
    if isinstance(expr, Max | Min):
        return _extremum(args, 1 if isinstance(expr, Max) else -1)
    if isinstance(expr, Abs):
        return args[0] * _sign(args[0])
    if isinstance(expr, sign):
        return _sign(args[0])
    return _step(args[0]) if isinstance(expr, Heaviside) else expr.func(*args)


def _pieces(pieces: Sequence[tuple[sp.Expr, Any]]) -> sp.Expr:
    total, remaining = sp.S.Zero, sp.S.One
    for value, condition in pieces:
        inside = _indicator(condition)
        total += remaining * inside * value
        remaining = sp.expand(remaining * (1 - inside))
    return total


def _indicator(condition: Any) -> sp.Expr:
    """One where a condition holds, else zero, up to single points."""
    if isinstance(condition, sp.And):
        return sp.Mul(*map(_indicator, condition.args))
    if isinstance(condition, sp.Or):
        return 1 - sp.Mul(*[1 - _indicator(part) for part in condition.args])
    if isinstance(condition, sp.Not):
        return 1 - _indicator(condition.args[0])
    if isinstance(condition, sp.Ne) or condition == sp.true:
        return sp.S.One
    if isinstance(condition, sp.Eq) or condition == sp.false:
        return sp.S.Zero
    if not isinstance(condition, sp.core.relational.Relational):
        raise ValueError(f"conditions of a Piecewise must compare real numbers, got {condition}")
    return _step(_resolve(condition.gts - condition.lts))


def _extremum(args: Sequence[sp.Expr], direction: int) -> sp.Expr:
    value, *rest = args
    for other in rest:
        value = other + (value - other) * _step(direction * (value - other))
    return value


def _sign(x: sp.Expr) -> sp.Expr:
    return 2 * _step(x) - 1


def _step(x: sp.Expr) -> sp.Expr:
    """θ(x) with a positive leading coefficient, so that θ(−x) = 1 − θ(x) is one function."""
    x = _expand(x)
    if x.is_number:
        return sp.Heaviside(x)
    symbols = x.free_symbols
    if len(symbols) == 1 and not _is_linear(x, variable := symbols.pop()):
        return _steps_at_roots(x, variable)
    if x.could_extract_minus_sign():
        return 1 - Heaviside(-x)
    content, primitive = x.as_content_primitive()
    return Heaviside(primitive if content.is_positive else x)


def _is_linear(x: sp.Expr, variable: sp.Expr) -> bool:
    return x.is_polynomial(variable) and sp.degree(x, variable) == 1


def _steps_at_roots(x: sp.Expr, variable: sp.Expr) -> sp.Expr:
    """θ of a nonlinear function of one variable, by steps at its roots where these are known."""
    inner = x.atoms(Heaviside)
    points: set[Any] = {_location(step, variable) for step in inner}
    if None in points:
        return Heaviside(x)
    cuts = sorted(points, key=float)
    for middle in between(cuts):
        roots = sp.solveset(_on_piece(x, variable, middle), variable, sp.S.Reals)
        if isinstance(roots, sp.FiniteSet):
            points.update(roots)
        elif roots not in (sp.S.EmptySet, sp.S.Reals):
            return Heaviside(x)
    cuts = sorted(points, key=float)
    levels = []
    for middle in between(cuts):
        piece = _on_piece(x, variable, middle)
        levels.append(sp.Heaviside(sp.sign(piece.subs(variable, middle).evalf())))
    jumps = zip(cuts, levels[1:], levels, strict=False)
    return levels[0] + sp.Add(*[(b - a) * _step(variable - root) for root, b, a in jumps])


def has_cusp(f: sp.Expr, x: sp.Symbol) -> bool:
    """Whether one of f'' to f⁗ grows without bound towards zero, on one side of it.

    Examples
    --------
    >>> h = sp.Symbol("h", real=True)
    >>> has_cusp(h * sp.log(sp.Abs(h)), h), has_cusp(h * sp.Abs(h), h)
    (True, False)
    """
    for side in (1, -1):
        piece = branch(f, x, sp.Integer(side))
        if _is_smooth_at_zero(piece, x):
            continue
        derivative = piece.diff(x)
        for _ in range(_UNBOUNDED - 1):
            derivative = derivative.diff(x)
            far, near = (abs(derivative.subs(x, side * place).evalf()) for place in _CLOSE)
            if near > _GROWS * far:
                return True
    return False


def _is_smooth_at_zero(f: sp.Expr, x: sp.Symbol) -> bool:
    """Whether that is seen from what occurs; derivatives may be long."""
    for part in f.atoms(sp.Function, sp.Pow):
        if not part.has(x) or isinstance(part, _SMOOTH):
            continue
        if part.is_Pow and part.exp.is_Integer and part.exp > 0:
            continue
        # Powers and logarithms of what does not vanish.
        if not ((part.is_Pow and not part.exp.has(x)) or isinstance(part, sp.log)):
            return False
        value = part.args[0].subs(x, 0).evalf()
        if not (value.is_number and value.is_finite and abs(value) > _NOT_ZERO):
            return False
    return True


def between(cuts: Sequence[sp.Expr]) -> list[sp.Expr]:
    """A point of every interval between sorted cuts, the outer two included.

    Examples
    --------
    >>> between([sp.S.Zero, sp.S.One])
    [-1, 1/2, 2]
    """
    if not cuts:
        return [sp.S.Zero]
    middles = [sp.Rational((float(a) + float(b)) / 2) for a, b in pairwise(cuts)]
    ends = sp.Rational(float(cuts[0])) - 1, sp.Rational(float(cuts[-1])) + 1
    return [ends[0], *middles, ends[1]]


def _on_piece(x: sp.Expr, variable: sp.Expr, middle: sp.Expr) -> sp.Expr:
    """The smooth expression that x equals around a point."""
    steps = [step for step in x.atoms(Heaviside) if step.has(variable)]
    return _expand(x.xreplace({step: step.subs(variable, middle) for step in steps}))


def branch(expr: sp.Expr, variable: sp.Expr, middle: sp.Expr) -> sp.Expr:
    """The smooth expression that expr equals around a point, its terms as they stand."""
    if not (has_steps(expr) and expr.has(variable)):
        return expr
    if isinstance(expr, Piecewise):
        # Nothing but the variable of the kinks stands in the conditions.
        chosen = next(value for value, condition in expr.args if condition.subs(variable, middle))
        return branch(chosen, variable, middle)
    args = [branch(arg, variable, middle) for arg in expr.args]
    if not isinstance(expr, _KINKED):
        return expr.func(*args)
    at_middle = [arg.subs(variable, middle) for arg in args]
    if isinstance(expr, Max | Min):
        best = (max if isinstance(expr, Max) else min)(at_middle)
        return args[at_middle.index(best)]
    if isinstance(expr, Abs):
        return args[0] if at_middle[0] > 0 else -args[0]
    return expr.func(at_middle[0])


def _location(step: sp.Expr, variable: sp.Expr) -> sp.Expr | None:
    """Where a linear step jumps, or None."""
    x = step.args[0]
    if x.free_symbols != {variable} or not _is_linear(x, variable):
        return None
    return -x.coeff(variable, 0) / x.coeff(variable, 1)


def _latest_steps(term: sp.Expr) -> sp.Expr:
    steps = [f for f in term.args if isinstance(f, Heaviside) and len(f.free_symbols) == 1]
    latest: dict[sp.Expr, tuple[sp.Expr, sp.Expr]] = {}
    for step in steps:
        (variable,) = step.free_symbols
        point = _location(step, variable)
        if point is None:
            return term
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
        rest = term / delta
        if any(other.args[0].has(variable) for other in rest.atoms(DiracDelta)):
            continue
        slope = argument.diff(variable)
        if slope.has(variable):
            continue
        point = -argument.subs(variable, 0) / slope
        value = _value_at(rest, variable, point)
        if order == 0:
            term = value * delta
        else:
            change = rest.diff(variable)
            if change.has(DiracDelta):
                continue
            change = _value_at(change, variable, point) / slope
            return value * delta - _sift_term(change * DiracDelta(argument), variables)
    return term


def _value_at(factor: sp.Expr, variable: sp.Expr, point: sp.Expr) -> sp.Expr:
    """What stands beside a δ-function at its point, the limit from both sides where it is 0/0."""
    value = factor.subs(variable, point)
    if not value.has(sp.nan, sp.zoo, sp.oo, -sp.oo):
        return value
    away = sp.Dummy("t", positive=True)
    above, below = (
        sp.limit(
            branch(factor, variable, point + side).subs(variable, point + side * away), away, 0
        )
        for side in (1, -1)
    )
    if above != below or above.has(sp.nan, sp.zoo, sp.oo, -sp.oo):
        raise ValueError(
            "activation must have finite slopes on both sides of its kinks, so that it has "
            f"derivatives as distributions; got the factor {factor} at {variable} = {point}"
        )
    return above
