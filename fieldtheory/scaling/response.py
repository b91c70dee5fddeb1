"""The residual scaling with the largest response of the output, from the exact recursion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fieldtheory.network import ResidualNetwork
from fieldtheory.numerics.entries import Entries, entries

# ρ² L σ²_w is searched here; the optimum of saturating activations is of order one.
_SEARCHED = np.concatenate([[0.0], np.geomspace(1e-4, 1e4, 25)])


def variance_optima(network: ResidualNetwork, K0: np.ndarray) -> np.ndarray:
    """ρ* of the variances K0, the same shape."""
    return _maximise(_variance_slope, network, K0)


def covariance_optima(
    network: ResidualNetwork, p: np.ndarray, q: np.ndarray, r: np.ndarray
) -> np.ndarray:
    """ρ* of the covariances r of inputs with the variances p and q, all of one shape."""
    return _maximise(_covariance_slope, network, p, q, r)


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
