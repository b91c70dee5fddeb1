"""Which signals count as parallel in 1/N of several inputs."""

from __future__ import annotations

import numpy as np

# 1 − |c| that rounding leaves of parallel signals, whose kernels many layers have added up.
ROUNDING = 1e-14


def are_parallel(K_xx: np.ndarray, K_yy: np.ndarray, K_xy: np.ndarray) -> np.ndarray:
    """Whether signals are the same up to a factor of either sign, as far as kernels tell.

    Examples
    --------
    >>> are_parallel(np.array([1.0, 1.0, 0.0]), np.array([4.0, 4.0, 1.0]), np.array([-2.0, 1.9, 0]))
    array([ True, False, False])
    """
    size = np.sqrt(K_xx) * np.sqrt(K_yy)
    return (size > 0) & (np.abs(K_xy) >= (1 - ROUNDING) * size)
