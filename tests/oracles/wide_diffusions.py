"""Infinitely wide diffusion networks by dense quadrature and Runge-Kutta steps, from PF (10).

φ and ψ are Python functions; nothing of the package is used.
"""

import numpy as np


def gaussian_rule(points=201):
    """Nodes and weights of the trapezoidal rule for an average over N(0, 1)."""
    x = np.linspace(-10.0, 10.0, points)
    return x, np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi) * (x[1] - x[0])


def pair_average(f, g, mean, covariance):
    """⟨f(x) g(y)⟩ over two Gaussians."""
    x, w = gaussian_rule()
    s = np.sqrt(covariance[0][0])
    c = covariance[0][1] / s if s else 0.0
    rest = np.sqrt(max(covariance[1][1] - c * c, 0.0))
    first = mean[0] + s * x
    second = mean[1] + c * x[:, None] + rest * x[None, :]
    return w @ (f(first)[:, None] * g(second)) @ w


def gram(psi, starts, m, V):
    """(1/D) Σ_d ⟨ψ(z_d^i + y_i) ψ(z_d^j + y_j)⟩; starts (D, P)."""
    P = len(m)
    found = np.empty((P, P))
    for i in range(P):
        for j in range(P):
            block = [[V[i, i], V[i, j]], [V[j, i], V[j, j]]]
            terms = [pair_average(psi, psi, (z[i] + m[i], z[j] + m[j]), block) for z in starts]
            found[i, j] = np.mean(terms)
    return found


def layers(phi, starts, depth, horizon, weight, bias):
    """Means and covariances of all layers for ψ(x) = x, (L+1, P) and (L+1, P, P)."""
    P, step = starts.shape[1], horizon / depth
    m, V = np.zeros(P), np.zeros((P, P))
    one = np.ones_like
    means, covariances = [m], [V]
    for _ in range(depth):
        S = step * (bias + weight * gram(lambda x: x, starts, m, V))
        own = [np.diag([S[i, i], 1.0]) for i in range(P)]
        increment = np.array([pair_average(phi, one, (0, 0), block) for block in own])
        product = np.empty((P, P))
        for i in range(P):
            for j in range(P):
                block = [[S[i, i], S[i, j]], [S[j, i], S[j, j]]]
                product[i, j] = pair_average(phi, phi, (0, 0), block)
        m, V = m + increment, V + product - np.outer(increment, increment)
        means.append(m)
        covariances.append(V)
    return np.array(means) + starts.mean(axis=0), np.array(covariances)


def flow(psi, slope, curvature, starts, horizon, weight, bias, steps=200):
    """Mean and covariance at the time T of the limit L → ∞, by Runge-Kutta steps."""
    P = starts.shape[1]

    def rate(state):
        m, V = state[0], state[1:]
        S = bias + weight * gram(psi, starts, m, V)
        return np.vstack([curvature * np.diagonal(S) / 2, slope**2 * S])

    state, h = np.zeros((P + 1, P)), horizon / steps
    for _ in range(steps):
        k1 = rate(state)
        k2 = rate(state + h / 2 * k1)
        k3 = rate(state + h / 2 * k2)
        k4 = rate(state + h * k3)
        state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return state[0] + starts.mean(axis=0), state[1:]


def two_layers(phi, psi, z, horizon, depth, weight, bias, points=51):
    """Covariance of x_2 and q of the layers 1 and 2 for ψ(x) ≠ x, two inputs that start at z.

    The first layer on a fine grid of its increments; q of the second over all nodes of the
    increments of both layers and inputs, which are four numbers.
    """
    step = horizon / depth

    def increments(S, number):
        x, w = gaussian_rule(number)
        u = np.linalg.cholesky(S) @ np.stack([a.ravel() for a in np.meshgrid(x, x)])
        return phi(u), np.outer(w, w).ravel()

    def moments(y, weights):
        mean = y @ weights
        return (weights * y) @ y.T - np.outer(mean, mean)

    def gram(y, weights):
        signals = psi(z[:, None] + y)
        return (weights * signals) @ signals.T

    first = step * (bias + weight * np.outer(psi(z), psi(z)) * np.ones((2, 2)) + 1e-13 * np.eye(2))
    y, weights = increments(first, 401)
    covariance, grams = moments(y, weights), [gram(y, weights)]
    second = step * (bias + weight * grams[0])
    covariance = covariance + moments(*increments(second, 401))
    (y, weights), (v, others) = increments(first, points), increments(second, points)
    both = (y[:, :, None] + v[:, None, :]).reshape(2, -1)
    grams.append(gram(both, np.outer(weights, others).ravel()))
    return covariance, np.array(grams)
