"""Averages of pairs of functions with cusps at zero, one quadrant at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrals import quadrature
from fieldtheory.averages.pair_rules import once
from fieldtheory.averages.sizes import size_logarithms

# How small a correlator may be, relative to the standard deviations, that is a sum in float64.
_VISIBLE = 1e-3
# Variances from which on logarithms of signals do not resolve waves.
_FEW_WAVES = 300.0


def at_cusps(f: Callable, g: Callable, otherwise: Callable, *K: np.ndarray) -> np.ndarray:
    """⟨F(x) G(y)⟩ in the logarithms of signals; where a variance vanishes, by another rule."""
    K_xx, K_yy, K_xy = np.broadcast_arrays(*(np.asarray(k, dtype=float) for k in K))
    if (K_xx > 0).all() and (K_yy > 0).all():
        pairs = partial(size_logarithms.pairs, f, g)
        return once(pairs, K_xx.ravel(), K_yy.ravel(), K_xy.ravel()).reshape(K_xx.shape)[()]
    return otherwise(*K)


def at_cusps_with_waves(f: Callable, g: Callable, series: Callable, *K: np.ndarray) -> np.ndarray:
    """By `at_cusps`, which resolves few waves, or by a series; the other where one fails."""
    given = np.broadcast_arrays(*(np.asarray(k, dtype=float) for k in K))
    found, logarithms = np.empty(given[0].shape), partial(at_cusps, f, g, series)
    for at in np.ndindex(found.shape):
        one = [k[at] for k in given]
        rules = (logarithms, series) if max(one[:2]) < _FEW_WAVES else (series, logarithms)
        try:
            found[at] = rules[0](*one)
        except QuadratureError:
            found[at] = rules[1](*one)
    return found[()]


def connected_at_cusps(F: Callable, G: Callable, otherwise: Callable, *K: np.ndarray) -> np.ndarray:
    """⟨F(x);G(y)⟩ with the means subtracted, as long as their products do not cancel."""
    K_xx, K_yy, K_xy = np.broadcast_arrays(*(np.asarray(k, dtype=float) for k in K))
    found, exact = np.empty(K_xx.shape), (K_xx > 0) & (K_yy > 0)
    for at in zip(*np.nonzero(exact), strict=True):
        (f, of_f), (g, of_g) = _centred(F, float(K_xx[at])), _centred(G, float(K_yy[at]))
        found[at] = size_logarithms.pairs(f, g, K_xx[at], K_yy[at], K_xy[at])
        exact[at] = abs(found[at]) >= _VISIBLE * of_f * of_g
    if not exact.all():
        found[~exact] = otherwise(K_xx[~exact], K_yy[~exact], K_xy[~exact])
    return found[()]


def _centred(f: Callable, variance: float) -> tuple[Callable, float]:
    """f − ⟨f⟩, and its standard deviation."""
    mean = float(quadrature.average_1d(f, np.asarray(variance), (0.0,)))

    def centred(x: np.ndarray) -> np.ndarray:
        return f(x) - mean

    square = quadrature.average_1d(lambda x: centred(x) ** 2, np.asarray(variance), (0.0,))
    return centred, math.sqrt(square)
