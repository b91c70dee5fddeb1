"""Second moments of linear networks of any Gaussian law of the parameters, entry by entry.

The mean of the vector (1, x, y, x yᵀ) of two inputs has a linear equation, from PF (10) for
φ(u) = s u and ψ(x) = x. Nothing of the package is used.
"""

import numpy as np
from scipy.linalg import expm


def moments(weights, biases, mean_W, mean_b, x, y, slope, horizon, depth=None):
    """⟨x⟩, ⟨y⟩ and ⟨x yᵀ⟩ at the end; weights (D², D²) have columns one below the other."""
    D = len(x)
    size = 1 + 2 * D + D * D
    X, Y, XY = range(1, 1 + D), range(1 + D, 1 + 2 * D), 1 + 2 * D
    first, second = np.zeros((size, size)), np.zeros((size, size))
    for o in range(D):
        for place in (X, Y):
            first[place[o], 0] += slope * mean_b[o]
            for k in range(D):
                first[place[o], place[k]] += slope * mean_W[o, k]
        for p in range(D):
            row = XY + o * D + p
            first[row, 0] += slope**2 * biases[o, p]
            first[row, Y[p]] += slope * mean_b[o]
            first[row, X[o]] += slope * mean_b[p]
            second[row, 0] += slope**2 * mean_b[o] * mean_b[p]
            for k in range(D):
                first[row, XY + k * D + p] += slope * mean_W[o, k]
                first[row, XY + o * D + k] += slope * mean_W[p, k]
                second[row, X[k]] += slope**2 * mean_W[o, k] * mean_b[p]
                second[row, Y[k]] += slope**2 * mean_b[o] * mean_W[p, k]
                for m in range(D):
                    column = XY + k * D + m
                    first[row, column] += slope**2 * weights[k * D + o, m * D + p]
                    second[row, column] += slope**2 * mean_W[o, k] * mean_W[p, m]
    start = np.concatenate([[1.0], x, y, np.outer(x, y).ravel()])
    if depth is None:
        end = expm(first * horizon) @ start
    else:
        step = horizon / depth
        layer = np.eye(size) + step * first + step**2 * second
        end = np.linalg.matrix_power(layer, depth) @ start
    return end[1 : 1 + D], end[1 + D : 1 + 2 * D], end[XY:].reshape(D, D)
