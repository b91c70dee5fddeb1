"""Variances of zero as limits of small ones, where that is not the value of a function at zero.

A Gaussian average does not see what a function is at a single point. A variable x of the variance
zero is √ε z with ε → 0, whose sign is that of z where a function jumps at zero,

    ⟨F(x)⟩ = (F(0+) + F(0−))/2,

independent of all others; two that vanish are the same.
"""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np

# A small variance.
_NONE = 1e-100


def narrow_alone(K: np.ndarray) -> np.ndarray:
    """Variances with those of zero as small ones."""
    return np.where(np.equal(K, 0), _NONE, K)


def narrow_precise(K_xx: Any, K_yy: Any, K_xy: Any) -> tuple[Any, Any, Any]:
    """Covariances in mpmath with variances of zero small ones; two of them are one variable.

    Examples
    --------
    >>> [float(k) for k in narrow_precise(0, 2, 0)]
    [1e-60, 2.0, 0.0]
    """
    none = mpmath.mpf(10) ** (-4 * mpmath.mp.dps)
    if K_xx == 0 and K_yy == 0:
        return none, none, none
    return (none if K_xx == 0 else K_xx), (none if K_yy == 0 else K_yy), K_xy
