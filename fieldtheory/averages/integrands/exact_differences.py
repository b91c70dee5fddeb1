"""Differences of nearly equal numbers without cancellation, for closed forms in float64.

Angles of two variables are among them, as differences from right angles.

One convention for all rooms says which variances count as zero, and which signals as parallel. A
Gaussian average does not see what a function is at a single point: a variable x of the variance
zero is √ε z with ε → 0, whose sign is that of z where a function jumps at zero,

    ⟨F(x)⟩ = (F(0+) + F(0−))/2,

independent of all others; two that vanish are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np

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

    >>> [float(k) for k in narrow_precise(0, 2, 0)]
    [1e-60, 2.0, 0.0]
    """
    none = mpmath.mpf(10) ** (-4 * mpmath.mp.dps)
    if K_xx == 0 and K_yy == 0:
        return none, none, none
    return (none if K_xx == 0 else K_xx), (none if K_yy == 0 else K_yy), K_xy


def one_minus_correlation(a: np.ndarray, b: np.ndarray, t: np.ndarray) -> np.ndarray:
    """1 − |c| with c = t/√(ab), to all digits.

    >>> float(one_minus_correlation(*np.array([1.0, 1.0, 1.0 - 2**-40])) * 2**40)
    1.0
    """
    root = np.sqrt(a) * np.sqrt(b)
    return determinant(a, b, t) / (root * (root + np.abs(t)))


# Splits a double into two halves of 26 bits (Dekker).
_SPLITTER = 134217729.0


def determinant(K_xx: np.ndarray, K_yy: np.ndarray, K_xy: np.ndarray) -> np.ndarray:
    """K_xx K_yy − K_xy², zero if negative, correct to rounding for nearly identical variables.

    >>> float(determinant(1e6, 1e6, 1e6 - 2**-20)), 1e12 - (1e6 - 2**-20) ** 2
    (1.9073486328115905, 1.9073486328125)
    """
    x, y, z = (np.asarray(each, dtype=float) for each in (K_xx, K_yy, K_xy))
    near = np.abs(z)
    with np.errstate(over="ignore", invalid="ignore"):
        first, second = x - near, y - near
        if np.minimum(first, second).min(initial=0.0) >= 0:
            # A sum of positive terms; what exceeds float64 is not known.
            total = first * second + near * (first + second)
            if total.max(initial=0.0) < np.inf:
                return total
    product, square = x * y, z * z
    with np.errstate(over="ignore", invalid="ignore"):
        (x_high, x_low), (y_high, y_low), (z_high, z_low) = map(_halves, (x, y, z))
        # What rounding left of the product and of the square, exactly (Dekker).
        remainder = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
        remainder = remainder - (((z_high * z_high - square) + 2 * z_high * z_low) + z_low * z_low)
    return np.maximum((product - square) + np.where(np.isfinite(remainder), remainder, 0.0), 0.0)


def precise_determinant(K_xx: mpmath.mpf, K_yy: mpmath.mpf, K_xy: mpmath.mpf) -> mpmath.mpf:
    """K_xx K_yy − K_xy², zero if negative, to the digits of mpmath."""
    with mpmath.workprec(2 * mpmath.mp.prec + 10):
        x, y, z = map(mpmath.mpf, (K_xx, K_yy, K_xy))
        minor = max(x * y - z * z, mpmath.mpf(0))
    return +minor


def differences(xp: Any, determinant: Callable) -> dict[str, Callable]:
    """Functions by name, with array functions and a determinant of K.

    Examples
    --------
    >>> angle = differences(np, determinant)["angle_from_opposite"]
    >>> [float(angle(x, 1.0, -x) / np.pi) for x in (0.0, 1.0)]
    [0.5, 0.0]
    """

    def exponential_difference(u: Any, v: Any, gap: Any) -> Any:
        return xp.copysign(xp.exp(xp.maximum(u, v)) * -xp.expm1(-xp.abs(gap)), gap)

    def difference_variance(K_xx: Any, K_yy: Any, K_xy: Any) -> Any:
        return (K_xx - K_xy) + (K_yy - K_xy)

    def arcsine(K_xx: Any, K_yy: Any, K_xy: Any) -> Any:
        angle = xp.arctan2(K_xy, xp.sqrt(determinant(K_xx, K_yy, K_xy)))
        return xp.where(xp.maximum(K_xx, K_yy) > 0, angle, xp.pi / 2)

    def angle_from_opposite(K_xx: Any, K_yy: Any, K_xy: Any) -> Any:
        angle = xp.arctan2(xp.sqrt(determinant(K_xx, K_yy, K_xy)), -xp.asarray(K_xy, dtype=float))
        angle = xp.where(xp.minimum(K_xx, K_yy) > 0, angle, xp.pi / 2)
        return xp.where(xp.maximum(K_xx, K_yy) > 0, angle, xp.pi)

    named = (exponential_difference, difference_variance, arcsine, angle_from_opposite)
    return {"determinant": determinant} | {function.__name__: function for function in named}


def _halves(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scaled = _SPLITTER * x
    high = scaled - (scaled - x)
    return high, x - high
