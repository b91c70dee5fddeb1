"""Averages of pairs of one variance K and φ with kinks, by interpolation of their long series.

Hermite coefficients of kinks fall off as powers, so that Mehler's series of a correlation c of 0.9
has hundreds of terms. Its sum is smooth in ln K, and in artanh c, where ±1 is infinitely far.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fieldtheory.numerics.pair_maps.pair_boxes import Axes, Boxes, what_is_not_shared

# Margins and ranges of boxes in ln K and artanh c.
_MARGINS, _RANGES = ((0.2, 1.5), (0.0, 0.0), (0.1, 0.1)), (3.0, 1.0, 1.0)
# How far from the real axes averages are analytic: c = tanh v has its pole at v = iπ/2.
_REACHES = np.array([np.pi, np.pi, np.pi / 2])


def boxes(
    series: Callable[..., np.ndarray], exact: Callable[..., np.ndarray], rest: float, order: int
) -> Boxes:
    """⟨φφ⟩ and ⟨φ'φ'⟩ of pairs of one variance on boxes.

    Parameters
    ----------
    series : callable
        Both of variances (n,) and correlations (k,), (2, n, k), NaN where not resolved.
    exact : callable
        Both of pairs K_xx, K_yy and K_xy, (2, m).
    rest : float
        Allowed last coefficients, of the largest.
    order : int
        Terms of the longest series.
    """

    def averages(logs: np.ndarray, _: np.ndarray, angles: np.ndarray) -> np.ndarray | None:
        values = series(np.exp(logs), np.tanh(angles))[:, :, None]
        return None if np.isnan(values).any() else values

    # Correlations of which the longest series leaves no more than the rest.
    most = np.inf, np.inf, np.arctanh(rest ** (1 / order))
    axes = Axes(
        _angles, averages, lambda n, _, k: n * k, lambda _: _REACHES, _MARGINS, _RANGES, most
    )
    return Boxes(axes, exact, rest)


def _angles(p: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
    """ln K, 1 and artanh c of pairs of one variance, (3, m); NaN for others."""
    with np.errstate(all="ignore"):
        angle = np.log1p(2 * r / what_is_not_shared(p, q, r)) / 2
        places = np.stack([np.log(p), np.ones(len(r)), angle])
    places[:, ~np.isfinite(places).all(axis=0)] = np.nan
    return places
