"""Composite Gauss-Legendre rules: nodes and weights on panels, and where panels end."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

# Widest panel in units of the Gaussian's standard deviation.
WIDEST = 2.0


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


def offsets(scale: float, reach: float) -> list[float]:
    """Distances scale, 2 scale, 4 scale, ... from a centre, growing to ``WIDEST``, then evenly."""
    points, point, width = [], 0.0, scale
    while point < reach:
        point += min(width, WIDEST)
        points.append(point)
        width = point
    return points


def breakpoints(centres: Sequence[float], scale: float, reach: float) -> list[float]:
    """Sorted cuts of [−reach, reach], refined around every centre."""
    steps = offsets(scale, 2 * reach)
    cuts = {-reach, reach, *offsets_both_sides(0.0, offsets(1.0, reach), reach)}
    for centre in centres:
        cuts.update(offsets_both_sides(centre, steps, reach))
    return sorted(cuts)


def offsets_both_sides(centre: float, steps: Sequence[float], reach: float) -> set[float]:
    """The centre and its two sides, as far as they lie inside the reach."""
    points = {centre} | {centre + s for s in steps} | {centre - s for s in steps}
    return {p for p in points if abs(p) < reach}


def evenly(width: float, reach: float) -> np.ndarray:
    """Cuts of [−reach, reach] not farther apart than a width."""
    return np.linspace(-reach, reach, int(np.ceil(2 * reach / width)) + 1)


def graded_cuts(centres: np.ndarray, level: int, width: float, reach: float) -> np.ndarray:
    """Cuts in [−reach, reach] towards centres that many integrals have each their own.

    Parameters
    ----------
    centres : ndarray, shape (..., k)
    level : int
        The panels beside a centre are 2^-level times as wide as the widest.
    width, reach : float
        Of the widest panels, and of the interval.

    Returns
    -------
    ndarray, shape (..., m)
        Not sorted; those beyond the reach lie on its ends.

    Examples
    --------
    >>> np.sort(graded_cuts(np.array([0.25]), 1, 1.0, 1.0)).tolist()
    [-0.25, 0.25, 0.75]
    """
    halves = width * 0.5 ** np.arange(1, level + 1)
    around = np.concatenate([[0.0], halves, -halves])
    near = (centres[..., None] + around).reshape(*centres.shape[:-1], -1)
    return np.clip(near, -reach, reach)
