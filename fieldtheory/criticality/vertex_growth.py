"""ν(γ): how fast the four-point vertex grows with depth at criticality, exact and as printed."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory.criticality.universality import HALF_STABLE, VANISHING, critical_point
from fieldtheory.networks.activations import Activation, as_activation, h
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics.infinite_width.layer_functions import LayerFunctions, layer_functions
from fieldtheory.validation import finite_array

# Terms of a sum over layers that are added one by one, before the rest is an integral.
_TERMS = 4000
_NODES = 120


@named_arguments
def vertex_slope(activation: Any, skip_scale: Any, closure: bool = False) -> Any:
    """The coefficient ν(γ) of the normalised four-point vertex of a deep critical network.

        V^(L)/(N K^(L)²) = ν L/N + ...     (PDLT-B (B.22)),   C_W = (1 − γ²)/M'(K*)

        ν(γ) = (C_W/K)² [ Q(1) + 2 Σ_{s>=1} Q(γ^s) ],   Q(c) = ⟨φ²(x) ; φ²(y)⟩

    for x, y of variance K = K* and correlation c. At a fixed point with χ_∥ = 1 the noise of every
    layer is carried on undamped, so that the variance of the kernel is the sum of its correlations
    over pairs of layers; what remains of V is bounded. For φ(h) = a_± h

        ν(γ) = (1 − γ²) [(1 − γ²)(3 A_4/A_2² − 1) + 4γ²] + 2 C_W² Σ_{s>=1} R(γ^s)

    with R(c) the rest of Q beyond its second Hermite component. The first part is PDLT-B (B.29). In
    the class K* = 0, ν is a third of that for the slopes a_± of φ at zero, where K^(l) falls off
    like a power of l or more slowly: for smooth φ, (2/3)(1 − γ⁴), PDLT-B (B.35).

    Parameters
    ----------
    activation : str, Activation, sympy.Expr or callable
        φ, with a critical point: see `critical_point`.
    skip_scale : float or array_like
        γ from −1 to 1.
    closure : bool
        As PDLT-B prints it, (B.29) and (B.35), without R.

    Returns
    -------
    float or ndarray
        ν, of the shape of ``skip_scale``; 0 at γ = ±1.

    Raises
    ------
    TypeError, ValueError
        If γ is not from −1 to 1, or φ has no critical point.

    Notes
    -----
    (B.29) is exact where |a_+| = |a_−|, and for γ = 0. Otherwise φ² has a first Hermite component,
    R(c) ∝ c at small c, and ν rises linearly from γ = 0 before it falls to 0. It then depends on
    the sign of γ. In the class K* = 0 the terms that (B.35) lacks are of relative order K if
    φ''(0) ≠ 0, else K²: they vanish with depth.

    Examples
    --------
    >>> vertex_slope("relu", [0.0, 0.5**0.5], closure=True), vertex_slope("tanh", 0.5)
    (array([5.  , 2.25]), 0.625)
    >>> vertex_slope("relu", [0.0, 0.5**0.5]).round(4)
    array([5.    , 5.4425])
    """
    gamma = finite_array("skip_scale", skip_scale)
    if (np.abs(gamma) > 1).any():
        outside = float(gamma[np.abs(gamma) > 1][0])
        raise ValueError(f"skip_scale must be a number from -1 to 1, got {outside!r}")
    averages, kernel, share = _fixed_point(as_activation(activation))
    slopes = [share * _growth(averages, kernel, float(g), closure) for g in gamma.ravel()]
    return slopes[0] if gamma.ndim == 0 else np.reshape(slopes, gamma.shape)


@named_arguments
def closure_deficit(activation: Any, skip_scale: float) -> float:
    """Part of V/K² that the closure of PDLT-B misses in deep networks of the class K* = 0.

        lim (V − V_closure)/K² = (1 − γ²)/(−a_1) (φ''(0)/φ'(0))² Σ_{s>=1} (9γ^s + 6γ^(3s))

    V/K² itself grows as ν l: the deficit is of relative order K^(l) ∝ 1/l, and (B.35) stands. It
    comes from the third power in φ² = φ'(0)² h² + φ'(0)φ''(0) h³ + ..., whose correlator
    K³ (9c + 6c³) between layers of correlation c has no second Hermite component; this source of V
    is carried on with χ_∥² = 1 − 4/l, K^(l) = κ/l (B.32), (B.33). For φ''(0) = 0 the first such
    source is of order K⁴, and the limit is 0.

    Parameters
    ----------
    activation : str, Activation, sympy.Expr or callable
        φ of the class K* = 0, smooth at zero.
    skip_scale : float
        γ, −1 < γ < 1.

    Returns
    -------
    float
        Of V = N (E[h_i² h_j²] − E[h_i²] E[h_j²]), in units of K².

    Raises
    ------
    TypeError, ValueError
        For another class, or as `critical_point`.

    Examples
    --------
    >>> closure_deficit("tanh", 0.5), round(closure_deficit("tanh(h) + h**2/4", 0.5), 6)
    (0.0, 1.019704)
    """
    point = critical_point(activation, skip_scale)
    if point.kind != VANISHING or point.small is None or point.small.power != 2:
        raise ValueError(
            f"activation must be smooth at zero and of the class {VANISHING}, got "
            f"{point.activation.name}, {point.kind}"
        )
    gamma = point.skip_scale
    slope, curvature = (float(point.activation.expression.diff(h, n).subs(h, 0)) for n in (1, 2))
    total = 9 * gamma / (1 - gamma) + 6 * gamma**3 / (1 - gamma**3)
    strength = (1 - gamma**2) * (curvature / slope) ** 2
    # Without a zero of negative sign.
    return strength * total / -float(point.small.bend) + 0.0


@lru_cache(maxsize=64)
def _fixed_point(phi: Activation) -> tuple[LayerFunctions, float, float]:
    """The averages and the variance at which ν is taken, and the share of the growth that it is."""
    point = critical_point(phi)
    if point.kind == HALF_STABLE or point.small is None:
        return layer_functions(phi), float(point.kernel or 0.0), 1.0
    up, down = point.small.slopes
    linear = Activation(sp.Max(0, h) * up + sp.Min(0, h) * down)
    # K = 1 stands for every variance. While K falls off, (K'/K − χ_∥') l → −1 whatever its power:
    # from d(V/K²)/dl = s − 2 (V/K²)/l the slope is s/3.
    return layer_functions(linear), 1.0, 1 / 3 if point.kind == VANISHING else 1.0


def _growth(averages: LayerFunctions, K: float, gamma: float, closure: bool) -> float:
    """The growth of V/K² per layer at a fixed point K with χ_∥ = 1."""
    slope, strength = float(averages.susceptibility(K)), (1 - gamma) * (1 + gamma)
    printed = (strength / slope / K) ** 2 * float(averages.connected(K, K, K))
    printed += 4 * gamma**2 * strength
    if closure or gamma == 0 or strength == 0:
        return printed

    def remainder(c: np.ndarray) -> np.ndarray:
        return averages.connected(K, K, c * K) - 2 * (slope * c * K) ** 2

    # Of even and of odd s, since γ may be negative.
    step = -2 * np.log(abs(gamma))
    total = sum(_geometric_sum(remainder, start, step) for start in (gamma, gamma**2))
    return printed + 2 * (strength / slope / K) ** 2 * total


def _geometric_sum(f: Callable[[np.ndarray], np.ndarray], start: float, step: float) -> float:
    """Σ_{k>=0} f(start exp(−k step)), step > 0, for f that vanishes at zero."""
    # Terms below exp(-40) of the first are left out.
    count = min(int(40.0 / step) + 2, _TERMS)
    total = float(f(start * np.exp(-step * np.arange(count))).sum())
    if count < _TERMS:
        return total
    # The tail of a slow sum is an integral with the first two terms of Euler and Maclaurin.
    before, first, after = f(start * np.exp(-step * (count + np.arange(-1, 2))))
    x, weights = np.polynomial.legendre.leggauss(_NODES)
    u = (x + 1) / 2
    end = start * np.exp(-step * count)
    # c = end (1 − u²) spreads the nodes near c = 1, where f has a root.
    integral = (weights * u * f(end * (1 - u**2)) / (1 - u**2)).sum() / step
    return float(total + integral + first / 2 - (after - before) / 24)
