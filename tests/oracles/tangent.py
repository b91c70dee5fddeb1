"""The recursion of the tangent kernel with mpmath, for one input and for pairs.

    Theta^(0) = K^(0),   Theta^(l) = (gamma_l^2 + a_l <phi' phi'>) Theta^(l-1) + a_l <phi phi> + c_l

Averages over one signal are integrals over its kinks; averages over two are `precise.average2`,
for smooth phi or kinks at zero.
"""

from itertools import pairwise

import mpmath
from mpmath import mpf

from .precise import average2
from .recursion import bias_terms, weight_terms


def average1(f, K, kinks=()):
    """<f(h)> for h of variance K, between the kinks."""
    s = mpmath.sqrt(K)
    cut = mpmath.sqrt(2 * mpmath.log(10) * (mpmath.mp.dps + 6))
    inner = sorted({mpf(0), *(x * y for x in (-1, 1) for y in (mpf(1), mpf(3)))})
    points = sorted({-cut, cut, *inner, *(k / s for k in map(mpf, kinks) if abs(k / s) < cut)})
    # Points beside another would be panels of nothing.
    edges = [points[0], *(b for a, b in pairwise(points) if b - a > mpf(10) ** -20)]
    return mpmath.quad(lambda z: mpmath.npdf(z) * f(s * z), edges)


def of_one(net, K0, phi, slope, kinks=()):
    """Theta^(l) of one input for l = 0, ..., L + 1."""
    K = theta = mpf(K0)
    found = [theta]
    for a, c, gamma in _layers(net):
        C = a * average1(lambda h: phi(h) ** 2, K, kinks) + c
        theta = (gamma**2 + a * average1(lambda h: slope(h) ** 2, K, kinks)) * theta + C
        K = gamma**2 * K + C
        found.append(theta)
    return found


def of_pair(net, K0, phi, slope):
    """Theta^(l)_12 of two inputs with the kernel K0 (2 x 2) for l = 0, ..., L + 1."""
    (p, r), (_, q) = [list(map(mpf, row)) for row in K0]
    theta = r
    found = [theta]
    for a, c, gamma in _layers(net):
        K = [[p, r], [r, q]]
        own = [a * average1(lambda h: phi(h) ** 2, k) + c for k in (p, q)]
        C = a * average2(lambda x, y: phi(x) * phi(y), K) + c
        theta = (gamma**2 + a * average2(lambda x, y: slope(x) * slope(y), K)) * theta + C
        p, q, r = (gamma**2 * k + new for k, new in zip((p, q, r), (*own, C), strict=True))
        found.append(theta)
    return found


def _layers(net):
    """a_l, c_l and gamma_l of the layers l = 1, ..., L + 1."""
    return zip(weight_terms(net)[1:], bias_terms(net)[1:], (*net.gamma, mpf(0)), strict=True)
