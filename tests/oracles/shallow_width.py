"""One residual layer and a readout with a polynomial activation, exactly at every width N.

C^(1) = a_1 mean of g(h_i) + c_1 over N neurons of variance K_0, C^(2) = a_2 mean of g(h_i') + c_2
over h_i' = gamma h_i + sqrt(C^(1)) xi_i. Moments are sums over the ways in which neurons coincide;
the neurons that do not occur enter by the moments of a sum of independent ones.
"""

from functools import cache
from math import factorial

import sympy as sp

from .linear_width import eps, joint_cumulants

h, C, S, T = sp.symbols("h C S T")


def kernel_cumulants(K0, features, weights, biases, gamma):
    """Joint cumulants of C^(0), C^(1), C^(2) up to the third, as polynomials in eps = 1/N."""
    K0, gamma = sp.Rational(K0), sp.Rational(gamma)
    g = sp.Poly(sp.expand(sum(f**2 for f in features(h))), h)
    (a1, a2), (c1, c2) = weights, biases

    def gaussian(n, variance):
        return 0 if n % 2 else sp.factorial2(n - 1) * variance ** (n // 2) if n else 1

    def average(poly):
        """Over h of variance K0."""
        return sum(x * gaussian(n, K0) for (n,), x in sp.Poly(poly, h).terms())

    @cache
    def next_power(s):
        """E[g(gamma h + sqrt(C) xi)^s | h, C]."""
        total = 0
        for (n,), x in (g**s).terms():
            for k in range(0, n + 1, 2):
                total += x * sp.binomial(n, k) * (gamma * h) ** (n - k) * gaussian(k, C)
        return sp.expand(total)

    @cache
    def other_sum(power, left_out):
        """E[T^power] of the sum T of g over N - left_out neurons, a polynomial in N = 1/eps."""
        count = 1 / eps - left_out
        raw = [average((g**k).as_expr()) for k in range(power + 1)]
        cumulants = [0]
        for n in range(1, power + 1):
            lower = [sp.binomial(n - 1, k - 1) * cumulants[k] * raw[n - k] for k in range(1, n)]
            cumulants.append(raw[n] - sum(lower))
        moments = [sp.S.One]
        for n in range(1, power + 1):
            terms = [sp.binomial(n - 1, k - 1) * cumulants[k] * moments[n - k]
                     for k in range(1, n + 1)]  # fmt: skip
            moments.append(sp.expand(count * sum(terms)))
        return moments[power]

    @cache
    def moment(first, second):
        """E of the powers of C^(1) and C^(2)."""
        total = 0
        for k in range(second + 1):
            for blocks in partitions(k):
                weight = sp.binomial(second, k) * c2 ** (second - k) * (a2 * eps) ** k
                total += weight * coincidences(blocks) * together(first, blocks)
        return sp.expand(total)

    def coincidences(blocks):
        """Ways to share out labelled factors over different neurons with these numbers each."""
        ways = sp.Integer(factorial(sum(blocks)))
        for size in blocks:
            ways /= factorial(size)
        for size in set(blocks):
            ways /= factorial(blocks.count(size))
        for i in range(len(blocks)):
            ways *= 1 / eps - i
        return ways

    def together(power, blocks):
        """E[C^(1)^power prod_i g(h_i')^s_i] for different neurons."""
        names = sp.symbols(f"h:{len(blocks)}")
        value = C**power
        for name, s in zip(names, blocks, strict=True):
            value *= next_power(s).subs(h, name)
        own = sum(g.as_expr().subs(h, name) for name in names)
        poly = sp.Poly(sp.expand(value), C)
        inner = sum(x * (a1 * eps * (S + T) + c1) ** n for (n,), x in poly.terms())
        poly = sp.Poly(sp.expand(inner), S, T)
        total = 0
        for (i, j), x in poly.terms():
            known = sp.Poly(sp.expand(x * own**i), *names) if names else None
            if known is None:
                mean = x if i == 0 else 0
            else:
                mean = sum(
                    y * sp.prod([gaussian(n, K0) for n in powers]) for powers, y in known.terms()
                )
            total += mean * other_sum(j, len(blocks))
        return sp.expand(total)

    def raw(layers):
        value = moment(layers.count(1), layers.count(2)) * K0 ** layers.count(0)
        return sp.Poly(sp.expand(value), eps)

    return joint_cumulants(raw)


def partitions(total, largest=None):
    """Block sizes, the largest first."""
    if total == 0:
        yield ()
    for first in range(min(total, largest or total), 0, -1):
        for rest in partitions(total - first, first):
            yield (first, *rest)
