"""Connected correlators <phi(x)^2 ; phi(y)^2> with mpmath at the current mp.dps.

Elementary phi: the two-point function of F = phi^2 typed in, less its value at zero covariance.
Any phi: the Mehler series sum_{n>=1} F_n G_n r^n in the correlation r, with orthonormal Hermite
coefficients by composite Gauss-Legendre rules; for weak correlations. Arguments are mpf.
"""

import mpmath
from mpmath import mpf

from .exact import erf_connected, relu_average, relu_connected

ORDER = 36


def less_uncorrelated(joint):
    """The connected correlator of a two-point function joint(a, b, c)."""
    return lambda a, b, c: joint(a, b, c) - joint(a, b, mpf(0))


def gaussian(a, b, c):
    """<F F>, F = exp(-2 h^2)."""
    return 1 / mpmath.sqrt((1 + 4 * a) * (1 + 4 * b) - 16 * c * c)


def bump(a, b, c):
    """<F F>, F = h^2 exp(-h^2): the derivative of det^(-1/2) by both exponents."""
    D = (1 + 2 * a) * (1 + 2 * b) - 4 * c * c
    D_x, D_y = 2 * a * (1 + 2 * b) - 4 * c * c, 2 * b * (1 + 2 * a) - 4 * c * c
    return (3 * D_x * D_y / D - 2 * (4 * a * b - 4 * c * c)) / 4 / D ** mpf("1.5")


def gaussian_and_line(a, b, c):
    """<F ; F>, F = exp(-2 h^2) + h^2 + 2 h exp(-h^2)."""
    even = less_uncorrelated(gaussian)(a, b, c) + 2 * c * c
    mixed = -4 * c * c * ((1 + 4 * a) ** mpf("-1.5") + (1 + 4 * b) ** mpf("-1.5"))
    return even + mixed + 4 * c / ((1 + 2 * a) * (1 + 2 * b) - 4 * c * c) ** mpf("1.5")


def cosine_and_line(a, b, c):
    """<F ; F>, F = cos(h)^2 + h^2 + 2 h cos(h)."""
    even = squared_wave(a, b, c) + 2 * c * c - 2 * c * c * (mpmath.exp(-2 * a) + mpmath.exp(-2 * b))
    odd = (a * b + c * c) * mpmath.sinh(c) + (1 - a - b) * c * mpmath.cosh(c)
    return even + 4 * mpmath.exp(-(a + b) / 2) * odd


def squared_wave(a, b, c):
    """<cos^2 ; cos^2> = <sin^2 ; sin^2>."""
    return mpmath.exp(-2 * a - 2 * b) * 2 * mpmath.sinh(2 * c) ** 2 / 4


def shifted_relu(a, b, c):
    """<F F>, F = phi^2 + 2 phi + 1 with phi = relu, without what depends on one variable."""
    s, t = mpmath.sqrt(a), mpmath.sqrt(b)
    r = c / (s * t)
    # <x^2 y> over the quadrant of unit variables is (1 + r)^2 / (2 sqrt(2 pi)).
    mixed = (1 + r) ** 2 / (2 * mpmath.sqrt(2 * mpmath.pi)) * s * t * (s + t)
    return relu_average(2, a, b, c) + 4 * relu_average(1, a, b, c) + 2 * mixed


EXACT = {
    "exp(-h**2)": less_uncorrelated(gaussian),
    "h*exp(-h**2/2)": less_uncorrelated(bump),
    "exp(h)": lambda a, b, c: mpmath.exp(2 * a + 2 * b) * mpmath.expm1(4 * c),
    "sin(h)": squared_wave,
    "cos(h)": squared_wave,
    "cos(h)+h": cosine_and_line,
    "exp(-h**2)+h": gaussian_and_line,
    "h**3": lambda a, b, c: 4050 * (a * b * c) ** 2 + 5400 * a * b * c**4 + 720 * c**6,
    "h**2": lambda a, b, c: 72 * a * b * c * c + 24 * c**4,
    "abs(h)": lambda a, b, c: 2 * c * c,
    "max(0,h)": relu_connected,
    "max(0,h)+1": less_uncorrelated(shifted_relu),
    "erf(h)": erf_connected,
}
