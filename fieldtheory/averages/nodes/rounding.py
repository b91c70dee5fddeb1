"""Rounding errors of closed forms in float64, to first order, in units of the unit roundoff.

Every operation rounds its value and hands on the errors of what it is applied to,

    δf(u, v, …) = |f| + Σ |∂f/∂u| δu.

A sum of terms of one sign, and whatever is made of such sums, has relative errors that no value of
the symbols makes large. Other forms may cancel: their errors are expressions in the symbols, which
are evaluated with them and decide whether a value is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from math import inf
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory.averages import routes
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.nodes.float_forms import (
    angle_from_opposite,
    arcsine,
    complement,
    determinant,
    difference_variance,
    evaluated,
    exponential_difference,
    numpy_code,
)

# The promised relative error in units of roundoff, 2^−53; below the second no bound is needed.
LIMIT, _SMALL = 1e-12 * 2.0**53, 30.0
# What a function makes of relative errors of its arguments at most, as long as it is in float64.
_CONDITIONS = {
    **dict.fromkeys((sp.erf, sp.atan, sp.atan2, sp.tanh), 1.0),
    **dict.fromkeys((sp.exp, sp.sinh, sp.cosh, exponential_difference), 745.0),
    **dict.fromkeys((complement, sp.erfc), 1500.0),
    **dict.fromkeys((determinant, arcsine, angle_from_opposite), 1.0),
}
_POSITIVE = (sp.exp, sp.cosh, sp.erfc, complement, determinant, angle_from_opposite)
# Roundings inside of a function.
_INSIDE = 4.0
# A correlation at which averages of two variables are about their natural size.
_STRONG = 0.999


@lru_cache(maxsize=4096)
def relative(e: sp.Expr) -> float:
    """The largest relative error of an expression for any values of its symbols; may be infinite.

    Examples
    --------
    >>> K = sp.Symbol("K", positive=True)
    >>> relative(sp.sqrt(1 + 2 * K)), relative(1 - 2 * K)
    (2.0, inf)
    """
    if not e.args:
        return 0.0 if e.is_Symbol or e.is_Integer else 1.0
    errors = [relative(arg) for arg in e.args]
    if e.is_Add:
        signs = {_sign(arg) for arg in e.args}
        return max(errors) + 1 if signs in ({1}, {-1}) else inf
    if e.is_Mul:
        return sum(errors) + len(errors) - 1
    if e.is_Pow and e.exp.is_number:
        return abs(float(e.exp)) * errors[0] + 1
    condition = _CONDITIONS.get(e.func, inf)
    return (
        condition * sum(errors) + _INSIDE if sum(errors) else (_INSIDE if condition < inf else inf)
    )


def _sign(e: sp.Expr) -> int | None:
    """1 of what is nowhere negative, −1 of what is nowhere positive, else None."""
    if e.is_nonnegative or isinstance(e, _POSITIVE):
        return 1
    if e.is_nonpositive:
        return -1
    signs = [_sign(arg) for arg in e.args]
    if isinstance(e, sp.erf | sp.atan | sp.atan2):
        return signs[0]
    if e.is_Pow:
        return 1 if signs[0] == 1 or e.exp.is_even else None
    if e.is_Add:
        return signs[0] if len(set(signs)) == 1 else None
    return int(sp.prod(signs)) if e.is_Mul and None not in signs else None


@lru_cache(maxsize=4096)
def absolute(e: sp.Expr) -> sp.Expr:
    """The error of an expression as one in its symbols; NaN where it is not known.

    Examples
    --------
    >>> K = sp.Symbol("K", positive=True)
    >>> absolute(1 - 2 * K)
    4.0*K + 1
    """
    size = sp.Abs(e)
    if (error := relative(e)) <= _SMALL:
        return error * size
    errors = [absolute(arg) for arg in e.args]
    if e.is_Add:
        return sp.Add(*errors, *map(sp.Abs, e.args))
    if e.is_Mul:
        others = [sp.Mul(*e.args[:i], *e.args[i + 1 :]) for i in range(len(e.args))]
        parts = [error * sp.Abs(other) for error, other in zip(errors, others, strict=True)]
        return sp.Add(*parts, (len(parts) - 1) * size)
    if isinstance(e, difference_variance):
        a, b, c = e.args
        return sp.Abs(a - c) + sp.Abs(b - c)
    if isinstance(e, exponential_difference):
        u, v, _ = e.args
        return size * (errors[0] + errors[1] + _INSIDE) + (sp.exp(u) + sp.exp(v)) * errors[2]
    symbols = [sp.Dummy(real=True) for _ in e.args]
    function = (sp.erfc if isinstance(e, complement) else e.func)(*symbols)
    values = dict(zip(symbols, e.args, strict=True))
    total = _INSIDE * size
    for symbol, error in zip(symbols, errors, strict=True):
        if error != 0:
            slope = function.diff(symbol)
            slope = sp.nan if slope.has(sp.Derivative) else slope.xreplace(values)
            total += sp.Abs(slope) * error
    return total


def guarded(
    symbols: Sequence[sp.Expr],
    forms: Any,
    engine: Callable[..., Any] | None,
    exact: Callable[[], Any],
) -> Callable[..., Any]:
    """A closed form, or a list of them, as a NumPy function with errors below 1e-12 of the values.

    Where its terms cancel or are 0/0 the values are those of ``engine``, a function of arrays (m,),
    or more digits of ``exact()`` if there is none or no panels resolve its integrals. Values of two
    variables may be small: errors are compared with strong correlations as well.
    """
    listed = forms if isinstance(forms, list) else [forms]
    errors = [sp.S.Zero if relative(e) <= LIMIT else absolute(e) for e in listed]
    compiled = numpy_code(symbols, [*listed, *(errors if any(errors) else ())], {})
    count = len(listed)

    def values_and_errors(K: tuple) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """As arrays; NaN is the error of a value that is NaN."""
        with np.errstate(all="ignore"):
            results = [np.broadcast_to(result, K[0].shape) for result in compiled(*K)]
        values, bounds = results[:count], results[count:] or [np.zeros(())] * count
        pairs = zip(values, bounds, strict=True)
        return values, [np.where(np.isnan(value), np.nan, bound) for value, bound in pairs]

    @cache
    def digits() -> list[Callable]:
        found = exact()
        each = found if isinstance(forms, list) else [found]
        return [evaluated(e, symbols, "numpy") for e in each]

    def otherwise(*K: np.ndarray) -> list[Any]:
        if engine is not None:
            with suppress(QuadratureError):
                found = engine(*K)
                return list(found) if isinstance(forms, list) else [found]
        return [more(*K) for more in digits()]

    def function(*K: Any) -> Any:
        if all(isinstance(k, np.floating) for k in K):
            with np.errstate(all="ignore"):
                results = compiled(*K)
            pairs = zip(results, results[count:] or [0.0] * count, strict=False)
            if all(bound <= LIMIT * abs(value) for value, bound in pairs):
                routes.record(routes.CLOSED, count)
                return results[:count] if isinstance(forms, list) else results[0]
        K = tuple(np.broadcast_arrays(*(np.asarray(k, dtype=float) for k in K)))
        values, bounds = values_and_errors(K)
        pairs = zip(values, bounds, strict=True)
        lost = [np.asarray(~(bound <= LIMIT * np.abs(value))) for value, bound in pairs]
        routes.record(routes.CLOSED, np.size(lost) - np.count_nonzero(lost))
        some = np.any(lost, axis=0) & np.all(np.isfinite(K), axis=0)
        if len(K) == 3 and some.any():
            a, b = K[0][some], K[1][some]
            sizes, _ = values_and_errors((a, b, _STRONG * np.sqrt(a) * np.sqrt(b)))
            for each, size, bound in zip(lost, sizes, bounds, strict=True):
                each[some] &= ~(bound[some] <= LIMIT * np.where(np.isfinite(size), size, 0.0))
            some &= np.any(lost, axis=0)
        if some.any():
            other = otherwise(*(k[some] for k in K))
            values = [np.array(value) for value in values]
            for value, each, new in zip(values, lost, other, strict=True):
                value[some] = np.where(each[some], new, value[some])
        values = [value[()] for value in values]
        return values if isinstance(forms, list) else values[0]

    return function
