"""Linear networks with a readout of mean-field size, infinitely wide: the closed solution.

Outputs are f = (s/N) w·φ(h), noise has the variance s² κ/N; labels Y (P,) of the first inputs.
"""

import numpy as np
from scipy import optimize


def linear_scale(K, Y, noise, s, layers):
    """t of a feed-forward linear network, whose outputs have the kernel t^layers K, and minima.

    ``layers`` are N × N matrices and the readout. −ln p/N of the squared scales e^x_l of all of
    them is ½ Σ (e^x − 1 − x) + ½ Yᵀ(κ + e^Σx K)⁻¹Y/s², lowest where all x are equal. Also whether
    this has several minima, and the eigenvalues of its Hessian by x_1, ..., x_layers at the lowest.
    """
    values, vectors = np.linalg.eigh(K)
    squares = (vectors.T @ Y) ** 2

    def label(x, order):
        strength = np.multiply.outer(np.exp(layers * x), values)
        A = noise + strength
        slope = -strength / A**2
        return [1 / A, slope, slope + 2 * strength**2 / A**3][order] @ squares / (2 * s**2)

    def slope(x):
        return np.expm1(x) / 2 + label(x, 1)

    x = np.linspace(0.0, 8.0, 40_001)
    slopes = slope(x)
    rising = np.flatnonzero((slopes[:-1] < 0) & (slopes[1:] >= 0))
    roots = [optimize.brentq(slope, x[i], x[i + 1], xtol=1e-15) for i in rising]
    heights = [layers / 2 * (np.expm1(y) - y) + label(y, 0) for y in roots]
    lowest = roots[int(np.argmin(heights))]
    hessian = np.exp(lowest) / 2 * np.eye(layers) + label(lowest, 2)
    return np.exp(lowest), len(roots) > 1, np.linalg.eigvalsh(hessian)
