"""Blocks of two matrices at order 1/N: the recursion of the Gram matrices, one or two inputs.

With R the vector of the entries (11), (12), (22) and F(R) = γ² stream(R) + C(R):

    K' = F(K),   V' = J V Jᵀ + S,   m' = J m + F'' : V / 2,   J = F'(K)

with J and F'' by differences and averages by quadrature in polar coordinates.
"""

from dataclasses import dataclass
from functools import partial
from itertools import combinations_with_replacement, pairwise, product

import numpy as np

# Of the panels between the kinks and of the radius, and where a Gaussian has ended.
_NODES, _LAST = 60, 9.0
_STEP, _WIDE = 1e-5, 1e-3


@dataclass(frozen=True)
class Blocks:
    """The parameters of a network; those of layers have one value for each."""

    factors: tuple  # functions of arrays, the identity for a gate
    rho: tuple
    gamma: tuple
    inner: tuple  # weight variances of the signal of each factor, one value for all layers
    inner_bias: float
    outer: float
    outer_bias: float
    readout: float
    readout_bias: float
    norm: str | None
    post: bool
    epsilon: float
    hidden: float  # M/N


def normal(net, R):
    """The Gram matrix after the norm."""
    scale = np.ones(len(R)) if net.norm is None else 1 / np.sqrt(np.diag(R) + net.epsilon)
    return R * np.outer(scale, scale)


def stream(net, R):
    """The Gram matrix of what the skip connection carries."""
    return normal(net, R) if net.post else R


def signals(net, R):
    """Q of the signals of each factor; the bias is that of the first."""
    return [s * normal(net, R) + (net.inner_bias if k == 0 else 0) for k, s in enumerate(net.inner)]


def gaussian(Q):
    """Points (P, n) and weights of averages over N(0, Q), with kinks at zero."""
    x, w = np.polynomial.legendre.leggauss(_NODES)
    r, radial = (x + 1) * _LAST / 2, w * _LAST / 2
    if len(Q) == 1:
        density = radial * np.exp(-(r**2) / 2) / np.sqrt(2 * np.pi)
        return np.sqrt(Q) * np.r_[-r, r], np.r_[density, density]
    root = np.linalg.cholesky(Q)
    kinks = [np.arctan2(-row[0], row[1]) % np.pi for row in root]
    ends = np.unique(np.r_[0, kinks, np.add(kinks, np.pi), 2 * np.pi])
    angles = np.concatenate([(a + b) / 2 + (b - a) / 2 * x for a, b in pairwise(ends)])
    around = np.concatenate([(b - a) / 2 * w for a, b in pairwise(ends)]) / (2 * np.pi)
    along = radial * r * np.exp(-(r**2) / 2)
    points = root @ np.array([np.cos(angles), np.sin(angles)])
    return np.einsum("pa,r->par", points, r).reshape(2, -1), np.outer(around, along).ravel()


def moment(net, R, inputs):
    """⟨Π_α a_α⟩ over a hidden unit for a list of inputs α."""
    value = 1.0
    for phi, Q in zip(net.factors, signals(net, R), strict=True):
        points, weights = gaussian(Q)
        value *= weights @ np.prod([phi(points[a]) for a in inputs], axis=0)
    return value


def pairs(P):
    return list(combinations_with_replacement(range(P), 2))


def vector(R):
    return np.array([R[pair] for pair in pairs(len(R))])


def matrix(v):
    P = int(np.sqrt(2 * len(v)))
    R = np.empty((P, P))
    for value, (a, b) in zip(v, pairs(P), strict=True):
        R[a, b] = R[b, a] = value
    return R


def branch(net, l, v):
    """C of the layer l = 1, ... after R = v; behind the last one that of the readout."""
    R = matrix(v)
    if l > len(net.rho):
        return net.readout * vector(normal(net, R)) + net.readout_bias
    mean = np.array([moment(net, R, pair) for pair in pairs(len(R))])
    return net.rho[l - 1] ** 2 * (net.outer * mean + net.outer_bias)


def step(net, l, v):
    """F."""
    return net.gamma[l - 1] ** 2 * vector(stream(net, matrix(v))) + branch(net, l, v)


def units(net, l, v):
    """(N/M) Var of C in one hidden unit."""
    R = matrix(v)
    own = [[moment(net, R, p + q) for q in pairs(len(R))] for p in pairs(len(R))]
    mean = np.array([moment(net, R, p) for p in pairs(len(R))])
    return (net.rho[l - 1] ** 2 * net.outer) ** 2 * (own - np.outer(mean, mean)) / net.hidden


def wick(A, B):
    """A_αγ B_βδ + A_αδ B_βγ + (A and B exchanged), over all pairs."""
    of = pairs(len(A))
    S = np.empty((len(of), len(of)))
    for (i, (a, b)), (j, (c, d)) in product(enumerate(of), repeat=2):
        S[i, j] = A[a, c] * B[b, d] + A[a, d] * B[b, c] + B[a, c] * A[b, d] + B[a, d] * A[b, c]
    return S


def jacobian(f, v):
    steps = _STEP * np.eye(len(v))
    return np.array([(f(v + e) - f(v - e)) / (2 * _STEP) for e in steps]).T


def curvature(f, v, V):
    """f'' : V, along the axes in which V is diagonal."""
    sizes, axes = np.linalg.eigh(V)
    ahead = [f(v + _WIDE * e) + f(v - _WIDE * e) - 2 * f(v) for e in axes.T]
    return np.tensordot(sizes, np.array(ahead), 1) / _WIDE**2


@dataclass(frozen=True)
class Layer:
    """Gram matrix X, N Cov and N shift of X; the same of C, and N Cov(X, C) of other layers."""

    X: np.ndarray
    V: np.ndarray
    m: np.ndarray
    J: np.ndarray  # of X by that of the layer before
    slope: np.ndarray  # of C by X of the layer before
    own: np.ndarray  # N Var of C given the layer before
    C: np.ndarray


def layers(net, K0):
    """The layers 0, ..., L of the stream."""
    K0 = np.atleast_2d(K0)
    centred = float(net.norm == "layer")
    none = np.zeros((len(vector(K0)),) * 2)
    chain = [
        Layer(vector(K0), wick(K0, K0) / 2, -centred * vector(K0), none, none, none, vector(K0))
    ]
    for l in range(1, len(net.rho) + 1):
        X, V, m = chain[-1].X, chain[-1].V, chain[-1].m
        F, C = (partial(f, net, l) for f in (step, branch))
        J, own, fresh = jacobian(F, X), units(net, l, X), matrix(C(X))
        noise = wick(fresh, fresh) / 2 + own
        noise += net.gamma[l - 1] ** 2 * wick(stream(net, matrix(X)), fresh)
        m = J @ m + curvature(F, X, V) / 2 - centred * C(X)
        chain.append(Layer(F(X), J @ V @ J.T + noise, m, J, jacobian(C, X), own, C(X)))
    return chain


def residual_covariance(net, K0):
    """N Cov(C^(k), C^(l)) for k, l = 0, ..., L + 1: G11, shape (L + 2, L + 2, p, p)."""
    chain = layers(net, K0)
    size, p = len(chain) + 1, len(chain[0].X)
    readout = jacobian(lambda v: branch(net, size - 1, v), chain[-1].X)
    G11 = np.zeros((size, size, p, p))
    slopes = [layer.slope for layer in chain] + [readout]
    for k in range(1, size):
        own = np.zeros((p, p)) if k > len(net.rho) else chain[k].own
        G11[k, k] = slopes[k] @ chain[k - 1].V @ slopes[k].T + own
        if k > len(net.rho):
            continue
        # Cov(C^(k), X^(k)), which the layers behind it carry on.
        across = slopes[k] @ chain[k - 1].V @ chain[k].J.T + own
        for l in range(k + 1, size):
            G11[k, l] = across @ slopes[l].T
            G11[l, k] = G11[k, l].T
            across = across @ chain[l].J.T if l < len(chain) else across
    return G11


def residual_response(net, K0):
    """Derivatives of C^(k) by what C^(m) would be, k, m = 0, ..., L + 1: (L + 2, L + 2, p, p)."""
    chain = layers(net, K0)
    size, p = len(chain) + 1, len(chain[0].X)
    slopes = [layer.slope for layer in chain]
    slopes.append(jacobian(lambda v: branch(net, size - 1, v), chain[-1].X))
    response = np.zeros((size, size, p, p))
    for m in range(size):
        response[m, m] = carried = np.eye(p)
        for k in range(m + 1, size):
            response[k, m] = slopes[k] @ carried
            carried = chain[k].J @ carried if k < len(chain) else carried
    return response
