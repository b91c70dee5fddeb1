"""Mean shift to order 1/N of one input: mean and covariance of the empirical measure of neurons.

As `neurons`, on dense panels, without third cumulants, so that many nodes can be afforded.
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
