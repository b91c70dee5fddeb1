"""The infinitely deep residual network in plain Python: layers, flow and tails one by one.

A state is (p, q, r, tp, tq, tr): variances of two inputs, their covariance, and their tangent
kernels. `moments(p, q, r)` returns <phi(x) phi(y)> and <phi'(x) phi'(y)>; for a variance it is
called as moments(p, p, p). A layer of squared scale s adds s v(state), v = rates(...).
"""

import math

import mpmath
from scipy import integrate


def relu(p, q, r):
    root = math.sqrt(p * q)
    c = min(1.0, max(-1.0, r / root))
    angle = math.acos(c)
    first = root * (math.sqrt(max(0.0, 1 - c * c)) + c * (math.pi - angle)) / (2 * math.pi)
    return first, (math.pi - angle) / (2 * math.pi)


def erf(p, q, r):
    product = (1 + 2 * p) * (1 + 2 * q)
    first = 2 / math.pi * math.asin(2 * r / math.sqrt(product))
    return first, 4 / math.pi / math.sqrt(product - 4 * r * r)


def rates(moments, weight, bias):
    """v(state) for weight and bias variances."""

    def of(state):
        p, q, r, *tangents = state
        found = [moments(p, p, p), moments(q, q, q), moments(p, q, r)]
        kernel = [weight * product + bias for product, _ in found]
        gains = [weight * gain for _, gain in found]
        return kernel + [k + g * t for k, g, t in zip(kernel, gains, tangents, strict=True)]

    return of


def start(p, q, r):
    return [p, q, r, p, q, r]


def layers(v, state, squares):
    """The state after layers of these squared scales."""
    for square in squares:
        state = [y + square * rate for y, rate in zip(state, v(state), strict=True)]
    return state


def flow(v, state, time, power=1):
    """The state after a time of dy/dt = v, along t = time u^power."""

    def rate(u, y):
        return [power * u ** (power - 1) * time * each for each in v(y)]

    options = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-15}
    return integrate.solve_ivp(rate, (0, 1), state, **options).y[:, -1]


def readout(moments, state, weight, bias):
    return rates(moments, weight, bias)(state)


def decreasing(l):
    """The squared scale 1/(l ln²(l + 1))."""
    return 1 / (l * math.log(l + 1) ** 2)


def decreasing_tail(last):
    """The sum of 1/(l ln²(l + 1)) over l > last, by Euler and Maclaurin with 30 digits.

    The integral is that of 1/ln²(e^u + 1) over u = ln l, of which 1/u² is integrated by hand.
    """
    with mpmath.workdps(30):
        middle = mpmath.mpf(last) + 0.5
        u = mpmath.log(middle)

        def rest(v):
            return 1 / mpmath.log1p(mpmath.exp(v)) ** 2 - 1 / v**2

        integral = mpmath.quad(rest, [u, u + 5, u + 20, u + 60, u + 150]) + 1 / u

        def f(l):
            return 1 / (l * mpmath.log(l + 1) ** 2)

        slopes = [mpmath.diff(f, middle, order) for order in (1, 3)]
        return integral + slopes[0] / 24 - 7 * slopes[1] / 5760


def decreasing_square_tail(last):
    """The sum of (l ln²(l + 1))^(-2) over l > last, to 1/last² of it."""
    with mpmath.workdps(20):
        u = mpmath.log(mpmath.mpf(last) + 0.5)

        def f(v):
            return mpmath.exp(-v) / mpmath.log1p(mpmath.exp(v)) ** 4

        return mpmath.quad(f, [u, u + 4, u + 12, u + 50])
