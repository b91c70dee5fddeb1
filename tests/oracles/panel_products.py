"""⟨f(x) g(y)⟩ of two Gaussian variables for functions that are smooth between given points.

Tensor products of Gauss-Legendre panels, which end at the points and are narrow against the width
of y given x; one variable alike.
"""

from itertools import pairwise

import numpy as np

CUT = 10.5
ORDER = 16
X, W = np.polynomial.legendre.leggauss(ORDER)


def nodes(points, deviation, width):
    """Nodes and weights over |h| <= CUT deviations, panels of at most this width."""
    reach = CUT * deviation
    inner = [p for p in points if abs(p) < reach]
    cuts = np.unique([-reach, *inner, reach])
    edges = np.concatenate(
        [np.linspace(a, b, 1 + int(np.ceil((b - a) / width)))[:-1] for a, b in pairwise(cuts)]
        + [[reach]]
    )
    half = np.diff(edges)[:, None] / 2
    return (edges[:-1, None] + half * (1 + X)).ravel(), (half * W).ravel()


def average1(f, points, variance):
    """⟨f(x)⟩."""
    sigma = np.sqrt(variance)
    h, w = nodes(points, sigma, min(sigma, 1.0) / 2)
    return np.sum(w * f(h) * np.exp(-(h**2) / (2 * variance))) / np.sqrt(2 * np.pi * variance)


def average2(f, g, points, K):
    """⟨f(x) g(y)⟩ for a covariance K (2, 2) that is not singular."""
    K = np.asarray(K, dtype=float)
    sigma = np.sqrt(np.diag(K))
    left = np.sqrt(np.linalg.det(K)) / sigma[::-1]
    (x, u), (y, v) = (nodes(points, s, min(l, 1.0) / 2) for s, l in zip(sigma, left, strict=True))
    inverse = np.linalg.inv(K)
    total, fx, gy = 0.0, u * f(x), v * g(y)
    for some in np.array_split(np.arange(len(x)), 1 + len(x) * len(y) // 2_000_000):
        square = inverse[0, 0] * x[some, None] ** 2 + 2 * inverse[0, 1] * x[some, None] * y
        total += fx[some] @ np.exp(-(square + inverse[1, 1] * y**2) / 2) @ gy
    return total / (2 * np.pi * np.sqrt(np.linalg.det(K)))
