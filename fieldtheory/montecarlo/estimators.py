"""Estimators of reduced variance: samples less their control variates."""

from __future__ import annotations

from typing import Any

import numpy as np

from fieldtheory.montecarlo import ensemble
from fieldtheory.montecarlo.control_variate import controlled_samples, saddle_point
from fieldtheory.montecarlo.controlled_inputs import controlled_pairs, origin_of
from fieldtheory.montecarlo.moments import Summary
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.recursion import accumulate
from fieldtheory.numerics.symmetric_matrices import packed

WAYS = ("control_variate",)


def reduced_samples(
    network: LayeredNetwork,
    kernel: np.ndarray,
    across: bool,
    generator: np.random.Generator,
    size: int,
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Groups of variables (n, groups, variables), and C^(l), l >= 1, (n, L + 1, p)."""
    if kernel.size == 1:
        draws = controlled_samples(network, kernel.item(), generator, size)
        draws = {key: values[..., None] for key, values in draws.items()}
    else:
        draws = controlled_pairs(network, kernel, generator, size, across)
    rest = draws["rest"]
    return {
        "rest": rest.reshape(size, 1, -1) if across else rest.swapaxes(1, 2),
        "product": draws["product"].reshape(size, -1, 1),
        "vertex": draws["vertex"].reshape(size, -1, 1),
    }, draws["residual"]


def reduced_estimates(
    network: LayeredNetwork, kernel: np.ndarray, across: bool, summary: Summary
) -> dict[Any, Any]:
    """The estimates of `Ensemble` from the moments of `reduced_samples`.

    Parameters
    ----------
    network : LayeredNetwork
    kernel : ndarray, shape () or (P, P)
        K0.
    across : bool
        Whether different pairs of inputs are asked for.
    summary : dict of str to Moments
        ``rest``, p groups of L+1 variables or ``across`` one of all, and ``product`` and
        ``vertex``, groups of one.

    Returns
    -------
    dict of str to ndarray
    """
    if kernel.size == 1:
        origin = saddle_point(network, float(kernel.reshape(()))).residual_kernels[:, None]
    else:
        origin = packed(origin_of(network, kernel).residual_kernels)
    rest, layers = summary["rest"], len(origin) - 1
    mean, count = rest.mean, rest.count
    # The squares of the true means, without bias; the layers first, then one or two pairs.
    squares = mean[:, :, None] * mean[:, None] - rest.covariance / count
    if across:
        shape = (layers, -1, layers, origin.shape[1])
        squares = squares.reshape(shape).swapaxes(1, 2)
        product = summary["product"].mean.reshape(shape).swapaxes(1, 2)
        shift = mean.reshape(layers, -1)
    else:
        squares, shift = np.moveaxis(squares, 0, -1), mean.T
        product = summary["product"].mean.reshape(squares.shape)
    covariance = ensemble.with_input_layer(product - squares)
    own = np.diagonal(covariance, axis1=-2, axis2=-1) if across else covariance
    shift = np.concatenate([np.zeros((1, shift.shape[1])), shift])
    found = ensemble.kernel_fields(network, origin + shift, own)
    vertex = None
    if network.width > 1:
        skips = layer_coefficients(network).skips
        half = accumulate(skips, ensemble.with_input_layer(squares))
        shifts = np.diagonal(accumulate(skips, half.swapaxes(0, 1)))
        shifts = np.moveaxis(shifts, -1, 0)[:-1]
        vertex = network.width * (summary["vertex"].mean.reshape(shifts.shape) - shifts)
        found["four_point"] = np.diagonal(vertex, axis1=1, axis2=2) if across else vertex
    found = ensemble.with_output(found, kernel.ndim > 0)
    if across:
        found["cross_covariance"] = ensemble.of_inputs(covariance)
        if vertex is not None:
            found["cross_four_point"] = ensemble.of_inputs(vertex)
    return found
