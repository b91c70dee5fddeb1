"""Closed forms that are small differences of their terms: in float64 only where these keep digits.

⟨(1 − cos h)²⟩ = 1 − 2 e^{−K/2} + (1 + e^{−2K})/2 is 3K²/4 where K is small, and nothing is left of
it in float64. What terms lose is seen from what they would add up to without their signs; averages
that lose digits are left to an integral.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import sympy as sp

# What a value is at least of its terms without signs, so that it is right to a few 1e-13.
_LEAST = 1e-2
# Where forms are tried. Nearly opposite signals are not: there most forms are differences, and as
# exact as the correlation is known.
_VARIANCES = (1e-9, 1e-4, 0.6, 30.0, 1e3)
MODERATE, WEAK = (0.3, -0.3), (1e-8, -1e-8)


def without_signs(form: sp.Expr) -> sp.Expr:
    """What the terms of a form would add up to without their signs.

    Examples
    --------
    >>> K = sp.Symbol("K", positive=True)
    >>> without_signs(K * (1 - sp.exp(-K)))
    K*(1 + exp(-K))
    """
    if form.is_Add:
        return sp.Add(*[without_signs(term) for term in form.args])
    if form.is_Mul:
        return sp.Mul(*[without_signs(factor) for factor in form.args])
    return sp.Abs(form)


def cancels(
    form: sp.Expr,
    symbols: Sequence[sp.Expr],
    compiled: Callable,
    correlations: tuple[float, ...] = MODERATE + WEAK,
) -> bool:
    """Whether a form loses digits for some variances and some of the correlations.

    Parameters
    ----------
    form : sympy.Expr
    symbols : sequence of symbols
        K, or K_xx, K_yy and K_xy.
    compiled : callable
        The form and `without_signs` of it.
    correlations : tuple of float

    Examples
    --------
    >>> K = sp.Symbol("K")
    >>> form = sp.cosh(K) - 1
    >>> cancels(form, [K], sp.lambdify([K], [form, without_signs(form)]))
    True
    """
    if not form.has(sp.Add) or form.is_polynomial(*symbols):
        return False
    points = [(K, K, c * K) for K, c in product(_VARIANCES, correlations)]
    with np.errstate(all="ignore"):
        return bool(is_lost(*compiled(*np.transpose(points)[: len(symbols)])).any())


def guarded(compiled: Callable, otherwise: Callable) -> Callable:
    """A closed form where its terms keep their digits, and another function elsewhere.

    Parameters
    ----------
    compiled : callable
        The form and `without_signs` of it.
    otherwise : callable
        The same average, of variances that do not vanish.

    Examples
    --------
    >>> def compiled(K):
    ...     return np.cosh(K) - 1, np.cosh(K) + 1
    >>> guarded(compiled, lambda K: 2 * np.sinh(K / 2) ** 2)(np.array([1e-8, 1.0])).round(18)
    array([0.00000000e+00, 5.43080635e-01])
    """
    return either(lambda *K: compiled(*K)[0], lambda *K: is_lost(*compiled(*K)), otherwise)


def either(usual: Callable, lost: Callable, otherwise: Callable) -> Callable:
    """A function of variances and covariances, and another one where its digits are lost.

    Parameters
    ----------
    usual, otherwise : callable
        Of K, or of (K_xx, K_yy, K_xy), arrays of one shape.
    lost : callable
        Of the same.
    """

    def average(*K: np.ndarray) -> np.ndarray:
        arrays = np.broadcast_arrays(*(np.asarray(k, dtype=float) for k in K))
        left = np.logical_and.reduce([lost(*arrays), *(k > 0 for k in arrays[:2])])
        value = np.empty(left.shape)
        for function, which in ((usual, ~left), (otherwise, left)):
            if which.any():
                value[which] = function(*(k[which] for k in arrays))
        return value[()]

    return average


def is_lost(value: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Whether values are small differences of terms of a size."""
    return np.abs(value) < _LEAST * np.asarray(size)
