"""Rates of wide diffusions against a network of finite depth whose moments are known."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from fieldtheory.compiling.functions import lambdify
from fieldtheory.theory import notation as sym
from fieldtheory.theory.diffusion_limit.small_increments import S_II, S_IJ, SLOPES
from fieldtheory.theory.diffusion_limit.wide_closed_forms import GRAM, second_moment, wide_rates

WEIGHT, BIAS = 1.2, 0.7
# ψ(x) = x + x²/2 of one input started at z, averaged over y of cumulants m, V, κ.
Z = 0.3


def moments_of_square(m, V, k=0.0, fourth=0.0):
    """⟨ψ²⟩ from the raw moments of x = z + y."""
    a = Z + m
    second, third = a**2 + V, a**3 + 3 * a * V + k
    return second + third + (a**4 + 6 * a**2 * V + 4 * a * k + 3 * V**2 + fourth) / 4


def flow(slopes, horizon):
    """m and V of the limit."""
    rates = [lambdify([*SLOPES, S_II, S_IJ], rate) for rate in wide_rates()]

    def rate(_, y):
        S = BIAS**2 + WEIGHT**2 * moments_of_square(*y)
        return [f(*slopes, S, S) for f in rates]

    return solve_ivp(rate, (0, horizon), [0.0, 0.0], "DOP853", rtol=1e-9, atol=1e-12).y[:, -1]


def recursion(slopes, depth, horizon):
    """m and V of the wide network itself: increments of the polynomial φ, cumulants add up."""
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
    return np.array([m, V])


@pytest.mark.parametrize("slopes", [(1.0, 0.0, -2.0, 0.0), (0.5, 0.5, 0.7, 0.0)])
def test_deep_networks_approach_the_limit(slopes):
    """ψ(x) = x + x²/2, φ a polynomial: what a depth L adds falls as 1/L."""
    errors = [recursion(slopes, depth, 0.4) - flow(slopes, 0.4) for depth in (400, 800)]
    large = np.abs(errors[0]) > 1e-10
    assert large[1]
    np.testing.assert_allclose(errors[0][large] / errors[1][large], 2, rtol=0.02)


def test_rates_of_pairs_at_one_input_are_those_of_one_input():
    assert wide_rates().covariance.subs(S_IJ, S_II) == SLOPES[0] ** 2 * S_II
    assert second_moment(GRAM).diff(GRAM) == sym.WEIGHT**2
