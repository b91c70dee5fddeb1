"""The optimal scaling of the residual branch."""

from __future__ import annotations

from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.network import ResidualNetwork
from fieldtheory.scaling import response, saturation

METHODS = ("response", "saturation", "large_depth")


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
        return saturation.scaling(network, kernel, method, dynamic_range)
    if kernel.ndim == 0:
        return float(response.variance_optima(network, kernel[None])[0])
    if kernel.ndim != 2:
        raise ValueError(f"K0 must be a variance or a matrix (P, P), got shape {kernel.shape}")
    own = response.variance_optima(network, np.diagonal(kernel))
    result = np.where(_identical(kernel), own, 0.0)
    first, second = np.nonzero(np.triu(~_identical(kernel), 1))
    if len(first):
        fields = kernel[first, first], kernel[second, second], kernel[first, second]
        found = response.covariance_optima(network, *fields)
        result[first, second] = result[second, first] = found
    return result


def _identical(kernel: np.ndarray) -> np.ndarray:
    """Which inputs are the same up to rounding."""
    variance = np.diagonal(kernel)
    distance = variance[:, None] + variance - 2 * kernel
    return distance <= 1e-14 * (variance[:, None] + variance)
