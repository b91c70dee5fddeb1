"""Functions with kinks and jumps as smooth pieces between breakpoints.

|u|, sign(u), θ(u), max, min and conditions switch where an argument changes its sign. These points
are located from the inside out, on every interval on which the arguments are smooth already; what
the expression is between two of them follows from the signs there. Two neighbouring pieces that are
one analytic function are merged, so that kinks that cancel, as in sign(h)², are none.
"""

from __future__ import annotations

from bisect import bisect, bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from itertools import pairwise
from typing import Any

import mpmath
import sympy as sp
from sympy import Abs, DiracDelta, Heaviside, Max, Min, Piecewise, sign
from sympy.core.function import AppliedUndef

from fieldtheory.averages.integrands.roots import (
    DIGITS,
    EQUAL,
    MOST,
    is_rounded,
    roots_between,
    union,
    value_of,
)

SWITCHING = (Abs, Max, Min, sign, Heaviside, Piecewise)
# Where two pieces are compared, in units of the distance from their common end.
_APART = tuple(sp.Rational(n, 64) for n in (19, -23, 71, -83, 5, -7))


@dataclass(frozen=True)
class Pieces:
    """A function as smooth expressions between its breakpoints."""

    variable: sp.Symbol
    # The n breakpoints, sorted: exact numbers, or fractions of 40 digits where there is no closed
    # form.
    points: tuple[sp.Expr, ...] = ()
    # The n + 1 smooth expressions.
    branches: tuple[sp.Expr, ...] = ()
    # Where parts of the expression switch.
    switching: tuple[sp.Expr, ...] = ()

    @property
    def expression(self) -> sp.Expr:
        """The function as a Piecewise of its branches, or as its only one."""
        conditions = [*[self.variable < point for point in self.points], sp.true]
        return Piecewise(*zip(self.branches, conditions, strict=True))

    @property
    def slope(self) -> sp.Expr:
        """The derivative between breakpoints, without the δ-functions of jumps."""
        slopes = tuple(branch.diff(self.variable) for branch in self.branches)
        return Pieces(self.variable, self.points, slopes).expression

    def at(self, place: Any) -> sp.Expr:
        """The branch around a point that is no breakpoint."""
        return self.branches[bisect([value_of(p) for p in self.points], value_of(place))]

    def around(self, place: Any) -> tuple[sp.Expr, sp.Expr]:
        """The branches just below and just above a point."""
        values = [value_of(point) for point in self.points]
        return tuple(self.branches[find(values, value_of(place))] for find in (bisect_left, bisect))

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
    common = union(point for part in inner for point in part.points)
    switching = {point for part in inner for point in part.switching}
    for low, high in pairwise([None, *common, None]):
        smooth = [part.at(_between(low, high)) for part in inner]
        switches = _switches(expression, smooth, variable)
        roots = union(root for s in switches for root in roots_between(s, variable, low, high))
        for start, end in pairwise([low, *roots, high]):
            branch = _branch(expression, compared, smooth, variable, _between(start, end))
            if branches and _same(branches[-1], branch, variable, start):
                branches[-1] = min(branches[-1], branch, key=sp.count_ops)
            else:
                points += [] if start is None else [start]
                branches.append(branch)
    if len(points) > MOST:
        raise ValueError(
            f"cannot locate the kinks of {expression} in {variable}: there are more than {MOST}"
        )
    # The smaller ones of several arguments of max may cross where the maximum does not change.
    switching.update(points)
    return Pieces(variable, tuple(points), tuple(branches), tuple(switching))


def canonical(expression: sp.Expr, variable: sp.Symbol) -> sp.Expr:
    """The expression itself if it switches at its breakpoints alone, else as a Piecewise of them.

    >>> h = sp.Symbol("h", real=True)
    >>> canonical(Max(0, h), h), canonical(Max(0, h) + Min(0, h), h)
    (Max(0, h), h)
    """
    pieces = pieces_of(expression, variable)
    points = set(pieces.points)
    as_written = points.issuperset(pieces.switching) and not any(map(is_rounded, points))
    return expression if points and as_written else pieces.expression


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
        if not (value.is_Float and abs(value) > EQUAL**12):
            return 0
    return int(sp.sign(value))


def _between(low: sp.Expr | None, high: sp.Expr | None) -> sp.Expr:
    """A rational number between two, of few digits where these are far apart."""
    if low is None:
        return sp.S.Zero if high is None else sp.Rational(float(high)) - 1
    if high is None:
        return sp.Rational(float(low)) + 1
    middle = sp.Rational((float(low) + float(high)) / 2)
    if value_of(low) < value_of(middle) < value_of(high):
        return middle
    return sp.Rational(str((value_of(low) + value_of(high)) / 2))


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
        values = [f.subs(variable, place).evalf(DIGITS) for f in (a, b)]
        if not all(value.is_Float or value.is_Rational for value in values):
            return difference.expand() == 0
        if not _equal(*values):
            return False
    return True


def _equal(a: sp.Expr, b: sp.Expr, size: float = 1e-20) -> bool:
    """Whether two numbers, of at least this size, are equal up to rounding of 40 digits."""
    if a == b:
        return True
    values = [x.evalf(DIGITS, maxn=400) for x in (a, b)]
    if not all(value.is_Float or value.is_Rational for value in values):
        return False
    one, other = (mpmath.mpmathify(value) for value in values)
    return abs(one - other) <= EQUAL * max(abs(one), abs(other), size)


def _limit(function: sp.Expr, variable: sp.Symbol, point: sp.Expr) -> sp.Expr:
    value = function.subs(variable, point)
    return sp.limit(function, variable, point) if value.has(sp.nan, sp.zoo) else value
