"""The four-point vertex of a residual network with one input to order 1/N, by Hermite series.

The kernel of layer l moves as x_l = chi_l x_(l-1) + noise_l, where the noise of two layers is
correlated as phi(h)^2 of one neuron is; V adds to N Var x_l what a neuron adds to the kernel.
"""

import numpy as np

ORDER = 80


def four_point(phi, gamma, a, c, K0, depth):
    """K^(l) and V^(l), both (L+1,), of h' = gamma h + N(0, a <phi^2> + c); phi maps arrays."""
    z, basis, weights = _rule()
    K, squares, coefficients = [K0], [], []
    for _ in range(depth):
        values = phi(np.sqrt(K[-1]) * z) ** 2
        moment = weights @ values
        squares.append(weights @ (values - moment) ** 2)
        coefficients.append(basis @ (weights * values))
        K.append(gamma**2 * K[-1] + a * moment + c)
    K, f = np.array(K), np.array(coefficients)
    slope = f[:, 2] / (np.sqrt(2) * K[:-1])
    noise = np.empty((depth, depth))
    for k in range(depth):
        for l in range(k, depth):
            c_kl = gamma ** (l - k) * np.sqrt(K[k] / K[l])
            series = np.sum(f[k, 1:] * f[l, 1:] * c_kl ** np.arange(1, ORDER))
            noise[k, l] = noise[l, k] = a**2 * (squares[k] if k == l else series)
    chi = gamma**2 + a * slope
    V = np.zeros(depth + 1)
    for l in range(1, depth + 1):
        # What is left in K^(l) of the noise that enters K^(m), m = 1..l.
        carried = np.array([np.prod(chi[m:l]) for m in range(1, l + 1)])
        overlap = (gamma ** np.arange(l, 0, -1) * K[:l]) ** 2
        own = 2 * a * slope[:l] * overlap
        V[l] = carried @ noise[:l, :l] @ carried + 2 * carried @ own
    return K, V


def _rule():
    """Nodes, orthonormal Hermite polynomials (ORDER, nodes) and weights of N(0, 1)."""
    x, w = np.polynomial.legendre.leggauss(24)
    edges = np.concatenate([np.linspace(-11, 0, 45), np.linspace(0, 11, 45)[1:]])
    half = np.diff(edges) / 2
    z = (edges[:-1] + half)[:, None] + half[:, None] * x
    weights = (half[:, None] * w * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)).ravel()
    z = z.ravel()
    basis = [np.ones_like(z), z]
    for n in range(1, ORDER - 1):
        basis.append((z * basis[-1] - np.sqrt(n) * basis[-2]) / np.sqrt(n + 1))
    return z, np.array(basis), weights
