"""Rescaled residual scalings and responses, under which networks look alike (F23 section 3.1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.scaling.optimum import optimal_scaling


def rescaled_by_weights(
    network: ResidualNetwork, branch_scale: Any, response: Any
) -> tuple[np.ndarray, np.ndarray]:
    """ρ̂ = ρ σ_w and χ̂^out = χ^out/σ²_w,out, for networks of different weights (F23 Fig. 5(c)).

    ρ enters the recursion as ρ² σ²_w and ρ² σ²_b, and σ²_w,out is a factor of the response.

    Parameters
    ----------
    network : ResidualNetwork
        Supplies σ²_w and σ²_w,out.
    branch_scale : array_like, any shape
        ρ.
    response : array_like, same shape
        χ^out.

    Returns
    -------
    pair of ndarray
        ρ̂ and χ̂^out, each of that shape.

    Raises
    ------
    ValueError
        If an array is not finite, or the readout has no weights.

    Notes
    -----
    The curves of networks with one σ²_b/σ²_w fall onto each other exactly. F23 varies σ²_w at fixed
    σ²_b: there they do so up to the change of σ²_b/σ²_w.

    Examples
    --------
    >>> net = ResidualNetwork(depth=30, weight_variance=4.0)
    >>> rescaled_by_weights(net, [0.1, 0.2], [2.0, 1.0])
    (array([0.2, 0.4]), array([0.5 , 0.25]))
    """
    rho = validation.finite_array("branch_scale", branch_scale)
    chi = validation.finite_array("response", response)
    readout, _ = network.readout_variances
    if readout == 0:
        raise ValueError("network must have a readout_weight_variance > 0, got 0.0")
    return rho * np.sqrt(network.weight_variance), chi / readout


def rescaled_by_biases(
    network: ResidualNetwork,
    branch_scale: Any,
    K0: float,
    reference_bias_variance: float,
    slope: float | None = 1.0,
) -> np.ndarray:
    """ρ̂ = ρ ρ*(σ_b,ref)/ρ*(σ_b), for networks of different biases (F23 Fig. 5(d)).

    ρ* is that of the saturation argument, F23 eq. (8).

    Parameters
    ----------
    network : ResidualNetwork
    branch_scale : array_like, any shape
        ρ.
    K0 : float
        Variance of the input.
    reference_bias_variance : float
        σ²_b,ref.
    slope : float, optional
        Slope of the linearised activation, 1 in F23; None for φ'(0), F25 eq. (67).

    Returns
    -------
    ndarray, shape of ``branch_scale``

    Raises
    ------
    ValueError
        If the input saturates the activation, so that ρ*(σ_b) = 0, or as in `optimal_scaling`.

    Examples
    --------
    >>> net = ResidualNetwork(depth=30, bias_variance=0.1)
    >>> rescaled_by_biases(net, [0.1, 0.2], 0.05, reference_bias_variance=0.05).round(4)
    array([0.1123, 0.2246])
    """
    rho = validation.finite_array("branch_scale", branch_scale)
    reference = network.replace(bias_variance=reference_bias_variance)
    variance = validation.nonnegative("K0", K0)
    scalings = optimal_scaling([reference, network], variance, method="saturation", slope=slope)
    wanted, own = np.asarray(scalings)
    if own == 0:
        raise ValueError(f"K0 must be below the dynamic range, (V/2)² = 1/4, got {K0!r}")
    return rho * (wanted / own)
