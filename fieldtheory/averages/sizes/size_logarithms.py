"""Averages in float64 of functions with cusps at zero, and of those that grow exponentially.

Curvatures that grow towards zero, as those of |h|^(3/2) and h log|h| do, leave panels nothing to
be smooth on, and panels that end at so many standard deviations miss what e^{βh} is largest at.
The logarithms of the signals' sizes have neither cusps nor ends.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from mpmath import mp

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrands.exact_differences import determinant
from fieldtheory.averages.sizes import polar_sizes
from fieldtheory.averages.sizes.logarithmic_signals import (
    LEAST,
    Function,
    Values,
    on_a_line,
    on_a_plane,
)

# ρ between which the power as which a function behaves at zero is seen.
_PLACES = np.array([-300.0, -290.0])
# ρ of the largest signals, as far as functions stay within float64, and the smallest signals.
_FAR, _SMALLEST = np.linspace(0.0, 4.0, 161), 1e-300
# 1 − |c| of correlations so weak that the sectors of both signs may cancel, and the share of both
# that must be left.
_WEAK, _LEFT = 0.99, 0.1
_TOO_LARGE = "the average exceeds float64, or needs signals of which the function does"


def pairs(
    f: Callable, g: Callable, K_xx: np.ndarray, K_yy: np.ndarray, K_xy: np.ndarray
) -> np.ndarray:
    """⟨f(x) g(y)⟩ of functions that are analytic, but for zero at most.

    Parameters
    ----------
    f, g : callable
        Vectorised.
    K_xx, K_yy, K_xy : ndarray
        Variances > 0 and covariances, of one shape.

    Returns
    -------
    ndarray, the same shape

    Raises
    ------
    QuadratureError
        If an integral does not converge, or diverges.

    Examples
    --------
    >>> K = np.ones(1)
    >>> found = pairs(np.abs, lambda h: np.sqrt(np.abs(h)), K, K, 0 * K)
    >>> float((found[0] * np.pi / mp.gamma(0.75) / 2**0.75))
    1.0
    """
    found = np.empty(K_xx.shape)
    for at in np.ndindex(found.shape):
        K = [float(each[at]) for each in (K_xx, K_yy, K_xy)]
        size = np.sqrt(K[0]) * np.sqrt(K[1])
        c = float(np.clip(K[2] / size, -1, 1))
        away = float(determinant(K_xx[at], K_yy[at], K_xy[at]) / (size * (size + abs(K[2]))))
        if (quick := _polar(f, g, K[0], K[1], away, c)) is not None:
            found[at] = quick
            continue
        x, y = _in_float64(f, K[0]), _in_float64(g, K[1])
        found[at] = float(on_a_plane(x, y, c, away) if away else on_a_line(x, y, opposite=c < 0))
    return _finite(found)


def by_angles(
    f: Callable, g: Callable, K_xx: np.ndarray, K_yy: np.ndarray, K_xy: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What `polar_sizes` has of the averages of pairs (m,), and which that are."""
    size = np.sqrt(K_xx) * np.sqrt(K_yy)
    away = determinant(K_xx, K_yy, K_xy) / (size * (size + np.abs(K_xy)))
    given = zip(K_xx, K_yy, away, K_xy / size, strict=True)
    found = [_polar(f, g, *map(float, each)) for each in given]
    values = np.array([np.nan if value is None else value for value in found])
    return values, ~np.isnan(values)


def _polar(f: Callable, g: Callable, K_xx: float, K_yy: float, away: float, c: float) -> Any:
    """By `polar_sizes`, None where that does not converge, as of functions that grow fast."""
    if not away:
        return None
    turned = (lambda h: g(-h)) if c < 0 else g
    with suppress(QuadratureError):
        return polar_sizes.average(f, turned, K_xx, K_yy, away, _LEFT if away > _WEAK else 0.0)
    return None


def singles(f: Callable, K: np.ndarray) -> np.ndarray:
    """⟨f(h)⟩ of functions that are analytic, but for zero at most, for variances > 0.

    Raises
    ------
    QuadratureError
        As `pairs`.

    Examples
    --------
    >>> float((singles(np.exp, np.array([30.0]))[0] / np.exp(15)).round(12))
    1.0
    """
    one = _in_float64(np.ones_like, 1.0)
    found = np.array([float(on_a_line(_in_float64(f, float(each)), one)) for each in K.ravel()])
    return _finite(found).reshape(K.shape)


def _finite(found: np.ndarray) -> np.ndarray:
    if not np.isfinite(found).all():
        raise QuadratureError(_TOO_LARGE)
    return found


def _in_float64(f: Callable, variance: float) -> Function:
    def values(rho: np.ndarray) -> Values:
        # Nothing depends on what is smaller.
        signals = np.maximum(np.sqrt(variance) * np.exp(rho), _SMALLEST)
        with np.errstate(all="ignore"):
            both = np.stack([f(signals), f(-signals)])
            return Values(np.sign(both), np.log(np.abs(both)))

    near, far = values(_PLACES).logs.max(axis=0)
    # High powers are nothing at these places.
    power = min((far - near) / (_PLACES[1] - _PLACES[0]), 0.0) if np.isfinite(near) else 0.0
    beyond = ~np.isfinite(np.exp(values(_FAR).logs)).all(axis=0)
    if beyond[0]:
        raise QuadratureError(_TOO_LARGE)
    # The last before the first that is too large, or the last of all.
    largest = _FAR[beyond.argmax() - 1]
    # Where functions decay, signals that are small against 1 have the weight.
    wide = max(0.5 * np.log(variance), 0.0)
    decays = wide and values(np.array([-wide])).logs.max() > values(np.zeros(1)).logs.max()
    least = LEAST - (wide if decays else 0.0)
    return Function(lambda *_: values, mp.one, least, largest, power)
