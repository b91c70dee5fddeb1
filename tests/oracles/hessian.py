"""Dense Hessian of the action at the saddle point, by float64 quadrature of the definitions.

Per N, with g_k = a_k phi_i phi_j(h^(k-1)) + c_k and h ~ N(0, Cov), Cov(h^(k), h^(l)) =
sum_m A_km A_lm C^(m):

    S21[k, l] = -nu_k delta_kl + d<g_k>/dC^(l)     (central difference of the quadrature)
    S22[k, l] = <g_k ; g_l>                        (quadrature over both layers)

Every <g_k> is computed from the list of all C^(m) through A, not from the recursion. Arrays
are (L+2, L+2) for a scalar K0 and (L+2, n, L+2, n), n = P(P+1)/2, for K0 (P, P).
"""

import numpy as np

from . import quadrature
from .differences import derivative
from .recursion import bias_terms, distance, entries, kernels, moment_of, skip_matrix, weight_terms


def saddle(net, K0, phi):
    """C* (L+2,) or (L+2, P, P) from the recursion, every average by quadrature."""
    return kernels(net, K0, _moment(phi))[0]


def S21(net, K0, phi, nu=None):
    """d^2 S / dCtilde^(k)_p dC^(l)_q / N at the saddle point; nu (L+2,) defaults to ones."""
    C = saddle(net, K0, phi)
    C = C if C.ndim == 3 else C[:, None, None]
    layers, P = C.shape[:2]
    pairs, nu = entries(P), np.ones(layers) if nu is None else np.asarray(nu, dtype=float)
    a, c, A, moment = weight_terms(net), bias_terms(net), skip_matrix(net), _moment(phi)
    block = np.zeros((layers, len(pairs), layers, len(pairs)))
    for k in range(layers):
        block[k, :, k, :] = -nu[k] * np.eye(len(pairs))
    for k in range(1, layers):
        weights = A[k - 1].astype(float) ** 2
        size = distance(np.tensordot(weights, C[:-1], 1))
        for p, (i, j) in enumerate(pairs):

            def mean_g(eps, m, entry, k=k, i=i, j=j, weights=weights):
                moved = C[:-1].copy()
                moved[m][entry] += eps
                if entry[0] != entry[1]:
                    moved[m][entry[::-1]] += eps
                K = np.tensordot(weights, moved, 1)
                return a[k] * moment(K[i, i], K[j, j], K[i, j]) + c[k]

            for m in np.flatnonzero(weights):
                for q, entry in enumerate(pairs):
                    if set(entry) <= {i, j}:
                        block[k, p, m, q] += derivative(
                            lambda eps, m=m, entry=entry: mean_g(eps, m, entry),
                            0.0,
                            size / weights[m],
                        )
    return block if np.ndim(K0) else block[:, 0, :, 0]


def S22(net, K0, phi, step=0.4):
    """d^2 S / dCtilde^(k)_p dCtilde^(l)_q / N at the saddle point.

    One input: two variables, any phi with kinks at 0 only, about 1e-14. Several inputs: four
    variables by the trapezoidal rule of the given step, phi analytic (1e-9 for erf, K near 1).
    """
    C = saddle(net, K0, phi)
    if C.ndim == 1:
        return _S22_one(net, C, phi)
    layers, P = C.shape[:2]
    pairs, a, A = entries(P), weight_terms(net), skip_matrix(net).astype(float)
    block = np.zeros((layers, len(pairs), layers, len(pairs)))
    for k in range(1, layers):
        for m in range(k, layers):
            cov = [[np.tensordot(A[x - 1] * A[y - 1], C[:-1], 1) for y in (k, m)] for x in (k, m)]
            for p, (i, j) in enumerate(pairs):
                for q, (s, t) in enumerate(pairs):
                    pick = [i, j, P + s, P + t]
                    K = np.block(cov)[np.ix_(pick, pick)]
                    value = a[k] * a[m] * _connected4(phi, K, step)
                    block[k, p, m, q] = block[m, q, k, p] = value
    return block


def hessian(S21, S22):
    """S'' / N in the order (C, Ctilde): [[0, S21^T], [S21, S22]], (2n, 2n) from n x n blocks.

    Blocks (L+2, n, L+2, n) are flattened first, layer by layer.
    """
    size = int(np.sqrt(S21.size))
    S21, S22 = S21.reshape(size, size), S22.reshape(size, size)
    return np.block([[np.zeros_like(S21), S21.T], [S21, S22]])


def propagator(H):
    """Blocks G11, G12, G21, G22 (times N) of G = -H^-1, H dense from hessian()."""
    G = -np.linalg.inv(H)
    n = len(H) // 2
    return G[:n, :n], G[:n, n:], G[n:, :n], G[n:, n:]


def _moment(phi):
    return moment_of(phi, quadrature.average1, quadrature.average2)


def _S22_one(net, C, phi):
    a, A = weight_terms(net), skip_matrix(net).astype(float)
    cov = (A * C[:-1].astype(float)) @ A.T
    block = np.zeros((len(C), len(C)))
    for k in range(1, len(C)):
        for m in range(k, len(C)):
            K = cov[np.ix_([k - 1, m - 1], [k - 1, m - 1])]
            block[k, m] = block[m, k] = a[k] * a[m] * connected2(lambda h: phi(h) ** 2, K)
    return block


def connected2(F, K):
    """<F(h_1) ; F(h_2)> for covariance K (2, 2), F with kinks at 0 only."""
    f, g = quadrature.average1(F, K[0, 0]), quadrature.average1(F, K[1, 1])
    return quadrature.average2(lambda x, y: (F(x) - f) * (F(y) - g), K)


def _connected4(phi, K, step):
    f = quadrature.average_smooth(lambda x, y: phi(x) * phi(y), K[:2, :2], step / 2)
    g = quadrature.average_smooth(lambda x, y: phi(x) * phi(y), K[2:, 2:], step / 2)
    return quadrature.average_smooth(
        lambda w, x, y, z: (phi(w) * phi(x) - f) * (phi(y) * phi(z) - g), K, step
    )
