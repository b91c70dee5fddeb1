"""Chebyshev interpolation on [-1, 1]: nodes, and coefficients from values at them."""

from __future__ import annotations

import numpy as np
from numpy.polynomial import chebyshev

_STEPS = 60
# Change of a root that is rounding.
_SETTLED = 4e-16


def nodes(count: int) -> np.ndarray:
    """The zeros of T_count, ascending, shape (count,)."""
    return chebyshev.chebpts1(count)


def transform(count: int) -> np.ndarray:
    """The matrix from values at the nodes to the coefficients of T_0, ..., T_{count-1}.

    Examples
    --------
    >>> (transform(4) @ nodes(4) ** 2).round(12) + 0.0
    array([0.5, 0. , 0.5, 0. ])
    """
    matrix = chebyshev.chebvander(nodes(count), count - 1).T * (2 / count)
    matrix[0] /= 2
    return matrix


def polynomials(x: np.ndarray, count: int) -> np.ndarray:
    """T_0, ..., T_{count-1} at places (m,), shape (count, m); NumPy's function takes longer.

    Examples
    --------
    >>> polynomials(np.array([0.5]), 3).ravel()
    array([ 1. ,  0.5, -0.5])
    """
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
    slopes = chebyshev.chebder(coefficients)
    low, high = (np.full(coefficients.shape[1], end) for end in (-1.0, 1.0))
    at_low, at_high = (chebyshev.chebval(x, coefficients, tensor=False) for x in (low, high))
    x = np.zeros(len(low))
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(_STEPS):
            value = chebyshev.chebval(x, coefficients, tensor=False)
            left = np.sign(value) == np.sign(at_low)
            low, high = np.where(left, x, low), np.where(left, high, x)
            step = x - value / chebyshev.chebval(x, slopes, tensor=False)
            inside = (low <= step) & (step <= high)
            last, x = x, np.where(inside, step, (low + high) / 2)
            # A series of values of one sign has no root to be settled on.
            if ((np.abs(x - last) <= _SETTLED) | (at_low * at_high >= 0)).all():
                break
    return np.where(np.sign(at_low) * np.sign(at_high) < 0, x, np.nan)
