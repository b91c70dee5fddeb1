"""G11 of several inputs for φ = erf, entry by entry, in extended precision.

Networks with γ = 1, σ_b = 0 and a readout of variance one. With the covariances of two pairs of
signals multiplied by t, Price's theorem makes of ⟨φ_a φ_b ; φ_c φ_d⟩ one integral over t of

    Σ_ij K_ij ⟨φ'_i φ'_j φ_k φ_l⟩_t,        i, k of the first and j, l of the second pair,

whose averages are arcsines of the covariance tilted by φ'_i φ'_j: nothing is a difference of
averages, and no average is over four signals.
"""

from itertools import product

import numpy as np

PI = np.longdouble("3.14159265358979323846264338327950288")


def _rule():
    """Nodes t = 1 − s² and weights, graded towards t = 1."""
    x, w = np.polynomial.legendre.leggauss(30)
    edges = np.concatenate([[0.0], 2.0 ** -np.arange(12.0, -1, -1)])
    half = np.diff(edges)[:, None] / 2
    s = np.longdouble((edges[:-1, None] + half * (1 + x)).ravel())
    return 1 - s**2, np.longdouble((half * w).ravel()) * 2 * s


T, WEIGHTS = _rule()


def connected(K):
    """⟨φ_a φ_b ; φ_c φ_d⟩ of the covariance of a, b, c and d."""

    def at(x, y):
        return K[x, y] * (T if (x < 2) != (y < 2) else 1)

    total = 0
    for i, j in product((0, 1), (2, 3)):
        k, l = 1 - i, 5 - j
        x, y, c = at(i, i) + 0.5, at(j, j) + 0.5, at(i, j)
        det = x * y - c**2

        def tilted(p, q, i=i, j=j, x=x, y=y, c=c, det=det):
            first = at(p, i) * (y * at(i, q) - c * at(j, q))
            return at(p, q) - (first + at(p, j) * (x * at(j, q) - c * at(i, q))) / det

        size = np.sqrt((1 + 2 * tilted(k, k)) * (1 + 2 * tilted(l, l)))
        total += 4 / PI**2 * K[i, j] / np.sqrt(det) * np.arcsin(2 * tilted(k, l) / size)
    return np.sum(total * WEIGHTS)


def _gain(K, pair, pairs):
    """∂⟨φ_α φ_β⟩ by the entries of K."""
    (i, j), found = pair, np.zeros(len(pairs), np.longdouble)
    x, y, c = 1 + 2 * K[i, i], 1 + 2 * K[j, j], K[i, j]
    if i == j:
        found[pairs.index(pair)] = 4 / PI / (x * np.sqrt(1 + 4 * K[i, i]))
        return found
    slope = 4 / PI / np.sqrt(x * y - 4 * c**2)
    for entry, value in ((pair, slope), ((i, i), -slope * c / x), ((j, j), -slope * c / y)):
        found[pairs.index(entry)] = value
    return found


def G11(K0, depth, weight=1.0):
    """N G11 of all layers and pairs, (L + 2, L + 2, p, p), of σ²_w ρ² = ``weight``."""
    pairs = list(zip(*np.triu_indices(len(K0)), strict=True))
    p, size, a = len(pairs), depth + 1, [np.longdouble(weight)] * depth + [np.longdouble(1)]
    kernels = [np.array(K0, np.longdouble)]
    for l in range(depth):
        K = kernels[-1]
        width = np.sqrt(1 + 2 * np.diag(K))
        kernels.append(K + a[l] * 2 / PI * np.arcsin(2 * K / np.outer(width, width)))
    S22 = np.zeros((size, size, p, p), np.longdouble)
    for k, l in product(range(size), repeat=2):
        for (m, one), (n, other) in product(enumerate(pairs), repeat=2):
            if (k, m) <= (l, n):
                signals = [(layer, i) for layer, pair in ((k, one), (l, other)) for i in pair]
                K = np.array([[kernels[min(u, v)][i, j] for v, j in signals] for u, i in signals])
                S22[k, l, m, n] = S22[l, k, n, m] = a[k] * a[l] * connected(K)
    response = np.zeros((size, size, p, p), np.longdouble)
    for l in range(size):
        gain = a[l] * np.array([_gain(kernels[l], pair, pairs) for pair in pairs])
        response[l, :l] = gain @ response[:l, :l].sum(axis=0)
        response[l, l] = np.eye(p)
    found = np.zeros((size + 1, size + 1, p, p), np.longdouble)
    found[1:, 1:] = np.einsum("kmpq,mnqr,lnsr->klps", response, S22, response)
    return found.astype(float)
