"""Finite networks with explicit Gaussian weights, drawn exactly as the network is defined."""

import numpy as np

BLOCK = 4_000_000  # weights drawn at once


def sample(net, phi, N, samples, seed, K0=None, X=None, readin=(1.0, 0.0)):
    """Residual kernels C^(l) of `samples` networks of width N: (samples, L+2, P, P).

    C^(0) is the input kernel, C^(l) = a_l phi(h^(l-1)) phi(h^(l-1))^T / N + c_l for l = 1..L+1.
    Inputs: either X (P, d) with readin = (sigma_w,in^2, sigma_b,in^2), h^(0) = W_in x + b_in,
    or K0 (P, P) (scalar: P = 1), every neuron's h^(0) drawn from N(0, K0).
    """
    rng = np.random.default_rng(seed)
    if X is not None:
        X = np.asarray(X, dtype=float)
        K0 = readin[0] * X @ X.T / X.shape[1] + readin[1]
    K0 = np.atleast_2d(np.asarray(K0, dtype=float))
    chunk = max(1, BLOCK // N**2)
    sizes = [min(chunk, samples - start) for start in range(0, samples, chunk)]
    return np.concatenate([_chunk(net, phi, N, size, rng, K0, X, readin) for size in sizes])


def _chunk(net, phi, N, size, rng, K0, X, readin):
    if X is None:
        values, vectors = np.linalg.eigh(K0)
        root = vectors * np.sqrt(np.clip(values, 0, None))
        h = rng.standard_normal((size, N, len(K0))) @ root.T
    else:
        W = rng.standard_normal((size, N, X.shape[1])) * np.sqrt(readin[0] / X.shape[1])
        h = W @ X.T + np.sqrt(readin[1]) * rng.standard_normal((size, N, 1))
    C = [np.broadcast_to(K0, (size, *K0.shape))]
    for rho, gamma in zip(net.rho, net.gamma, strict=True):
        activity = phi(h)
        gram = activity.transpose(0, 2, 1) @ activity / N
        C.append(rho**2 * (net.weight_variance * gram + net.bias_variance))
        W = rng.standard_normal((size, N, N)) * np.sqrt(net.weight_variance / N)
        b = rng.standard_normal((size, N, 1)) * np.sqrt(net.bias_variance)
        h = gamma * h + rho * (W @ activity + b)
    activity = phi(h)
    gram = activity.transpose(0, 2, 1) @ activity / N
    C.append(net.readout_weight_variance * gram + net.readout_bias_variance)
    return np.stack(C, axis=1)
