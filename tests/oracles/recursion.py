"""The infinite-width recursion, and responses by differentiating it numerically.

Works in float64 or, given mpf numbers, in mpmath at the current mp.dps. `moment(Kxx, Kyy, Kxy)`
returns <phi(x) phi(y)>; for a variance it is called as moment(K, K, K).
"""

from typing import NamedTuple

import numpy as np

from .differences import derivative


class Net(NamedTuple):
    """Parameters of a network of depth L; rho_l = rho[l-1], gamma_l = gamma[l-1]."""

    rho: tuple
    gamma: tuple
    weight_variance: float
    bias_variance: float
    readout_weight_variance: float
    readout_bias_variance: float


def weight_terms(net):
    """a_l (L+2,): a_0 = 0, rho_l^2 sigma_w^2 for 1 <= l <= L, sigma_w,out^2 for l = L+1."""
    return [0, *(r**2 * net.weight_variance for r in net.rho), net.readout_weight_variance]


def bias_terms(net):
    """c_l (L+2,): c_0 = 0, rho_l^2 sigma_b^2 for 1 <= l <= L, sigma_b,out^2 for l = L+1."""
    return [0, *(r**2 * net.bias_variance for r in net.rho), net.readout_bias_variance]


def skip_matrix(net):
    """A (L+1, L+1): A_lm = gamma_(m+1) .. gamma_l for m <= l, so that h^(l) = sum_m A_lm f^(m)."""
    depth = len(net.gamma)
    A = [[0] * (depth + 1) for _ in range(depth + 1)]
    for ell in range(depth + 1):
        A[ell][ell] = 1
        for m in range(ell - 1, -1, -1):
            A[ell][m] = A[ell][m + 1] * net.gamma[m]
    return np.array(A)


def entries(P):
    """Order of the fields of one layer: variances (i, i), then covariances (i, j) with i < j."""
    return [(i, i) for i in range(P)] + [(i, j) for i in range(P) for j in range(i + 1, P)]


def moment_of(phi, average1, average2):
    """`moment` for kernels() and response() from two averaging functions."""

    def moment(Kxx, Kyy, Kxy):
        if Kxx == Kyy == Kxy:
            return average1(lambda h: phi(h) ** 2, Kxx)
        return average2(lambda x, y: phi(x) * phi(y), [[Kxx, Kxy], [Kxy, Kyy]])

    return moment


def kernels(net, K0, moment, inject=None):
    """C*^(l) and K^(l), each (L+2,) for a scalar K0 or (L+2, P, P) for K0 (P, P).

    C^(l)_ij = a_l <phi_i phi_j>_{K^(l-1)} + c_l,  K^(l) = gamma_l^2 K^(l-1) + C^(l),
    and K^(L+1) = C^(L+1). `inject` = (m, (i, j), eps) adds eps to C^(m)_ij and C^(m)_ji.
    """
    K0 = np.asarray(K0)
    P = K0.shape[0] if K0.ndim else 1
    a, c = weight_terms(net), bias_terms(net)
    C = [_injected(K0.reshape(P, P), 0, inject)]
    K = [C[0]]
    for ell in range(1, len(a)):
        new = np.empty((P, P), dtype=K0.dtype)
        for i, j in entries(P):
            k = K[-1]
            new[i, j] = new[j, i] = a[ell] * moment(k[i, i], k[j, j], k[i, j]) + c[ell]
        C.append(_injected(new, ell, inject))
        K.append(C[-1] + (net.gamma[ell - 1] ** 2 * K[-1] if ell < len(a) - 1 else 0))
    shape = (len(a), *K0.shape)
    return np.array(C).reshape(shape), np.array(K).reshape(shape)


def response(net, K0, moment):
    """Delta12 = N G12 with nu = 1: dC^(l)_p / dC^(m)_q, the change of the recursion's C^(l)
    when C^(m) is displaced, by central differences of the whole recursion.

    (L+2, L+2) for a scalar K0; (L+2, n, L+2, n), n = P(P+1)/2 in the order of entries(P), for
    K0 (P, P). The kernel of no pair may be singular (inputs distinct).
    """
    K0 = np.asarray(K0)
    P = K0.shape[0] if K0.ndim else 1
    pairs = entries(P)
    _, K = kernels(net, K0, moment)
    zero = K0.flat[0] * 0

    def fields(m, pair, eps):
        C = kernels(net, K0, moment, inject=(m, pair, eps))[0].reshape(-1, P, P)
        return np.array([[layer[p] for p in pairs] for layer in C])

    columns = [
        derivative(lambda eps, m=m, q=q: fields(m, q, eps), zero, distance(K[m]))
        for m in range(len(K))
        for q in pairs
    ]
    full = np.array(columns).reshape(len(K), len(pairs), len(K), len(pairs)).transpose(2, 3, 0, 1)
    return full if K0.ndim else full[:, 0, :, 0]


def distance(K):
    """How far an entry of K, () or (P, P), can move before a 2 x 2 minor becomes singular."""
    if np.size(K) == 1:
        return np.ravel(K)[0]
    pairs = [(K[i, i], K[j, j], K[i, j]) for i, j in entries(len(K)) if i < j]
    return min((a * b - c * c) / (a + b) for a, b, c in pairs)


def _injected(C, layer, inject):
    if inject is None or inject[0] != layer:
        return C
    C, (i, j), eps = C.copy(), inject[1], inject[2]
    C[i, j] += eps
    if i != j:
        C[j, i] += eps
    return C
