"""Averages of tanh, logistic and swish to any number of digits, as mixtures of error functions.

The logistic distribution is a mixture of centred Gaussians whose standard deviation is twice a
variable d with Kolmogorov's distribution L (Andrews and Mallows 1974, Stefanski 1991), so that

    tanh(h) = integral dL(d) erf(s h),  s = 1/(sqrt(2) d),

and averages of products are double integrals of closed forms, positive for positive covariance.
In ln d the density of L falls off doubly exponentially to both sides: trapezoidal rule.
"""

from functools import cache

import mpmath
from mpmath import mp, mpf


@cache
def _rule(prec):
    """Pairs (s, weight); the trapezoidal error is about exp(-pi^2 / (2 step))."""
    step = mp.pi**2 / 2 / (mp.log(10) * (mp.dps + 2))
    low = mpmath.log(mp.pi / mpmath.sqrt(8 * mp.log(10) * (mp.dps + 8)))
    high = mpmath.log(mpmath.sqrt(mp.log(10) * (mp.dps + 8) / 2))
    rule, tau = [], low
    while tau <= high:
        d = mpmath.exp(tau)
        rule.append((1 / (mpmath.sqrt(2) * d), step * d * _kolmogorov(d)))
        tau += step
    return rule


def _kolmogorov(d):
    """The density of Kolmogorov's distribution."""
    total, k = mpf(0), 0
    while True:
        k += 1
        if d > 1:
            term = 8 * d * (-1) ** (k - 1) * k**2 * mpmath.exp(-2 * k**2 * d**2)
        else:
            u = (2 * k - 1) ** 2 * mp.pi**2 / (8 * d**2)
            term = mpmath.sqrt(2 * mp.pi) / d**2 * (2 * u - 1) * mpmath.exp(-u)
        total += term
        if abs(term) < mpf(10) ** (-mp.dps - 10):
            return total


def _sum(kernel, a, b, c):
    rule = _rule(mp.prec)
    total = mpf(0)
    for s, v in rule:
        A = 1 + 2 * s * s * a
        for r, w in rule:
            total += v * w * kernel(s, r, A, 1 + 2 * r * r * b, 2 * s * r * c)
    return total


def tanh_tanh(a, b, c):
    """<tanh(x) tanh(y)>."""
    return (
        _sum(lambda s, r, A, B, q: mpmath.atan2(q, mpmath.sqrt(A * B - q * q)), a, b, c) * 2 / mp.pi
    )


def slope_slope(a, b, c):
    """<tanh'(x) tanh'(y)>."""
    return _sum(lambda s, r, A, B, q: 4 * s * r / mpmath.sqrt(A * B - q * q), a, b, c) / mp.pi


def half_curvature(a, b, c):
    """<tanh''(x) tanh(y)>/2, the derivative of <tanh tanh> by a."""
    return (
        _sum(lambda s, r, A, B, q: -2 * s * s * q / A / mpmath.sqrt(A * B - q * q), a, b, c) / mp.pi
    )


def squares(a, b, c):
    """<tanh^2(x) ; tanh^2(y)> = <tanh' ; tanh'>, the difference of roots as one fraction."""

    def kernel(s, r, A, B, q):
        full, rest = mpmath.sqrt(A * B), mpmath.sqrt(A * B - q * q)
        return 4 * s * r * q * q / (full * rest * (full + rest))

    return _sum(kernel, a, b, c) / mp.pi


def logistic(a, b, c):
    """<phi phi>, <phi' phi'>, <phi'' phi>/2 and <phi^2 ; phi^2> of phi = (1 + tanh(h/2))/2."""
    quarter = a / 4, b / 4, c / 4
    tt, ss = tanh_tanh(*quarter), slope_slope(*quarter)
    return (
        (1 + tt) / 4,
        ss / 16,
        half_curvature(*quarter) / 16,
        (4 * tt + squares(*quarter)) / 16,
    )


def swish_swish(a, b, c):
    """<phi phi> of phi = h (1 + tanh(h/2))/2, by Stein's lemma for <x y tanh(x/2) tanh(y/2)>."""
    p, q, r = a / 4, b / 4, c / 4
    xy_tt = (
        r * tanh_tanh(p, q, r)
        + (p * q + r * r) * slope_slope(p, q, r)
        + 2 * p * r * half_curvature(p, q, r)
        + 2 * q * r * half_curvature(q, p, r)
    )
    return c / 4 + xy_tt
