"""Rates of wide diffusions: closed forms, and networks of finite depth whose moments are known."""

from math import factorial

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from fieldtheory.compiling.functions import lambdify
from fieldtheory.theory import notation as sym
from fieldtheory.theory.small_increments import S_II, S_IJ, S_JJ, SLOPES
from fieldtheory.theory.wide_diffusion import (
    CHANGE,
    GRAM,
    GROWTH,
    second_moment,
    wide_rates,
)

WEIGHT, BIAS = 1.2, 0.7


def compiled(rate):
    arguments = [*SLOPES, sym.WEIGHT, S_II, S_IJ, S_JJ, CHANGE, GROWTH]
    return lambdify(arguments, rate)


def flow(slopes, gram_terms, start, end):
    """m, V, δm, δV and κ at ``end`` of one input, the Gram entry from its terms."""
    rates = [compiled(rate) for rate in wide_rates()]
    entry, change = gram_terms

    def rate(_, y):
        m, V, *changes = y
        S = BIAS**2 + WEIGHT**2 * entry(m, V)
        arguments = (*slopes, WEIGHT, S, S, S)
        v = [f(*arguments, 0.0, 0.0) for f in rates[:2]]
        growth = change(m, V, *v, 0.0)
        moved = change(m, V, *changes)
        return [*v, *(f(*arguments, moved, growth) for f in rates[2:])]

    solved = solve_ivp(rate, (0, end), [*start, 0.0, 0.0, 0.0], "DOP853", rtol=1e-9, atol=1e-12)
    return solved.y[:, -1]


# ψ(x) = x + x²/2 of one input started at z, averaged over y of cumulants m, V, κ.
Z = 0.3


def moments_of_square(m, V, k, fourth=0.0):
    """⟨ψ²⟩ from the raw moments of x = z + y."""
    a = Z + m
    second, third = a**2 + V, a**3 + 3 * a * V + k
    return second + third + (a**4 + 6 * a**2 * V + 4 * a * k + 3 * V**2 + fourth) / 4


def entry(m, V):
    return moments_of_square(m, V, 0.0)


PSI = np.polynomial.Polynomial([0, 1, 0.5])
# Derivatives of ψ of either signal, for changes of cumulants of up to three.
ORDERS = tuple((p, n - p) for n in (1, 2, 3) for p in range(n, -1, -1))


def change(m, V, dm, dV, k):
    a = Z + m
    gaussian = np.array([1.0, a, a**2 + V, a**3 + 3 * a * V, a**4 + 6 * a**2 * V + 3 * V**2])
    slopes = [PSI, *(PSI.deriv(n) for n in (1, 2, 3))]
    total = 0.0
    for p, q in ORDERS:
        coefficients = (slopes[p] * slopes[q]).coef
        moved = (dm, dV, k)[p + q - 1] / (factorial(p) * factorial(q))
        total += moved * (coefficients @ gaussian[: len(coefficients)])
    return total


def recursion(slopes, depth, horizon):
    """m, V and κ of the wide network itself: increments of the polynomial φ, cumulants add up."""
    h = horizon / depth
    m = V = k = fourth = 0.0
    for _ in range(depth):
        s = h * (BIAS**2 + WEIGHT**2 * moments_of_square(m, V, k, fourth))
        raw = []
        for power in range(1, 5):
            terms = np.polynomial.Polynomial([0, slopes[0], slopes[1] / 2, slopes[2] / 6]) ** power
            raw.append(
                sum(
                    c * s ** (n // 2) * np.prod(np.arange(n - 1, 0, -2.0))
                    for n, c in enumerate(terms.coef)
                    if n % 2 == 0
                )
            )
        one, two, three, four = raw
        m, V = m + one, V + two - one**2
        k += three - 3 * two * one + 2 * one**3
        fourth += four - 4 * three * one - 3 * two**2 + 12 * two * one**2 - 6 * one**4
    return np.array([m, V, k])


@pytest.mark.parametrize("slopes", [(1.0, 0.0, -2.0, 0.0), (0.5, 0.5, 0.7, 0.0)])
def test_finite_depth_is_the_limit_and_its_first_correction(slopes):
    """ψ(x) = x + x²/2, φ a polynomial: what is left falls as 1/L²."""
    horizon = 0.4
    m, V, dm, dV, k = flow(slopes, (entry, change), (0.0, 0.0), horizon)
    errors = []
    for depth in (200, 400):
        h = horizon / depth
        errors.append(recursion(slopes, depth, horizon) - [m + h * dm, V + h * dV, h * k])
        first = recursion(slopes, depth, horizon)[:2] - [m, V]
        assert np.all(np.abs(errors[-1][:2]) <= 0.03 * np.abs(first) + 1e-12)
    large = np.abs(errors[0]) > 1e-10
    assert large[1]
    assert np.allclose(errors[0][large] / errors[1][large], 4, rtol=0.05)


def test_rates_of_pairs_at_one_input_are_those_of_one_input():
    rates = wide_rates()
    alike = {S_IJ: S_II, S_JJ: S_II}
    assert rates.covariance.subs(alike) == SLOPES[0] ** 2 * S_II
    assert rates.third_cumulant.subs(alike) == 3 * SLOPES[1] * SLOPES[0] ** 2 * S_II**2
    assert second_moment(GRAM).diff(GRAM) == sym.WEIGHT**2
