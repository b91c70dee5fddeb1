"""One hidden layer (L = 1) of any width: moments of C^(2) by quadrature over one to three neurons.

C^(1) = a_1 (1/N) sum_j phi(h_j)^2 + c_1 with independent h_j ~ N(0, K0), and given h^(0) the next
signals h'_j = gamma h_j + sqrt(C^(1)) xi_j are Gaussian. A moment of Y = (1/N) sum_j phi(h'_j)^2 of
order p needs p neurons; the N - p others enter C^(1) through their sum alone, whose law is
replaced by the Gauss rule of its first moments. `orders` finds the coefficients of 1/N and 1/N^2
by interpolation of the exact numbers in 1/N: nothing is expanded by hand.
"""

from math import comb
from typing import NamedTuple

import mpmath
import numpy as np
from mpmath import mp
from scipy.special import erfc

from .recursion import bias_terms, weight_terms

RULE = 10  # nodes for the sum of the other neurons: exact up to the power 19 of its fluctuation
POINTS = 10  # interpolation in 1/N
WIDEST = 1 / 60


class Moments(NamedTuple):
    """Of C^(1), C^(2): E[C] - C*, variance, third cumulant, (2,) each; V^(1)/N."""

    mean: np.ndarray
    variance: np.ndarray
    third: np.ndarray
    vertex: float


def moments(net, K0, phi, squares, grid, N):
    """`Moments` at width N, any real number above 3 for which the rule exists.

    Parameters
    ----------
    squares : callable
        (mean, variance, count) -> the averages of phi^2, phi^4, phi^6 (the first `count` of them)
        over h' ~ N(mean, variance).
    grid : (h, mu)
        Nodes (n,) and weights for N(0, K0), which phi(h)^2 suits.
    """
    (_, a1, a2), (_, c1, _) = weight_terms(net), bias_terms(net)
    h, mu = grid
    skip = net.gamma[0]
    F = phi(h) ** 2
    M = F @ mu
    F = F - M
    fixed = a1 * M + c1
    # the value at 1/N = 0 on the same nodes, so that their error is not multiplied by N
    (target,) = squares(skip * h, fixed * np.ones_like(h), 1)
    target = target @ mu
    signal = (skip * h) ** 2
    outer = signal @ mu + fixed

    first = a1 * np.array([F**p @ mu for p in (2, 3)]) * (a1, a1**2) / (N, N**2)

    def conditional(neurons, powers):
        """Weights, C^(1), and averages for the first neuron, over the nodes and the others."""
        s, w = _sum_rule(F, mu, N - neurons)
        axes = np.meshgrid(*[F] * neurons, indexing="ij")
        total = sum(axes)[..., None] + s
        weights = 1.0
        for k in np.meshgrid(*[mu] * neurons, indexing="ij"):
            weights = weights * k
        weight = weights[..., None] * w
        C = fixed + a1 * total / N
        return weight, C, _interpolated(squares, skip * h, C, powers)

    weight, _, (f2, f4, f6) = conditional(1, 3)
    one = [
        np.sum(weight * x)
        for x in (
            f2 - target,
            f4 - 2 * target * f2 + target**2,
            f6 - 3 * target * f4 + 3 * target**2 * f2 - target**3,
        )
    ]
    weight, C, (f2, f4) = conditional(2, 2)
    x, xx = f2 - target, f4 - 2 * target * f2 + target**2
    two = [np.sum(weight * y * x.swapaxes(0, 1)) for y in (x, xx)]
    centred = C - outer
    pair = (signal[:, None, None] + centred) * (signal[None, :, None] + centred)
    vertex = np.sum(weight * pair)  # E[h_i^2] is K^(1) exactly
    weight, _, (f2,) = conditional(3, 1)
    x = f2 - target
    three = np.sum(weight * x * x.swapaxes(0, 1) * x.swapaxes(0, 2))

    mean = one[0]
    square = (one[1] + (N - 1) * two[0]) / N
    cube = (one[2] + 3 * (N - 1) * two[1] + (N - 1) * (N - 2) * three) / N**2
    variance = square - mean**2
    third = cube - 3 * mean * square + 2 * mean**3
    return Moments(
        np.array([0.0, a2 * mean]),
        np.array([first[0], a2**2 * variance]),
        np.array([first[1], a2**3 * third]),
        vertex,
    )


def orders(net, K0, phi, squares, grid):
    """Coefficients of 1/N and 1/N^2: a list of two `Moments`."""
    points = WIDEST * (1 + np.cos(np.pi * (np.arange(POINTS) + 0.5) / POINTS)) / 2
    found = [moments(net, K0, phi, squares, grid, 1 / e) for e in points]
    # every moment vanishes at 1/N = 0
    powers = (points[:, None] / WIDEST) ** np.arange(1, POINTS + 1)
    inverse = np.linalg.inv(powers)
    table = np.array([np.concatenate([x.mean, x.variance, x.third, [x.vertex]]) for x in found])
    coefficients = inverse @ table
    return [
        Moments(row[:2], row[2:4], row[4:6], row[6])
        for row in (coefficients[k] / WIDEST ** (k + 1) for k in range(2))
    ]


def _interpolated(squares, means, C, count, degree=26):
    """`squares` at (means[k], C[k, ...]), by Chebyshev interpolation over the range of C."""
    low, high = C.min(), C.max()
    x = np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
    at = (high + low) / 2 + (high - low) / 2 * x
    tables = squares(*np.broadcast_arrays(means[:, None], at), count)
    inverse = np.linalg.inv(np.polynomial.chebyshev.chebvander(x, degree)).T
    u = (2 * C - high - low) / (high - low)
    shape = (-1, *[1] * (C.ndim - 1))
    found = []
    for table in tables:
        coefficients = table @ inverse
        last = before = np.zeros(C.shape)
        for k in range(degree, 0, -1):
            last, before = coefficients[:, k].reshape(shape) + 2 * u * last - before, last
        found.append(coefficients[:, 0].reshape(shape) + u * last - before)
    return found


def squares_of(phi, n=64):
    """`squares` for smooth phi by Gauss-Hermite quadrature."""
    z, w = np.polynomial.hermite_e.hermegauss(n)
    w = w / np.sqrt(2 * np.pi)

    def squares(mean, variance, count):
        dev = np.sqrt(variance)
        found = [np.zeros(np.shape(mean)) for _ in range(count)]
        for node, weight in zip(z, w, strict=True):
            square = phi(mean + dev * node) ** 2
            power = weight * square
            for p in range(count):
                found[p] += power
                power = power * square
        return found

    return squares


def squares_of_slopes(left, right):
    """`squares` for phi(h) = left h for h < 0, right h for h > 0: truncated Gaussian moments."""

    def half(mean, variance):
        dev = np.sqrt(variance)
        u = mean / dev
        below = erfc(-u / np.sqrt(2)) / 2
        raw = [below, mean * below + dev * np.exp(-u * u / 2) / np.sqrt(2 * np.pi)]
        for p in range(2, 7):
            raw.append(mean * raw[-1] + (p - 1) * variance * raw[-2])
        return raw

    def squares(mean, variance, count):
        up, down = half(mean, variance), half(-mean, variance)
        return [
            right ** (2 * p) * up[2 * p] + left ** (2 * p) * down[2 * p]
            for p in range(1, count + 1)
        ]

    return squares


def gauss_nodes(K, n=44):
    """Nodes and weights for N(0, K), smooth phi."""
    z, w = np.polynomial.hermite_e.hermegauss(n)
    return np.sqrt(K) * z, w / np.sqrt(2 * np.pi)


def half_line_nodes(K, n=16):
    """Nodes and weights for N(0, K) that are exact for two polynomials that meet at 0."""
    with mp.workdps(80):
        moments = [
            mpmath.mpf(2) ** (mpmath.mpf(k) / 2) * mpmath.gamma(mpmath.mpf(k + 1) / 2)
            for k in range(2 * n)
        ]
        z, w = _rule([x / moments[0] for x in moments])
    return np.sqrt(K) * np.concatenate([-z[::-1], z]), np.concatenate([w[::-1], w]) / 2


def _sum_rule(F, mu, count):
    """Gauss rule (s, w) of the sum of `count` independent values of F, weights mu, mean zero."""
    size = 2 * RULE
    with mp.workdps(50):
        scale = mpmath.sqrt(mpmath.mpf(float(F**2 @ mu)))
        standard = F / float(scale)
        raw = [mpmath.mpf(float(standard**k @ mu)) for k in range(size)]
        raw[0], raw[1] = mpmath.mpf(1), mpmath.mpf(0)
        cumulants = [mpmath.mpf(0)] * size
        for k in range(1, size):
            lower = (comb(k - 1, i - 1) * cumulants[i] * raw[k - i] for i in range(1, k))
            cumulants[k] = raw[k] - sum(lower, mpmath.mpf(0))
        total = mpmath.mpf(float(count))
        scaled = [c * total ** (1 - mpmath.mpf(k) / 2) for k, c in enumerate(cumulants)]
        moments = [mpmath.mpf(1)]
        for k in range(1, size):
            terms = (comb(k - 1, i - 1) * scaled[i] * moments[k - i] for i in range(1, k + 1))
            moments.append(sum(terms, mpmath.mpf(0)))
        values, weights = _rule(moments)
        return values * float(scale * mpmath.sqrt(total)), weights


def _rule(moments):
    """Gauss rule of a law with these moments, the first of which is 1."""
    diagonal, off = _jacobi(moments)
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(off, 1) + np.diag(off, -1))
    return values, vectors[0] ** 2


def _jacobi(moments):
    """Recurrence coefficients of the orthogonal polynomials (Chebyshev's algorithm)."""
    n = len(moments) // 2
    previous, current = [mpmath.mpf(0)] * (2 * n), list(moments)
    alpha, beta = [moments[1] / moments[0]], [moments[0]]
    for k in range(1, n):
        following = [mpmath.mpf(0)] * (2 * n)
        for j in range(k, 2 * n - k):
            following[j] = current[j + 1] - alpha[k - 1] * current[j] - beta[k - 1] * previous[j]
        alpha.append(following[k + 1] / following[k] - current[k] / current[k - 1])
        beta.append(following[k] / current[k - 1])
        previous, current = current, following
    return np.array(alpha, dtype=float), np.sqrt(np.array(beta[1:], dtype=float))
