"""The posterior of a tiny linear network by quadrature."""

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
