"""Inputs that are parallel or opposite within the rounding of their kernel, and made so exactly."""

from __future__ import annotations

import numpy as np

from fieldtheory.averages.integrands.exact_differences import PARALLEL, determinant
from fieldtheory.numerics.infinite_width.homogeneous import gaps_of

# 1 − |c| that the roundings of averages leave of pairs that were parallel in the layer before.
ROUNDED = 2.0**-45


def are_parallel(x: np.ndarray, y: np.ndarray, xy: np.ndarray) -> np.ndarray:
    """Mask of pairs of variances x, y that are parallel or opposite within the rounding of xy."""
    return gaps_of(x, y, xy).min(axis=0) <= PARALLEL


def as_parallel(chosen: np.ndarray, x: np.ndarray, y: np.ndarray, xy: np.ndarray) -> np.ndarray:
    """Covariances in which chosen pairs that are parallel within roundings are so exactly.

    Then their determinant is zero: φ with kinks and jumps sees the root of it.

    Examples
    --------
    >>> own = np.array([30.0]), np.array([75.0])
    >>> determinant(*own, as_parallel(np.array([True]), *own, np.array([-(2250.0**0.5)])))
    array([0.])
    """
    if not chosen.any():
        return xy
    size = np.where(x == y, x, np.sqrt(x) * np.sqrt(y))
    chosen = chosen & (np.abs(xy) >= (1 - ROUNDED) * size)
    # Of norms that are not the same roots are rounded up, as negative determinants are zero.
    for _ in range(3):
        size = np.where(determinant(x, y, size) > 0, np.nextafter(size, np.inf), size)
    return np.where(chosen, np.copysign(size, xy), xy)


def exactly_parallel(x: np.ndarray, y: np.ndarray, xy: np.ndarray) -> np.ndarray:
    """Covariances of which those of parallel pairs are so exactly."""
    return as_parallel(are_parallel(x, y, xy), x, y, xy)
