"""Chebyshev interpolation on [-1, 1]: nodes, and coefficients from values at them."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.polynomial import chebyshev

_STEPS = 60
# Cosines of so few numbers take less time than a recurrence.
_FEW = 2048
# Change of a root that is rounding.
_SETTLED = 4e-16


@lru_cache(maxsize=64)
def nodes(count: int) -> np.ndarray:
    """The zeros of T_count, ascending, shape (count,)."""
    return _kept(chebyshev.chebpts1(count))


@lru_cache(maxsize=64)
def transform(count: int) -> np.ndarray:
    """The matrix from values at the nodes to the coefficients of T_0, ..., T_{count-1}.

    Examples
    --------
    >>> (transform(4) @ nodes(4) ** 2).round(12) + 0.0
    array([0.5, 0. , 0.5, 0. ])
    """
    matrix = chebyshev.chebvander(nodes(count), count - 1).T * (2 / count)
    matrix[0] /= 2
    return _kept(matrix)


def _kept(values: np.ndarray) -> np.ndarray:
    """Values that are shared by all that ask for them."""
    values.flags.writeable = False
    return values


def polynomials(x: np.ndarray, count: int) -> np.ndarray:
    """T_0, ..., T_{count-1} at points (m,) in [-1, 1], shape (count, m).

    Cosines of few numbers, a recurrence for many; NumPy's function takes longer.

    Examples
    --------
    >>> polynomials(np.array([0.5]), 3).ravel()
    array([ 1. ,  0.5, -0.5])
    """
    if count * len(x) <= _FEW:
        return np.cos(np.multiply.outer(np.arange(count), np.arccos(np.clip(x, -1.0, 1.0))))
    values, twice = np.empty((count, len(x))), 2 * x
    values[0] = 1
    values[1:2] = x
    for k in range(2, count):
        np.multiply(twice, values[k - 1], out=values[k])
        values[k] -= values[k - 2]
    return values


def roots(coefficients: np.ndarray) -> np.ndarray:
    """Where Chebyshev series vanish in (-1, 1), each with values of both signs at the ends.

    Bisection and steps of Newton's method that stay within the bracket.

    Parameters
    ----------
    coefficients : ndarray, shape (count, m)
        Of m series.

    Returns
    -------
    ndarray, shape (m,)
        NaN for a series whose values at −1 and 1 have one sign.

    Examples
    --------
    >>> roots(np.array([[0.5, 0.0], [1.0, 1.0]])).round(12) + 0.0
    array([-0.5,  0. ])
    """
    both = np.zeros((2, *coefficients.shape))
    both[0], both[1, :-1] = coefficients, chebyshev.chebder(coefficients)
    low, high = (np.full(coefficients.shape[1], end) for end in (-1.0, 1.0))
    signs = (-1.0) ** np.arange(len(coefficients))
    at_low, at_high = signs @ coefficients, coefficients.sum(axis=0)
    x = np.zeros(len(low))
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(_STEPS):
            value, slope = (both * polynomials(x, len(coefficients))).sum(axis=1)
            left = np.sign(value) == np.sign(at_low)
            low, high = np.where(left, x, low), np.where(left, high, x)
            step = x - value / slope
            inside = (low <= step) & (step <= high)
            last, x = x, np.where(inside, step, (low + high) / 2)
            # A series of values of one sign has no root to be settled on.
            if ((np.abs(x - last) <= _SETTLED) | (at_low * at_high >= 0)).all():
                break
    return np.where(np.sign(at_low) * np.sign(at_high) < 0, x, np.nan)
