"""A chain of layers: its scales, and the linear recursions every result is built from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fieldtheory.networks.residual import ResidualNetwork


@dataclass(frozen=True)
class Chain:
    """Coefficients of the layers, the layer axis first and batch axes behind it.

    Parameters
    ----------
    weights : ndarray, shape (L + 2, ...)
        a_l: 0 for the input, ρ_l² σ²_w for the residual layers, σ²_w,out for the readout.
    biases : ndarray, shape (L + 2, ...)
        c_l, the same with bias variances.
    skips : ndarray, shape (L + 2, ...)
        γ_l²; 0 for the input and the readout, which have no skip connection.
    """

    weights: np.ndarray
    biases: np.ndarray
    skips: np.ndarray


def chain(network: ResidualNetwork, trailing: int = 0, batch: int = 0) -> Chain:
    """The coefficients of a network, with ``trailing`` axes of length 1 for pairs of inputs.

    They have at least ``batch`` batch axes, new ones between the layer axis and their own, so that
    they broadcast with kernels whose batch has more axes.
    """
    scales = np.broadcast_arrays(network.branch_scales, network.skip_scales)
    rho2, gamma2 = (np.moveaxis(scale**2, -1, 0) for scale in scales)
    shape = rho2.shape
    one = np.ones((1, *shape[1:]))
    readout_weight, readout_bias = network.readout_variances

    def layers(first: float, middle: np.ndarray, last: float) -> np.ndarray:
        stacked = np.concatenate([first * one, np.broadcast_to(middle, shape), last * one])
        new = (1,) * (batch - (stacked.ndim - 1))
        return stacked.reshape(stacked.shape[:1] + new + stacked.shape[1:] + (1,) * trailing)

    return Chain(
        weights=layers(0.0, rho2 * network.weight_variance, readout_weight),
        biases=layers(0.0, rho2 * network.bias_variance, readout_bias),
        skips=layers(0.0, gamma2, 0.0),
    )


def accumulate(skips: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Σ_m A²_lm rows_m for every l, by x_l = γ_l² x_{l-1} + rows_l."""
    sums = np.array(rows, dtype=float)
    for l in range(1, len(sums)):
        sums[l] += skips[l] * sums[l - 1]
    return sums


def propagate(skips: np.ndarray, gains: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Δ12 rows, the response of all layers to sources in the rows, by forward substitution.

    Solves y_l = rows_l + gains_l Σ_{m<l} A²_{l-1,m} y_m in O(L) steps.
    """
    response = np.array(rows, dtype=float)
    kernel = response[0]
    for l in range(1, len(response)):
        response[l] += gains[l] * kernel
        kernel = skips[l] * kernel + response[l]
    return response
