"""Orders 1/N and 1/N^2 for one input: N neurons that interact through their mean.

With mu the empirical measure of the signals h_i^(l), x = mu - mu*, mu* = N(0, K^(l)), and
D(h) = a_(l+1) phi(h)^2, the next residual kernel is C* + d, d = D.x, exactly. Given mu, every h_i
moves on by itself: h' = gamma h + f, f ~ N(0, C* + d), so with

    (P_j psi)(h) = (1/j!) (d/dC)^j <psi(gamma h + f)>_{f ~ N(0, C)}  at C = C*

the conditional cumulants of mu' = mu^(l+1) are polynomials in d, linear in mu:

    E[psi.mu'] = sum_j d^j (P_j psi).mu
    N Cov[psi_1.mu', psi_2.mu'] = (P(psi_1 psi_2) - P psi_1 P psi_2).mu,   P = sum_j d^j P_j
    N^2 kappa_3 = (P(psi_1 psi_2 psi_3) - 3 terms + 2 P psi_1 P psi_2 P psi_3).mu

and the laws of total expectation, covariance and third cumulance give the cumulants of x': mean
m1/N + m2/N^2, covariance S1/N + S2/N^2, third cumulant G/N^2 (the fourth is of order N^-3). A
function is its values on n nodes, a measure has n weights; no cumulant of distinct neurons and no
Hermite mode of the fluctuations appears. The nodes are Gauss-Legendre in panels that end at the
kinks.
"""

from itertools import pairwise
from math import factorial
from typing import NamedTuple

import numpy as np

from .recursion import bias_terms, weight_terms

HIGHEST = 4  # E[d^4] is the last moment of order 1/N^2
REACH = 9.5  # of panels, in standard deviations


class Layer(NamedTuple):
    """Cumulants of the fluctuations of the empirical measure of one layer, on n nodes."""

    m1: np.ndarray
    m2: np.ndarray
    S1: np.ndarray
    S2: np.ndarray
    G: np.ndarray


class Orders(NamedTuple):
    """Coefficients of 1/N and 1/N^2: C (L+2,), four-point vertex (L+1,)."""

    kernels: np.ndarray  # K^(l), l = 0..L
    C: np.ndarray  # C*^(l)
    mean_1: np.ndarray
    mean_2: np.ndarray
    covariance_1: np.ndarray  # (L+2, L+2)
    variance_2: np.ndarray
    third_2: np.ndarray
    V_1: np.ndarray  # V/N = E[h_i^2 h_j^2] - E[h_i^2] E[h_j^2] is V_1/N + V_2/N^2
    V_2: np.ndarray

    @property
    def variance_1(self):
        return np.diagonal(self.covariance_1)


def orders(net, K0, phi, nodes):
    """All of `Orders` for phi and one input of variance K0.

    `nodes` is `panel_nodes(...)`: variances of signal and noise -> `Panels`.
    """
    a, c = weight_terms(net), bias_terms(net)
    depth = len(net.gamma)
    here = nodes(K0, None)
    layer = _first(here)
    K, found = [K0], [(K0, 0.0, 0.0, 0.0, 0.0)]
    V, carried = [_vertex(here, layer)], []
    covariance = np.zeros((depth + 2, depth + 2))
    for ell in range(1, depth + 2):
        D = a[ell] * phi(here.h) ** 2
        C = D @ here.mu + c[ell]
        second, third = D @ layer.S2 @ D, layer.G @ D @ D @ D
        found.append((C, D @ layer.m1, D @ layer.m2, second, third))
        carried.append((ell, layer.S1 @ D))
        for k, column in carried:
            covariance[k, ell] = covariance[ell, k] = D @ column
        if ell > depth:
            break
        gamma = net.gamma[ell - 1]
        K.append(gamma**2 * K[-1] + C)
        there = nodes(K[-1], C)
        P = there.steps(here, gamma, C)
        layer, T = _next(here.mu, P, D, layer)
        carried = [(k, T @ column) for k, column in carried]
        here = there
        V.append(_vertex(here, layer))
    C, mean_1, mean_2, variance_2, third_2 = map(np.array, zip(*found, strict=True))
    V_1, V_2 = map(np.array, zip(*V, strict=True))
    K = np.array(K)
    return Orders(K, C, mean_1, mean_2, covariance, variance_2, third_2, V_1, V_2)


def closure(net, K0, phi, nodes):
    """V^(l) (L+1,) of the recursion PDLT-B (B.26), which closes on V alone.

    V' = a^2 <phi^2; phi^2> + (gamma^2 + a M')^2 V + 4 gamma^2 a M' K^2: exact up to l = 1, and at
    every l for gamma = 0. M' by Stein's lemma.
    """
    a, c = weight_terms(net), bias_terms(net)
    K, V, C = K0, [0.0], None
    for ell, gamma in enumerate(net.gamma, start=1):
        grid = nodes(K, C)
        F = a[ell] * phi(grid.h) ** 2
        C = F @ grid.mu + c[ell]
        slope = (F * (grid.h**2 / K - 1)) @ grid.mu / (2 * K)
        noise = F**2 @ grid.mu - (F @ grid.mu) ** 2
        V.append(noise + (gamma**2 + slope) ** 2 * V[-1] + 4 * gamma**2 * slope * K**2)
        K = gamma**2 * K + C
    return np.array(V)


def _first(grid):
    """N independent neurons: the cumulants of one, over powers of N."""
    mu = grid.mu
    n, zero = len(mu), np.zeros(len(mu))
    third = _third_of_one(mu, np.broadcast_to(mu, (1, n)), np.ones(1))
    return Layer(zero, zero, np.diag(mu) - np.outer(mu, mu), np.zeros((n, n)), third)


def _third_of_one(mean, P, mu):
    """sum_k mu_k kappa_3 of the indicators of the nodes for one neuron with laws P[k] (k, n)."""
    pair = np.einsum("k,ka,kb->ab", mu, P, P)
    triple = np.tensordot((mu[:, None] * P).T, P[:, :, None] * P[:, None, :], 1)
    G = 2 * triple
    i = np.arange(len(mean))
    G[i, i, i] += mean
    G[i, i, :] -= pair
    G[i, :, i] -= pair
    G[:, i, i] -= pair.T
    return G


def _vertex(grid, layer):
    """V of orders 1/N and 1/N^2 from E[(mu.h^2)^2] = E[h^4]/N + (1 - 1/N) E[h_i^2 h_j^2]."""
    square, fourth = grid.h**2, grid.h**4
    mean = square @ grid.mu, square @ layer.m1
    spread = fourth @ grid.mu - mean[0] ** 2, fourth @ layer.m1 - 2 * mean[0] * mean[1]
    variance = square @ layer.S1 @ square, square @ layer.S2 @ square
    first = variance[0] - spread[0]
    return first, variance[1] - spread[1] + first


def next_1(mu, P, D, m1, S1):
    """Mean and covariance of x' to order 1/N, and T, the linear part of the conditional mean."""
    v = [p.T @ mu for p in P[:3]]
    T, SD = P[0].T + np.outer(v[1], D), S1 @ D
    noise = np.diag(v[0]) - (P[0] * mu[:, None]).T @ P[0]
    return T @ m1 + P[1].T @ SD + D @ SD * v[2], noise + T @ S1 @ T.T, T


def _next(mu, P, D, layer):
    """Cumulants of x' from those of x, and T."""
    m1, m2, S1, S2, G = layer
    P0, P1, P2, P3, _ = P
    v = [p.T @ mu for p in P]
    m1_new, S1_new, T = next_1(mu, P, D, m1, S1)
    SD = S1 @ D
    s, e = D @ SD, D @ m1  # order 1/N of E[d^2] and E[d]
    GD = G @ D
    GDD = GD @ D
    cubic = GDD @ D + 3 * s * e

    m2_new = (
        T @ m2
        + (D @ S2 @ D + e * e) * v[2]
        + cubic * v[3]
        + 3 * s * s * v[4]
        + P1.T @ (S2 @ D + e * m1)
        + P2.T @ (GDD + 2 * e * SD + s * m1)
        + P3.T @ (3 * s * SD)
    )

    def weighted(weight, i, j):
        return (P[i] * weight[:, None]).T @ P[j]

    # E[N Cov(x' | x)] at order 1/N
    once = e * mu + SD
    noise_2 = np.diag(m1_new) - (
        weighted(m1, 0, 0)
        + weighted(once, 0, 1)
        + weighted(once, 1, 0)
        + s * (weighted(mu, 1, 1) + weighted(mu, 0, 2) + weighted(mu, 2, 0))
    )
    # Cov(E[x' | x]); the conditional mean is T x + d^2 v2 + d^3 v3 + d P1'x + d^2 P2'x + ...
    square = GDD + 2 * e * SD  # Cov(x, d^2)
    linear = GD + np.outer(SD, m1) + e * S1  # Cov(x_a, d x_b)
    quadratic = s * S1 + 2 * np.outer(SD, SD)  # Cov(x_a, d^2 x_b)
    cross = T @ (np.outer(square, v[2]) + np.outer(3 * s * SD, v[3]) + linear @ P1 + quadratic @ P2)
    u = P1.T @ SD
    both = (
        2 * s * s * np.outer(v[2], v[2])
        + 2 * s * (np.outer(v[2], u) + np.outer(u, v[2]))
        + s * P1.T @ S1 @ P1
        + np.outer(u, u)
    )
    S2_new = noise_2 + T @ S2 @ T.T + cross + cross.T + both

    # E[kappa_3] + 3 terms Cov(E, Cov) + kappa_3(E)
    TS, tD = T @ S1, T @ SD
    mixed = np.tensordot(TS, -P0[:, :, None] * P0[:, None, :], 1)
    i = np.arange(len(v[0]))
    mixed[:, i, i] += TS @ P0 + np.outer(tD, v[1])
    mixed -= tD[:, None, None] * (weighted(mu, 0, 1) + weighted(mu, 1, 0))
    # kappa_3(T x, T x, d^2 v2 + d P1'x), the first two free
    bent = TS @ P1
    tree = 2 * tD[:, None, None] * tD[None, :, None] * v[2]
    tree += tD[:, None, None] * bent[None, :, :] + tD[None, :, None] * bent[:, None, :]
    moved = np.tensordot(T, np.tensordot(T, np.tensordot(T, G, (1, 0)), (1, 1)), (1, 2))
    G_new = (
        _third_of_one(v[0], P0, mu)
        + moved
        + mixed
        + mixed.transpose(1, 0, 2)
        + mixed.transpose(1, 2, 0)
        + tree
        + tree.transpose(0, 2, 1)
        + tree.transpose(2, 0, 1)
    )
    return Layer(m1_new, m2_new, S1_new, S2_new, G_new), T


class Panels(NamedTuple):
    """Gauss-Legendre nodes h with weights W (n,) on panels, mu* = W N(h; 0, K)."""

    h: np.ndarray
    W: np.ndarray
    mu: np.ndarray

    def steps(self, before, gamma, C):
        """P_0..P_4 (n, n): the density of h' given h and its derivatives by C, at the nodes."""
        u = (self.h - gamma * before.h[:, None]) / np.sqrt(C)
        bell = self.W * np.exp(-u * u / 2) / np.sqrt(2 * np.pi * C)
        found = []
        for j in range(HIGHEST + 1):
            top = np.polynomial.hermite_e.hermeval(u, [0] * (2 * j) + [1])
            found.append(bell * top / (factorial(j) * (2 * C) ** j))
        return found


def panel_nodes(density, cuts=(0.0,), kinks=(), scale=None):
    """Gauss-Legendre nodes in panels that end at the kinks of phi, and at `cuts` (units of h).

    A panel has `density` nodes for each standard deviation of the signal or, if those are smaller,
    for each 1.5 of the noise or, where |h| < 8 `scale`, for each `scale` of phi; at least 16.
    """

    def nodes(K, C):
        dev = np.sqrt(K)
        reach = REACH * dev
        bend = 8 * scale if scale else 0.0
        inner = {x for x in (*cuts, *kinks, -bend, bend) if abs(x) < reach}
        ends = np.array(sorted({-reach, reach} | inner))
        finest = dev if C is None else min(dev, 1.5 * np.sqrt(C))
        h, W = [], []
        for low, high in pairwise(ends):
            step = min(finest, scale) if max(-low, high) <= bend else finest
            x, w = np.polynomial.legendre.leggauss(max(16, int(density * (high - low) / step)))
            h.append((high + low) / 2 + (high - low) / 2 * x)
            W.append((high - low) / 2 * w)
        h, W = np.concatenate(h), np.concatenate(W)
        return Panels(h, W, W * np.exp(-h * h / (2 * K)) / np.sqrt(2 * np.pi * K))

    return nodes
