"""Variances that count as zero, and signals that count as parallel: one convention for all rooms.

A Gaussian average does not see what a function is at a single point. A variable x of the variance
zero is √ε z with ε → 0, whose sign is that of z where a function jumps at zero,

    ⟨F(x)⟩ = (F(0+) + F(0−))/2,

independent of all others; two that vanish are the same.
"""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np

from fieldtheory.averages.integrands.exact_differences import determinant

# The small variance ε: in float64 its fourth power, which the order 1/N² divides by, is a number.
VANISHING = 1e-60
# Signals are parallel if 1 − |c| is the rounding of products of inputs of some 1000 dimensions.
PARALLEL = 2.0**-49


def not_vanishing(
    K_xx: np.ndarray, K_yy: np.ndarray, K_xy: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Covariances with variances of zero as ε; two of them are one variable.

    Examples
    --------
    >>> [float(k) for k in not_vanishing(*np.array([0.0, 2.0, 0.0]))]
    [1e-60, 2.0, 0.0]
    """
    joint = np.where((K_xx == 0) & (K_yy == 0), VANISHING, K_xy)
    return narrow_alone(K_xx), narrow_alone(K_yy), joint


def narrow_alone(K: np.ndarray) -> np.ndarray:
    """Variances with those of zero as ε."""
    return np.where(np.equal(K, 0), VANISHING, K)


def narrow_precise(K_xx: Any, K_yy: Any, K_xy: Any) -> tuple[Any, Any, Any]:
    """`not_vanishing` in mpmath, whose ε leaves no trace in the digits asked for.

    Examples
    --------
    >>> [float(k) for k in narrow_precise(0, 2, 0)]
    [1e-60, 2.0, 0.0]
    """
    none = mpmath.mpf(10) ** (-4 * mpmath.mp.dps)
    if K_xx == 0 and K_yy == 0:
        return none, none, none
    return (none if K_xx == 0 else K_xx), (none if K_yy == 0 else K_yy), K_xy


def one_minus_correlation(a: np.ndarray, b: np.ndarray, t: np.ndarray) -> np.ndarray:
    """1 − |c| with c = t/√(ab), to all digits.

    Examples
    --------
    >>> float(one_minus_correlation(*np.array([1.0, 1.0, 1.0 - 2**-40])) * 2**40)
    1.0
    """
    root = np.sqrt(a) * np.sqrt(b)
    return determinant(a, b, t) / (root * (root + np.abs(t)))
