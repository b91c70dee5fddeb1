"""Chebyshev interpolation on [-1, 1]: nodes, and coefficients from values at them."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.polynomial import chebyshev

# Cosines of so few numbers take less time than a recurrence.
_FEW = 2048


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
