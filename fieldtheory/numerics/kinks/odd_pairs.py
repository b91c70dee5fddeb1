"""Derivatives of ⟨φφ⟩ by the kernels of inputs that hardly correlate, for odd φ with kinks.

With the Hermite coefficients f_n(K) = ⟨φ(√K z) h_n(z)⟩ and the correlation c (Mehler's series)

    ⟨φ^(i)(x) φ^(j)(y)⟩ = (K_xx^i K_yy^j)^(−1/2) Σ_n √((n + i)! (n + j)!)/n! f_{n+i} f_{n+j} cⁿ

vanishes with c for even i and j, where integrals over φ'' at kinks are differences. Coefficients of
orders above one are those of φ'', exact at the kinks,

    f_{n+2} = K ⟨φ''(√K z) h_n(z)⟩/√((n + 1)(n + 2)),

so that narrow signals, which hardly see kinks, have their digits too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import factorial

import numpy as np
import sympy as sp

from fieldtheory.averages.high_precision.precise_grid import separated
from fieldtheory.averages.integrals.hermite import weighted_hermite
from fieldtheory.averages.integrands.steps import has_steps
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.hermite_coefficients import HermiteCoefficients
from fieldtheory.numerics.kinks import parallel_curvatures
from fieldtheory.numerics.kinks.kinked_features import curvature, feature, is_odd
from fieldtheory.numerics.layer_averages.entries import network_entries
from fieldtheory.theory.elementary_averages import X, Y, feature_parameters

# Variances from which on exponentials of signals are large.
_WIDE = 4.0
# Correlations of which series are taken, the orders n that count then, and those of derivatives.
_WEAK, _COUNT, _HIGHEST = 1e-2, 12, 4


def cross_susceptibility(network: LayeredNetwork) -> Callable[..., np.ndarray]:
    """⟨φ''(x) φ(y)⟩/2 as a function of K_xx, K_yy and K_xy."""
    average = network_entries(network).cross_susceptibility

    def listed(*K: np.ndarray) -> list[np.ndarray]:
        return [average(*K)]

    weak = _with_series(network, listed, ((0, 2, 0, 0.5),))
    psi = tuple(network.features(network.activation, X, dict(feature_parameters(network))))
    if not _cancel(psi):
        return lambda *K: weak(*K)[0]

    def everywhere(*K: np.ndarray) -> np.ndarray:
        found = np.array(weak(*K)[0], dtype=float)
        x, y, xy = np.broadcast_arrays(*K)
        lost = (np.maximum(x, y) > _WIDE) & (x * y > xy * xy) & ~are_weak(network, x, y, xy)
        entries = x[lost], y[lost], xy[lost]
        found[lost] = parallel_curvatures.cross_susceptibility(psi, *entries)
        return found

    return everywhere


@lru_cache(maxsize=64)
def _cancel(psi: tuple[sp.Expr, ...]) -> bool:
    """Whether closed forms at kinks are differences for wide signals, of exponentials."""
    bent = any(has_steps(one) and feature(one).degree is None for one in psi)
    return bent and any(one.has(sp.exp) for one in psi) and parallel_curvatures.are_finite(psi)


def are_weak(network: LayeredNetwork, x: np.ndarray, y: np.ndarray, xy: np.ndarray) -> np.ndarray:
    """Whether derivatives are these series, or zero, by K_xx, K_yy and K_xy."""
    if _odd_feature(network_entries(network).averages.observable) is None:
        return np.zeros(x.shape, dtype=bool)
    return np.abs(xy) <= _WEAK * np.sqrt(x * y)


def covariance_curvature(network: LayeredNetwork) -> Callable[..., list[np.ndarray]]:
    """Those of `Entries.covariance_curvature`, a list of four."""
    average = network_entries(network).covariance_curvature
    return _with_series(network, average, ((0, 4, 0, 0.25), (1, 2, 2, 0.25), (3, 2, 2, 1.0)))


def _with_series(
    network: LayeredNetwork,
    averages: Callable[..., list[np.ndarray]],
    derivatives: Sequence[tuple[int, int, int, float]],
) -> Callable[..., list[np.ndarray]]:
    """Averages of which some, by place, i, j and a factor, are series where |c| is small."""
    phi = _odd_feature(network_entries(network).averages.observable)
    if phi is None:
        return averages

    def everywhere(*K: np.ndarray) -> list[np.ndarray]:
        x, y, xy = np.broadcast_arrays(*K)
        with np.errstate(divide="ignore", invalid="ignore"):
            c = xy / np.sqrt(x * y)
        weak, apart = (np.abs(c) <= _WEAK) & (c != 0), c == 0
        found = averages(*K)
        if not (weak | apart).any():
            return found
        found = [np.array(np.broadcast_to(values, c.shape), dtype=float) for values in found]
        for place, *_ in derivatives:
            found[place][apart] = 0.0
        if not weak.any():
            return found
        f, g = (_coefficients(phi, k[weak]) for k in (x, y))
        for place, i, j, factor in derivatives:
            scale = factor * x[weak] ** (-i / 2) * y[weak] ** (-j / 2)
            values = scale * _series(f, g, c[weak], i, j)
            found[place][weak] = np.where(np.isnan(values), found[place][weak], values)
        return found

    return everywhere


def _series(f: np.ndarray, g: np.ndarray, c: np.ndarray, i: int, j: int) -> np.ndarray:
    """Σ_n √((n + i)! (n + j)!)/n! f_{n+i} g_{n+j} cⁿ of odd n, from the smallest on."""
    total = np.zeros_like(c)
    for n in range(_COUNT - 1, 0, -2):
        factor = np.sqrt(float(factorial(n + i) * factorial(n + j))) / factorial(n)
        total += factor * f[:, n + i] * g[:, n + j] * c**n
    return total


@lru_cache(maxsize=64)
def _odd_feature(g: sp.Expr) -> sp.Expr | None:
    """φ of g(x, y) = φ(x) φ(y), odd and with kinks; None of other observables."""
    if not has_steps(g):
        return None
    terms = separated(g, (X, Y)) or []
    if len(terms) != 1:
        return None
    weight, (f, other) = terms[0]
    if f != other.xreplace({Y: X}) or not is_odd([feature(f)]) or curvature(f) is None:
        return None
    return sp.sqrt(weight) * f if weight > 0 else None


def _coefficients(phi: sp.Expr, K: np.ndarray) -> np.ndarray:
    """f_n of odd n below _COUNT + 4, shape (m, n); NaN where integrals do not find them."""
    bent = curvature(phi)
    assert bent is not None
    kinks = tuple(jump.place for jump in bent.jumps)
    found = np.zeros((len(K), _COUNT + _HIGHEST))
    found[:, 1] = HermiteCoefficients(feature(phi).function, kinks).integrated(K, 2)[0][:, 1]
    of_curvature, _ = HermiteCoefficients(bent.between, kinks).integrated(K, _COUNT + 2)
    deviation = np.sqrt(K)
    for place, (jump, of_slope) in bent.jumps:
        # h_n times the Gaussian at the kink: δ, and δ' by parts.
        z = place / deviation
        h = np.array(list(weighted_hermite(_COUNT + 3, z, np.ones_like(z)))).T
        raised = np.sqrt(np.arange(1.0, _COUNT + 3)) * h[:, 1:]
        of_curvature += of_slope * h[:, :-1] / deviation[:, None]
        of_curvature += jump * raised / K[:, None]
    n = np.arange(1, _COUNT + 2, 2)
    found[:, n + 2] = K[:, None] * of_curvature[:, n] / np.sqrt((n + 1) * (n + 2))
    return found
