"""Blocks x' = gamma s(x) + rho [W' a(W n(x) + b, V n(x)) + b'] with explicit weights in NumPy.

`net` is any object with the names of the constructor; scales and variances may be numbers or lists.
"""

import numpy as np


def norm(net, x):
    """n(x) of the last axis, and what the skip connection carries."""
    if net.normalization is None:
        return x, x
    if net.normalization == "layer":
        x = x - x.mean(axis=-1, keepdims=True)
    n = x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + net.epsilon)
    return n, n if net.norm_position == "post" else x


def sample(net, phi, X, samples, seed, variances):
    """C^(l) (samples, L+2, P, P), R^(l) of the skip (samples, L+1, P, P), outputs (samples, P).

    `variances` are (sigma_w^2, sigma_v^2, sigma_w'^2), the same in every layer.
    """
    rng = np.random.default_rng(seed)
    N, M = net.width, round(net.expansion * net.width)

    def affine(x, units, weight, bias):
        W = rng.standard_normal((samples, units, x.shape[-1])) * np.sqrt(weight / x.shape[-1])
        b = rng.standard_normal((samples, 1, units)) * np.sqrt(bias)
        return x @ W.transpose(0, 2, 1) + b

    def gram(x):
        return x @ x.transpose(0, 2, 1) / x.shape[-1]

    first, gate, outer = variances
    x = np.broadcast_to(X, (samples, *X.shape))
    C = [net.readin_weight_variance * gram(x) + net.readin_bias_variance]
    x, R = affine(x, N, net.readin_weight_variance, net.readin_bias_variance), []
    scales = (np.broadcast_to(s, net.depth) for s in (net.branch_scale, net.skip_scale))
    for rho, gamma in zip(*scales, strict=True):
        n, carried = norm(net, x)
        a = phi(affine(n, M, first, net.inner_bias_variance))
        if net.gated:
            a = a * affine(n, M, gate, 0.0)
        R.append(gram(carried))
        C.append(rho**2 * (outer * gram(a) + net.outer_bias_variance))
        x = gamma * carried + rho * affine(a, N, outer, net.outer_bias_variance)
    n, carried = norm(net, x)
    C.append(net.readout_weight_variance * gram(n) + net.readout_bias_variance)
    y = affine(n, 1, net.readout_weight_variance, net.readout_bias_variance)
    return np.stack(C, axis=1), np.stack([*R, gram(carried)], axis=1), y[..., 0]
