"""The divergence of a uniform y from y = phi(h), h ~ N(0, v), integrated over y (F25 eq. (140)).

The inverses of erf, tanh and the logistic function are written out; the package integrates over h.
"""

from functools import cache

import mpmath
from mpmath import mpf


def divergence(name, variance, digits=50):
    """int dy p_uni(y) [ln p_uni(y) - ln p(y)], p(y) = N(h; 0, v) / phi'(h) at h = phi^-1(y)."""
    width, inverse, slope = _ACTIVATIONS[name]
    uniform = mpf(1) / width

    def integrand(t):
        # t is the distance of y from its upper limit; the lower half is its mirror image.
        with mpmath.workdps(4 * digits):
            h = inverse(t)
            log_p = -(h**2) / (2 * mpf(variance)) - mpmath.log(slope(h, t))
            log_p -= mpmath.log(2 * mpmath.pi * mpf(variance)) / 2
            return uniform * (mpmath.log(uniform) - log_p)

    with mpmath.workdps(digits + 15):
        return 2 * mpmath.quad(integrand, [0, mpf(width) / 8, mpf(width) / 2])


def second_moment(name, digits=50):
    """<h^2> of h = phi^-1(y) with y uniform, where the divergence is smallest."""
    width, inverse, _ = _ACTIVATIONS[name]

    def integrand(t):
        with mpmath.workdps(4 * digits):
            return inverse(t) ** 2 / width

    with mpmath.workdps(digits + 15):
        return 2 * mpmath.quad(integrand, [0, mpf(width) / 8, mpf(width) / 2])


def _erf_inverse(t):
    return _erf_inverse_to(t, mpmath.mp.prec)


@cache
def _erf_inverse_to(t, precision):
    """h with erf(h) = 1 - t, by Newton's method on ln erfc(h) = ln t."""
    h = mpmath.sqrt(max(-mpmath.log(t), mpf("0.1")))
    for _ in range(200):
        tail = mpmath.erfc(h)
        step = tail * mpmath.log(tail / t) * mpmath.exp(h**2) * mpmath.sqrt(mpmath.pi) / 2
        h += step
        if abs(step) <= mpmath.eps * 100 * (1 + abs(h)):
            return h
    raise ArithmeticError(f"no inverse at 1 - {t}")


def _erf_slope(h, t):
    return 2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-(h**2))


# Width of the range, inverse and slope as functions of the distance t from the upper limit.
_ACTIVATIONS = {
    "erf": (2, _erf_inverse, _erf_slope),
    "tanh": (2, lambda t: mpmath.log((2 - t) / t) / 2, lambda h, t: t * (2 - t)),
    "logistic": (1, lambda t: mpmath.log((1 - t) / t), lambda h, t: t * (1 - t)),
}
