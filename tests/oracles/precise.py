"""Gaussian averages with mpmath at the current mp.dps, for one and two variables.

Two variables are integrated in polar coordinates of the whitened plane,

    h_1 = sqrt(K_11) r cos(theta),   h_2 = sqrt(K_22) r cos(theta - psi),   cos(psi) = correlation,

where the lines h_1 = 0 and h_2 = 0 are rays, so f may have kinks or jumps there. Composite
Gauss-Legendre rules are refined until two successive ones agree to 0.75 dps digits; as each
refinement has 1.5 times the nodes, the last one is then good to about dps digits.
"""

from functools import cache
from itertools import pairwise

import mpmath
from mpmath import mp, mpf

ORDERS = (12, 18, 27, 40, 60, 90, 135, 200)


def average1(f, K):
    """<f(h)> for one Gaussian variable of variance K (mpf); f maps mpf to mpf."""
    s, cut = mpmath.sqrt(K), _cut()
    fine = int(mpmath.ceil(mpmath.log(max(s, mpf(1)), 4)))
    half = [mpf(0), *(mpf(4) ** -k for k in range(fine, 0, -1)), mpf(1), mpf(3), cut]
    edges = [-z for z in reversed(half[1:])] + half

    def rule(order):
        terms = [
            (w * mpmath.exp(-z * z / 2), f(s * z))
            for a, b in pairwise(edges)
            for z, w in _nodes(a, b, order)
        ]
        return _sum_with_size(terms, mpmath.sqrt(2 * mpmath.pi))

    return _converge(rule)


def average2(f, K):
    """<f(h_1, h_2)> for K = [[K_11, K_12], [K_12, K_22]], singular K included."""
    (a, c), (_, b) = K
    s, t = mpmath.sqrt(a), mpmath.sqrt(b)
    psi = mpmath.atan2(mpmath.sqrt(max(a * b - c * c, mpf(0))), c)
    zeros = [x + y for x in (-mp.pi / 2, mp.pi / 2, 3 * mp.pi / 2) for y in (mpf(0), psi)][:-1]
    rays = _angles(zeros, s, t)
    radii = [mpf(0), _cut() / 3, _cut()]

    def rule(order):
        radial = [
            (r, w * r * mpmath.exp(-r * r / 2))
            for lo, hi in pairwise(radii)
            for r, w in _nodes(lo, hi, order)
        ]
        terms = []
        for lo, hi in pairwise(rays):
            for theta, w in _nodes(lo, hi, order):
                x, y = s * mpmath.cos(theta), t * mpmath.cos(theta - psi)
                terms += [(w * v, f(x * r, y * r)) for r, v in radial]
        return _sum_with_size(terms, 2 * mpmath.pi)

    return _converge(rule)


def connected2(f, g, K):
    """<f(h_1); g(h_2)> = <(f - <f>) (g - <g>)> for covariance K (2 x 2)."""
    f_mean, g_mean = average1(f, K[0][0]), average1(g, K[1][1])
    return average2(lambda x, y: (f(x) - f_mean) * (g(y) - g_mean), K)


def score1(f, K):
    """d<f>_K / dK as <f (h^2/K - 1)> / (2 K): the derivative of the density under the integral."""
    return average1(lambda h: f(h) * (h * h / K - 1), K) / (2 * K)


def score2(f, K, entry):
    """d<f>_K / dK_entry as <f d(ln p)/dK_entry>; with u = K^-1 h, J = K^-1 this factor is
    (u_i^2 - J_ii) / 2 for a diagonal entry and u_1 u_2 - J_12 for the pair (0, 1)."""
    (a, c), (_, b) = K
    det = a * b - c * c

    def weighted(x, y):
        u, v = (b * x - c * y) / det, (a * y - c * x) / det
        if entry == (0, 1):
            return f(x, y) * (u * v + c / det)
        return f(x, y) * (u * u - b / det if entry == (0, 0) else v * v - a / det) / 2

    return average2(weighted, K)


def _angles(rays, s, t):
    """Panel edges over one turn: the rays and, for large s or t, points close to each of them."""
    rays = sorted(rays)
    width = 1 / max(s, t)
    extra = [ray + sign * width for ray in rays for sign in (1, -1)] if width < 1 / 2 else []
    inside = sorted(x for x in rays + extra if rays[0] <= x <= rays[-1])
    return [x for x, y in pairwise(inside) if y - x > 4 * mp.eps] + [rays[-1]]


def _cut():
    """Radius beyond which the Gaussian weight is below 10^-(dps + 6)."""
    return mpmath.sqrt(2 * mpmath.log(10) * (mp.dps + 6))


def _nodes(a, b, order):
    """Gauss-Legendre nodes and weights on [a, b]."""
    middle, half = (a + b) / 2, (b - a) / 2
    return [(middle + half * x, half * w) for x, w in _unit_nodes(order, mp.prec)]


@cache
def _unit_nodes(n, prec):
    """Roots of P_n by Newton's method from cos(pi (k + 3/4) / (n + 1/2)), weights by P_n'."""
    nodes = []
    with mpmath.workprec(prec + 20):
        for k in range(n):
            x, step = mpmath.cos(mp.pi * (k + mpf(3) / 4) / (n + mpf(1) / 2)), mpf(1)
            while True:
                p, q = mpf(1), mpf(0)
                for m in range(n):
                    p, q = ((2 * m + 1) * x * p - m * q) / (m + 1), p
                slope = n * (q - x * p) / (1 - x * x)
                if abs(step) < mpf(2) ** (-prec // 2 - 10):
                    break
                step = p / slope
                x -= step
            nodes.append((x, 2 / ((1 - x * x) * slope**2)))
    return nodes


def _sum_with_size(terms, norm):
    """Sum of w f and sum of w |f|, both divided by norm."""
    return (
        mpmath.fsum(w * value for w, value in terms) / norm,
        mpmath.fsum(w * abs(value) for w, value in terms) / norm,
    )


def _converge(rule):
    previous = rule(ORDERS[0])[0]
    for order in ORDERS[1:]:
        value, size = rule(order)
        if abs(value - previous) <= size * mpf(10) ** (-mpf(3) / 4 * mp.dps):
            return value
        previous = value
    raise ArithmeticError(f"quadrature did not converge at {mp.dps} digits")
