"""Posteriors of finite networks by weighting networks drawn from the prior, and by quadrature.

Labels Y (P,) of the first inputs have noise; given the kernel of the outputs all is Gaussian.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, roots_genlaguerre


class Estimates(NamedTuple):
    """Posterior means and their standard errors, by name, and the effective sample size."""

    means: dict
    errors: dict
    effective: float


def prior_kernels(phi, K0, N, layers, samples, seed):
    """C^(1..L+1) (samples, L + 1, Q, Q) of networks of width N, drawn layer by layer.

    ``layers`` are (γ_l, a_l, c_l) of l = 1, ..., L + 1: h^(l) = γ_l h^(l-1) + f^(l), f^(l) of the
    covariance C^(l) = a_l φφᵀ/N + c_l; the γ of the readout is not used.
    """
    generator, inputs = np.random.default_rng(seed), len(K0)
    h = _root(K0) @ generator.standard_normal((samples, inputs, N))
    found = []
    for l, (gamma, a, c) in enumerate(layers):
        x = phi(h)
        C = a * x @ np.swapaxes(x, 1, 2) / N + c
        found.append(C)
        if l + 1 < len(layers):
            h = gamma * h + _root(C) @ generator.standard_normal(h.shape)
    return np.stack(found, axis=1)


def _root(C):
    values, vectors = np.linalg.eigh(C)
    return vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]


def given_kernels(C, Y, noise):
    """ln p(Y|C), the means and the variances of all inputs, for kernels (n, Q, Q)."""
    P = len(Y)
    A = C[:, :P, :P] + noise * np.eye(P)
    solved = np.linalg.solve(A, np.concatenate([np.broadcast_to(Y, (len(C), P))[..., None],
                                                C[:, :P]], axis=2))  # fmt: skip
    alpha, explained = solved[..., 0], solved[..., 1:]
    log_p = -0.5 * (np.linalg.slogdet(A)[1] + alpha @ Y + P * np.log(2 * np.pi))
    mean = np.einsum("npq,np->nq", C[:, :P], alpha)
    variance = np.diagonal(C, axis1=1, axis2=2) - np.einsum("npq,npq->nq", C[:, :P], explained)
    return log_p, mean, variance


def weighted(phi, K0, Y, noise, N, layers, samples, seed, block=20_000):
    """Posterior means of kernels, what they learned, predictions and the evidence."""
    parts = [
        prior_kernels(phi, K0, N, layers, min(block, samples - start), (seed, number))
        for number, start in enumerate(range(0, samples, block))
    ]
    return of_kernels(np.concatenate(parts), Y, noise)


def of_kernels(C, Y, noise):
    """The same of kernels drawn from the prior (n, layers, Q, Q), the last those of the outputs."""
    log_p, mean, variance = given_kernels(C[:, -1], Y, noise)
    relative = np.exp(log_p - log_p.max())
    w = relative / relative.mean()
    n = len(w)

    def estimate(values, weights):
        centre = np.tensordot(weights, values, 1) / n
        shifted = weights.reshape(-1, *[1] * (values.ndim - 1)) * values - centre * (
            w.reshape(-1, *[1] * (values.ndim - 1)) if weights is w else 1.0
        )
        return centre, shifted.std(axis=0) / np.sqrt(n)

    means, errors = {}, {}
    means["residual_kernels"], errors["residual_kernels"] = estimate(C, w)
    # Against the same networks without weights: most of the scatter cancels.
    learned = C - C.mean(axis=0)
    means["learned"], errors["learned"] = estimate(learned, w)
    means["mean"], errors["mean"] = estimate(mean, w)
    second, error = estimate(variance + (mean - means["mean"]) ** 2, w)
    means["variance"], errors["variance"] = second, error
    means["log_evidence"] = log_p.max() + np.log(relative.mean())
    errors["log_evidence"] = w.std() / np.sqrt(n)
    return Estimates(means, errors, float(n**2 / (w**2).sum()))


def linear_one_label(K0, y, noise, N, first, second, nodes=120, M=None):
    """One input and label of a linear feed-forward network with one hidden layer, exactly.

    With M that of a block without skip connection, whose M hidden units are a factor χ²_M/M.

    C^(1) = a_1 K0 q + c_1, C^(2) = a_2 C^(1) q' + c_2 with q and q' = χ²_N/N independent;
    ``first`` and ``second`` are (a_l, c_l). Means of C^(1), C^(2), of the prediction, its variance
    and ln p(y).
    """
    x, w = _chi_squares(N, nodes)
    x1, w1 = x, w
    if M is not None:
        hidden = _chi_squares(M, nodes)
        x1, w1 = (np.outer(*each).ravel() for each in zip((x, w), hidden, strict=True))
    C1 = first[0] * K0 * x1[:, None] + first[1]
    C2 = second[0] * C1 * x + second[1]
    A = C2 + noise
    density = np.exp(-(y**2) / (2 * A)) / np.sqrt(2 * np.pi * A)
    total = w1[:, None] * w * density
    evidence = total.sum()
    total = total / evidence
    f, v = C2 * y / A, C2 * noise / A
    mean = (total * f).sum()
    return {
        "C1": (total.sum(axis=1) * C1[:, 0]).sum(),
        "C2": (total * C2).sum(),
        "mean": mean,
        "variance": (total * (v + (f - mean) ** 2)).sum(),
        "log_evidence": np.log(evidence),
    }


def _chi_squares(N, nodes):
    """Nodes and weights of averages over χ²_N/N."""
    x, w = roots_genlaguerre(nodes, N / 2 - 1)
    return 2 * x / N, w * np.exp(-gammaln(N / 2))


def learned_response(phi, K0, Y, noise, N, layers, samples, seed, entry, step):
    """∂⟨C^(l)⟩/∂K0 of an entry with weights p(Y|C) less that without, l >= 1, and errors.

    Of an entry without labels, by central differences at the same random numbers: signals are drawn
    input by input, those with labels first, which the entry does not move.
    """
    i, j = entry
    assert min(i, j) >= len(Y)
    differences, log_p = [], []
    for number, start in enumerate(range(0, samples, 5000)):
        size, found = min(5000, samples - start), []
        for sign in (1, -1):
            K = np.array(K0, dtype=float)
            K[i, j] = K[j, i] = K0[i][j] + sign * step
            generator = np.random.default_rng((seed, number))
            h = np.linalg.cholesky(K) @ generator.standard_normal((size, len(K), N))
            kernels = []
            for l, (gamma, a, c) in enumerate(layers):
                x = phi(h)
                kernels.append(a * x @ np.swapaxes(x, 1, 2) / N + c)
                if l + 1 < len(layers):
                    h = gamma * h + np.linalg.cholesky(kernels[-1]) @ generator.standard_normal(
                        h.shape
                    )
            found.append(np.array(kernels))
        differences.append((found[0] - found[1])[:, :, i, j] / (2 * step))
        log_p.append(given_kernels(found[0][-1], Y, noise)[0])
    D, log_p = np.concatenate(differences, axis=1), np.concatenate(log_p)
    w = np.exp(log_p - log_p.max())
    w /= w.mean()
    centred = D - D.mean(axis=1, keepdims=True)
    learned = centred @ w / samples
    errors = ((centred - learned[:, None]) * w - centred).std(axis=1) / np.sqrt(samples)
    return learned, errors, float(samples**2 / (w**2).sum())
