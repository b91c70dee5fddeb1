"""The action itself at depth one, in mpmath, and its 6 x 6 Hessian by finite differences.

    S / N = -sum_l nu_l C_l Ct_l + ln < exp sum_l Ct_l g_l(h) >,   l = 0, 1, 2
    g_0 = nu_0 C_data,  g_1 = a_1 phi(h0)^2 + c_1,  g_2 = a_2 phi(h1)^2 + c_2
    h0 = f0,  h1 = gamma_1 f0 + f1,  f_m ~ N(0, C_m) independent

This is the definition: no block of the Hessian is put in by hand. phi must be analytic: the
average is a trapezoidal rule, which needs far fewer nodes than Gauss-Hermite for erf or tanh.
"""

import mpmath
import numpy as np
from mpmath import mp, mpf

from .differences import second_derivatives
from .recursion import bias_terms, weight_terms


def action_function(net, C_data, phi, nu0=1, step=0.3):
    """S / N as a function of the list [C0, C1, C2, Ct0, Ct1, Ct2] of mpf; net has depth one."""
    a, c = weight_terms(net), bias_terms(net)
    nu = [nu0, 1, 1]
    cut = mpmath.sqrt(2 * mpmath.log(10) * (mp.dps + 3))
    count = int(mpmath.ceil(cut / step))
    z = [step * mpf(k) for k in range(-count, count + 1)]
    nodes = [(x, y) for x in z for y in z if x * x + y * y <= cut**2]
    weights = [step**2 / (2 * mp.pi) * mpmath.exp(-(x * x + y * y) / 2) for x, y in nodes]
    squares = {}

    def phi_squares(C0, C1):
        if (C0, C1) not in squares:
            s, t = mpmath.sqrt(C0), mpmath.sqrt(C1)
            first = {x: phi(s * x) ** 2 for x in z}
            squares[C0, C1] = [(first[x], phi(net.gamma[0] * s * x + t * y) ** 2) for x, y in nodes]
        return squares[C0, C1]

    def S(fields):
        C, Ct = fields[:3], fields[3:]
        constant = Ct[0] * nu0 * C_data + Ct[1] * c[1] + Ct[2] * c[2]
        pairs = phi_squares(C[0], C[1])
        u, v = Ct[1] * a[1], Ct[2] * a[2]
        terms = zip(weights, pairs, strict=True)
        ln = mpmath.log(mpmath.fsum(w * mpmath.exp(u * p + v * q) for w, (p, q) in terms))
        return -mpmath.fsum(n * x * y for n, x, y in zip(nu, C, Ct, strict=True)) + constant + ln

    return S


def hessian(net, C, phi, nu0=1, step=0.3):
    """S'' / N (6, 6), order (C0, C1, C2, Ct0, Ct1, Ct2), at the saddle point C = C* (3,), Ct = 0.

    Second-order differences with steps 10^(-dps/4): about dps/2 digits are right.
    """
    S = action_function(net, C[0], phi, nu0, step)
    h = mpf(10) ** (-mpf(mp.dps) / 4)
    steps = [h * abs(x) for x in C] + [h] * 3
    return np.array(second_derivatives(S, [*C, mpf(0), mpf(0), mpf(0)], steps), dtype=float)
