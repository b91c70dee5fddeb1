"""Roots of smooth functions at which they change their sign: exact ones, or of 40 digits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import sympy as sp

# Digits of breakpoints without a closed form, and those that they are computed with.
DIGITS, _WORKING = 40, 60
# Breakpoints closer than this, and values relative to their terms smaller than this, are equal.
EQUAL = mpmath.mpf(10) ** -32
# Where sign changes are looked for: evenly up to 12, by 4 % up to 1e6, down to 1e-8; off round
# numbers. More breakpoints than this count as infinitely many.
_HALF = np.concatenate([np.geomspace(1e-8, 0.0127, 300), np.arange(0.0227, 12, 0.0101)])
_HALF = np.concatenate([_HALF, np.geomspace(12.003, 1.0003e6, 290)])
_GRID = np.concatenate([-_HALF[::-1], _HALF])
MOST = 64
_INVERSES: dict[type, Callable] = {
    sp.exp: sp.log,
    sp.log: sp.exp,
    sp.tanh: sp.atanh,
    sp.sinh: sp.asinh,
    sp.asinh: sp.sinh,
    sp.atan: sp.tan,
    sp.erf: sp.erfinv,
}


def value_of(point: Any) -> Any:
    """A real number with the working digits."""
    return _number(sp.sympify(point))


@lru_cache(maxsize=4096)
def _number(point: sp.Expr) -> Any:
    with mpmath.workdps(_WORKING):
        return mpmath.mpmathify(point.evalf(_WORKING))


def are_close(a: Any, b: Any) -> bool:
    """Whether two numbers are equal up to rounding."""
    return abs(a - b) <= EQUAL * max(abs(a), abs(b), 1)


def is_rounded(point: sp.Expr) -> bool:
    """Whether a point is a fraction of 40 digits."""
    return bool(point.is_Rational and point.q > 10 ** (DIGITS // 2))


def union(points: Iterable[sp.Expr]) -> list[sp.Expr]:
    """Numbers sorted, of equal ones the simplest."""
    distinct: list[sp.Expr] = []
    for point in sorted(set(points), key=value_of):
        if distinct and are_close(value_of(distinct[-1]), value_of(point)):
            distinct[-1] = min(distinct[-1], point, key=lambda p: (is_rounded(p), p.count_ops()))
        else:
            distinct.append(point)
    return distinct


def roots_between(
    function: sp.Expr, variable: sp.Symbol, low: sp.Expr | None, high: sp.Expr | None
) -> list[sp.Expr]:
    """Points between two others where a smooth function changes its sign."""
    start = -mpmath.inf if low is None else value_of(low)
    end = mpmath.inf if high is None else value_of(high)
    roots = union(_all_roots(function, variable, low, high))
    return [
        root
        for root in roots
        if start < value_of(root) < end
        and not (low is not None and are_close(start, value_of(root)))
        and not (high is not None and are_close(end, value_of(root)))
    ]


@lru_cache(maxsize=1024)
def _all_roots(
    function: sp.Expr, variable: sp.Symbol, low: sp.Expr | None, high: sp.Expr | None
) -> tuple[sp.Expr, ...]:
    """Real roots at which a function changes its sign, all those between two points among them."""
    if function.is_Mul or (function.is_Pow and function.exp.is_Integer and function.exp > 0):
        factors = function.args if function.is_Mul else [function.base]
        factors = [factor for factor in factors if factor.has(variable)]
        return tuple(union(root for f in factors for root in _all_roots(f, variable, low, high)))
    if function.is_polynomial(variable):
        return tuple(union(_polynomial_roots(sp.Poly(function, variable))))
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
        return sp.Rational(str(point.evalf(DIGITS)))
    return sp.expand(sp.radsimp(point))


def _nearest(exact: list[sp.Expr], root: sp.Rational) -> sp.Expr:
    """The exact number that equals a rounded one, if there is one."""
    simple = sp.Rational(float(root)).limit_denominator(1000)
    return next(
        (point for point in (simple, *exact) if are_close(value_of(point), value_of(root))), root
    )


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
    """Roots between two points, in 1e-8 <= |h| <= 1e6 and at 0, by bracketing; of 40 digits."""
    # It may have poles elsewhere: a piece is evaluated where it holds alone.
    compiled = sp.lambdify([variable], function, ["scipy", "numpy"])
    precise = sp.lambdify([variable], function, "mpmath")
    ends = [-np.inf if low is None else float(low), np.inf if high is None else float(high)]
    inner = _GRID[(_GRID > ends[0]) & (_GRID < ends[1])]
    grid = np.sort(np.concatenate([inner, [end for end in ends if np.isfinite(end)]]))
    with np.errstate(all="ignore"):
        values = np.broadcast_to(np.asarray(compiled(grid), dtype=float), grid.shape)
    signs = np.where(np.isfinite(values), np.sign(values), 0.0)
    nonzero = np.flatnonzero(signs)
    if np.count_nonzero(np.diff(signs[nonzero])) > 2 * MOST:
        raise _too_many(function)
    roots = []
    with mpmath.workdps(_WORKING):
        for i, j in pairwise(nonzero):
            if signs[i] == signs[j]:
                continue
            root = _bisected(precise, mpmath.mpf(grid[i]), mpmath.mpf(grid[j]))
            if root is not None:
                roots.append(sp.Rational(str(mpmath.nstr(root, DIGITS))))
            if len(roots) > MOST:
                raise _too_many(function)
    return tuple(roots)


def _too_many(function: sp.Expr) -> ValueError:
    return ValueError(
        f"cannot locate the kinks where {function} vanishes: there are more than {MOST}"
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
