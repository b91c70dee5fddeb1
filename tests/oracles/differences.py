"""Numerical differentiation, float64 or mpmath."""

import mpmath
import numpy as np

EIGHTH_ORDER = (4 / 5, -1 / 5, 4 / 105, -1 / 280)


def derivative(fun, x, scale):
    """f'(x) by central differences; `fun` may return a number or an array.

    `scale` is the distance over which `fun` changes appreciably (and stays defined). For a
    float x: eight points, step scale / 50, error about 1e-13. For an mpf x: two points, step
    scale * 10^(-dps/2), worked at 1.5 dps + 10 digits, error about 10^-dps.
    """
    if isinstance(x, mpmath.mpf):
        dps = mpmath.mp.dps
        with mpmath.workdps(3 * dps // 2 + 10):
            h = scale * mpmath.mpf(10) ** (-(dps + 5) // 2)
            return (fun(x + h) - fun(x - h)) / (2 * h)
    h = scale / 50
    terms = (w * (fun(x + k * h) - fun(x - k * h)) for k, w in enumerate(EIGHTH_ORDER, start=1))
    return sum(terms) / h


def second_derivatives(fun, x, steps):
    """Matrix of second derivatives (n, n) of a scalar `fun` of a list x, second-order stencils.

    The error is O(steps^2), so this is for mpmath numbers with steps near 10^(-dps/4).
    """
    n = len(x)

    def at(*moves):
        y = list(x)
        for index, sign in moves:
            y[index] = y[index] + sign * steps[index]
        return fun(y)

    centre = at()
    matrix = np.empty((n, n), dtype=object)
    for i in range(n):
        matrix[i, i] = (at((i, 1)) - 2 * centre + at((i, -1))) / steps[i] ** 2
        for j in range(i):
            mixed = sum(s * t * at((i, s), (j, t)) for s in (1, -1) for t in (1, -1))
            matrix[i, j] = matrix[j, i] = mixed / (4 * steps[i] * steps[j])
    return matrix
