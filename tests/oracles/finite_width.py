"""Networks of one input whose kernels are known exactly at a finite width N.

Deep linear networks (any order in 1/N as exact fractions), positively homogeneous phi without skip
and bias (independent factors), and one hidden layer (quadrature). Orders in 1/N of the last are
found by polynomial interpolation of the exact numbers in 1/N.
"""

from fractions import Fraction
from itertools import product
from math import comb, factorial, prod

import numpy as np
import sympy

from .recursion import bias_terms, weight_terms

# --- series in e = 1/N with exact coefficients, (order + 1,) arrays of Fraction -----------------


def _constant(value, order):
    return np.array([Fraction(value)] + [Fraction(0)] * order, dtype=object)


def _times(x, y):
    order = len(x) - 1
    return np.array(
        [sum((x[i] * y[k - i] for i in range(k + 1)), Fraction(0)) for k in range(order + 1)],
        dtype=object,
    )


def _cumulants(raw):
    """First three cumulants of a variable with raw moments (1, m1, m2, m3), each a series."""
    _, m1, m2, m3 = raw
    square = _times(m1, m1)
    return m1, m2 - square, m3 - 3 * _times(m1, m2) + 2 * _times(m1, square)


def _affine(raw, a, c):
    """Raw moments of a q + c from those of q."""
    a, c = Fraction(a), Fraction(c)
    return [
        sum(comb(k, i) * a**i * c ** (k - i) * raw[i] for i in range(k + 1))
        for k in range(len(raw))
    ]


# --- deep linear networks ------------------------------------------------------------------------


def _linear_step(k):
    """E[q'^k | q] as {(i, j): coefficient(gamma^2, e)} of C^i q^j, from the law of one layer.

    Rotations leave the signal's law unchanged, so with zeta ~ N(0, 1) along h and chi ~ chi^2_(N-1)
    for the rest of the noise  q' = gamma^2 q + 2 gamma sqrt(C q/N) zeta + C (zeta^2 + chi)/N.
    """
    g, e = sympy.symbols("g e", positive=True)
    found = {}
    for i, j in product(range(k + 1), repeat=2):
        m = k - i - j
        if m < 0 or j % 2:
            continue
        # i factors gamma^2 q, j factors 2 gamma sqrt(C q e) zeta, m factors C (zeta^2 + chi) e
        noise = sum(
            comb(m, r)
            * sympy.factorial2(2 * r + j - 1)
            * sympy.prod([1 / e - 1 + 2 * t for t in range(m - r)])
            for r in range(m + 1)
        )
        term = (
            sympy.Integer(factorial(k) // (factorial(i) * factorial(j) * factorial(m)))
            * g ** (i + j // 2)
            * 2**j
            * e ** (j // 2 + m)
            * noise
        )
        key = (j // 2 + m, i + j // 2)
        found[key] = sympy.expand(found.get(key, 0) + term)
    return found, g, e


_LINEAR_STEPS = [_linear_step(k) for k in range(4)]


def linear_orders(net, K0, order=2):
    """Cumulants 1 to 3 of C^(l), and V^(l)/N, of a deep linear network, as series in 1/N.

    Every float is taken as the fraction it is. Returns (L+2, 3, order+1) and (L+1, order+1) arrays
    of Fraction; entry k is the coefficient of N^-k. V/N = E[h_i^2 h_j^2] - E[h_i^2] E[h_j^2].
    """
    return _linear(net, K0, order, None)


def linear_exact(net, K0, N):
    """The same (L+2, 3) and (L+1,) at width N."""
    cumulants, vertices = _linear(net, K0, 0, Fraction(1, N))
    return cumulants[..., 0], vertices[..., 0]


def _linear(net, K0, order, width):
    a, c = weight_terms(net), bias_terms(net)
    e = _constant(0, order)
    if width is None:
        e[1] = Fraction(1)
    else:
        e[0] = width
    raw = [_constant(1, order)]
    for k in range(3):
        raw.append(Fraction(K0) * _times(raw[-1], _constant(1, order) + 2 * k * e))
    C = [np.array([_constant(K0, order), _constant(0, order), _constant(0, order)])]
    V = [_rotated(raw, e)]
    for ell in range(1, len(a)):
        C.append(np.array(_cumulants(_affine(raw, a[ell], c[ell]))))
        if ell == len(a) - 1:
            break
        raw = _linear_next(raw, Fraction(net.gamma[ell - 1]) ** 2, a[ell], c[ell], e)
        V.append(_rotated(raw, e))
    return np.array(C), np.array(V)


def _linear_next(raw, gamma2, a, c, e):
    a, c, order = Fraction(a), Fraction(c), len(e) - 1
    found = []
    for terms, g, symbol in _LINEAR_STEPS:
        total = _constant(0, order)
        for (i, j), coefficient in terms.items():
            polynomial = sympy.Poly(coefficient, g, symbol)
            factor, power = _constant(0, order), [_constant(1, order)]
            for (p, q), number in polynomial.terms():
                while len(power) <= q:
                    power.append(_times(power[-1], e))
                factor = factor + Fraction(int(number)) * gamma2**p * power[q]
            moment = sum(comb(i, t) * a**t * c ** (i - t) * raw[j + t] for t in range(i + 1))
            total = total + _times(factor, moment)
        found.append(total)
    return found


def _rotated(raw, e):
    """E[h_i^2 h_j^2] = E[q^2]/(1 + 2/N) for a law that rotations do not change, less E[q]^2."""
    order = len(e) - 1
    inverse, power = _constant(0, order), _constant(1, order)
    if order:
        for _ in range(order + 1):
            inverse, power = inverse + power, _times(power, -2 * e)
    else:
        inverse[0] = 1 / (1 + 2 * e[0])
    return _times(raw[2], inverse) - _times(raw[1], raw[1])


# --- positively homogeneous phi, gamma = 0, no bias -----------------------------------------------


def homogeneous_orders(net, K0, slopes=(0, 1), order=2):
    """Cumulants of C^(l) (L+2, 3, order+1) and V^(l)/N (L+1, order+1), exact fractions.

    phi(h) = slopes[0] h for h < 0 and slopes[1] h for h > 0. Then C^(l+1) = a_(l+1) C^(l) R with
    independent R = (1/N) sum phi(z_j)^2, and for gamma = 0 E[h_i^2 h_j^2] = E[C^2].
    """
    e = _constant(0, order)
    e[1] = Fraction(1)
    return _homogeneous(net, K0, slopes, e)


def _homogeneous(net, K0, slopes, e):
    if any(net.gamma) or net.bias_variance or net.readout_bias_variance:
        raise ValueError("for gamma = 0 and no bias")
    order = len(e) - 1
    A = [
        Fraction(prod(range(1, 2 * k, 2))) * sum(Fraction(s) ** (2 * k) for s in slopes) / 2
        for k in range(4)
    ]
    e2 = _times(e, e)
    one = _constant(1, order)
    factors = [
        one,
        A[1] * one,
        A[1] ** 2 * one + (A[2] - A[1] ** 2) * e,
        A[1] ** 3 * one
        + 3 * A[1] * (A[2] - A[1] ** 2) * e
        + (A[3] - 3 * A[1] * A[2] + 2 * A[1] ** 3) * e2,
    ]
    a = weight_terms(net)
    raw = [Fraction(K0) ** k * one for k in range(4)]
    C, V = [np.array(_cumulants(raw))], [_cumulants(raw)[1]]
    for ell in range(1, len(a)):
        raw = [Fraction(a[ell]) ** k * _times(raw[k], factors[k]) for k in range(4)]
        C.append(np.array(_cumulants(raw)))
        if ell < len(a) - 1:
            V.append(C[-1][1])
    return np.array(C), np.array(V)
