"""Networks of one input whose kernels are known exactly at a finite width N.

Deep linear networks, and positively homogeneous phi without skip and bias (independent factors),
as polynomials in eps = 1/N. Every float is taken as the fraction it is.
"""

from math import prod

import numpy as np
import sympy

from .linear_width import conditional_moments, eps, q
from .recursion import bias_terms, weight_terms


def linear_orders(net, K0, order=2):
    """Cumulants 1 to 3 of C^(l), and V^(l)/N, of a deep linear network, as series in 1/N.

    Returns (L+2, 3, order+1) and (L+1, order+1) arrays; entry k is the coefficient of N^-k.
    V/N = E[h_i^2 h_j^2] - E[h_i^2] E[h_j^2].
    """
    inverse = sum((-2 * eps) ** k for k in range(order + 1))
    return [_coefficients(values, order) for values in _linear(net, K0, eps, inverse)]


def _linear(net, K0, e, inverse):
    """For 1/N = e and 1/(1 + 2e): rotations leave the law, so E[h_i^2 h_j^2] = E[q^2]/(1 + 2e)."""
    a, c, K0 = _fractions(weight_terms(net)), _fractions(bias_terms(net)), sympy.Rational(K0)
    raw = [1, K0, K0**2 * (1 + 2 * e), K0**3 * (1 + 2 * e) * (1 + 4 * e)]
    C, V = [(K0, 0, 0)], []
    for ell in range(1, len(a)):
        V.append(raw[2] * inverse - raw[1] ** 2)
        mean, variance, third = _cumulants(raw)
        C.append((a[ell] * mean + c[ell], a[ell] ** 2 * variance, a[ell] ** 3 * third))
        if ell < len(a) - 1:
            gamma = sympy.Rational(net.gamma[ell - 1])
            moments = conditional_moments(gamma**2, a[ell] * q + c[ell], e)
            terms = [sympy.Poly(m, q).terms() for m in moments]
            raw = [sympy.expand(sum(x * raw[n] for (n,), x in each)) for each in terms]
    return C, V


def homogeneous_orders(net, K0, slopes=(0, 1), order=2):
    """Cumulants of C^(l) (L+2, 3, order+1) and V^(l)/N (L+1, order+1).

    phi(h) = slopes[0] h for h < 0 and slopes[1] h for h > 0. Then C^(l+1) = a_(l+1) C^(l) R with
    independent R = (1/N) sum phi(z_j)^2, and for gamma = 0 E[h_i^2 h_j^2] = E[C^2].
    """
    if any(net.gamma) or net.bias_variance or net.readout_bias_variance:
        raise ValueError("for gamma = 0 and no bias")
    A = [
        prod(range(1, 2 * k, 2)) * sum(sympy.Rational(s) ** (2 * k) for s in slopes) / 2
        for k in range(4)
    ]
    spread, third = A[2] - A[1] ** 2, A[3] - 3 * A[1] * A[2] + 2 * A[1] ** 3
    factors = [
        1,
        A[1],
        A[1] ** 2 + spread * eps,
        A[1] ** 3 + 3 * A[1] * spread * eps + third * eps**2,
    ]
    raw = [sympy.Rational(K0) ** k for k in range(4)]
    C = [_cumulants(raw)]
    for a in _fractions(weight_terms(net))[1:]:
        raw = [sympy.expand(a**k * raw[k] * factors[k]) for k in range(4)]
        C.append(_cumulants(raw))
    return _coefficients(C, order), _coefficients([variance for _, variance, _ in C[:-1]], order)


def _fractions(values):
    return [sympy.Rational(x) for x in values]


def _cumulants(raw):
    """First three cumulants of a variable with raw moments (1, m1, m2, m3)."""
    _, m1, m2, m3 = raw
    return m1, m2 - m1**2, m3 - 3 * m1 * m2 + 2 * m1**3


def _coefficients(values, order):
    """Of eps^k, k = 0 ... order, on the last axis."""
    polynomials = [sympy.Poly(x, eps) for x in np.ravel(np.array(values, dtype=object))]
    found = [[p.coeff_monomial(eps**k) for k in range(order + 1)] for p in polynomials]
    return np.array(found).reshape(*np.shape(values), order + 1)
