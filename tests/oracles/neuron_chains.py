"""Posteriors of finite networks by Markov chains, and of wide linear ones by one equation.

Given its kernels a layer of N neurons is N independent Gaussian signals, so that a network is
standard normals xi (L+1, Q, N). Elliptical slice sampling moves all of them at once by the exact
likelihood p(Y | C^(L+1)), its readout integrated. `hamiltonian` moves weights instead.
"""

from typing import NamedTuple

import numpy as np
from scipy import optimize

BATCHES = 20


class Net(NamedTuple):
    """h^(l) = gamma h^(l-1) + f, f ~ N(0, a phi phi^T/N + c); readout with `a_out`, `c_out`."""

    phi: object
    depth: int
    gamma: float
    a: float
    c: float
    a_out: float
    c_out: float
    width: int


class Estimate(NamedTuple):
    """Means over the chain and their standard errors: C^(1..L+1), outputs (Q, d), variances."""

    kernels: np.ndarray
    kernels_error: np.ndarray
    mean: np.ndarray
    mean_error: np.ndarray
    variance: np.ndarray


def root(matrix):
    """R with R R^T the matrix, which may be singular, to 1e-12 of its size."""
    return np.linalg.cholesky(matrix + 1e-12 * max(np.trace(matrix), 1e-300) * np.eye(len(matrix)))


def kernels_of(net, start, xi):
    """C^(1), ..., C^(L+1) of one network; `start` is the root of K0."""
    h, found = start @ xi[0], []
    for level in range(1, net.depth + 2):
        f = net.phi(h)
        last = level > net.depth
        a, c = (net.a_out, net.c_out) if last else (net.a, net.c)
        found.append(a * f @ f.T / net.width + c)
        if not last:
            h = net.gamma * h + root(found[-1]) @ xi[level]
    return np.array(found)


def log_likelihood(C, Y, noise):
    factor = np.linalg.cholesky(C[: len(Y), : len(Y)] + noise * np.eye(len(Y)))
    white = np.linalg.solve(factor, Y)
    return -Y.shape[1] * np.log(np.diag(factor)).sum() - 0.5 * (white**2).sum()


def elliptical(net, K0, Y, noise, steps, seed):
    """`Estimate` from so many moves, after a quarter as many that are left out."""
    rng = np.random.default_rng(seed)
    start, count = root(K0), len(Y)
    xi = rng.standard_normal((net.depth + 1, len(K0), net.width))
    C = kernels_of(net, start, xi)
    level, kept = log_likelihood(C[-1], Y, noise), []
    for step in range(-steps // 4, steps):
        other, below = rng.standard_normal(xi.shape), level + np.log(rng.random())
        angle = rng.uniform(0, 2 * np.pi)
        low, high = angle - 2 * np.pi, angle
        while True:
            tried = xi * np.cos(angle) + other * np.sin(angle)
            C = kernels_of(net, start, tried)
            level = log_likelihood(C[-1], Y, noise)
            if level > below:
                break
            low, high = (angle, high) if angle < 0 else (low, angle)
            angle = rng.uniform(low, high)
        xi = tried
        if step >= 0:
            known = C[-1][:, :count]
            A = known[:count] + noise * np.eye(count)
            solved = np.linalg.solve(A, np.concatenate([Y, known.T], axis=1))
            explained = np.einsum("ij,ji->i", known, solved[:, Y.shape[1] :])
            kept.append((C, known @ solved[:, : Y.shape[1]], np.diag(C[-1]) - explained))
    kernels, means, variances = (np.array(values) for values in zip(*kept, strict=True))
    (C, C_error), (mean, mean_error) = _batched(kernels), _batched(means)
    variance = variances.mean(axis=0)[:, None] + means.var(axis=0)
    return Estimate(C, C_error, mean, mean_error, variance)


def _batched(values):
    """Mean over a chain and its standard error from consecutive batches."""
    parts = values.reshape(BATCHES, -1, *values.shape[1:]).mean(axis=1)
    return parts.mean(axis=0), parts.std(axis=0) / np.sqrt(BATCHES - 1)


def hamiltonian(net, X, Y, noise, samples, steps, size, slope, seed):
    """Mean output kernel (P, P) and outputs (P,) by Hamiltonian Monte Carlo on all weights.

    `X` (P, D) with K0 = X X^T/D; no biases, one output; weights are standard normals.
    """
    rng = np.random.default_rng(seed)
    N, (_, D) = net.width, X.shape
    shapes = [(D, N), *[(N, N)] * net.depth, (N, 1)]
    scales = [D**-0.5, *[(net.a / N) ** 0.5] * net.depth, (net.a_out / N) ** 0.5]

    def forward(W):
        h = [X @ W[0] * scales[0]]
        for w, scale in zip(W[1:-1], scales[1:-1], strict=True):
            h.append(net.gamma * h[-1] + net.phi(h[-1]) @ w * scale)
        return h, net.phi(h[-1]) @ W[-1] * scales[-1]

    def energy(W):
        return sum((w**2).sum() for w in W) / 2 + ((forward(W)[1] - Y) ** 2).sum() / (2 * noise)

    def gradient(W):
        h, f = forward(W)
        error = (f - Y) / noise
        found = [net.phi(h[-1]).T @ error * scales[-1]]
        back = (error @ W[-1].T) * scales[-1] * slope(h[-1])
        for level in range(net.depth, 0, -1):
            found.append(net.phi(h[level - 1]).T @ back * scales[level])
            through = back @ W[level].T * scales[level] * slope(h[level - 1])
            back = net.gamma * back + through
        found.append(X.T @ back * scales[0])
        return [w + g for w, g in zip(W, found[::-1], strict=True)]

    W = [rng.standard_normal(shape) for shape in shapes]
    kernels, outputs, accepted = [], [], 0
    for sample in range(-samples // 4, samples):
        p = [rng.standard_normal(shape) for shape in shapes]
        before = energy(W) + sum((q**2).sum() for q in p) / 2
        moved, g = [w.copy() for w in W], gradient(W)
        length = size * rng.uniform(0.7, 1.3)
        for _ in range(steps):
            p = [q - length / 2 * x for q, x in zip(p, g, strict=True)]
            moved = [w + length * q for w, q in zip(moved, p, strict=True)]
            g = gradient(moved)
            p = [q - length / 2 * x for q, x in zip(p, g, strict=True)]
        after = energy(moved) + sum((q**2).sum() for q in p) / 2
        if np.log(rng.random()) < before - after:
            W, accepted = moved, accepted + 1
        if sample >= 0:
            h, f = forward(W)
            features = net.phi(h[-1])
            kernels.append(net.a_out * features @ features.T / N)
            outputs.append(f[:, 0])
    rate = accepted / len(kernels) / 1.25
    return *_batched(np.array(kernels)), *_batched(np.array(outputs)), rate


def renormalisation(K, y, hidden_layers, width):
    """u of Q. Li and H. Sompolinsky (2021) without noise: 1 − u = (P/N)(1 − u^−n yᵀK⁻¹y/P)."""
    load, norm = len(y) / width, y @ np.linalg.solve(K, y) / len(y)
    return optimize.brentq(lambda u: 1 - u - load * (1 - norm / u**hidden_layers), 1e-6, 1e3)
