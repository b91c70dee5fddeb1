"""⟨φ(x)φ(y)φ(z)φ(w)⟩ of φ that is a line on either side of zero, by integrals over two angles.

In polar coordinates of both pairs, (x, y) = r R e(θ) and (z, w) = s Q e(η), the average is one of
r² p(θ) s² q(η). With the density exp(−(A r² + B s² − 2 C r s)/2) the radial integrals are the third
derivative of (π/2 + arcsin c)/√(1 − c²) at c = C/√(AB), over (AB)².
"""

from itertools import pairwise

import numpy as np


def fourth_moment(slopes, K, panels=8, nodes=24):
    """⟨φφφφ⟩ of variables with the covariance K (4, 4), φ with slopes below and above zero."""
    R, Q = np.linalg.cholesky(K[:2, :2]), np.linalg.cholesky(K[2:, 2:])
    X = np.linalg.solve(Q, np.linalg.solve(R, K[:2, 2:]).T).T
    inverse = np.linalg.inv(np.block([[np.eye(2), X], [X.T, np.eye(2)]]))
    A, B = inverse[:2, :2], inverse[2:, 2:]
    C = -inverse[:2, 2:]
    theta, one, p = _sectors(slopes, R, panels, nodes)
    eta, other, q = _sectors(slopes, Q, panels, nodes)
    a = np.einsum("in,ij,jn->n", theta, A, theta)[:, None]
    b = np.einsum("in,ij,jn->n", eta, B, eta)
    c = theta.T @ C @ eta / np.sqrt(a * b)
    density = np.sqrt(np.linalg.det(inverse)) / (2 * np.pi) ** 2
    return density * ((one * p) @ (_radial(c) / (a * b) ** 2) @ (other * q))


def _radial(c):
    """d³/dc³ of f = (π/2 + arcsin c)/√(1 − c²), by (1 − c²) f' = 1 + c f."""
    rest = (1 - c) * (1 + c)
    f = (np.pi / 2 + np.arcsin(c)) / np.sqrt(rest)
    first = (1 + c * f) / rest
    second = (f + 3 * c * first) / rest
    return (4 * first + 5 * c * second) / rest


def _sectors(slopes, R, panels, nodes):
    """Directions (2, n), weights and φ(x)φ(y), between the angles where x or y is zero."""
    zeros = np.arctan2(-R[:, 0], R[:, 1])
    ends = np.sort(np.mod(np.concatenate([zeros, zeros + np.pi]), 2 * np.pi))
    ends = np.append(ends, ends[0] + 2 * np.pi)
    edges = np.concatenate([np.linspace(*two, panels + 1)[:-1] for two in pairwise(ends)])
    edges = np.append(edges, ends[-1])
    x, w = np.polynomial.legendre.leggauss(nodes)
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    angle = (middle[:, None] + half[:, None] * x).ravel()
    along = np.stack([np.cos(angle), np.sin(angle)])
    h = R @ along
    return (
        along,
        (half[:, None] * w).ravel(),
        np.where(h > 0, slopes[1], slopes[0]).prod(0) * h.prod(0),
    )
