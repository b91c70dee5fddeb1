"""A function of pairs of layers from few of its values, for signals that only add up.

Where every skip connection is 1, the signals of two layers k <= l have the variances K^(k), K^(l)
and the covariance K^(k), so that an entry is a function of two numbers. A Chebyshev interpolant
of its logarithm, which keeps the relative error the same for small and for large entries, needs
some thousand values for any depth.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.polynomial import chebyshev

from fieldtheory.numerics.interpolation import nodes, transform

_SIZES = (22, 32, 46, 66, 96)
# Largest of the last coefficients, for logarithms of order one.
_TAIL = 1e-13
# Allowed difference from values at random pairs.
_CHECKED, _PAIRS = 1e-12, 48
# The number of values an interpolant may take, as a fraction of those it replaces.
_WORTHWHILE = 0.5


def interpolated(steps: Callable, f: Callable, K: np.ndarray) -> np.ndarray | None:
    """f(K_l, K_k, K_k) for all pairs k <= l, or None where that is not worth it or fails.

    Parameters
    ----------
    steps : callable
        f(K + D, K, K) for variances (n,) and steps D (m,) between layers, shape (n, m).
    f : callable
        Positive and smooth, vectorised over (K_xx, K_yy, K_xy).
    K : ndarray, shape (n,)
        Variances > 0 of the layers, which do not decrease.

    Returns
    -------
    ndarray, shape (n, n), or None
        Symmetric; relative error below 1e-12 at 48 random pairs.

    Examples
    --------
    >>> K = np.linspace(0.1, 0.2, 200)
    >>> steps = lambda K, D: 2 * K[:, None] ** 2 + 0 * D
    >>> values = interpolated(steps, lambda a, b, c: 2 * c**2, K)
    >>> float((values[10, 100] / (2 * K[10] ** 2)).round(12))
    1.0
    """
    lowest, highest = K[0], K[-1]
    if not (lowest > 0 and highest > lowest and np.isfinite(highest)):
        return None
    budget = _WORTHWHILE * len(K) ** 2 / 2
    coefficients = _fitted(steps, lowest, highest, budget)
    if coefficients is None:
        return None
    x = 2 * np.log(K / lowest) / np.log(highest / lowest) - 1
    spread = np.maximum(K - K[:, None], 0.0)
    y = 2 * np.log1p(2 * spread) / np.log1p(2 * (highest - lowest)) - 1
    rows = chebyshev.chebvander(x, coefficients.shape[0] - 1) @ coefficients
    values = np.exp(chebyshev.chebval(y, np.moveaxis(rows[:, None, :], -1, 0), tensor=False))
    earlier, later = np.sort(np.random.default_rng(0).integers(0, len(K), (2, _PAIRS)), axis=0)
    direct = f(K[later], K[earlier], K[earlier])
    if not (np.abs(values[earlier, later] - direct) <= _CHECKED * direct).all():
        return None
    return np.triu(values) + np.triu(values, 1).T


def _fitted(steps: Callable, lowest: float, highest: float, budget: float) -> np.ndarray | None:
    """Coefficients in the logarithms of K_k and of 1 + 2 (K_l − K_k), as many as needed."""

    def logarithm(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        earlier = lowest * (highest / lowest) ** ((x + 1) / 2)
        step = np.expm1((y + 1) / 2 * np.log1p(2 * (highest - lowest))) / 2
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.log(steps(earlier, step))

    # Three lines in either direction tell how many.
    few = np.array([-1.0, 0.1, 1.0])
    rows = _size(lambda x: logarithm(x, few), budget / _SIZES[0])
    columns = None if rows is None else _size(lambda y: logarithm(few, y).T, budget / rows)
    if rows is None or columns is None:
        return None
    values = logarithm(nodes(rows), nodes(columns))
    return transform(rows) @ values @ transform(columns).T


def _size(lines: Callable, most: float) -> int | None:
    """The number of nodes at which the last coefficients are negligible, None if not by ``most``.

    Nothing is evaluated for a number of nodes that cannot pay.
    """
    for size in _SIZES:
        if size > most:
            return None
        coefficients = np.abs(transform(size) @ lines(nodes(size)))
        scale = max(1.0, coefficients.max())
        if not np.isfinite(scale):
            return None
        if coefficients[-2:].max() <= _TAIL * scale:
            return size
    return None
