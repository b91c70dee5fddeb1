"""Composite Gauss-Legendre rules: nodes and weights on panels."""

from __future__ import annotations

from functools import lru_cache

import numpy as np


@lru_cache(maxsize=16)
def legendre(order: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of Gauss and Legendre on [−1, 1]."""
    return np.polynomial.legendre.leggauss(order)


def composite(cuts: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on the panels between sorted cuts, which may carry leading axes.

    Examples
    --------
    >>> nodes, weights = composite(np.array([0.0, 1.0, 3.0]), 4)
    >>> float(round((nodes**5) @ weights, 9)), 3**6 / 6
    (121.5, 121.5)
    """
    x, w = legendre(order)
    middle = (cuts[..., 1:] + cuts[..., :-1])[..., None] / 2
    half = (cuts[..., 1:] - cuts[..., :-1])[..., None] / 2
    shape = (*cuts.shape[:-1], -1)
    return (middle + half * x).reshape(shape), (half * w).reshape(shape)
