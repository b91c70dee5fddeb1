"""Dense float64 quadrature of <f(h)> over h ~ N(0, K).

`average` integrates one whitened coordinate after the other (h = L z, L a pivoted Cholesky
factor). Each coordinate is cut into Gauss-Legendre panels that meet wherever a raw coordinate
vanishes, so a kink or jump of f at h_i = 0 costs no accuracy, and that shrink geometrically
towards these points down to the smallest scale of the integrand. `average_smooth` is the
trapezoidal rule, which converges geometrically for analytic f and reaches four variables.
"""

import numpy as np

CUT = 10.5  # exp(-CUT^2 / 2) is 1e-24
NEGLIGIBLE = 1e-30
BLOCK = 2000  # points of the outer coordinates handled at once


def average1(f, K):
    """<f(h)> for one Gaussian variable of variance K (scalar); f maps arrays to arrays."""
    return average(f, [[K]])


def average2(f, K):
    """<f(h_1, h_2)> for covariance K (2, 2), which may be singular."""
    return average(f, K)


def average(f, K):
    """<f(h_1, .., h_n)> for covariance K (n, n), n <= 3; f is smooth off the planes h_i = 0."""
    factor = cholesky(np.asarray(K, dtype=float))
    n, rank = factor.shape
    order = 14 if rank < 3 else 10
    means, weights = np.zeros((n, 1)), np.ones(1)
    for j in range(rank - 1):
        means, weights = _integrate_out(means, weights, factor, j, order)
    if rank == 0:
        return float(f(*np.zeros((n, 1)))[0])
    total = 0.0
    for start in range(0, weights.size, BLOCK):
        part = slice(start, start + BLOCK)
        h, w = _integrate_out(means[:, part], weights[part], factor, rank - 1, order)
        total += np.sum(w * f(*h))
    return float(total)


def average_smooth(f, K, step=0.4, cut=7.0):
    """<f(h_1, .., h_n)> by the trapezoidal rule on z in [-cut, cut]^rank; f analytic, n <= 4."""
    values, vectors = np.linalg.eigh(np.asarray(K, dtype=float))
    keep = values > 1e-14 * max(values.max(), 1e-300)
    factor = vectors[:, keep] * np.sqrt(values[keep])
    count = int(np.ceil(cut / step))
    z = step * np.arange(-count, count + 1)
    grid = np.stack(np.meshgrid(*[z] * factor.shape[1], indexing="ij")).reshape(keep.sum(), -1)
    weights = np.exp(-0.5 * np.sum(grid**2, axis=0))
    used = weights > 1e-20
    weights = weights[used] / (np.sqrt(2 * np.pi) / step) ** keep.sum()
    return np.sum(weights * f(*(factor @ grid[:, used])), axis=-1)


def cholesky(K):
    """L (n, rank) with K = L L^T, for a positive semidefinite K (n, n), largest pivot first."""
    rest, columns = K.copy(), []
    while True:
        pivot = int(np.argmax(np.diag(rest)))
        if rest[pivot, pivot] <= 8 * np.finfo(float).eps * np.max(np.diag(K)):
            break
        column = rest[:, pivot] / np.sqrt(rest[pivot, pivot])
        columns.append(column)
        rest = rest - np.outer(column, column)
        rest[pivot, :] = rest[:, pivot] = 0.0
    return np.array(columns).reshape(-1, len(K)).T


def _integrate_out(means, weights, factor, j, order):
    """Attach nodes for z_j: means (n, points) -> (n, points'), weights (points,) -> (points',)."""
    edges = _edges(means, factor, j)
    x, w = np.polynomial.legendre.leggauss(order)
    half = 0.5 * np.diff(edges, axis=0)
    z = (edges[:-1] + half)[:, None, :] + half[:, None, :] * x[:, None]
    w = half[:, None, :] * w[:, None] * np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi) * weights
    used = w > NEGLIGIBLE
    return np.stack([(means[i] + factor[i, j] * z)[used] for i in range(len(means))]), w[used]


def _edges(means, factor, j):
    """Panel edges (panels + 1, points) in z_j: unit spacing, refined around every raw zero."""
    points = means.shape[1]
    cuts = [np.full(points, z) for z in np.linspace(-CUT, CUT, 22)]
    pivots = np.max(np.abs(factor), axis=0)[j:]
    for i in np.flatnonzero(factor[:, j]):
        slope = abs(factor[i, j])
        left = np.linalg.norm(factor[i, j + 1 :])
        width = min(1.0, 1 / slope, left / slope if left > 0 else 1.0)
        if j == 0:
            width = min(width, pivots.min() / pivots.max())
        root = -means[i] / factor[i, j]
        cuts.append(root)
        for offset in width * 2.0 ** np.arange(np.ceil(-np.log2(width)) + 1):
            cuts += [root - offset, root + offset]
    return np.sort(np.clip(np.array(cuts), -CUT, CUT), axis=0)
