"""Posteriors of tiny networks by quadrature and by importance sampling of their weights."""

import numpy as np
from scipy import stats


def linear_residual(x, y, width, branch, weight, readin, readout, noise, nodes=200):
    """Posterior means of q and of the outputs f(x) of h0 = W_in x, h1 = h0 + ρ W h0, y = W_out h1.

    For scalar inputs x (P,), without biases, f = s x with s ~ N(0, q), and
    q = σ²_out |h1|²/N at x = 1 is σ²_out σ²_in (χ²_N/N) r χ'²_N(1/r), r = ρ² σ²_w/N.
    """
    u, w = np.polynomial.legendre.leggauss(nodes)
    u, w = (u + 1) / 2, w / 2
    r = branch**2 * weight / width
    first = stats.chi2.ppf(u, width) / width
    second = r * stats.ncx2.ppf(u, width, 1 / r)
    q = (readout * readin * np.outer(first, second)).ravel()
    prior = np.outer(w, w).ravel()
    # A = q x xᵀ + κ has one eigenvalue apart from κ.
    norm, overlap = x @ x, x @ y
    large = noise + q * norm
    log_evidence = -0.5 * (np.log(large) - q * overlap**2 / (noise * large))
    posterior = prior * np.exp(log_evidence - log_evidence.max())
    posterior /= posterior.sum()
    return posterior @ q, (posterior @ (q * overlap / large)) * x


def importance(X, Y, net, phi, noise, samples, seed):
    """Posterior means over the weights drawn from the prior: outputs (P,), output kernel (P, P).

    ``net`` has N, L, gamma, rho, w, b, for all layers alike. Returns means, standard errors and
    the effective sample size.
    """
    rng = np.random.default_rng(seed)
    N, (P, d) = net["N"], X.shape

    def affine(h, fan_out):
        W = rng.normal(size=(samples, fan_out, h.shape[-1])) * (net["w"] / h.shape[-1]) ** 0.5
        b = rng.normal(size=(samples, 1, fan_out)) * net["b"] ** 0.5
        return h @ W.swapaxes(-1, -2) + b

    h = affine(np.broadcast_to(X, (samples, P, d)), N)
    for _ in range(net["L"]):
        h = net["gamma"] * h + net["rho"] * affine(phi(h), N)
    psi = phi(h)
    f = affine(psi, 1)[..., 0]
    C = net["w"] * psi @ psi.swapaxes(-1, -2) / N + net["b"]
    log_weights = -((f - Y) ** 2).sum(axis=-1) / (2 * noise)
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    found = []
    for values in (f, C):
        mean = np.tensordot(weights, values, 1)
        error = np.sqrt(np.tensordot(weights**2, (values - mean) ** 2, 1))
        found.append((mean, error))
    return found, 1 / (weights**2).sum()
