"""1/N of one input from Gaussian averages on dense panels, for functions with narrow features.

g = phi^2 is cut where it is not smooth, and every panel is halved until twenty Legendre polynomials
resolve it. The signals of two layers are x and A x + w with an independent w, so that each average
is one over x and one over w; derivatives by the variance of w are taken by parts and need no
derivative of g, which may jump.
"""

import numpy as np
from scipy.linalg import solve_triangular

ORDER, HALVINGS, END = 20, 60, 14.0
# Panels of a standard deviation.
PER = 2
MOST = 20000
_x, _w = np.polynomial.legendre.leggauss(ORDER)
_TO_COEFFICIENTS = (
    np.polynomial.legendre.legvander(_x, ORDER - 1) * _w[:, None] * (np.arange(ORDER) + 0.5)
).T


def nodes_of(g, places, reach, widest):
    """Nodes and weights on [-reach, reach], on panels that resolve g and are no wider."""
    count = int(np.ceil(2 * reach / widest))
    places = [p for p in places if -reach < p < reach]
    edges = np.unique([*np.linspace(-reach, reach, count + 1), *places])
    left, right, done, scale = edges[:-1], edges[1:], [], None
    for _ in range(HALVINGS):
        middle, half = (left + right)[:, None] / 2, (right - left)[:, None] / 2
        values = g(middle + half * _x)
        sizes = np.abs(values @ _TO_COEFFICIENTS.T)
        largest = sizes.max(axis=1)
        scale = largest.max() if scale is None else max(scale, largest.max())
        good = (
            sizes[:, -3:].max(axis=1)
            <= 1e-13 * np.minimum(1 + np.abs(middle[:, 0]), 100) * largest + 1e-18 * scale
        )
        good |= half[:, 0] < 1e-13 * np.maximum(1e-3, np.abs(middle[:, 0]))
        done.append((left[good], right[good]))
        left, right, centre = left[~good], right[~good], middle[~good, 0]
        left, right = np.concatenate([left, centre]), np.concatenate([centre, right])
        if not len(left):
            break
        if len(left) > MOST:
            raise ValueError(f"more than {MOST} panels of a variable up to {reach:g}")
    left, right = (np.concatenate(side) for side in zip(*done, strict=True))
    half = (right - left)[:, None] / 2
    return ((left + right)[:, None] / 2 + half * _x).ravel(), (half * _w).ravel()


def density(h, K):
    return np.exp(-h * h / (2 * K)) / np.sqrt(2 * np.pi * K)


def moments(g, places, K):
    """<g>, d<g>/dK, d2<g>/dK2 and Var g."""
    h, w = nodes_of(g, places, END * np.sqrt(K), np.sqrt(K) / PER)
    p, values, z = w * density(h, K), g(h), h * h / K
    mean = p @ values
    rest = values - mean
    return (
        mean,
        p @ (rest * (z - 1)) / (2 * K),
        p @ (rest * (z * z - 6 * z + 3)) / (4 * K * K),
        p @ rest**2,
    )


def joint(g, places, K, A, Q, block=100):
    """<g(x);g(y)> and its derivative by the variance of y, y = A x + w, Var w = Q."""
    x, u = nodes_of(g, places, END * np.sqrt(K), min(np.sqrt(K), np.sqrt(Q) / abs(A)) / PER)
    total = np.sqrt(A * A * K + Q)
    y, v = nodes_of(g, places, END * total + END * np.sqrt(Q), np.sqrt(Q) / PER)
    keep = np.argsort(y)
    y, v = y[keep], v[keep]
    p = u * density(x, K)
    mean = moments(g, places, K)[0]
    late = g(y)
    late_mean = (v * density(y, total**2)) @ late
    late, early = late - late_mean, p * (g(x) - mean)
    found = np.zeros(2)
    order = np.argsort(x)
    reach = END * np.sqrt(Q)
    for start in range(0, len(x), block):
        some = order[start : start + block]
        low, high = np.searchsorted(
            y, [A * x[some[0]] - reach, A * x[some[-1]] + reach] if A > 0 else [-np.inf, np.inf]
        )
        z = (y[low:high] - A * x[some, None]) ** 2 / Q
        kernel = np.exp(-z / 2) / np.sqrt(2 * np.pi * Q) * (v * late)[low:high]
        found[0] += early[some] @ kernel.sum(axis=1)
        found[1] += early[some] @ (kernel * (z - 1)).sum(axis=1) / (2 * Q)
    return found


def first_order(phi, places, K0, depth=3, gamma=1.0, rho=1.0, sw2=1.25, sb2=0.05, sizes=False):
    """N G11, N mean shift and the responses chi^(0..L) and chi^out, (L+2, L+2), (L+2,), (L+2,)."""

    def g(h):
        return phi(h) ** 2

    size = depth + 1
    a = np.array([0.0, *[rho**2 * sw2] * depth, sw2])
    c = np.array([0.0, *[rho**2 * sb2] * depth, sb2])
    K, C, M = [K0], [K0], []
    for layer in range(1, size + 1):
        M.append(moments(g, places, K[-1]))
        C.append(a[layer] * M[-1][0] + c[layer])
        K.append(gamma**2 * K[-1] + C[-1])
    slope1, slope2, variance = (np.array([m[i] for m in M]) for i in (1, 2, 3))
    squares, by_later = np.diag(variance), np.zeros((size, size))
    for k in range(size):
        Q = 0.0
        for m in range(k + 1, size):
            Q = gamma**2 * Q + C[m]
            if gamma:
                squares[k, m], by_later[m, k] = joint(g, places, K[k], gamma ** (m - k), Q)
                squares[m, k] = squares[k, m]
    S22 = np.zeros((size + 1, size + 1))
    S22[1:, 1:] = np.outer(a[1:], a[1:]) * squares
    A2 = np.array(
        [[gamma ** (2 * (i - j)) if j <= i else 0.0 for j in range(size)] for i in range(size)]
    )
    B = np.zeros((size + 1, size + 1))
    B[1:, :-1] = a[1:, None] * slope1[:, None] * A2
    T = solve_triangular(np.eye(size + 1) - B, np.eye(size + 1), lower=True)
    G11 = T @ S22 @ T.T
    G11[0] = G11[:, 0] = 0.0
    kernel_variance = np.diagonal(A2 @ G11[:-1, :-1] @ A2.T)
    response = A2 @ T[:-1, :-1]
    source = np.zeros(size + 1)
    for m in range(1, size + 1):
        seen = slope2[m - 1] * kernel_variance[m - 1] / 2
        for k in range(1, m):
            seen += a[k] * by_later[m - 1, k - 1] * response[m - 1, k]
        source[m] = a[m] * seen
    return G11, T @ source, np.append(response[:, 0], T[-1, 0])
