"""Closed forms in float64: rewritten so that they do not cancel, or with more digits.

SymPy multiplies out what a derivation has kept together: K_xx K_yy − K_xy² turns up in pieces, and
hyperbolic functions as differences of exponentials. `stable` puts them together again, as calls of
the functions of `exact_differences`. What cancels all the same is found by its error (`rounding`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, product
from typing import Any

import mpmath
import numpy as np
import sympy as sp
from scipy.special import erfc

from fieldtheory.averages.errors import PrecisionError
from fieldtheory.averages.integrands.exact_differences import determinant as exact_determinant
from fieldtheory.averages.integrands.exact_differences import differences, precise_determinant

NUMPY: dict[str, Callable] = differences(np, exact_determinant) | {"complement": erfc}
MPMATH: dict[str, Callable] = {
    "sqrt": lambda value: mpmath.sqrt(max(value, 0)),
    "complement": mpmath.erfc,
    "determinant": precise_determinant,
}
determinant, exponential_difference, difference_variance = map(sp.Function, list(NUMPY)[:3])
arcsine, angle_from_opposite, complement = map(sp.Function, list(NUMPY)[3:])
# Variances at which limits of closed forms are tried, and ratios of parallel signals' deviations.
_VARIANCES = (1e-12, 1e-6, 1e-2, 0.6, 30.0, 1e3, 1e6)
_ROOTS = (1.0, 2.0)
# Distance from parallel signals, to a power of which limits are known.
_NEAR = 1e-30
# The promised error, and digits in which nothing cancels.
_ALLOWED, _DIGITS = 1e-12, 250


def holds_for_parallel(form: sp.Expr, entries: Sequence[sp.Expr], compiled: Callable) -> bool:
    """Whether a function is finite for parallel variables, and the limit of a closed form.

    Examples
    --------
    >>> a, b, c = sp.symbols("a b c", positive=True)
    >>> holds_for_parallel(sp.sqrt(a * b - c**2), [a, b, c], lambda a, b, c: 0.0)
    True
    >>> holds_for_parallel(sp.erf((a - c) / sp.sqrt(a * b - c**2)), [a, b, c], lambda *_: np.nan)
    False
    """
    precise = sp.lambdify(list(entries), form, modules="mpmath", cse=True)
    for K, root, sign in product(_VARIANCES, _ROOTS, (1, -1)):
        with mpmath.workdps(_DIGITS):
            c = sign * (1 - mpmath.mpf(_NEAR) ** 3)
            limit = precise(mpmath.mpf(K), mpmath.mpf(K * root**2), K * root * c)
        try:
            with np.errstate(all="ignore"):
                value = float(compiled(*map(np.float64, (K, K * root**2, sign * K * root))))
        except ZeroDivisionError:
            return False
        if not abs(value - limit) <= _ALLOWED * abs(limit) + _NEAR:
            return False
    return True


def evaluated(form: sp.Expr, entries: Sequence[sp.Expr], backend: str) -> Callable:
    """A closed form whose terms cancel, as a function of the entries of the covariance.

    Examples
    --------
    >>> K = sp.Symbol("K", positive=True)
    >>> evaluated(sp.cosh(K) - 1, [K], "numpy")(np.array([1e-9, 1.0]))
    array([5.00000000e-19, 5.43080635e-01])
    """
    form = with_tails(form)
    compiled = sp.lambdify(list(entries), form, modules=[MPMATH, "mpmath"], cse=True)

    def precise(*values: Any) -> Any:
        digits, previous = mpmath.mp.dps, None
        for factor in (2, 4, 8, 16, 32, 64):
            with mpmath.workdps(factor * digits):
                value = compiled(*map(mpmath.mpf, values))
                # Zero is rounding until the last.
                least = mpmath.mpf(10) ** (-digits) * abs(value)
                if (
                    previous is not None
                    and abs(value - previous) <= least
                    and (value or factor == 64)
                ):
                    return value
            previous = value
        raise PrecisionError(f"{form} did not reach {digits} digits at {values}")

    def in_float64(*values: float) -> float:
        with mpmath.workdps(17):
            return float(precise(*map(float, values)))

    if backend == "mpmath":
        return lambda *values: +precise(*values)
    return np.vectorize(in_float64, otypes=[float])


def stable(value: sp.Expr, K: sp.ImmutableMatrix) -> sp.Expr:
    """An equal expression for float64, given the covariance K (1x1 or 2x2) of the average.

    Examples
    --------
    >>> a, b, c = sp.symbols("a b c")
    >>> stable(sp.sqrt(a * b - c**2 + a), sp.ImmutableMatrix([[a, c], [c, b]]))
    sqrt(a + determinant(a, b, c))
    >>> stable(sp.atan2(c, sp.sqrt(a * b - c**2)), sp.ImmutableMatrix([[a, c], [c, b]]))
    arcsine(a, b, c)
    """
    entries = _pair(K)
    if entries:
        value = with_determinants(value, K)
        value = value.replace(sp.exp, lambda x: sp.exp(_with_difference(sp.expand(x), *entries)))
    value = with_tails(value)
    if value.has(sp.exp):
        value = _bottom_up(value, _exponential_pairs)
    if value.has(sp.atan2):
        value = _bottom_up(value, _angles)
    if not entries:
        return value
    a, b, c = entries
    root = sp.sqrt(determinant(a, b, c))
    return value.xreplace(
        {sp.atan2(root, -c): angle_from_opposite(a, b, c), sp.atan2(c, root): arcsine(a, b, c)}
    )


def with_determinants(value: sp.Expr, K: sp.ImmutableMatrix) -> sp.Expr:
    """An equal expression with K_xx K_yy − K_xy² as a function, where K is one of symbols."""
    entries = _pair(K)
    return _bottom_up(value, lambda e: _with_determinant(e, *entries)) if entries else value


def _pair(K: sp.ImmutableMatrix) -> tuple[sp.Expr, ...]:
    """K_xx, K_yy and K_xy of two variables if they are symbols, else nothing."""
    entries = (K[0, 0], K[-1, -1], K[0, -1])
    pair = K.shape == (2, 2) and len(set(entries)) == 3 and all(e.is_Symbol for e in entries)
    return entries if pair else ()


def _bottom_up(expr: sp.Expr, rule: Callable[[sp.Expr], sp.Expr]) -> sp.Expr:
    """The rule applied to every sum, innermost first."""
    if not expr.args:
        return expr
    args = [_bottom_up(arg, rule) for arg in expr.args]
    expr = expr.func(*args) if tuple(args) != expr.args else expr
    return rule(expr) if expr.is_Add else expr


def _with_determinant(total: sp.Expr, a: sp.Expr, b: sp.Expr, c: sp.Expr) -> sp.Expr:
    """The sum with every product a b written as det + c², where that makes it shorter."""
    minor = determinant(a, b, c)
    terms = []
    masks: dict[sp.Expr, sp.Expr] = {}
    for term in sp.Add.make_args(sp.expand(_masked(total, masks), power_exp=False)):
        powers = term.as_powers_dict()
        shared = min(powers.get(a, 0), powers.get(b, 0))
        if not (shared == int(shared) and shared > 0):
            terms.append(term)
            continue
        cofactor = term / (a * b) ** shared
        terms += sp.Add.make_args(sp.expand(cofactor * (minor + c**2) ** shared))
    combined = sp.Add(*terms).xreplace({mask: part for part, mask in masks.items()})
    return combined if sp.count_ops(combined) < sp.count_ops(total) else total


def _masked(e: sp.Expr, masks: dict[sp.Expr, sp.Expr]) -> sp.Expr:
    """A polynomial in symbols, their roots and masks of the rest, which expanding leaves alone."""
    if e.is_Atom or (e.is_Pow and e.base.is_Symbol):
        return e
    if e.is_Add or e.is_Mul:
        return e.func(*[_masked(part, masks) for part in e.args])
    if e.is_Pow and e.exp.is_Integer and e.exp > 0:
        return _masked(e.base, masks) ** e.exp
    return masks.setdefault(e, sp.Dummy())


def _with_difference(exponent: sp.Expr, a: sp.Expr, b: sp.Expr, c: sp.Expr) -> sp.Expr:
    """−k (a + b − 2c) and −k (a + b + 2c) by the variance of the difference or of the sum."""
    k = -exponent.coeff(a, 1)
    remainder = exponent + k * (a + b)
    if k == 0 or remainder.has(a, b):
        return exponent
    for sign in (1, -1):
        if sp.expand(remainder - 2 * k * sign * c) == 0:
            return -k * difference_variance(a, b, sign * c)
    return exponent


def _exponential_pairs(total: sp.Expr) -> sp.Expr:
    """α e^u − α e^v and α e^u + α e^v − 2α e^{(u+v)/2} by exponential differences."""
    exponentials = [entry for term in total.args if (entry := _as_exponential(term))]
    for (p, u, alpha), (q, v, beta) in combinations(exponentials, 2):
        gap = _expanded(u - v)
        for r, w, gamma in exponentials:
            if alpha == beta == -gamma / 2 and _expanded(u + v - 2 * w) == 0:
                return (
                    total - p - q - r + alpha * exponential_difference(u / 2, v / 2, gap / 2) ** 2
                )
    pairs = [
        (p + q, u, v, _expanded(u - v), alpha)
        for (p, u, alpha), (q, v, beta) in combinations(exponentials, 2)
        if alpha == -beta
    ]
    if not pairs:
        return total
    # Exponents that differ by the covariance alone are the closest.
    terms, u, v, gap, alpha = min(pairs, key=lambda pair: len(sp.Add.make_args(pair[3])))
    remainder = total - terms
    remainder = _exponential_pairs(remainder) if remainder.is_Add else remainder
    return remainder + alpha * exponential_difference(u, v, gap)


def _as_exponential(term: sp.Expr) -> tuple[sp.Expr, sp.Expr, sp.Expr] | None:
    """A term α e^u with u and α; a number is one with u = 0."""
    factors = sp.Mul.make_args(term)
    of_exp = [f for f in factors if isinstance(f, sp.exp)]
    alpha = sp.Mul(*[f for f in factors if not isinstance(f, sp.exp)])
    if not (of_exp or alpha.is_number):
        return None
    return term, sp.Add(*[f.args[0] for f in of_exp]), alpha


def with_tails(entries: Any) -> Any:
    """Expressions, in lists or alone, with 1 − erf(u) as erfc(u), which is exact where it is small.

    >>> x = sp.Symbol("x")
    >>> with_tails([2 - 2 * sp.erf(x), x])
    [2*complement(x), x]
    """
    if isinstance(entries, list | tuple):
        return [with_tails(entry) for entry in entries]
    expression = sp.sympify(entries)
    return _bottom_up(expression, _tails) if expression.has(sp.erf) else expression


def _tails(total: sp.Expr) -> sp.Expr:
    """α − α erf(u) and α + α erf(u) as α erfc(±u)."""
    for term in total.args:
        factors = [f for f in sp.Mul.make_args(term) if isinstance(f, sp.erf)]
        if len(factors) != 1:
            continue
        factor, (u,) = term / factors[0], factors[0].args
        for sign in (1, -1):
            if sign * factor in total.args:
                remainder = total - term - sign * factor
                remainder = _tails(remainder) if remainder.is_Add else remainder
                return remainder + sign * factor * complement(-sign * u)
    return total


def _angles(total: sp.Expr) -> sp.Expr:
    """α [atan2(y, x) + π/2] as α atan2(x, −y), which keeps its digits where the angle is small."""
    for term in total.args:
        factors = [f for f in sp.Mul.make_args(term) if isinstance(f, sp.atan2)]
        if len(factors) != 1 or term.has(sp.exp):
            continue
        quarter = term / factors[0] * sp.pi / 2
        for other in total.args:
            ratio = other / quarter
            if ratio.is_Rational and ratio >= 1:
                y, x = factors[0].args
                turned = term / factors[0] * sp.atan2(x, -y)
                return total - term - other + turned + (ratio - 1) * quarter
    return total


def _expanded(expr: sp.Expr) -> sp.Expr:
    """Expanded, the variances of differences and sums written out."""
    return sp.expand(expr.replace(difference_variance, lambda a, b, c: a + b - 2 * c))


def numpy_code(
    arguments: Sequence[sp.Expr], entries: Any, functions: dict[str, Callable]
) -> Callable:
    """The NumPy function of translated entries."""
    # Determinants of singular covariances come out as −0.0…01 by rounding.
    root = {"sqrt": lambda value: np.sqrt(np.maximum(value, 0.0))}
    library = [functions, NUMPY, root, "scipy", "numpy"]
    return sp.lambdify(list(arguments), in_float64(with_tails(entries)), modules=library, cse=True)


def mpmath_code(
    arguments: Sequence[sp.Expr], entries: Any, functions: dict[str, Callable]
) -> Callable:
    """The mpmath function of translated entries."""
    return sp.lambdify(list(arguments), entries, [functions, MPMATH, "mpmath"], cse=True)


def in_float64(entries: Any) -> Any:
    """Expressions, in lists or alone, in which fractions of integers beyond 64 bits are floats.

    Examples
    --------
    >>> in_float64(sp.Rational("0.123456789012345678901234567890") * sp.Symbol("x"))
    0.12345678901234568*x
    """
    if isinstance(entries, list | tuple):
        return [in_float64(entry) for entry in entries]
    if not isinstance(entries, sp.Basic):
        return entries
    numbers = entries.atoms(sp.Rational)
    beyond = [number for number in numbers if max(abs(number.p), number.q) >= 2**63]
    return entries.xreplace({number: sp.Float(number, 17) for number in beyond})
