"""Tangent kernels of finite networks: explicit weights and a backward pass written out.

One output y of a network has the gradients, with delta^(l) = dy/dh^(l) for every input,

    delta^(L) = phi'(h^(L)) W_out
    delta^(l-1) = gamma_l delta^(l) + rho_l phi'(h^(l-1)) W^(l)T delta^(l)
    dy/dW^(l)_ij = rho_l delta^(l)_i phi(h^(l-1)_j),   dy/db^(l)_i = rho_l delta^(l)_i

and dy/dW_in,ij = delta^(0)_i x_j, dy/db_in = delta^(0), dy/dW_out = phi(h^(L)), dy/db_out = 1.
"""

from typing import NamedTuple

import numpy as np

BLOCK = 1_000_000  # weights of one layer drawn at once


class Weights(NamedTuple):
    """W_in, b_in, the W^(l) and b^(l), W_out, b_out; networks in front, then (out, in)."""

    W_in: np.ndarray
    b_in: np.ndarray
    W: list
    b: list
    W_out: np.ndarray
    b_out: np.ndarray


def draw(net, N, d, outputs, samples, rng, readin):
    """Weights of `samples` networks; readin = (sigma_w,in^2, sigma_b,in^2)."""

    def layer(fan_out, fan_in, weight, bias):
        W = rng.standard_normal((samples, fan_out, fan_in)) * np.sqrt(weight / fan_in)
        return W, rng.standard_normal((samples, fan_out)) * np.sqrt(bias)

    hidden = [layer(N, N, net.weight_variance, net.bias_variance) for _ in net.rho]
    out = layer(outputs, N, net.readout_weight_variance, net.readout_bias_variance)
    W, b = zip(*hidden, strict=True)
    return Weights(*layer(N, d, *readin), list(W), list(b), *out)


def forward(net, phi, weights, X):
    """h^(0), ..., h^(L), each (samples, N, P), and y (samples, outputs, P)."""
    h = [weights.W_in @ X.T + weights.b_in[..., None]]
    for rho, gamma, W, b in zip(net.rho, net.gamma, weights.W, weights.b, strict=True):
        h.append(gamma * h[-1] + rho * (W @ phi(h[-1]) + b[..., None]))
    return h, weights.W_out @ phi(h[-1]) + weights.b_out[..., None]


def contributions(net, phi, slope, weights, X):
    """Sums over the weights, and over the biases, of each layer of dy_a/dtheta dy_b/dtheta.

    Both (samples, L + 2, P, P), the mean over the outputs; theta are the entries of the matrices
    and the biases themselves.
    """
    h, _ = forward(net, phi, weights, X)
    samples, P = len(h[0]), len(X)
    # Outputs, then inputs, on the last two axes.
    delta = slope(h[-1])[:, :, None, :] * weights.W_out.swapaxes(1, 2)[..., None]
    of_weights, of_biases = [], []

    def overlap(delta):
        return np.einsum("snoa,snob->sab", delta, delta) / delta.shape[2]

    def gram(x):
        return x.swapaxes(1, 2) @ x

    for l in range(len(net.rho), 0, -1):
        rho, gamma = net.rho[l - 1], net.gamma[l - 1]
        of_biases.append(rho**2 * overlap(delta))
        of_weights.append(of_biases[-1] * gram(phi(h[l - 1])))
        flat = delta.reshape(samples, delta.shape[1], -1)
        back = (weights.W[l - 1].swapaxes(1, 2) @ flat).reshape(delta.shape)
        delta = gamma * delta + rho * slope(h[l - 1])[:, :, None, :] * back
    of_biases.append(overlap(delta))
    of_weights.append(of_biases[-1] * (X @ X.T))
    last = gram(phi(h[-1])), np.ones((samples, P, P))
    return [
        np.stack([*reversed(found), at_readout], axis=1)
        for found, at_readout in zip((of_weights, of_biases), last, strict=True)
    ]


def sample(net, phi, slope, N, X, samples, seed, readin, outputs=8):
    """`contributions` of networks of width N that are drawn at random."""
    rng = np.random.default_rng(seed)
    X = np.asarray(X, dtype=float)
    chunk = max(1, BLOCK // N**2)
    parts = []
    for start in range(0, samples, chunk):
        size = min(chunk, samples - start)
        weights = draw(net, N, X.shape[1], outputs, size, rng, readin)
        parts.append(contributions(net, phi, slope, weights, X))
    return [np.concatenate(found) for found in zip(*parts, strict=True)]


def by_differences(net, phi, weights, X, step=1e-6):
    """`contributions` of one network by central differences of its first output, one by one."""

    def output(changed):
        return forward(net, phi, changed, X)[1][0, 0]

    def of(name, layer=None):
        array = getattr(weights, name) if layer is None else getattr(weights, name)[layer]
        gradients = _slopes(array, np.ndindex(array.shape), lambda: output(weights), step)
        return sum(np.outer(gradient, gradient) for gradient in gradients)

    layers = range(len(net.rho))
    of_weights = [of("W_in"), *(of("W", l) for l in layers), of("W_out")]
    of_biases = [of("b_in"), *(of("b", l) for l in layers), of("b_out")]
    return np.array(of_weights), np.array(of_biases)


def _slopes(array, places, value, step):
    """The derivatives of a value by the entries of an array at some places, one by one."""
    for place in places:
        kept, sides = np.copy(array[place]), []
        for sign in (1, -1):
            array[place] = kept + sign * step
            sides.append(value())
        array[place] = kept
        yield (sides[0] - sides[1]) / (2 * step)
