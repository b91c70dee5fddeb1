"""1/N of two inputs of equal norms on even grids, for smooth functions of any width.

Equal variances leave u = (x + y)/sqrt2 and v = (x - y)/sqrt2 independent in every layer and from
layer to layer, so that averages over the four signals of two layers are products of matrices along
u and v. Derivatives by kernels are Hermite polynomials of the noise: no derivative of phi is taken.
Fields are C_xx, C_xy, C_yy.
"""

import numpy as np

# Kernels of u and v by those of x and y: d/dK_e as weights of d/dK_uu, d/dK_uv, d/dK_vv.
MOVED = {0: (0.5, 0.5, 0.5), 1: (1.0, 0.0, -1.0), 2: (0.5, -0.5, 0.5)}
REACH = 9.5


def hermite(n, z):
    return np.polynomial.hermite_e.hermeval(z, np.eye(n + 1)[n])


def line(K, step):
    count = int(REACH * np.sqrt(K) / step) + 1
    u = step * (np.arange(-count, count) + 0.3)
    return u, step * np.exp(-u * u / (2 * K)) / np.sqrt(2 * np.pi * K)


def observables(phi, u, v):
    x, y = ((u[:, None] + sign * v) / np.sqrt(2) for sign in (1, -1))
    return np.array([phi(x) ** 2, phi(x) * phi(y), phi(y) ** 2])


def derivatives(orders):
    """Orders in u and v, and weights, of a product of derivatives by kernels e."""
    found = {(0, 0): 1.0}
    for e in orders:
        moved = {}
        for (i, j), weight in found.items():
            for (a, b, half), part in zip(
                ((2, 0, 0.5), (1, 1, 1.0), (0, 2, 0.5)), MOVED[e], strict=True
            ):
                key = i + a, j + b
                moved[key] = moved.get(key, 0.0) + weight * part * half
        found = moved
    return found


def one_layer(phi, K, step):
    """<g>, its first and second derivatives (3, 3), (3, 3, 3), and <g;g>; K of u and v."""
    (u, p), (v, q) = (line(k, step) for k in K)
    g = observables(phi, u, v)
    mean = np.einsum("eij,i,j->e", g, p, q)
    g = g - mean[:, None, None]

    def derived(orders):
        return sum(
            weight * np.einsum("eij,i,j->e", g, p * scaled(i, u, K[0]), q * scaled(j, v, K[1]))
            for (i, j), weight in derivatives(orders).items()
        )

    first = np.array([derived([e]) for e in range(3)]).T
    second = np.array([[derived([e, f]) for f in range(3)] for e in range(3)])
    return mean, first, np.moveaxis(second, -1, 0), np.einsum("eij,fij,i,j->ef", g, g, p, q)


def scaled(n, h, K):
    return hermite(n, h / np.sqrt(K)) / K ** (n / 2)


def two_layers(phi, K, A, Q, step):
    """<g(early);g(late)> (3, 3) and its derivatives by the kernels of the later signals."""
    early, kernels = [], []
    for k, noise in zip(K, Q, strict=True):
        (x, p), (y, _) = line(k, step), line(A * A * k + noise, step)
        w = (y - A * x[:, None]) / np.sqrt(noise)
        bell = step * np.exp(-w * w / 2) / np.sqrt(2 * np.pi * noise)
        early.append((x, p, y))
        kernels.append([bell * hermite(n, w) / noise ** (n / 2) for n in range(3)])
    (u, p, s), (v, q, t) = early
    g, late = observables(phi, u, v), observables(phi, s, t)
    g = (g - np.einsum("eij,i,j->e", g, p, q)[:, None, None]) * p[:, None] * q
    late = late - late[:, len(s) // 2, len(t) // 2][:, None, None]

    def correlator(i, j):
        seen = [kernels[0][i] @ one @ kernels[1][j].T for one in late]
        return np.einsum("eij,fij->ef", g, np.array(seen))

    slopes = [
        sum(weight * correlator(i, j) for (i, j), weight in derivatives([e]).items())
        for e in range(3)
    ]
    return correlator(0, 0), np.array(slopes)


def first_order(phi, variance, correlation, depth, gamma, step, sw2=1.25, sb2=0.05):
    """N G11, (L+2, 3, L+2, 3), and N times the shift of means, (L+2, 3)."""
    size, a, one = depth + 1, sw2, np.array([1.0, 1.0, 1.0])
    C = [variance * np.array([1.0, correlation, 1.0])]
    K, layers = [C[0]], []
    for _ in range(size):
        layers.append(one_layer(phi, directions(K[-1]), step))
        C.append(a * layers[-1][0] + sb2 * one)
        K.append(gamma**2 * K[-1] + C[-1])
    S = np.zeros((size + 1, 3, size + 1, 3))
    slopes = np.zeros((size, size, 3, 3, 3))
    for k in range(size):
        S[k + 1, :, k + 1] = a * a * layers[k][3]
        Q = np.zeros(3)
        for l in range(k + 1, size):
            Q = gamma**2 * Q + C[l]
            if gamma:
                found = two_layers(phi, directions(K[k]), gamma ** (l - k), directions(Q), step)
                S[k + 1, :, l + 1] = a * a * found[0]
                S[l + 1, :, k + 1] = a * a * found[0].T
                slopes[l, k] = found[1]
    response = np.zeros((size + 1, 3, size + 1, 3))
    of_kernels = np.zeros((size + 1, 3, size + 1, 3))
    kernel = np.zeros((3, size + 1, 3))
    for l in range(size + 1):
        response[l, :, l] = np.eye(3)
        if l:
            response[l] += a * np.tensordot(layers[l - 1][1], kernel, 1)
        kernel = gamma**2 * kernel + response[l]
        of_kernels[l] = kernel
    flat = response.reshape(3 * (size + 1), -1)
    G11 = flat @ S.reshape(flat.shape) @ flat.T
    source = np.zeros((size + 1, 3))
    seen = of_kernels.reshape(flat.shape)
    fluctuations = (seen @ S.reshape(flat.shape) @ seen.T).reshape(S.shape)
    for m in range(1, size + 1):
        own = fluctuations[m - 1, :, m - 1]
        source[m] = a / 2 * np.einsum("eij,ij->e", layers[m - 1][2], own)
        for k in range(1, m):
            moved = of_kernels[m - 1, :, k]
            source[m] += a * a * np.einsum("qre,qr->e", slopes[m - 1, k - 1], moved)
    shift = (flat @ source.ravel()).reshape(source.shape)
    return G11.reshape(S.shape), shift


def directions(K):
    """The kernels of u and v."""
    return K[0] + K[1], K[0] - K[1]
