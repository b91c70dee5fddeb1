"""Networks of blocks of two matrices: explicit weights, and recursions written out."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Block:
    """Parameters of a network of blocks; φ is a function of arrays."""

    depth: int
    phi: object
    rho: float = 1.0
    gamma: float = 1.0
    norm: str | None = "rms"
    post: bool = False
    epsilon: float = 0.0
    gated: bool = False
    inner: float = 1.0
    gate: float = 1.0
    outer: float = 1.0
    inner_bias: float = 0.0
    outer_bias: float = 0.0
    out: float = 1.0
    out_bias: float = 0.0


def normalized(x, net):
    """n(x) of signals (..., P, N)."""
    if net.norm is None:
        return x
    if net.norm == "layer":
        x = x - x.mean(axis=-1, keepdims=True)
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + net.epsilon)


def gram(x):
    """(1/N) x xᵀ."""
    return x @ np.swapaxes(x, -1, -2) / x.shape[-1]


def drawn(net, K0, width, hidden, samples, seed):
    """C^(l), (samples, L + 2, P, P), R^(l), (samples, L + 1, P, P), and fourth moments.

    The last is (1/N) Σ_i h_iα h_iβ h_iγ h_iδ, (samples, L + 1, P, P, P, P).
    """
    parts = [
        _drawn(net, K0, width, hidden, min(500, samples - start), [seed, start])
        for start in range(0, samples, 500)
    ]
    return tuple(np.concatenate(each) for each in zip(*parts, strict=True))


def _drawn(net, K0, width, hidden, samples, seed):
    rng, P = np.random.default_rng(seed), len(K0)
    root = np.linalg.cholesky(K0 + 1e-15 * np.eye(P))
    residual, stream, fourth = [], [], []
    x = root @ rng.standard_normal((samples, P, width))
    C = np.broadcast_to(K0, (samples, P, P))
    for layer in range(net.depth + 1):
        n = normalized(x, net)
        carried = (
            n if net.post else x - (x.mean(axis=-1, keepdims=True) if net.norm == "layer" else 0)
        )
        residual.append(C)
        stream.append(gram(carried))
        fourth.append(np.einsum("sai,sbi,sci,sdi->sabcd", *[carried] * 4) / width)
        if layer == net.depth:
            break
        weights = rng.standard_normal((samples, width, hidden)) * np.sqrt(net.inner / width)
        a = net.phi(
            n @ weights + np.sqrt(net.inner_bias) * rng.standard_normal((samples, 1, hidden))
        )
        if net.gated:
            a = a * (
                n @ (rng.standard_normal((samples, width, hidden)) * np.sqrt(net.gate / width))
            )
        C = net.rho**2 * (net.outer * gram(a) + net.outer_bias)
        weights = rng.standard_normal((samples, hidden, width)) * np.sqrt(net.outer / hidden)
        f = a @ weights + np.sqrt(net.outer_bias) * rng.standard_normal((samples, 1, width))
        x = net.gamma * carried + net.rho * f
    residual.append(net.out * gram(n) + net.out_bias)
    return tuple(np.stack(each, axis=1) for each in (residual, stream, fourth))


def squared_gradients(net, slope, X, readin, width, hidden, seed):
    """Σ dy_α/dθ dy_β/dθ over the entries of one network, (L + 2, P, P) by kinds of parameters.

    Written out backward: g_u = dy/du for every signal u; slope is φ', y one output, readin the
    variances of weights and biases of the read-in of inputs X (P, d).
    """
    rng, P, L = np.random.default_rng(seed), len(X), net.depth
    found = {}

    def affine(x, units, weight, bias):
        W = rng.standard_normal((x.shape[-1], units)) * np.sqrt(weight / x.shape[-1])
        return W, x @ W + np.sqrt(bias) * rng.standard_normal(units)

    def add(layer, name, x, g):
        for kind, of in (("weight", x @ x.T), ("bias", 1.0)):
            each = found.setdefault(f"{name}_{kind}", np.zeros((L + 2, P, P)))
            each[layer] = (g @ g.T) * of

    def centred(g):
        return g - g.mean(axis=-1, keepdims=True) if net.norm == "layer" else g

    _, x = affine(X, width, *readin)
    kept = []
    for layer in range(L + 1):
        n = normalized(x, net)
        if layer == L:
            break
        inner, u = affine(n, hidden, net.inner, net.inner_bias)
        gate, v = affine(n, hidden, net.gate, 0.0) if net.gated else (None, 1.0)
        a = net.phi(u) * v
        outer, f = affine(a, width, net.outer, net.outer_bias)
        kept.append((x, n, inner, u, gate, v, a, outer))
        x = net.gamma * (n if net.post else centred(x)) + net.rho * f
    out, _ = affine(n, 1, net.out, net.out_bias)
    add(L + 1, "readout", n, np.ones((P, 1)))
    g_n, g_carried = np.broadcast_to(out[:, 0], n.shape), 0.0
    for layer in range(L, -1, -1):
        if net.post:
            g_n, g_carried = g_n + g_carried, 0.0
        if net.norm is None:
            g = g_n
        else:
            size = np.sqrt((centred(x) ** 2).mean(axis=-1, keepdims=True) + net.epsilon)
            g = centred(g_n - n * (n * g_n).mean(axis=-1, keepdims=True)) / size
        g = g + centred(g_carried) if np.ndim(g_carried) else g
        if layer == 0:
            break
        x, n, inner, u, gate, v, a, outer = kept[layer - 1]
        add(layer, "outer", a, net.rho * g)
        g_a = net.rho * g @ outer.T
        g_u = g_a * slope(u) * v
        add(layer, "inner", n, g_u)
        g_n, g_carried = g_u @ inner.T, net.gamma * g
        if net.gated:
            add(layer, "gate", n, g_a * net.phi(u))
            g_n = g_n + (g_a * net.phi(u)) @ gate.T
    add(0, "readin", X, g)
    return found


def linear_moments(net, K0, width, hidden):
    """Exact ⟨R⟩, Var R and ⟨C⟩, Var C of every layer of one input, φ(h) = h, without norm or gate.

    Given R a branch is C = ρ²(σ'² Q χ²_M/M + σ_b'²), Q = σ² R + σ_b², and R' has the mean γ² R + C
    and the variance (2 C² + 4 γ² R C)/N.
    """
    mean, square = K0, K0**2 * (1 + 2 / width)
    R, C = [(mean, square - mean**2)], []
    r2, g2 = net.rho**2, net.gamma**2
    slope, shift = r2 * net.outer * net.inner, r2 * (net.outer * net.inner_bias + net.outer_bias)
    for _ in range(net.depth):
        # Polynomials in R: of C given R, of C² and of R C.
        c1 = slope * mean + shift
        q2 = net.inner**2 * square + 2 * net.inner * net.inner_bias * mean + net.inner_bias**2
        c2 = slope**2 * square + 2 * slope * shift * mean + shift**2
        c2 += (r2 * net.outer) ** 2 * q2 * 2 / hidden
        rc = slope * square + shift * mean
        C.append((c1, c2 - c1**2))
        square = g2**2 * square + 2 * g2 * rc + c2 + (2 * c2 + 4 * g2 * rc) / width
        mean = g2 * mean + c1
        R.append((mean, square - mean**2))
    C.append((net.out * mean + net.out_bias, net.out**2 * R[-1][1]))
    return np.array(R), np.array(C)


def infinite_width(net, K0, nodes=200):
    """K^(l) of N → ∞ with LayerNorm or RMSNorm as neural-tangents has them, pre-norm, P inputs.

    LayerNorm divides covariances by √((K_αα + ε)(K_ββ + ε)); its mean over the units vanishes.
    """
    z, w = np.polynomial.hermite_e.hermegauss(nodes)
    w = w / w.sum()

    def average(q):
        first = np.sqrt(q[0, 0])
        c = np.clip(q[0, 1] / np.sqrt(q[0, 0] * q[1, 1]), -1, 1)
        second = np.sqrt(q[1, 1]) * (c * z[:, None] + np.sqrt(1 - c * c) * z)
        return w @ (net.phi(first * z)[:, None] * net.phi(second)) @ w

    def read(K):
        if net.norm is None:
            return K
        own = np.sqrt(np.diag(K) + net.epsilon)
        return K / own / own[:, None]

    K, kernels = np.array(K0, float), [np.array(K0, float)]
    for _ in range(net.depth):
        n = read(K)
        Q = net.inner * n + net.inner_bias
        A = np.array(
            [[average(Q[np.ix_([i, j], [i, j])]) for j in range(len(K))] for i in range(len(K))]
        )
        if net.gated:
            A = A * net.gate * n
        K = net.gamma**2 * K + net.rho**2 * (net.outer * A + net.outer_bias)
        kernels.append(K)
    return np.array([*kernels, net.out * read(K) + net.out_bias])
