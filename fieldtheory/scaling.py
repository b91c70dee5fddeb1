"""The optimal scaling of the residual branch."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory import validation
from fieldtheory.network import ResidualNetwork
from fieldtheory.numerics.entries import Entries, entries

METHODS = ("response", "saturation", "large_depth")

# ρ² L σ²_w is searched here; the optimum of saturating activations is of order one.
_SEARCHED = np.concatenate([[0.0], np.geomspace(1e-4, 1e4, 25)])


def optimal_scaling(
    network: ResidualNetwork,
    K0: Any,
    method: str = "response",
    dynamic_range: float = 1.0,
) -> float | np.ndarray:
    """The residual scaling ρ*, one for all layers, with the largest response of the output.

    "response" is exact: ρ* = argmax χ^out(ρ), the root of the derivative of the recursion of F25
    eqs. (51)-(55), found by a bracketing root finder around the highest maximum on a grid.
    "saturation" is F25 eq. (67), the scaling at which the linearised signal fills the dynamic
    range, K^(L) = (V/2)²; "large_depth" its form (68) for L → ∞, up to O(L^{-3/2}).

    Parameters
    ----------
    network : ResidualNetwork
        Its ``branch_scale`` is ignored.
    K0 : float or array_like, shape (P, P)
        Kernel of the input.
    method : {"response", "saturation", "large_depth"}
    dynamic_range : float
        V of the activation, for "saturation" and "large_depth".

    Returns
    -------
    float or ndarray, shape (P, P)
        ρ* of the variance, or of every entry of the kernel; 0 where the response falls from
        ρ = 0 on, as for inputs that already saturate the activation. The covariance of two
        identical inputs is their variance and has its optimum.

    Raises
    ------
    ValueError
        If the response has no maximum (as for ReLU, whose response grows without bound, or for
        the covariance of nearly identical inputs in a shallow network), or the approximations are
        asked for with covariances or γ ≠ 1, for which they are not made.

    Examples
    --------
    >>> net = ResidualNetwork(depth=50)
    >>> round(optimal_scaling(net, 0.05), 6)
    0.138385
    """
    validation.choice("method", method, METHODS)
    kernel = validation.input_kernel_array("K0", K0)
    if network.weight_variance == 0 or network.readout_variances[0] == 0:
        raise ValueError("network must have weight variances > 0 to respond to its input")
    if network.skip_scales.ndim > 1:
        raise ValueError("network must not have batch axes, got skip_scale with one")
    if method != "response":
        return _approximation(network, kernel, method, dynamic_range)
    if kernel.ndim == 0:
        return float(_maximise(_variance_slope, network, kernel[None])[0])
    if kernel.ndim != 2:
        raise ValueError(f"K0 must be a variance or a matrix (P, P), got shape {kernel.shape}")
    own = _maximise(_variance_slope, network, np.diagonal(kernel))
    result = np.where(_identical(kernel), own, 0.0)
    first, second = np.nonzero(np.triu(~_identical(kernel), 1))
    if len(first):
        fields = kernel[first, first], kernel[second, second], kernel[first, second]
        found = _maximise(_covariance_slope, network, *fields)
        result[first, second] = result[second, first] = found
    return result


def _identical(kernel: np.ndarray) -> np.ndarray:
    """Which inputs are the same up to rounding."""
    variance = np.diagonal(kernel)
    distance = variance[:, None] + variance - 2 * kernel
    return distance <= 1e-14 * (variance[:, None] + variance)


@lru_cache
def saturation_formula(large_depth: bool = False) -> sp.Eq:
    """F25 eq. (67), or (68) for large depth, as an equation for ρ*.

    Returns
    -------
    sympy.Eq
        In the symbols σ_w, σ_b, φ'(0) (``slope``), V, K^(0) and L.
    """
    slope, weight, bias, V, K0, L = _saturation_symbols()
    gain = weight**2 * slope**2
    ratio = (gain * (V / 2) ** 2 + bias**2) / (gain * K0 + bias**2)
    growth = sp.log(ratio) / L if large_depth else ratio ** (1 / L) - 1
    return sp.Eq(sp.Symbol(r"\rho^{*}"), sp.sqrt(growth) / (weight * slope))


def _saturation_symbols() -> tuple[sp.Symbol, ...]:
    names = (r"\phi'(0)", r"\sigma_{w}", r"\sigma_{b}", r"\mathcal{V}", "K^{(0)}", "L")
    return tuple(sp.Symbol(name, positive=True) for name in names)


def _approximation(
    network: ResidualNetwork, kernel: np.ndarray, method: str, dynamic_range: float
) -> float:
    if kernel.ndim:
        raise ValueError(f"K0 must be a variance for the method {method}, got {kernel.shape}")
    if not (network.skip_scales == 1).all():
        raise ValueError(f"network must have skip_scale=1 for the method {method}")
    limit = (validation.nonnegative("dynamic_range", dynamic_range) / 2) ** 2
    if kernel >= limit:
        return 0.0
    if kernel == 0 == network.bias_variance:
        raise ValueError(f"K0 must be > 0 without biases for the method {method}, got 0.0")
    slope = float(network.activation.slope_at_zero)
    if slope == 0:
        raise ValueError(f"network must have φ'(0) ≠ 0 for the method {method}")
    formula = sp.lambdify(
        _saturation_symbols(), saturation_formula(method == "large_depth").rhs, modules="math"
    )
    weight, bias = network.weight_variance**0.5, network.bias_variance**0.5
    return formula(abs(slope), weight, bias, dynamic_range, float(kernel), network.depth)


def _maximise(slope: Callable, network: ResidualNetwork, *fields: np.ndarray) -> np.ndarray:
    """ρ at the highest maximum of ln χ^out, one for each entry of the fields.

    ``slope(network, s, *fields)`` returns ln|χ^out| and its derivative by s = ρ².
    """
    # SciPy's optimisers take a third of the import time of the package.
    from scipy.optimize import elementwise

    grid = _SEARCHED / (network.depth * network.weight_variance)
    with np.errstate(all="ignore"):
        values, slopes = slope(network, grid[:, None], *(f[None] for f in fields))
    inside = (values[1:-1] > values[:-2]) & (values[1:-1] >= values[2:])
    inside &= (slopes[:-2] > 0) & (slopes[2:] < 0)
    heights = np.where(inside, values[1:-1], -np.inf)
    best = np.argmax(heights, axis=0) + 1
    at_zero = (slopes[0] <= 0) & (values[0] >= heights.max(axis=0))
    if not (inside.any(axis=0) | at_zero).all():
        raise ValueError(
            f"network must have a response with a maximum in ρ; that of {network.activation.name} "
            f"has none up to ρ = {np.sqrt(grid[-1]):.3g}"
        )
    result = np.zeros(best.shape)
    rising = ~at_zero
    with np.errstate(all="ignore"):
        found = elementwise.find_root(
            lambda s, *f: slope(network, s, *f)[1],
            (grid[best - 1][rising], grid[best + 1][rising]),
            args=tuple(f[rising] for f in fields),
        )
    if not found.success.all():
        raise ArithmeticError("the maximum of the response was not found")
    result[rising] = np.sqrt(found.x)
    return result


def _variance_slope(
    network: ResidualNetwork, s: np.ndarray, K0: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    average = entries(network.activation)
    K, dK = np.broadcast_to(K0, np.broadcast_shapes(np.shape(s), np.shape(K0))), 0.0
    value, slope = 0.0, 0.0
    for skip in network.skip_scales**2:
        gain, dgain = average.susceptibility(K), average.curvature(K) * dK
        value, slope = _grow(network, s, skip, gain, dgain, value, slope)
        K, dK = _step(network, s, skip, K, dK, average)
    gain, dgain = average.susceptibility(K), average.curvature(K) * dK
    return value + np.log(np.abs(gain)), slope + dgain / gain


def _covariance_slope(
    network: ResidualNetwork, s: np.ndarray, p0: np.ndarray, q0: np.ndarray, r0: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    average = entries(network.activation)
    shape = np.broadcast_shapes(np.shape(s), np.shape(p0))
    p, q, r = (np.broadcast_to(k, shape) for k in (p0, q0, r0))
    dp = dq = dr = np.zeros(shape)
    value, slope = 0.0, 0.0
    weight, bias = network.weight_variance, network.bias_variance
    for skip in network.skip_scales**2:
        gain = average.covariance_susceptibility(p, q, r)
        by_p, by_q, by_r = average.covariance_curvature(p, q, r)
        dgain = by_p * dp + by_q * dq + by_r * dr
        value, slope = _grow(network, s, skip, gain, dgain, value, slope)
        moment = weight * average.covariance(p, q, r) + bias
        change = (
            average.cross_susceptibility(p, q, r) * dp
            + average.cross_susceptibility(q, p, r) * dq
            + gain * dr
        )
        r, dr = skip * r + s * moment, skip * dr + moment + s * weight * change
        p, dp = _step(network, s, skip, p, dp, average)
        q, dq = _step(network, s, skip, q, dq, average)
    gain = average.covariance_susceptibility(p, q, r)
    by_p, by_q, by_r = average.covariance_curvature(p, q, r)
    dgain = by_p * dp + by_q * dq + by_r * dr
    return value + np.log(np.abs(gain)), slope + dgain / gain


def _grow(
    network: ResidualNetwork, s: Any, skip: float, gain: Any, dgain: Any, value: Any, slope: Any
) -> tuple[Any, Any]:
    """Multiply the response by γ² + s σ²_w gain: its logarithm and the derivative of that by s."""
    factor = skip + s * network.weight_variance * gain
    change = network.weight_variance * (gain + s * dgain)
    return value + np.log(np.abs(factor)), slope + change / factor


def _step(
    network: ResidualNetwork, s: Any, skip: float, K: Any, dK: Any, average: Entries
) -> tuple[Any, Any]:
    """The variance of the next layer and its derivative by s = ρ²."""
    moment = network.weight_variance * average.second_moment(K) + network.bias_variance
    growth = skip + s * network.weight_variance * average.susceptibility(K)
    return skip * K + s * moment, growth * dK + moment
