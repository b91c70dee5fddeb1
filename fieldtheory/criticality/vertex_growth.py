"""ν(γ): how fast the four-point vertex grows with depth at criticality, exact and as printed.

And the optimal ratio of depth to width, and the skip scale for a given ratio: PDLT-B (B.36).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp
from scipy import optimize

from fieldtheory import validation
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


# Skip scales between which the largest ν is looked for.
_GRID = np.linspace(0.0, 1.0, 41)


@named_arguments
def optimal_aspect_ratio(
    activation: Any, skip_scale: Any, outputs: int = 1, closure: bool = False
) -> Any:
    """The ratio of depth to width at which outputs share most information at initialisation.

        r* = L/N = [4/(20 + 3 n_L)] / ν(γ)     (PDLT-B (B.36))

    with ν of `vertex_slope`: the mutual information of two sets of n_L outputs grows with ν r and
    falls again, with its maximum at ν r = 4/(20 + 3 n_L) (PDLT (A.73)).

    Parameters
    ----------
    activation : str, Activation, sympy.Expr or callable
        φ.
    skip_scale : float or array_like
        γ from −1 to 1.
    outputs : int
        n_L >= 1.
    closure : bool
        With ν as PDLT-B prints it, (B.29), (B.35).

    Returns
    -------
    float or ndarray
        r*, of the shape of ``skip_scale``; ∞ at γ = ±1.

    Raises
    ------
    TypeError, ValueError
        As `vertex_slope`, or if ``outputs`` < 1.

    Notes
    -----
    PDLT-B says after (B.36) that r* increases with γ. With the exact ν that is so for |a_+| = |a_−|
    and in the class K* = 0 of smooth φ; for ReLU r* first decreases, up to γ² = 0.20.

    Examples
    --------
    >>> gamma = [0.0, 0.5, 0.9]
    >>> optimal_aspect_ratio("relu", gamma, closure=True).round(4)
    array([0.0348, 0.0488, 0.2185])
    >>> optimal_aspect_ratio("relu", gamma).round(4)
    array([0.0348, 0.0268, 0.0686])
    """
    best = _best(outputs)
    nu = np.asarray(vertex_slope(activation, skip_scale, closure))
    with np.errstate(divide="ignore"):
        ratios = best / nu
    return float(ratios) if ratios.ndim == 0 else ratios


@named_arguments
def optimal_skip_scale(
    activation: Any, aspect_ratio: float, outputs: int = 1, closure: bool = False
) -> float:
    """The skip scale at which outputs share most information, for a given depth and width.

    The inverse of `optimal_aspect_ratio`: ν(γ*) r = 4/(20 + 3 n_L) (PDLT-B, after (B.36)). For
    networks so shallow that no γ reaches that, γ* is where ν is largest, since the information
    grows with ν r up to there. Weights and biases then are those of
    `critical_network` at γ*.

    Parameters
    ----------
    activation : str, Activation, sympy.Expr or callable
        φ.
    aspect_ratio : float
        r = L/N > 0.
    outputs : int
        n_L >= 1.
    closure : bool
        With ν as PDLT-B prints it.

    Returns
    -------
    float
        γ*, 0 <= γ* < 1. Where two γ solve the equation, the larger one, which goes on to
        1 − γ*² ∝ 1/r.

    Raises
    ------
    TypeError, ValueError
        If ``aspect_ratio`` is not a positive number, or as `optimal_aspect_ratio`.

    Notes
    -----
    PDLT-B has γ* = 0 for r < r*(γ = 0). That holds where ν decreases with γ. For ReLU the exact ν
    is largest at γ = 0.45, so that skip connections help shallower networks, too.

    Examples
    --------
    >>> [round(optimal_skip_scale("relu", r, closure=True), 4) for r in (0.01, 0.1, 1.0)]
    [0.0, 0.7774, 0.9783]
    >>> [round(optimal_skip_scale("relu", r), 4) for r in (0.01, 0.1, 1.0)]
    [0.4488, 0.935, 0.9941]
    """
    phi = as_activation(activation)
    wanted = _best(outputs) / validation.positive("aspect_ratio", aspect_ratio)
    top, highest = _largest(phi, closure)
    if wanted >= highest:
        return top

    def excess(gamma: float) -> float:
        return float(vertex_slope(phi, gamma, closure)) / wanted - 1

    return float(optimize.brentq(excess, top, 1.0, xtol=1e-15, rtol=1e-14))


def _best(outputs: int) -> float:
    """ν r at the largest mutual information."""
    return 4 / (20 + 3 * validation.integer("outputs", outputs, 1))


@lru_cache(maxsize=64)
def _largest(phi: Activation, closure: bool) -> tuple[float, float]:
    """The γ >= 0 with the largest ν, and that ν."""
    values = vertex_slope(phi, _GRID, closure)
    index = int(values.argmax())
    if index == 0:
        return 0.0, float(values[0])
    optimum = optimize.minimize_scalar(
        lambda gamma: -float(vertex_slope(phi, float(gamma), closure)),
        bounds=(_GRID[index - 1], _GRID[index + 1]),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return float(optimum.x), float(-optimum.fun)
