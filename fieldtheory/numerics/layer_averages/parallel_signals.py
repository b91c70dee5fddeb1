"""Averages of two signals with kinks where the signals are parallel or vanish, as limits.

Beside a kink of φ(x) the other signal is Gaussian of the variance D/K_xx, D = K_xx K_yy − K_xy².
Closed forms have its ratios to D, which are 0/0 where two kinks meet at D = 0, though the averages
have limits: with w = √D/√(K_xx K_yy), the sine of the angle, they are f_0 + f_1 w + O(w²).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fieldtheory.averages.integrands.exact_differences import determinant
from fieldtheory.averages.vanishing import narrow

# Below this w² signals are parallel within rounding; 1 − |c| of the two places of the line.
_PARALLEL, _PLACES = 1e-15, (2.0**-44, 2.0**-42)
# By how much the values there differ at most, and what grows beyond all limits for narrow signals.
_STRAIGHT, _DIVERGES = 1e-4, 1e30

# Roundings of a product of roots, and 1 − |c| that those of a covariance leave.
_ROUNDINGS, _ROUNDED = 3, 2.0**-50

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


def have_no_angle(K_xx: np.ndarray, K_yy: np.ndarray, K_xy: np.ndarray) -> np.ndarray:
    """Whether a few roundings of K_xy alone tell signals from parallel ones.

    Examples
    --------
    >>> have_no_angle(*np.array([[30.0, 30.0], [75.0, 75.0], [-np.sqrt(2250.0), 47.434]]))
    array([ True, False])
    """
    size = np.sqrt(K_xx) * np.sqrt(K_yy)
    return (size > 0) & (np.abs(K_xy) >= (1 - _ROUNDED) * size)


def without_angle(K_xx: np.ndarray, K_yy: np.ndarray, K_xy: np.ndarray) -> np.ndarray:
    """K_xy, of signals that `have_no_angle` such that their determinant is zero.

    Examples
    --------
    >>> x, y = np.array([30.0, 30.0]), np.array([75.0, 30.0])
    >>> K_xy = without_angle(x, y, -np.sqrt(x * y) * (1 - 2.0**-52))
    >>> determinant(x, y, K_xy), K_xy[1]
    (array([0., 0.]), np.float64(-30.0))
    """
    parallel = have_no_angle(K_xx, K_yy, K_xy)
    if not parallel.any():
        return K_xy
    size = np.where(K_xx == K_yy, K_xx, np.sqrt(K_xx) * np.sqrt(K_yy))
    # Of norms that are not the same roots are rounded up, as negative determinants are zero.
    for _ in range(_ROUNDINGS):
        size = np.where(determinant(K_xx, K_yy, size) > 0, np.nextafter(size, np.inf), size)
    return np.where(parallel, np.copysign(size, K_xy), K_xy)


def with_parallel_limit(average: Callable[..., Any]) -> Callable[..., Any]:
    """A function of (K_xx, K_yy, K_xy), or a list of them, whose limits are found where it is NaN.

    What has none, such as ⟨φ''φ''⟩ of kinks that meet, stays NaN or infinite.

    Examples
    --------
    >>> f = with_parallel_limit(lambda a, b, c: np.sqrt(a * b - c * c) / np.sqrt(a * b - c * c))
    >>> f(np.array([1.0, 2.0]), np.array([1.0, 2.0]), np.array([0.5, 2.0]))
    array([1., 1.])
    """
    return _filled(average, lambda *K: _limits(average, K))


def with_gradient_by_scaling(
    gradient: Callable[..., Any], scaled: Callable[[], Callable[..., Any]]
) -> Callable[..., Any]:
    """⟨φφ⟩ and its gradient, where that is NaN from signals that are scaled.

        ∂⟨φφ⟩/∂K_xx = ⟨x φ'(x) φ(y)⟩/(2 K_xx) − K_xy/(2 K_xx) ⟨φ'φ'⟩,

    the first term being what K_xx moves at a fixed correlation. It has no φ'', whose δ-functions
    meet kinks; apart from there the terms cancel where the gradient is small.

    Parameters
    ----------
    gradient : callable
        (K_xx, K_yy, K_xy) -> ⟨φφ⟩ and its derivatives by these.
    scaled : callable
        () -> a function of the same for ⟨φφ⟩, the first terms for K_xx and K_yy, and ⟨φ'φ'⟩.
    """

    def by_scaling(x: np.ndarray, y: np.ndarray, xy: np.ndarray) -> list[np.ndarray]:
        average, by_x, by_y, slope = scaled()(x, y, xy)
        return [average, by_x - xy / (2 * x) * slope, by_y - xy / (2 * y) * slope, slope]

    return _filled(gradient, by_scaling)


def _filled(average: Callable[..., Any], instead: Callable[..., Any]) -> Callable[..., Any]:
    """A function that takes what is NaN at parallel signals from another."""

    def everywhere(K_xx: Any, K_yy: Any, K_xy: Any) -> Any:
        with np.errstate(divide="ignore", invalid="ignore"):
            found = average(K_xx, K_yy, K_xy)
        values = _listed(found)
        if not any(np.isnan(value).any() for value in values):
            return found
        K = np.broadcast_arrays(*(np.asarray(k, dtype=float) for k in (K_xx, K_yy, K_xy)))
        whole = [np.array(np.broadcast_to(value, K[0].shape), dtype=float) for value in values]
        vanishing = np.isnan(whole).any(axis=0) & ((K[0] == 0) | (K[1] == 0))
        if vanishing.any():
            limits = _listed(everywhere(*narrow(*(k[vanishing] for k in K))))
            limits = [np.where(np.abs(v) > _DIVERGES, np.copysign(np.inf, v), v) for v in limits]
            _replace_nan(whole, vanishing, limits)
        with np.errstate(divide="ignore", invalid="ignore"):
            chosen = np.isnan(whole).any(axis=0) & (_sine_squared(*K) <= _PARALLEL)
        if chosen.any():
            _replace_nan(whole, chosen, instead(*(k[chosen] for k in K)))
        return [v[()] for v in whole] if isinstance(found, list) else whole[0][()]

    return everywhere


def _listed(found: Any) -> list[Any]:
    return found if isinstance(found, list) else [found]


def _replace_nan(whole: list[np.ndarray], where: np.ndarray, values: list[np.ndarray]) -> None:
    for old, new in zip(whole, values, strict=True):
        old[where] = np.where(np.isnan(old[where]), new, old[where])


def _limits(average: Callable[..., Any], K: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    """f_0 from the values at two small angles; NaN where it is no line."""
    K_xx, K_yy, K_xy = K
    size = np.copysign(np.sqrt(K_xx) * np.sqrt(K_yy), K_xy)
    widths, values = [], []
    for place in _PLACES:
        beside = size * (1 - place)
        widths.append(np.sqrt(_sine_squared(K_xx, K_yy, beside)))
        with np.errstate(divide="ignore", invalid="ignore"):
            found = average(K_xx, K_yy, beside)
        values.append(_listed(found))
    near, far = widths
    return [
        np.where(
            np.abs(v - u) < _STRAIGHT * np.abs(u) + _STRAIGHT,
            (far * u - near * v) / (far - near),
            np.nan,
        )
        for u, v in zip(*values, strict=True)
    ]


def _sine_squared(K_xx: np.ndarray, K_yy: np.ndarray, K_xy: np.ndarray) -> np.ndarray:
    return determinant(K_xx, K_yy, K_xy) / (K_xx * K_yy)
