"""Chebyshev interpolation on [-1, 1]: nodes, and coefficients from values at them."""

from __future__ import annotations

import numpy as np
from numpy.polynomial import chebyshev


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
