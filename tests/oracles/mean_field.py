"""Networks with a readout of mean-field size, infinitely wide: closed and integrated solutions.

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


def one_hidden_layer(phi, K0, Y, noise, a, s, points=121):
    """u = (C + κ)⁻¹Y, C (2, 2) and the Hessian in u of two inputs, by a grid of h.

    s² ln p/N is the minimum of F(u) = s² ln⟨exp a (u·φ)²/(2 s²)⟩ + ½ κ u·u − u·Y, which is convex:
    the exponential is an average of exp z u·φ over Gaussian z.
    """
    x = np.stack(np.meshgrid(*[np.linspace(-9, 9, points)] * 2)).reshape(2, -1)
    features = np.sqrt(a) * phi(np.linalg.cholesky(K0) @ x)
    prior = -np.sum(x**2, axis=0) / 2

    def tilted(u):
        exponent = prior + (u @ features) ** 2 / (2 * s**2)
        weights = np.exp(exponent - exponent.max())
        return features * weights @ features.T / weights.sum()

    def gradient(u):
        return tilted(u) @ u + noise * u - Y

    u = optimize.root(gradient, np.zeros(2), tol=1e-13).x
    step = 1e-5 * np.eye(2)
    hessian = np.array([(gradient(u + e) - gradient(u - e)) / 2e-5 for e in step])
    return u, tilted(u), hessian


def stability(phi, K0, C, tilt, u, noise, a, s, gamma=1.0, samples=200_000, seed=0):
    """Eigenvalues of the Hessian of ln p/N in the hidden kernel, and in its conjugate and u.

    One hidden matrix without biases: C^(1), C̃^(1) and u at a saddle point of

        S = −tr C̃C + ln⟨exp a φᵀ(h⁰)C̃φ(h⁰) + a (u·φ(h¹))²/(2 s²)⟩ + (½ κ u·u − u·Y)/s²,

    the least in C̃ and u and, once these are eliminated, the largest in C: the physical branch. Its
    second derivatives are covariances of a φφᵀ, of a (u·φ)φ/s² and of ∂ ln N(f; 0, C)/∂C under
    the tilted law, here by weighting. Also the gradient in C̃ and u, which vanishes, less Y.
    """
    rng = np.random.default_rng(seed)
    P = len(u)
    h0 = np.linalg.cholesky(K0) @ rng.standard_normal((P, samples))
    f = np.linalg.cholesky(C) @ rng.standard_normal((P, samples))
    first, last, inverse = phi(h0), phi(gamma * h0 + f), np.linalg.inv(C)
    basis = []
    for i, j in zip(*np.triu_indices(P), strict=True):
        E = np.zeros((P, P))
        E[i, j] = E[j, i] = 1.0
        basis.append(E)
    along, forces = u @ last, inverse @ f
    weights = np.exp(a * np.einsum("in,ij,jn->n", first, tilt, first) + a * along**2 / (2 * s**2))
    weights /= weights.sum()
    squares = [a * np.einsum("in,ij,jn->n", first, E, first) for E in basis]
    scores = [np.einsum("in,ij,jn->n", forces, E, forces) / 2 for E in basis]
    rows = np.array([*squares, *(a / s**2 * along * last), *scores])
    means = rows @ weights
    covariance = (rows * weights) @ rows.T - np.outer(means, means)
    p, features, spread = len(basis), (last * weights) @ last.T, (f * weights) @ f.T
    x = p + P
    inner = covariance[:x, :x].copy()
    inner[p:, p:] += (a * features + noise * np.eye(P)) / s**2
    mixed = covariance[:x, x:].copy()
    outer = covariance[x:, x:].copy()
    for q, E in enumerate(basis):
        for r, F in enumerate(basis):
            mixed[q, r] -= np.trace(E @ F)
            step = inverse @ E @ inverse @ F
            outer[q, r] += np.trace(step) / 2 - np.trace(step @ inverse @ spread)
    outer = (outer + outer.T) / 2
    reduced = outer - mixed.T @ np.linalg.solve(inner, mixed)
    gradient = means[:p] - [np.trace(E @ C) for E in basis], s**2 * means[p:x] + noise * u
    return np.linalg.eigvalsh(reduced), np.linalg.eigvalsh(inner), gradient
