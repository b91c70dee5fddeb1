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
