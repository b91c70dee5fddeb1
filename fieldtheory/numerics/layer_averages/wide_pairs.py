"""Averages of pairs by `wide_signals` where both variances are large, by another rule elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory.averages.high_precision.precise_grid import separated
from fieldtheory.averages.integrands.exact_differences import determinant
from fieldtheory.compiling.translation import is_closed
from fieldtheory.networks.activations import h
from fieldtheory.numerics.layer_averages.wide_signals import WideSignals, wide_signals
from fieldtheory.theory.elementary_averages import LayerAverages, X, Y

# Over τ², the variance from which on signals count as wide, and how much terms may cancel.
WIDE, CANCELLING = 64.0, 1e3
# Below this smaller variance it is not asked whether they do; products exist up to the other one.
_NARROW, _LARGEST = 64.0, 1e150
# 1 + c below which it has too few digits for the angle.
_OPPOSITE = 1e-2


def with_wide_signals(
    average: Callable[..., Any], averages: LayerAverages, names: tuple[str, ...]
) -> Callable[..., Any]:
    """A function of (K_xx, K_yy, K_xy), wide signals, but nearly opposite ones, from their lines.

    Parameters
    ----------
    average : callable
        ⟨φφ⟩, ⟨φ'φ'⟩, or a list of both, by quadrature.
    averages : LayerAverages
        Of φ.
    names : tuple of {"covariance", "slopes"}
        What ``average`` gives, in its order.
    """

    def everywhere(K_xx: Any, K_yy: Any, K_xy: Any) -> Any:
        if not min(np.max(K_xx, initial=0.0), np.max(K_yy, initial=0.0)) >= _NARROW:
            return average(K_xx, K_yy, K_xy)
        weight, wide = _of(averages)
        if wide is None:
            return average(K_xx, K_yy, K_xy)
        K = np.broadcast_arrays(*(np.asarray(k, dtype=float) for k in (K_xx, K_yy, K_xy)))
        enough, most = np.minimum(*K[:2]) >= WIDE * wide.tau**2, np.maximum(*K[:2]) <= _LARGEST
        with np.errstate(invalid="ignore", over="ignore"):
            apart = K[2] >= (_OPPOSITE - 1) * np.sqrt(K[0]) * np.sqrt(K[1])
        far = np.asarray(enough & most & apart)
        if not far.any():
            return average(K_xx, K_yy, K_xy)
        values, known = _averages(wide, names, *(k[far] for k in K))
        far[far] = known
        found = np.empty((len(names), *far.shape))
        found[:, far] = weight * values[:, known]
        if not far.all():
            found[:, ~far] = average(*(k[~far] for k in K))
        return [one[()] for one in found] if len(names) > 1 else found[0][()]

    return everywhere


def _averages(
    wide: WideSignals, names: tuple[str, ...], x: np.ndarray, y: np.ndarray, xy: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The averages, and of which pairs no terms cancel."""
    root = np.sqrt(x * y)
    c = np.clip(xy / root, -1, 1)
    near = np.maximum(determinant(x, y, xy), 0) / (root * (root + np.abs(xy)))
    delta = np.where(xy > 0, near, 1 - c)
    pairs = [getattr(wide, name)(x, y, c, delta) for name in names]
    values, sizes = (np.stack(one) for one in zip(*pairs, strict=True))
    return values, (CANCELLING * np.abs(values) >= sizes).all(axis=0)


@lru_cache(maxsize=64)
def _of(averages: LayerAverages) -> tuple[float, WideSignals | None]:
    """The observable as w φ(x) φ(y), and φ; None for sums of products and closed forms."""
    terms = separated(averages.observable, (X, Y)) or []
    if len(terms) != 1 or is_closed(averages.covariance):
        return 1.0, None
    ((weight, (f, g)),) = terms
    if f != g.xreplace({Y: X}):
        return 1.0, None
    return float(sp.sympify(weight)), wide_signals(f.xreplace({X: h}))
