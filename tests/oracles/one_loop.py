"""Mean shift to order 1/N of one input, by two routes that share no integral.

`of_measures` moves the mean and the covariance of the empirical measure of the neurons on, on dense
panels (as `neurons`, without third cumulants, so that many nodes can be afforded). `of_one_layer`
is the formula of one loop for the kernel behind the first residual layer: nested integrals over the
signal before it and over the noise that it adds.

    N(<C> - C*) = a' [ (1/2) M''(K') a^2 <g;g> + a <g(h) d/dC <g(h')>> - a <g> M'(K') ],
    h' = gamma h + sqrt(C) xi
"""

import numpy as np

from .neurons import next_1
from .recursion import bias_terms, weight_terms


def of_measures(net, K0, phi, nodes):
    """N (<C^(l)> - C*^(l)), l = 0..L+1; ``nodes`` as for `neurons.orders`."""
    a, c = weight_terms(net), bias_terms(net)
    here = nodes(K0, None)
    mean = np.zeros(len(here.mu))
    covariance = np.diag(here.mu) - np.outer(here.mu, here.mu)
    K, found = K0, [0.0]
    for ell in range(1, len(net.gamma) + 2):
        D = a[ell] * phi(here.h) ** 2
        C = D @ here.mu + c[ell]
        found.append(D @ mean)
        if ell > len(net.gamma):
            break
        gamma = net.gamma[ell - 1]
        K = gamma**2 * K + C
        there = nodes(K, C)
        P = there.steps(here, gamma, C)
        mean, covariance, _ = next_1(here.mu, P, D, mean, covariance)
        here = there
    return np.array(found)


def of_one_layer(K, gamma, a, c, a_next, phi, cuts):
    """N (<C^(2)> - C*^(2)) for signals of variance K; ``cuts`` in h end the panels."""
    h, mu = _rule(K, cuts)
    g = phi(h) ** 2
    M = g @ mu
    C = a * M + c
    later, nu = _rule(gamma**2 * K + C, cuts)
    z2 = later**2 / (gamma**2 * K + C)
    G = phi(later) ** 2
    slope = G @ (nu * (z2 - 1)) / (2 * (gamma**2 * K + C))
    bend = G @ (nu * (z2**2 - 6 * z2 + 3)) / (4 * (gamma**2 * K + C) ** 2)
    # Given h, panels of the noise end where those of the later signal do.
    moved = np.array([_moved(phi, gamma * x, C, cuts) for x in h])
    return a_next * (bend * a**2 * (g**2 @ mu - M**2) / 2 + a * ((g * moved) @ mu - M * slope))


def _moved(phi, mean, C, cuts):
    """d/dC <g(mean + sqrt(C) xi)> by Stein's lemma."""
    xi, weight = _rule(1.0, (np.asarray(cuts) - mean) / np.sqrt(C))
    return phi(mean + np.sqrt(C) * xi) ** 2 @ (weight * (xi**2 - 1)) / (2 * C)


def _rule(K, cuts):
    """Gauss-Legendre nodes and weights for N(0, K) on panels half a deviation wide at most."""
    root = np.sqrt(K)
    ends = np.union1d(np.linspace(-10, 10, 41), np.clip(np.asarray(cuts) / root, -10, 10))
    x, w = np.polynomial.legendre.leggauss(16)
    half = np.diff(ends)[:, None] / 2
    z, w = (ends[:-1, None] + half * (1 + x)).ravel(), (half * w).ravel()
    return root * z, w * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
