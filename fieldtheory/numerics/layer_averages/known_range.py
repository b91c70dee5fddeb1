"""Averages at growing variances, as far as their integrals converge."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fieldtheory.averages.errors import QuadratureError


def as_far_as_known(
    function: Callable[..., Sequence[np.ndarray]], count: int, *covariances: np.ndarray
) -> np.ndarray:
    """Averages as functions of variances, or of covariances of pairs, NaN from where one is lost.

    Those of functions that oscillate are lost at large variances, where a search needs none.

    Parameters
    ----------
    function : callable
        Vectorised, of all covariances; raises QuadratureError where an integral does not converge.
    count : int
        How many averages it returns.
    covariances : ndarray, shape (n,)
        Its arguments.

    Returns
    -------
    ndarray, shape (count, n)

    Examples
    --------
    >>> def root(K):
    ...     if (K > 3).any():
    ...         raise QuadratureError("too large")
    ...     return [np.sqrt(K)]
    >>> as_far_as_known(root, 1, np.array([1.0, 9.0, 2.25, 4.0]))
    array([[1. , nan, 1.5, nan]])
    """
    try:
        return np.array(function(*covariances))
    except QuadratureError:
        values = np.full((count, len(covariances[0])), np.nan)
    for i in np.argsort(np.maximum.reduce(covariances), kind="stable"):
        try:
            values[:, [i]] = function(*(K[[i]] for K in covariances))
        except QuadratureError:
            break
    return values
