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

# A variance as good as none.
_NONE = 1e-100


def narrow(
    K_xx: np.ndarray,
    K_yy: np.ndarray,
    K_xy: np.ndarray,
    which: tuple[bool, bool] = (True, True),
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Covariances with variances of zero as good as none.

    Parameters
    ----------
    K_xx, K_yy, K_xy : ndarray
    which : pair of bool
        Whether x and y are replaced where the other does not vanish.

    Examples
    --------
    >>> [k.tolist() for k in narrow(*np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 0.0]]))]
    [[1e-100, 1e-100], [2.0, 1e-100], [0.0, 1e-100]]
    """
    own = [narrow_alone(k) if asked else k for k, asked in zip((K_xx, K_yy), which, strict=True)]
    both = np.equal(K_xx, 0) & np.equal(K_yy, 0)
    x, y, xy = (np.where(both, _NONE, k) for k in (*own, K_xy))
    return x, y, xy


def narrow_alone(K: np.ndarray) -> np.ndarray:
    """Variances with those of zero as good as none."""
    return np.where(np.equal(K, 0), _NONE, K)


def narrow_precise(K_xx: Any, K_yy: Any, K_xy: Any) -> tuple[Any, Any, Any]:
    """`narrow` of mpmath numbers, to the precision at the time.

    Examples
    --------
    >>> [float(k) for k in narrow_precise(0, 2, 0)]
    [1e-60, 2.0, 0.0]
    """
    none = mpmath.mpf(10) ** (-4 * mpmath.mp.dps)
    if K_xx == 0 and K_yy == 0:
        return none, none, none
    return (none if K_xx == 0 else K_xx), (none if K_yy == 0 else K_yy), K_xy
