"""The output variance with the largest response, and the time that the flow takes to reach it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import sympy as sp

from fieldtheory import validation
from fieldtheory.compiling.functions import lambdify
from fieldtheory.networks.coefficients import unit_branch
from fieldtheory.networks.family import LayeredNetwork, checked_network
from fieldtheory.networks.parameters import named_arguments
from fieldtheory.numerics.infinite_width.block_functions import network_functions
from fieldtheory.numerics.pair_maps.pair_averages import (
    PairFunctions,
    as_far_as_known,
    pair_functions,
)
from fieldtheory.numerics.recursion import residual_kernel
from fieldtheory.scaling import deep_limit
from fieldtheory.theory import notation as sym
from fieldtheory.theory.depth_flow import KERNEL, flow_rate
from fieldtheory.theory.elementary_averages import LayerAverages

# Below, averages without closed forms have no digits of M''.
_SEARCHED = np.geomspace(1e-8, 1e8, 321)
# Relative error of the time that the flow takes, and digits of what its correction needs.
_TIME = 1e-12
_DIGITS = 30
# Differences of heights that may be rounding.
_FLAT = 1e-12


@named_arguments
def optimal_output_variance(
    network: LayeredNetwork,
    digits: int | None = None,
    proven: bool = False,
    certificate: str | Path | None = None,
) -> Any:
    """The variance K*_out before the readout with the largest response in the deep limit.

        K*_out = argmax_K M'(K) [σ²_w M(K) + σ²_b],   M(K) = ⟨φ²⟩

    A deep residual network that is scaled optimally ends at this variance, whatever its depth and
    input: ρ enters through ρ² L only, and the response is M'(K) F(K) / F(K^(0)). It depends on
    the activation and on σ²_b/σ²_w.

    Parameters
    ----------
    network : LayeredNetwork
        Of its parameters ``activation``, ``weight_variance`` and ``bias_variance`` are used.
    digits : int, optional
        With ``proven=True``: digits of the interval.
    proven : bool
        An interval in which M' F has one stationary point, a maximum: its derivative is proven to
        be positive at the lower end, negative at the upper end, and to fall in between. That it
        is the global maximum is not proven. It needs python-flint, the extra ``proven``.
    certificate : str or Path, optional
        With ``proven=True``: a JSON file for the interval and what is needed to check it, by
        ``tools/check_certificate.py`` of the repository for erf.

    Returns
    -------
    float, or flint.arb if proven
        Dimensionless like K. 0 where the response is largest at K = 0, so that no residual branch
        is best for every input: for erf from σ²_b/σ²_w = 1/π on.

    Raises
    ------
    TypeError
        If ``network`` is not a network.
    ValueError
        If there is no maximum, as for linear, ReLU, GELU and swish, whose response grows with K
        without bound, or for vanishing weights; if K*_out = 0 shall be proven.
    PrecisionError
        If the signs are not proven to so many digits.

    Notes
    -----
    New here. F25 section III.1 has (V/2)² in its place, 1/4 for erf; that is K*_out for
    σ²_b/σ²_w = 0.0409, and K*_out = 0.3054 without biases.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> round(optimal_output_variance(ResidualNetwork(depth=1, bias_variance=0.0)), 4)
    0.3054
    >>> print(optimal_output_variance(ResidualNetwork(depth=1), digits=20, proven=True).str(21))
    [0.25113205320327274754 +/- 3.07e-21]
    """
    digits = proven_digits(digits, proven)
    candidates, values = _maxima(*_parameters(network), network.activation.name)
    variance = float(candidates[np.argmax(values)])
    if not proven:
        if certificate is not None:
            raise ValueError(f"certificate needs proven=True, got {certificate!r}")
        return variance
    if variance == 0:
        raise ValueError("proven must be False where K*_out = 0")
    # They need python-flint.
    from fieldtheory.precision import certificates
    from fieldtheory.scaling import enclosed_optima

    ball = enclosed_optima.output_variance(network, variance, digits)
    if certificate is not None:
        written = certificates.of_output_variance(network, digits, ball)
        certificates.write(certificate, written)
    return ball


def proven_digits(digits: int | None, proven: bool) -> int:
    """The digits of an enclosure, 0 where none is asked for."""
    if proven != (digits is not None):
        raise ValueError(
            f"digits and proven=True must be given together, got digits={digits!r} and "
            f"proven={proven!r}"
        )
    return validation.integer("digits", digits, 1) if proven else 0


def variance_scaling(network: LayeredNetwork, K0: np.ndarray, order: int) -> np.ndarray:
    """ρ* of the variances K0 (...) in the deep limit, with its 1/L correction for order 2.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> net = ResidualNetwork(depth=50)
    >>> variance_scaling(net, np.array([0.05]), 1), variance_scaling(net, np.array([0.05]), 2)
    (array([0.1366]), array([0.1383]))
    """
    parameters = _parameters(network)
    candidates, values = _maxima(*parameters, network.activation.name)
    if parameters[2] == 0 and (K0 == 0).any():
        raise ValueError("K0 must be > 0 without biases for the method deep_limit, got 0.0")
    later = (candidates[:, None] > K0.ravel()) & (candidates[:, None] > 0)
    heights = np.where(later, values[:, None], -np.inf)
    best = heights.argmax(axis=0)
    grows = heights.max(axis=0) > _log_response(K0.ravel(), *parameters)
    result = np.zeros(K0.size)
    for target in np.unique(best[grows]):
        chosen = np.flatnonzero(grows & (best == target))
        result[chosen] = _scaling(network, K0.ravel()[chosen], float(candidates[target]), order)
    return result.reshape(K0.shape)


def _scaling(network: LayeredNetwork, K0: np.ndarray, end: float, order: int) -> np.ndarray:
    averages, weight, bias = _parameters(network)
    time = _time(K0, end, averages, weight, bias)
    if order == 1:
        return np.sqrt(time / network.depth)
    start = _rate(K0, averages, weight, bias), weight * averages.susceptibility(K0)
    change = _correction()(time, *start, *_at_optimum(averages, weight, bias, end))
    return second_order(network, time, change)


def second_order(network: LayeredNetwork, time: np.ndarray, change: np.ndarray) -> np.ndarray:
    """ρ* = (T_0/L)^(1/2) [1 + T_1/(2 T_0 L)] of T_0 and T_1, for ρ*² L = T_0 + T_1/L + ..."""
    factor = 1 + change / (2 * time * network.depth)
    if (factor <= 0).any():
        raise ValueError(
            f"network must be deeper for order 2: at depth {network.depth} the correction exceeds "
            "the leading order"
        )
    return factor * np.sqrt(time / network.depth)


def _parameters(network: LayeredNetwork) -> tuple[PairFunctions, float, float]:
    checked_network(network, "optimal_output_variance")
    branch = unit_branch(network)
    if branch.weight == 0:
        raise ValueError("network must have weight_variance > 0 to respond to its input, got 0.0")
    return pair_functions(network_functions(network)), *branch


@lru_cache(maxsize=64)
def _maxima(
    averages: PairFunctions, weight: float, bias: float, name: str
) -> tuple[np.ndarray, np.ndarray]:
    """The local maxima of ln[M'(K) F(K)] over K >= 0, and their values."""
    # SciPy's optimisers take a third of the import time of the package.
    from scipy.optimize.elementwise import find_root

    def slope(K: np.ndarray) -> np.ndarray:
        M, gain, curvature = averages.moments(K)
        return curvature / gain + weight * gain / residual_kernel(weight, bias, M)

    # NaN from where averages of functions that oscillate do not converge.
    searching = pair_functions(averages.entries, searching=True)
    heights = _log_response(_SEARCHED, searching, weight, bias)
    (near,) = np.nonzero(_near_tops(heights) & np.isfinite(heights))
    with np.errstate(all="ignore"):
        slopes = np.full(len(_SEARCHED), np.nan)
        (slopes[near],) = as_far_as_known(lambda K: [slope(K)], 1, _SEARCHED[near])
        inside = np.flatnonzero((slopes[:-1] > 0) & (slopes[1:] <= 0))
        bounds = _SEARCHED[inside], _SEARCHED[inside + 1]
        candidates = find_root(slope, bounds, tolerances={"xrtol": 4e-16}).x
    if slopes[0] <= 0:
        candidates = np.append(0.0, candidates)
    if not len(candidates):
        vanishes = (heights == -np.inf).all()
        said = "vanishes" if vanishes else "grows with the output variance without bound"
        raise ValueError(f"network must have a response with a maximum in ρ; that of {name} {said}")
    # At K = 0 itself kinks have infinite derivatives.
    return candidates, _log_response(np.maximum(candidates, _SEARCHED[0]), averages, weight, bias)


def _near_tops(heights: np.ndarray) -> np.ndarray:
    """Places that may be next to a maximum, the ends among them; slopes are costlier."""
    tops = np.ones(len(heights), dtype=bool)
    middle = heights[1:-1] + _FLAT
    tops[1:-1] = (middle >= heights[:-2]) & (middle >= heights[2:])
    return tops | np.append(tops[1:], True) | np.append(True, tops[:-1])


def _log_response(K: np.ndarray, averages: PairFunctions, weight: float, bias: float) -> np.ndarray:
    """ln[M' F]."""
    M, gain = averages.moments(K, 1)
    with np.errstate(divide="ignore"):
        return np.log(np.abs(gain * residual_kernel(weight, bias, M)))


def _rate(K: np.ndarray, averages: PairFunctions, weight: float, bias: float) -> np.ndarray:
    """F(K)."""
    return residual_kernel(weight, bias, averages.second_moment(K))


def _time(
    K0: np.ndarray, end: float, averages: PairFunctions, weight: float, bias: float
) -> np.ndarray:
    """T_0 = ∫ dK/F(K) from K0 to the end."""
    from scipy.integrate import quad_vec

    # In ln(K + s), s = σ²_b/(σ²_w M'), the integrand (K + s)/F hardly changes while F is linear.
    offset = bias / (weight * abs(float(averages.susceptibility(end))))
    low = np.log(K0 + offset)
    width = np.log(end + offset) - low

    def integrand(x: float) -> np.ndarray:
        shifted = np.exp(low + width * x)
        # Rounding must not leave the range of a variance.
        return width * shifted / _rate(np.clip(shifted - offset, K0, end), averages, weight, bias)

    time, error = quad_vec(integrand, 0, 1, epsabs=0, epsrel=_TIME, norm="max")
    if error > _TIME * time.max():
        raise ArithmeticError(f"the time to the optimum was not found to {_TIME:g}")
    return time


@lru_cache
def _correction() -> Callable[..., Any]:
    """T_1 of T_0, of F_0, F'_0 and of F, F', F'' and Φ'' at the optimum."""
    terms = deep_limit.correction()
    return lambdify([terms.T0, *terms.start, *terms.end, terms.curvature], terms.time)


@lru_cache(maxsize=64)
def _at_optimum(
    averages: PairFunctions, weight: float, bias: float, end: float
) -> tuple[float, ...]:
    """F, F', F'' and Φ'' at K*_out."""
    with mpmath.workdps(_DIGITS):
        values = _end_values(averages.averages)(end, mpmath.sqrt(weight), mpmath.sqrt(bias))
        return tuple(float(value) for value in values)


@lru_cache(maxsize=64)
def _end_values(averages: LayerAverages) -> Callable[..., Any]:
    K = KERNEL
    F = flow_rate(averages)
    gain = sp.log(sp.diff(F, K) * F)
    wanted = [F, sp.diff(F, K), sp.diff(F, K, 2), sp.diff(gain, K, 2)]
    return lambdify([K, sym.WEIGHT, sym.BIAS], wanted, "mpmath")
