"""Estimates with less variance, for one input: the ways of `simulate` to reduce it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fieldtheory.montecarlo import ensemble
from fieldtheory.montecarlo.antithetic import antithetic_samples
from fieldtheory.montecarlo.conditional import conditional_samples
from fieldtheory.montecarlo.control_variate import controlled_samples
from fieldtheory.montecarlo.moments import Summary
from fieldtheory.montecarlo.trajectories import saddle_point
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.substitution import accumulate

# Each returns for every sample what has the expectation of C − C*, of the products of two of
# these, and of the products of (h_i)² − K* of different neurons.
SAMPLERS: dict[str, Callable[..., dict[str, np.ndarray]]] = {
    "control_variate": controlled_samples,
    "antithetic": antithetic_samples,
    "conditional": conditional_samples,
}


def reduced_estimates(
    network: LayeredNetwork, kernel: np.ndarray, summary: Summary
) -> dict[Any, Any]:
    """The estimates of `Ensemble` from the moments of what one of `SAMPLERS` returns.

    Parameters
    ----------
    network : LayeredNetwork
    kernel : ndarray, shape () or (1, 1)
        K0.
    summary : dict of str to Moments
        ``rest``, one group of L+1 variables, and ``product`` and ``vertex``, groups of one.

    Returns
    -------
    dict of str to ndarray
    """
    origin = saddle_point(network, float(kernel.reshape(()))).residual_kernels
    rest, matrix = summary["rest"], kernel.ndim > 0
    mean, count = rest.mean[0], rest.count
    # The squares of the true means, without bias.
    squares = np.outer(mean, mean) - rest.covariance[0] / count
    covariance = summary["product"].mean.reshape(squares.shape) - squares
    shift = np.concatenate([[0.0], mean])
    full = np.pad(covariance, ((1, 0), (1, 0)))
    found = ensemble.kernel_fields(network, (origin + shift)[:, None], full[..., None])
    if network.width > 1:
        skips = layer_coefficients(network).skips
        half = accumulate(skips, np.pad(squares, ((1, 0), (1, 0))))
        shifts = np.diagonal(accumulate(skips, half.T))[:-1]
        vertex = summary["vertex"].mean[:, 0] - shifts
        found["four_point"] = network.width * vertex[:, None]
    return ensemble.with_output(found, matrix)
