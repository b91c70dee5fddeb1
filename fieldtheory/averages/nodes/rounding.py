"""Rounding errors of closed forms in float64, to first order, in units of the unit roundoff.

Every operation rounds its value and hands on the errors of what it is applied to,

    δf(u, v, …) = |f| + Σ |∂f/∂u| δu.

A sum of terms of one sign, and whatever is made of such sums, has relative errors that no value of
the symbols makes large. Other forms may cancel: their errors are expressions in the symbols, which
are evaluated with them and decide whether a value is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import inf
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory.averages import routes
from fieldtheory.averages.nodes.float_forms import (
    angle_from_opposite,
    arcsine,
    complement,
    determinant,
    difference_variance,
    exponential_difference,
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


@dataclass(frozen=True)
class Guarded:
    """Closed forms, and what is computed where their terms cancel or are 0/0.

    Parameters
    ----------
    forms : tuple of sympy.Expr
        In float64.
    symbols : tuple of symbols
        K, or K_xx, K_yy and K_xy, or others.
    compiled : callable
        The NumPy function of symbols and a list of expressions.
    otherwise : callable
        Of arrays (m,) of the symbols: the same values, a list of arrays.
    """

    forms: tuple[sp.Expr, ...]
    symbols: tuple[sp.Expr, ...]
    compiled: Callable[..., Callable]
    otherwise: Callable[..., Any]

    @cached_property
    def with_errors(self) -> list[sp.Expr]:
        """The forms, and the errors of those that may cancel; others are known if not NaN."""
        errors = [sp.S.Zero if relative(e) <= LIMIT else absolute(e) for e in self.forms]
        return [*self.forms, *(errors if any(errors) else ())]

    @cached_property
    def _function(self) -> Callable[..., list[Any]]:
        return self.compiled(self.symbols, self.with_errors)

    def __call__(self, *K: Any) -> list[Any]:
        """Values at arrays of one shape, with errors below 1e-12 of them.

        Those of two variables may be small: errors are compared with strong correlations as well.
        """
        if all(isinstance(k, np.floating) for k in K):
            values, errors = self._split(K)
            if all(e <= LIMIT * abs(v) for v, e in zip(values, errors, strict=True)):
                routes.record(routes.CLOSED, len(values))
                return values
        K = tuple(np.broadcast_arrays(*(np.asarray(k, dtype=float) for k in K)))
        values, errors = self._at(K)
        pairs = zip(values, errors, strict=True)
        lost = [np.asarray(~(error <= LIMIT * np.abs(value))) for value, error in pairs]
        routes.record(routes.CLOSED, np.size(lost) - np.count_nonzero(lost))
        if not any(map(np.any, lost)):
            return [value[()] for value in values]
        some = np.any(lost, axis=0) & np.all(np.isfinite(K), axis=0)
        if len(K) == 3:
            a, b = K[0][some], K[1][some]
            sizes, _ = self._at((a, b, _STRONG * np.sqrt(a) * np.sqrt(b)))
            for each, size, error in zip(lost, sizes, errors, strict=True):
                each[some] &= ~(error[some] <= LIMIT * np.where(np.isfinite(size), size, 0.0))
            some &= np.any(lost, axis=0)
        if some.any():
            other = self.otherwise(*(k[some] for k in K))
            values = [np.array(value) for value in values]
            for value, each, new in zip(values, lost, other, strict=True):
                value[some] = np.where(each[some], new, value[some])
        return [value[()] for value in values]

    def _at(self, K: tuple) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Values and their errors as arrays; NaN where a value is."""
        shape, (values, errors) = np.shape(K[0]), self._split(K)
        values = [np.broadcast_to(value, shape) for value in values]
        with np.errstate(invalid="ignore"):
            return values, [
                np.where(np.isnan(value), np.nan, error)
                for value, error in zip(values, errors, strict=True)
            ]

    def _split(self, K: tuple) -> tuple[list[Any], list[Any]]:
        """Values and their errors."""
        count = len(self.forms)
        with np.errstate(all="ignore"):
            values = self._function(*K)
        return values[:count], values[count:] or [0.0] * count


@dataclass(frozen=True)
class ClosedForm:
    """One guarded closed form as a function that returns its value.

    Parameters
    ----------
    guarded : Guarded
    """

    guarded: Guarded

    def __call__(self, *K: Any) -> Any:
        """The value at arrays."""
        return self.guarded(*K)[0]
