"""Expressions as NumPy functions that keep their digits and do not overflow.

Sums that vanish faster at zero than their terms, as x − tanh(x), come from series; eᵘ − 1,
log(1 + u) and the tails of tanh and erf from functions that do not cancel; quotients such as
sin(x)/x from series where their denominators vanish.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
import sympy as sp
from mpmath import mp
from scipy.special import erfc
from sympy.codegen.cfunctions import log1p
from sympy.core.function import AppliedUndef

from fieldtheory.averages.integrands.breakpoints import has_steps, pieces, pieces_of
from fieldtheory.averages.integrands.exponentials import (
    FUNCTIONS,
    factored,
    merged,
    without_overflow,
)
from fieldtheory.averages.integrands.removable import by_series, continued, singular_points
from fieldtheory.averages.nodes.float_forms import in_float64
from fieldtheory.averages.quadrature.panelled_functions import Function

_WHERE = sp.Function("where")
_BY_PRODUCTS = sp.Function("by_products")
# SymPy writes its own of a negative argument as 2 − erfc.
_ERFC = sp.Function("erf_complement")
# Two places near zero at which sums and their terms are compared, and the digits that takes; a sum
# cancels if it is below its terms by two powers of the place, and up to a factor of 1000.
_NEAR_ZERO, _DIGITS, _FACTOR = (2.0**-26, 2.0**-30), 120, 1e-3
_NO_SERIES = (sp.Piecewise, sp.Heaviside, sp.Abs, sp.sign, sp.Max, sp.Min, sp.DiracDelta)
# Nearer to zero no other step is.
_CLOSEST = sp.Rational(1, 10**30)


def vectorised(variables: Sequence[sp.Expr], F: sp.Expr) -> Callable:
    """F as a NumPy function of arrays."""
    if any(singular_points(F, v) for v in variables[1:]):
        parts = factors_by_variable(factored(F), variables)
        if parts is not None:
            sides = [vectorised([v], part) for v, part in zip(variables, parts, strict=True)]
            return lambda *h: math.prod(side(x) for side, x in zip(sides, h, strict=True))
    if F.has(sp.exp):
        F = merged(F)
    # NumPy code for Max works on single numbers, and steps times overflowing functions give NaN.
    plain, at_zero = F, dict.fromkeys(variables, 0)
    F = pieces(F, variables)
    if F.has(sp.log):
        F = F.replace(
            lambda e: isinstance(e, sp.log) and not e.is_number and not e.args[0].is_Add,
            sp.expand_log,
        )
        F = _with_log1p(F, lambda total: total.subs(at_zero) == 1)
    F, near_zero = _without_cancelling(F) if F.has(sp.Add) else (F, {})
    if F.has(sp.exp, sp.cosh):
        F = without_overflow(F)
    F = F.replace(sp.Add, _tail_of_steps)
    if F.has(sp.exp, sp.log):
        F = _small_differences(F)
    # Of these integer powers NumPy takes the logarithm, ten times slower than products.
    F = F.replace(
        lambda e: e.is_Pow and e.exp.is_Integer and not -1 <= e.exp <= 2,
        lambda power: _BY_PRODUCTS(power.base, power.exp),
    )
    F = F.replace(sp.Piecewise, _nested)
    modules: list = [
        {**FUNCTIONS, **near_zero, "by_products": _by_products, "erf_complement": erfc},
        "scipy",
        "numpy",
    ]
    compiled = sp.lambdify(list(variables), in_float64(F), modules=modules, cse=True)
    if any(power.exp.is_negative for power in plain.atoms(sp.Pow)):
        compiled = continued(compiled, plain, variables)
    if plain.has(sp.log) and has_steps(plain):
        compiled = _with_limit_at_zero(compiled, plain, variables)
    return compiled


def _with_limit_at_zero(function: Callable, F: sp.Expr, variables: Sequence[sp.Expr]) -> Callable:
    """The limit where the first variable is zero, of functions of kinks such as h log|h|."""
    at_zero = [np.zeros(1), *(np.ones(1) for _ in variables[1:])]
    with np.errstate(all="ignore"):
        if not np.isnan(function(*at_zero)).any():
            return function
    x, t = variables[0], sp.Dummy("t", positive=True)
    # Limits of steps in x take SymPy long.
    steps = [step for step in F.atoms(sp.Heaviside) if step.free_symbols == {x}]
    sides = []
    for sign in (1, -1):
        smooth = F.xreplace({step: step.subs(x, sign * _CLOSEST) for step in steps})
        sides.append(sp.limit(smooth.subs(x, sign * t), t, 0, "+"))
    if sides[0] != sides[1] or not sides[0].is_finite:
        return function
    limit = sp.lambdify(list(variables[1:]), sides[0], "numpy")

    def everywhere(h: Any, *others: Any) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(np.equal(h, 0), limit(*others), function(h, *others))

    return everywhere


def _without_cancelling(F: sp.Expr) -> tuple[sp.Expr, dict[str, Callable]]:
    """F with sums that vanish faster at zero than their terms, as x − tanh(x), by functions."""
    functions: dict[str, Callable] = {}

    def one(*terms: sp.Expr) -> sp.Expr:
        total = sp.Add(*terms)
        function = _sum_at_zero(total)
        if function is None:
            return total
        name = f"sum_at_zero_{len(functions)}"
        functions[name] = function
        (x,) = total.free_symbols
        return sp.Function(name)(x)

    return F.replace(sp.Add, one), functions


@lru_cache(maxsize=256)
def _sum_at_zero(total: sp.Expr) -> Callable | None:
    """A sum of functions of one variable with its digits near zero; None if it does not cancel."""
    if not total.is_Add or len(total.free_symbols) != 1 or total.has(*_NO_SERIES, AppliedUndef):
        return None
    (x,) = total.free_symbols
    if total.is_polynomial(x):
        return None
    order = _order_of_cancelling(total, x)
    if order is None:
        return None
    total_of_tails = total.replace(sp.Add, _tail_of_steps)
    compiled = sp.lambdify(
        [x], total_of_tails, [{"erf_complement": erfc}, "scipy", "numpy"], cse=True
    )
    return by_series(compiled, total, x, order)


def _order_of_cancelling(total: sp.Expr, x: sp.Symbol) -> int | None:
    """The power as which a sum starts at zero, if its terms are larger by two powers at least."""
    terms = sp.lambdify([x], list(total.args), modules=["mpmath"], cse=True)
    sizes = []
    with mp.workdps(_DIGITS):
        for place in _NEAR_ZERO:
            try:
                values = [mp.mpf(value) for value in terms(mp.mpf(place))]
            except (ArithmeticError, NameError, TypeError, ValueError):
                return None
            whole = abs(mp.fsum(values))
            if whole == 0 or max(map(abs, values)) * place**2 < _FACTOR * whole:
                return None
            sizes.append(float(mp.log(whole)))
    power = (sizes[0] - sizes[1]) / math.log(_NEAR_ZERO[0] / _NEAR_ZERO[1])
    return round(power) if abs(power - round(power)) < 1e-6 else None


def factors_by_variable(F: sp.Expr, variables: Sequence[sp.Expr]) -> list[sp.Expr] | None:
    """A product as one function of each variable, the first with its number, or None."""
    parts = [sp.S.One] * len(variables)
    for factor in sp.Mul.make_args(F):
        inside = [i for i, v in enumerate(variables) if factor.has(v)]
        if len(inside) > 1:
            return None
        parts[inside[0] if inside else 0] *= factor
    return parts


def _nested(*pieces: sp.Tuple) -> sp.Expr:
    """A Piecewise by NumPy's where, which is faster than the select of SymPy's code."""
    (value, _), *others = reversed(pieces)
    for other, condition in others:
        value = _WHERE(condition, other, value)
    return value


def _by_products(base: Any, exponent: int) -> Any:
    power, remaining, square = base ** (exponent % 2), abs(exponent) // 2, base
    while remaining:
        square = square * square
        if remaining % 2:
            power = power * square
        remaining //= 2
    return 1 / power if exponent < 0 else power


def _with_log1p(F: sp.Expr, is_one: Callable[[sp.Expr], bool]) -> sp.Expr:
    """F with log(1 + u) by a function that keeps its digits, of the sums 1 + u that are meant."""

    def one(argument: sp.Expr) -> sp.Expr:
        of_sum = argument.is_Add and is_one(argument)
        return log1p(argument - 1) if of_sum else sp.log(argument)

    return F.replace(sp.log, one)


def _small_differences(F: sp.Expr) -> sp.Expr:
    """F with eᵘ − 1 and log(1 + u) by functions that keep their digits where u is small."""
    # It takes as long to load as this package.
    from sympy.codegen.rewriting import expm1_opt

    subtracted = [
        form.replace(lambda e: e.is_Add, expm1_opt.replace_in_Add) for form in (F, factored(F))
    ]
    F = min([F, *subtracted], key=expm1_opt.cost_function)
    return _with_log1p(F, lambda total: total.as_coeff_Add()[0] == 1)


def _tail_of_steps(*terms: sp.Expr) -> sp.Expr:
    """1 − tanh² as 1/cosh², 1 ± tanh by the logistic function, 1 ± erf and 1 − erf² by erfc."""
    total = sp.Add(*terms)
    for term in terms:
        coefficient, factor = term.as_coeff_Mul()
        base, power = factor.as_base_exp()
        if not isinstance(base, sp.tanh | sp.erf) or power not in (1, 2):
            continue
        (u,) = base.args
        for constant in terms:
            if power == 2 and constant == -coefficient:
                square = _ERFC(u) * _ERFC(-u) if isinstance(base, sp.erf) else 1 / sp.cosh(u) ** 2
                return total - term - constant + constant * square
            if power == 1 and constant in (coefficient, -coefficient):
                u = coefficient / constant * u
                tail = _ERFC(-u) if isinstance(base, sp.erf) else 2 * sp.Function("expit")(2 * u)
                return total - term - constant + constant * tail
    return total


@lru_cache(maxsize=256)
def function_of(expression: sp.Expr, variable: sp.Symbol) -> Function:
    """The numeric function of an expression in one variable, with its slope and breakpoints.

    >>> h = sp.Symbol("h", real=True)
    >>> function_of(sp.Max(0, h - 1), h).kinks.tolist()
    [1.0]
    """
    pieces = pieces_of(expression, variable)
    slope = cache(lambda: vectorised([variable], pieces.slope))
    kinks = tuple(map(float, pieces.points))
    return Function(vectorised([variable], expression), lambda h: slope()(h), kinks)
