"""Differences of nearly equal numbers without cancellation, for closed forms in float64."""

from __future__ import annotations

import numpy as np

# Splits a double into two halves of 26 bits (Dekker).
_SPLITTER = 134217729.0


def determinant(K_xx: np.ndarray, K_yy: np.ndarray, K_xy: np.ndarray) -> np.ndarray:
    """K_xx K_yy − K_xy², zero if negative, correct to rounding for nearly identical variables.

    The plain difference is off by one rounding of K_xx K_yy, which is larger than one for
    variances above 1e8 and spoils 1 + 2 K_xx + 2 K_yy + 4 det long before.

    Examples
    --------
    >>> float(determinant(1e6, 1e6, 1e6 - 2**-20)), 1e12 - (1e6 - 2**-20) ** 2
    (1.9073486328115905, 1.9073486328125)
    """
    p, p_rest = _product(K_xx, K_yy)
    q, q_rest = _product(K_xy, K_xy)
    return np.maximum((p - q) + (p_rest - q_rest), 0.0)


def exponential_difference(u: np.ndarray, v: np.ndarray, gap: np.ndarray) -> np.ndarray:
    """exp(u) − exp(v), given u − v, which may be known better than u and v."""
    return np.copysign(np.exp(np.maximum(u, v)) * -np.expm1(-np.abs(gap)), gap)


def difference_variance(K_xx: np.ndarray, K_yy: np.ndarray, K_xy: np.ndarray) -> np.ndarray:
    """⟨(x − y)²⟩ = K_xx + K_yy − 2 K_xy."""
    return (K_xx - K_xy) + (K_yy - K_xy)


def _product(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x y as a rounded product and the rest, exactly."""
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    product = x * y
    (x_high, x_low), (y_high, y_low) = _halves(x), _halves(y)
    rest = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
    return product, np.where(np.isfinite(rest), rest, 0.0)


def _halves(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = _SPLITTER * x
        high = scaled - (scaled - x)
    return high, x - high
