"""Closed forms typed in from the literature, evaluated by mpmath.

ReLU: arc-cosine kernels of Cho and Saul (2009), k_n = |x|^n |y|^n J_n(theta) / pi.
erf: Williams (1997) and derivatives. Linear networks: elementary, exact at any width N.
Arguments are mpf (or floats, then accuracy is that of the current mp.dps).
"""

import mpmath
import numpy as np
from mpmath import mpf, pi

from .recursion import bias_terms, weight_terms


def relu_average(degree, Kxx, Kyy, Kxy):
    """<Theta(x) Theta(y) x^n y^n> for n = degree in (0, 1, 2): half the arc-cosine kernel.

    n = 0: <phi' phi'>, n = 1: <phi phi>, n = 2: <phi^2 phi^2> for phi = relu.
    """
    size = mpmath.sqrt(Kxx * Kyy)
    theta = mpmath.atan2(mpmath.sqrt(max(Kxx * Kyy - Kxy**2, mpf(0))), Kxy)
    sin, cos = mpmath.sin(theta), mpmath.cos(theta)
    J = (
        pi - theta,
        sin + (pi - theta) * cos,
        3 * sin * cos + (pi - theta) * (1 + 2 * cos**2),
    )[degree]
    return size**degree * J / (2 * pi)


def relu_connected(Kxx, Kyy, Kxy):
    """<phi(x)^2 ; phi(y)^2> for phi = relu."""
    return relu_average(2, Kxx, Kyy, Kxy) - mpf(Kxx) * Kyy / 4


def erf_average(Kxx, Kyy, Kxy):
    """<erf(x) erf(y)> = (2/pi) asin(2 K_xy / sqrt((1 + 2 K_xx)(1 + 2 K_yy)))."""
    det = 1 + 2 * Kxx + 2 * Kyy + 4 * (Kxx * Kyy - mpf(Kxy) ** 2)
    return 2 / pi * mpmath.atan2(2 * Kxy, mpmath.sqrt(det))


def erf_slope(K):
    """d<erf^2>/dK = (4/pi) / ((1 + 2K) sqrt(1 + 4K))."""
    return 4 / pi / ((1 + 2 * K) * mpmath.sqrt(1 + 4 * mpf(K)))


def erf_connected(Kxx, Kyy, Kxy):
    """<erf(x)^2 ; erf(y)^2> = int_0^Kxy <F'(x) F'(y)>_t dt with F = erf^2."""

    def integrand(t):
        D = (1 + 2 * Kxx) * (1 + 2 * Kyy) - 4 * t**2
        root = mpmath.sqrt((2 - (1 + 2 * Kyy) / D) * (2 - (1 + 2 * Kxx) / D))
        return 32 / pi**2 * mpmath.asin(2 * t / D / root) / mpmath.sqrt(D)

    return mpmath.quad(integrand, [0, mpf(Kxy)])


def linear_kernels(net, K0):
    """C*, K (L+2 entries each) and chi = dK^(l)/dK^(0) for phi = id: C^(l) = a_l K^(l-1) + c_l."""
    a, c = weight_terms(net), bias_terms(net)
    C, K, chi = [K0], [K0], [K0 / K0]
    for ell in range(1, len(a)):
        skip = net.gamma[ell - 1] ** 2 if ell < len(a) - 1 else 0
        C.append(a[ell] * K[-1] + c[ell])
        K.append(skip * K[-1] + C[-1])
        chi.append((skip + a[ell]) * chi[-1])
    return np.array(C), np.array(K), np.array(chi)


def linear_S22(net, K0):
    """S22 / N (L+2, L+2) for phi = id: 2 a_k a_l Cov(h^(k-1), h^(l-1))^2."""
    a, (_, K, _) = weight_terms(net), linear_kernels(net, K0)
    S22 = np.zeros((len(a), len(a)), dtype=K.dtype)
    for k in range(1, len(a)):
        skip = 1
        for ell in range(k, len(a)):
            if ell > k:
                skip = skip * net.gamma[ell - 2]
            S22[k, ell] = S22[ell, k] = 2 * a[k] * a[ell] * (skip * K[k - 1]) ** 2
    return S22


def linear_moments(net, K0, N):
    """Mean (L+2,) and covariance (L+2, L+2) of C^(l) for phi = id, exact at any width N.

    With q_l = |h^(l)|^2 and f^(l+1) ~ N(0, C), C = a q_l / N + c, given q = q_l:
        E[q'] = gamma^2 q + N C
        E[q'^2] = gamma^4 q^2 + (2 N gamma^2 + 4 gamma^2) q C + N (N + 2) C^2
    and Cov(q_m, q_l) = Var(q_l) prod_(l < j <= m) (gamma_j^2 + a_j).
    """
    a, c = weight_terms(net), bias_terms(net)
    mean, square = [N * K0], [N * (N + 2) * K0**2]
    slopes = []
    for ell in range(1, len(a) - 1):
        g, x, y, q, qq = net.gamma[ell - 1] ** 2, a[ell] / N, c[ell], mean[-1], square[-1]
        mean.append(g * q + N * (x * q + y))
        square.append(
            g**2 * qq
            + (2 * N + 4) * g * (x * qq + y * q)
            + N * (N + 2) * (x**2 * qq + 2 * x * y * q + y**2)
        )
        slopes.append(g + a[ell])
    mean_C = [K0] + [a[k] * mean[k - 1] / N + c[k] for k in range(1, len(a))]
    cov = np.zeros((len(a), len(a)), dtype=np.array(mean).dtype)
    for k in range(1, len(a)):
        linear = square[k - 1] - mean[k - 1] ** 2
        for ell in range(k, len(a)):
            if ell > k:
                linear = linear * slopes[ell - 2]
            cov[k, ell] = cov[ell, k] = a[k] * a[ell] * linear / N**2
    return np.array(mean_C), cov
