"""Without skip connections the kernels of one input are a Markov chain: 1/N² at any depth.

Given C^(l) the next one is a mean over N independent neurons, with mean M(C), variance V(C)/N and
third cumulant T(C)/N², expanded about the kernels of infinite width.
"""

import numpy as np
from numpy.polynomial import hermite_e, legendre


def coefficients(phi, kinks, K0, weights, biases):
    """Of ⟨C⟩ − C* at 1/N and 1/N², of Var C at 1/N and 1/N², of the third cumulant at 1/N²."""
    C, m1, m2, v1, v2, k3 = K0, 0.0, 0.0, 0.0, 0.0, 0.0
    found = []
    for a, c in zip(weights, biases, strict=True):
        M, V, T = _given(phi, kinks, C, a)
        C = M[0] + c
        third = T + 3 * M[1] * V[1] * v1 + M[1] ** 3 * k3 + 3 * M[2] * M[1] ** 2 * v1**2
        noise = V[1] * m1 + V[2] * v1 / 2
        moved = M[1] ** 2 * v2 + M[1] * M[2] * (2 * m1 * v1 + k3)
        bent = M[1] * M[3] * v1**2 + M[2] ** 2 * v1**2 / 2
        mean = M[1] * m2 + M[2] * (v2 + m1**2) / 2
        mean += M[3] * (k3 + 3 * v1 * m1) / 6 + M[4] * v1**2 / 8
        m1, v1 = M[1] * m1 + M[2] * v1 / 2, V[0] + M[1] ** 2 * v1
        m2, v2, k3 = mean, noise + moved + bent, third
        found.append([m1, m2, v1, v2, k3])
    return np.array(found).T


def _given(phi, kinks, C, a):
    """Mean and variance with their derivatives by C, and the third cumulant, of a φ²."""
    x, w = legendre.leggauss(16)
    cuts = np.sort([*np.linspace(-13, 13, 41), *(np.asarray(kinks) / np.sqrt(C))])
    half = np.diff(cuts)[:, None] / 2
    z = (cuts[:-1, None] + half * (1 + x)).ravel()
    w = (half * w).ravel() * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    f = a * phi(np.sqrt(C) * z) ** 2
    # Derivatives by C are averages with Hermite polynomials, for any φ.
    scores = [hermite_e.hermeval(z, np.eye(9)[2 * n]) / (2 * C) ** n for n in range(5)]
    F, G, H = ([w @ (f**power * score) for score in scores] for power in (1, 2, 3))
    variance = [G[0] - F[0] ** 2, G[1] - 2 * F[0] * F[1], G[2] - 2 * F[0] * F[2] - 2 * F[1] ** 2]
    return F, variance, H[0] - 3 * F[0] * G[0] + 2 * F[0] ** 3
