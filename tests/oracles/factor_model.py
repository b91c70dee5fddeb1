"""Averages of Π_i f_i(x_i) for x = B z + √d n with two common factors z and independent noise n.

Given z the variables are independent, so that the average is that of Π_i ⟨f_i(b_i z + √d_i n)⟩ over
two variables, smooth ones, for which the trapezoidal rule converges exponentially whatever kinks
the f_i have.
"""

import numpy as np

REACH = 8.2


def covariance(B, d):
    """Of x, shape (n, n)."""
    return B @ B.T + np.diag(d)


def average(functions, kinks, B, d):
    """⟨Π f_i(x_i)⟩; all f_i are smooth but at the kinks."""
    radii = np.linalg.norm(B, axis=1)
    step = 0.42 * min(1.0, *(np.sqrt(np.asarray(d)) / np.maximum(radii, 1e-9)))
    z = step * (np.arange(-int(REACH / step), int(REACH / step) + 1) + 0.3)
    bell = step * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    total = 0.0
    for first, weight in zip(z, bell, strict=True):
        values = bell * weight
        for f, b, variance in zip(functions, B, d, strict=True):
            values = values * smoothed(f, kinks, b[0] * first + b[1] * z, np.sqrt(variance))
        total += values.sum()
    return total


def smoothed(f, kinks, means, deviation):
    """⟨f(m + σ n)⟩ by Gauss-Legendre panels that end at the kinks."""
    x, w = np.polynomial.legendre.leggauss(12)
    even = np.linspace(-REACH, REACH, 13)
    places = (np.asarray(kinks, dtype=float) - means[:, None]) / deviation
    cuts = np.concatenate([np.tile(even, (len(means), 1)), np.clip(places, -REACH, REACH)], axis=1)
    cuts = np.sort(cuts, axis=1)
    half = np.diff(cuts)[..., None] / 2
    n = (cuts[:, :-1, None] + half * (1 + x)).reshape(len(means), -1)
    weights = (half * w).reshape(len(means), -1) * np.exp(-n * n / 2) / np.sqrt(2 * np.pi)
    return (weights * f(means[:, None] + deviation * n)).sum(axis=1)
