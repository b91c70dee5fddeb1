"""The recursion of the tangent kernel with mpmath, for one input and for pairs.

    Theta^(0) = K^(0),   Theta^(l) = (gamma_l^2 + a_l <phi' phi'>) Theta^(l-1) + a_l <phi phi> + c_l

Averages over one signal are integrals over its kinks; averages over two are `precise.average2`,
for smooth phi or kinks at zero.
"""

from functools import cache
from itertools import pairwise

import mpmath
from mpmath import mpf

from .deep_kernels import Phi, tangents
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
    return of_pair(net, [[K0, K0], [K0, K0]], phi, slope, kinks)


def of_pair(net, K0, phi, slope, kinks=()):
    """Theta^(l)_12 of two inputs with the kernel K0 (2 x 2) for l = 0, ..., L + 1."""
    (p, r), (_, q) = [list(map(mpf, row)) for row in K0]

    @cache
    def square(f, K):
        return average1(lambda h: f(h) ** 2, K, kinks)

    @cache
    def pair(p, q, r):
        if p == q == r:
            return square(phi, p), square(slope, p)
        K = [[p, r], [r, q]]
        return [average2(lambda x, y, f=f: f(x) * f(y), K) for f in (phi, slope)]

    gammas = (*net.gamma, mpf(0))
    layers = zip(gammas, weight_terms(net)[1:], bias_terms(net)[1:], strict=True)
    layers = [(gamma**2, a, c) for gamma, a, c in layers]
    return tangents(Phi(lambda K: square(phi, K), None, pair), layers, p, q, r)
