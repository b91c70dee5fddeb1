"""Cumulants of the kernels of residual networks by drawing residuals, in NumPy alone."""

import numpy as np
from scipy.special import erf, ndtr

PHI = {
    "erf": erf,
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0.0),
    "gelu": lambda x: x * ndtr(x),
}


def cumulants(net, K0, samples, seed, batches=30):
    """Mean, variance and third cumulant of every C^(l), each with its standard error."""
    rng, phi = np.random.default_rng(seed), PHI[net.activation.name]
    found = []
    for _ in range(batches):
        C = _draw(net, K0, samples // batches, rng, phi)
        apart = C - C.mean(axis=1, keepdims=True)
        found.append([C.mean(axis=1), (apart**2).mean(axis=1), (apart**3).mean(axis=1)])
    found = np.array(found)
    value, error = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(batches)
    return {legs: (value[legs - 1], error[legs - 1]) for legs in (1, 2, 3)}


def _draw(net, K0, count, rng, phi):
    h = np.sqrt(K0) * rng.standard_normal((count, net.width))
    kernels = [np.full(count, K0)]
    for rho, gamma in zip(net.branch_scales, net.skip_scales, strict=True):
        C = rho**2 * (net.weight_variance * (phi(h) ** 2).mean(axis=1) + net.bias_variance)
        h = gamma * h + np.sqrt(C)[:, None] * rng.standard_normal(h.shape)
        kernels.append(C)
    weight, bias = net.readout_variances
    kernels.append(weight * (phi(h) ** 2).mean(axis=1) + bias)
    return np.array(kernels)
