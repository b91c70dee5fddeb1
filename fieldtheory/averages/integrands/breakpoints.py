"""Functions with kinks and jumps as smooth pieces between breakpoints.

|u|, sign(u), θ(u), max, min and conditions switch where an argument changes its sign. These points
are located from the inside out, on every interval on which the arguments are smooth already; what
the expression is between two of them follows from the signs there. Two neighbouring pieces that are
one analytic function are merged, so that kinks that cancel, as in sign(h)², are none.
"""

from __future__ import annotations

from bisect import bisect, bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import sympy as sp
from sympy import Abs, DiracDelta, Heaviside, Max, Min, Piecewise, sign
from sympy.core.function import AppliedUndef

SWITCHING = (Abs, Max, Min, sign, Heaviside, Piecewise)
# Digits of breakpoints without a closed form, and those that they are computed with.
_DIGITS, _WORKING = 40, 60
# Breakpoints closer than this, and values relative to their terms smaller than this, are equal.
_EQUAL = mpmath.mpf(10) ** -32
# Where sign changes are looked for: evenly up to 12, by 4 % up to 1e6, down to 1e-8; off round
# numbers. More breakpoints than this count as infinitely many.
_HALF = np.concatenate([np.geomspace(1e-8, 0.0127, 300), np.arange(0.0227, 12, 0.0101)])
_HALF = np.concatenate([_HALF, np.geomspace(12.003, 1.0003e6, 290)])
_GRID = np.concatenate([-_HALF[::-1], _HALF])
_MOST = 64
# Where two pieces are compared, in units of the distance from their common end.
_APART = tuple(sp.Rational(n, 64) for n in (19, -23, 71, -83, 5, -7))
_INVERSES: dict[type, Callable] = {
    sp.exp: sp.log,
    sp.log: sp.exp,
    sp.tanh: sp.atanh,
    sp.sinh: sp.asinh,
    sp.asinh: sp.sinh,
    sp.atan: sp.tan,
    sp.erf: sp.erfinv,
}


@dataclass(frozen=True)
class Pieces:
    """A function as smooth expressions between its breakpoints.

    Parameters
    ----------
    variable : sympy.Symbol
    points : tuple of sympy.Expr
        The n breakpoints, sorted: exact numbers, or fractions of 40 digits where there is no
        closed form.
    branches : tuple of sympy.Expr
        The n + 1 smooth expressions.
    switching : tuple of sympy.Expr
        Where parts of the expression switch.
    """

    variable: sp.Symbol
    points: tuple[sp.Expr, ...] = ()
    branches: tuple[sp.Expr, ...] = ()
    switching: tuple[sp.Expr, ...] = ()

    @property
    def expression(self) -> sp.Expr:
        """The function as a Piecewise of its branches, or as its only one."""
        conditions = [*[self.variable < point for point in self.points], sp.true]
        return Piecewise(*zip(self.branches, conditions, strict=True))

    @property
    def as_written(self) -> bool:
        """Whether parts of the expression switch at breakpoints alone, all of them exact."""
        points = set(self.points)
        return points.issuperset(self.switching) and not any(map(_is_rounded, points))

    @property
    def slope(self) -> sp.Expr:
        """The derivative between breakpoints, without the δ-functions of jumps."""
        slopes = tuple(branch.diff(self.variable) for branch in self.branches)
        return Pieces(self.variable, self.points, slopes).expression

    def at(self, place: Any) -> sp.Expr:
        """The branch around a point that is no breakpoint."""
        return self.branches[bisect([_value(p) for p in self.points], _value(place))]

    def around(self, place: Any) -> tuple[sp.Expr, sp.Expr]:
        """The branches just below and just above a point."""
        values = [_value(point) for point in self.points]
        return tuple(self.branches[find(values, _value(place))] for find in (bisect_left, bisect))

    @cached_property
    def jumps(self) -> tuple[sp.Expr, ...]:
        """By how much the function jumps at every breakpoint; 0 where it is continuous."""
        jumps = []
        for point, sides in zip(self.points, pairwise(self.branches), strict=True):
            below, above = (_limit(side, self.variable, point) for side in sides)
            jumps.append(sp.S.Zero if _equal(below, above, 1.0) else above - below)
        return tuple(jumps)


@lru_cache(maxsize=2048)
def pieces_of(expression: sp.Expr, variable: sp.Symbol) -> Pieces:
    """The smooth pieces of an expression in one of its variables.

    Parameters
    ----------
    expression : sympy.Expr
        What switches with ``variable`` depends on no other symbol.
    variable : sympy.Symbol

    Raises
    ------
    ValueError
        If the breakpoints cannot be located, or there are more than 64.

    Examples
    --------
    >>> h = sp.Symbol("h", real=True)
    >>> found = pieces_of(Max(0, 1 - Abs(h)), h)
    >>> found.points, found.branches
    ((-1, 0, 1), (0, h + 1, 1 - h, 0))
    >>> pieces_of(sign(h) * Min(Abs(h), 1), h).expression
    Piecewise((-1, h < -1), (h, h < 1), (1, True))
    """
    if not (expression.has(*SWITCHING) and expression.has(variable)):
        return Pieces(variable, (), (expression,), ())
    compared = _compared(expression) if isinstance(expression, Piecewise) else []
    arguments = [value for value, _ in expression.args] if compared else list(expression.args)
    inner = [pieces_of(argument, variable) for argument in arguments]
    inner += [pieces_of(relation.lhs - relation.rhs, variable) for relation in compared]
    points: list[sp.Expr] = []
    branches: list[sp.Expr] = []
    common = _union(point for part in inner for point in part.points)
    switching = {point for part in inner for point in part.switching}
    for low, high in pairwise([None, *common, None]):
        smooth = [part.at(_between(low, high)) for part in inner]
        switches = _switches(expression, smooth, variable)
        roots = _union(root for s in switches for root in _roots(s, variable, low, high))
        for start, end in pairwise([low, *roots, high]):
            branch = _branch(expression, compared, smooth, variable, _between(start, end))
            if branches and _same(branches[-1], branch, variable, start):
                branches[-1] = min(branches[-1], branch, key=sp.count_ops)
            else:
                points += [] if start is None else [start]
                branches.append(branch)
    if len(points) > _MOST:
        raise ValueError(
            f"cannot locate the kinks of {expression} in {variable}: there are more than {_MOST}"
        )
    # The smaller ones of several arguments of max may cross where the maximum does not change.
    switching.update(points)
    return Pieces(variable, tuple(points), tuple(branches), tuple(switching))


def canonical(expression: sp.Expr, variable: sp.Symbol) -> sp.Expr:
    """The expression itself if it switches at its breakpoints alone, else as a Piecewise of them.

    Examples
    --------
    >>> h = sp.Symbol("h", real=True)
    >>> canonical(Max(0, h), h), canonical(Max(0, h) + Min(0, h), h)
    (Max(0, h), h)
    """
    pieces = pieces_of(expression, variable)
    return expression if pieces.points and pieces.as_written else pieces.expression


def has_steps(expr: sp.Expr) -> bool:
    """Whether the expression has kinks or jumps."""
    return expr.has(*SWITCHING)


def break_points(expr: sp.Expr, variable: sp.Expr) -> list[sp.Expr]:
    """Points where an expression has kinks or jumps in one variable, sorted and real."""
    return list(pieces_of(expr, variable).points)


def pieces(expr: sp.Expr, variables: Sequence[sp.Expr]) -> sp.Expr:
    """The expression as a Piecewise of smooth ones, none of which is used outside its piece."""
    for i, variable in enumerate(variables):
        parts = pieces_of(expr, variable)
        if parts.points:
            values = tuple(pieces(branch, variables[i + 1 :]) for branch in parts.branches)
            return Pieces(variable, parts.points, values).expression
        expr = parts.branches[0]
    return expr


def _compared(expression: Piecewise) -> list[Any]:
    """The relations in the conditions of a Piecewise."""
    relations = []
    for _, condition in expression.args:
        atoms = condition.atoms(sp.core.relational.Relational)
        left = condition.xreplace(dict.fromkeys(atoms, sp.true))
        if left not in (sp.true, sp.false):
            raise ValueError(
                f"conditions of a Piecewise must compare real numbers, got {condition}"
            )
        relations += sorted(atoms, key=sp.default_sort_key)
    return relations


def _switches(expression: sp.Expr, smooth: list[sp.Expr], variable: sp.Symbol) -> list[sp.Expr]:
    """Functions at whose roots an expression of smooth arguments switches."""
    if isinstance(expression, Max | Min):
        functions = [a - b for i, a in enumerate(smooth) for b in smooth[:i]]
    elif isinstance(expression, Piecewise):
        functions = smooth[len(expression.args) :]
    elif isinstance(expression, Abs | sign | Heaviside):
        functions = smooth[:1]
    else:
        return []
    functions = [function for function in functions if function.has(variable)]
    for function in functions:
        if function.free_symbols != {variable} or function.atoms(AppliedUndef):
            raise ValueError(f"cannot locate the kinks of {expression} in {variable}")
    return functions


def _branch(
    expression: sp.Expr,
    compared: list[Any],
    smooth: list[sp.Expr],
    variable: sp.Symbol,
    middle: sp.Expr,
) -> sp.Expr:
    """Form of an expression of smooth arguments around a point."""
    if isinstance(expression, Piecewise):
        values, sides = smooth[: len(expression.args)], smooth[len(expression.args) :]
        truth = {
            relation: relation.func(_sign(side, variable, middle), 0)
            for relation, side in zip(compared, sides, strict=True)
            if side.free_symbols <= {variable}
        }
        conditions = [condition.xreplace(truth) for _, condition in expression.args]
        return Piecewise(*zip(values, conditions, strict=True))
    switching = isinstance(expression, Abs | sign | Heaviside | Max | Min)
    if not (switching and expression.has(variable)):
        return expression.func(*smooth)
    if isinstance(expression, Max | Min):
        order = 1 if isinstance(expression, Max) else -1
        better = lambda a, b: a if _sign(a - b, variable, middle) == order else b  # noqa: E731
        return reduce(better, smooth)
    side = _sign(smooth[0], variable, middle)
    return side * smooth[0] if isinstance(expression, Abs) else expression.func(sp.Integer(side))


def _sign(function: sp.Expr, variable: sp.Symbol, place: sp.Expr) -> int:
    """The sign of a function at a point that is none of its roots; 0 of what vanishes."""
    value = function.subs(variable, place)
    if not value.is_Rational:
        value = value.evalf(15, maxn=800)
        if not (value.is_Float and abs(value) > _EQUAL**12):
            return 0
    return int(sp.sign(value))


def _value(point: Any) -> Any:
    """A real number with the working digits."""
    return _number(sp.sympify(point))


@lru_cache(maxsize=4096)
def _number(point: sp.Expr) -> Any:
    with mpmath.workdps(_WORKING):
        return mpmath.mpmathify(point.evalf(_WORKING))


def _close(a: Any, b: Any) -> bool:
    return abs(a - b) <= _EQUAL * max(abs(a), abs(b), 1)


def _is_rounded(point: sp.Expr) -> bool:
    return bool(point.is_Rational and point.q > 10 ** (_DIGITS // 2))


def _union(points: Iterable[sp.Expr]) -> list[sp.Expr]:
    """Numbers sorted, of equal ones the simplest."""
    distinct: list[sp.Expr] = []
    for point in sorted(set(points), key=_value):
        if distinct and _close(_value(distinct[-1]), _value(point)):
            distinct[-1] = min(distinct[-1], point, key=lambda p: (_is_rounded(p), p.count_ops()))
        else:
            distinct.append(point)
    return distinct


def _between(low: sp.Expr | None, high: sp.Expr | None) -> sp.Expr:
    """A rational number between two, of few digits where these are far apart."""
    if low is None:
        return sp.S.Zero if high is None else sp.Rational(float(high)) - 1
    if high is None:
        return sp.Rational(float(low)) + 1
    middle = sp.Rational((float(low) + float(high)) / 2)
    if _value(low) < _value(middle) < _value(high):
        return middle
    return sp.Rational(str((_value(low) + _value(high)) / 2))


def _same(a: sp.Expr, b: sp.Expr, variable: sp.Symbol, point: sp.Expr) -> bool:
    """Whether two smooth expressions are one analytic function."""
    if a == b:
        return True
    difference = a - b
    if difference.free_symbols - {variable} or difference.atoms(AppliedUndef, DiracDelta):
        return difference.expand() == 0
    scale = max(1, abs(sp.Rational(float(point))))
    for offset in _APART:
        place = sp.Rational(float(point)) + offset * scale
        values = [f.subs(variable, place).evalf(_DIGITS) for f in (a, b)]
        if not all(value.is_Float or value.is_Rational for value in values):
            return difference.expand() == 0
        if not _equal(*values):
            return False
    return True


def _equal(a: sp.Expr, b: sp.Expr, size: float = 1e-20) -> bool:
    """Whether two numbers, of at least this size, are equal up to rounding of 40 digits."""
    if a == b:
        return True
    values = [x.evalf(_DIGITS, maxn=400) for x in (a, b)]
    if not all(value.is_Float or value.is_Rational for value in values):
        return False
    one, other = (mpmath.mpmathify(value) for value in values)
    return abs(one - other) <= _EQUAL * max(abs(one), abs(other), size)


def _limit(function: sp.Expr, variable: sp.Symbol, point: sp.Expr) -> sp.Expr:
    value = function.subs(variable, point)
    return sp.limit(function, variable, point) if value.has(sp.nan, sp.zoo) else value


def _roots(
    function: sp.Expr, variable: sp.Symbol, low: sp.Expr | None, high: sp.Expr | None
) -> list[sp.Expr]:
    """Points between two others where a smooth function changes its sign."""
    start = -mpmath.inf if low is None else _value(low)
    end = mpmath.inf if high is None else _value(high)
    roots = _union(_all_roots(function, variable, low, high))
    return [
        root
        for root in roots
        if start < _value(root) < end
        and not (low is not None and _close(start, _value(root)))
        and not (high is not None and _close(end, _value(root)))
    ]


@lru_cache(maxsize=1024)
def _all_roots(
    function: sp.Expr, variable: sp.Symbol, low: sp.Expr | None, high: sp.Expr | None
) -> tuple[sp.Expr, ...]:
    """Real roots at which a function changes its sign, all those between two points among them."""
    if function.is_Mul or (function.is_Pow and function.exp.is_Integer and function.exp > 0):
        factors = function.args if function.is_Mul else [function.base]
        factors = [factor for factor in factors if factor.has(variable)]
        return tuple(_union(root for f in factors for root in _all_roots(f, variable, low, high)))
    if function.is_polynomial(variable):
        return tuple(_union(_polynomial_roots(sp.Poly(function, variable))))
    numerator = sp.fraction(sp.together(function))[0]
    if numerator != function and numerator.is_polynomial(variable):
        return _all_roots(numerator, variable, low, high)
    exact = _inverted(function, variable)
    return tuple(_nearest(exact, root) for root in _sign_changes(function, variable, low, high))


def _polynomial_roots(polynomial: sp.Poly) -> list[sp.Expr]:
    try:
        roots = polynomial.real_roots()
    except NotImplementedError:
        # Coefficients with roots, or rounded ones.
        (x,) = polynomial.gens
        if polynomial.degree() == 1:
            b, a = (polynomial.coeff_monomial(x**n) for n in (0, 1))
            return [normal(-b / a)]
        if polynomial.degree() == 2:
            roots = [r for r in sp.roots(polynomial) if r.is_real]
        else:
            return list(_sign_changes(polynomial.as_expr(), x))
    return [normal(root) for root in roots]


def normal(point: sp.Expr) -> sp.Expr:
    """A real algebraic number in one form, so that equal ones are one expression."""
    if point.is_Rational:
        return point
    if point.has(sp.CRootOf):
        return sp.Rational(str(point.evalf(_DIGITS)))
    return sp.expand(sp.radsimp(point))


def _nearest(exact: list[sp.Expr], root: sp.Rational) -> sp.Expr:
    """The exact number that equals a rounded one, if there is one."""
    simple = sp.Rational(float(root)).limit_denominator(1000)
    return next((point for point in (simple, *exact) if _close(_value(point), _value(root))), root)


def _inverted(function: sp.Expr, variable: sp.Symbol) -> list[sp.Expr]:
    """Candidates for the roots of c + a f(b + … g(h)) by inverse functions."""
    values = [sp.S.Zero]
    while function != variable:
        constant, inner = function.as_independent(variable, as_Add=True)
        factor, inner = inner.as_independent(variable, as_Add=False)
        values = [(value - constant) / factor for value in values]
        if inner.is_Pow and inner.exp.is_Rational:
            roots = [value ** (1 / inner.exp) for value in values if value.is_nonnegative]
            values = [side * root for root in roots for side in (1, -1)]
            function = inner.base
        elif type(inner) in _INVERSES:
            values = [_INVERSES[type(inner)](value) for value in values]
            function = inner.args[0]
        elif inner == variable:
            function = inner
        else:
            return []
    return [normal(value) for value in values if value.is_number and value.is_real]


def _sign_changes(
    function: sp.Expr,
    variable: sp.Symbol,
    low: sp.Expr | None = None,
    high: sp.Expr | None = None,
) -> tuple[sp.Expr, ...]:
    """Roots between two points, in 1e-8 <= |h| <= 1e6 and at 0, by bracketing; of 40 digits.

    The function may have poles elsewhere: a piece is evaluated where it holds alone.
    """
    compiled = sp.lambdify([variable], function, ["scipy", "numpy"])
    precise = sp.lambdify([variable], function, "mpmath")
    ends = [-np.inf if low is None else float(low), np.inf if high is None else float(high)]
    inner = _GRID[(_GRID > ends[0]) & (_GRID < ends[1])]
    grid = np.sort(np.concatenate([inner, [end for end in ends if np.isfinite(end)]]))
    with np.errstate(all="ignore"):
        values = np.broadcast_to(np.asarray(compiled(grid), dtype=float), grid.shape)
    signs = np.where(np.isfinite(values), np.sign(values), 0.0)
    nonzero = np.flatnonzero(signs)
    if np.count_nonzero(np.diff(signs[nonzero])) > 2 * _MOST:
        raise _too_many(function)
    roots = []
    with mpmath.workdps(_WORKING):
        for i, j in pairwise(nonzero):
            if signs[i] == signs[j]:
                continue
            root = _bisected(precise, mpmath.mpf(grid[i]), mpmath.mpf(grid[j]))
            if root is not None:
                roots.append(sp.Rational(str(mpmath.nstr(root, _DIGITS))))
            if len(roots) > _MOST:
                raise _too_many(function)
    return tuple(roots)


def _too_many(function: sp.Expr) -> ValueError:
    return ValueError(
        f"cannot locate the kinks where {function} vanishes: there are more than {_MOST}"
    )


def _bisected(precise: Callable, low: Any, high: Any) -> Any:
    """The root between two numbers, None where rounding alone changes the sign."""
    below, above = (mpmath.sign(precise(end)) for end in (low, high))
    if below * above >= 0:
        return None
    if low < 0 < high and precise(mpmath.mpf(0)) == 0:
        return mpmath.mpf(0)
    return mpmath.findroot(
        precise,
        (low, high),
        solver="anderson",
        tol=mpmath.mpf(10) ** -100,
        maxsteps=400,
        verify=False,
    )
