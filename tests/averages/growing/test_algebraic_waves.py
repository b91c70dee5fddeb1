"""Growing waves beside algebraic functions, against sums over tilted grids."""

import numpy as np
import pytest
import sympy as sp
from mpmath import mp, mpf

from fieldtheory.averages.growing.algebraic_waves import algebraic_of, left_near_zero, of_waves

h = sp.Symbol("h", real=True)
FUNCTIONS = [
    sp.exp(h) * sp.sin(h) * h / sp.sqrt(1 + h**2),
    sp.exp(h) * sp.sin(h) * h / (1 + sp.Abs(h)),
    sp.exp(h) * sp.cos(h) * sp.log(1 + h**2),
    sp.exp(h) * (sp.cos(h) / (1 + h**2) + sp.sin(h) * sp.atan(h)),
]


def tilted(phi, a, b, t):
    """⟨φ(x) φ(y)⟩ of signals shifted by a + t and b + t, to which e^{x + y} moves them."""
    f = sp.lambdify(h, phi * sp.exp(-h), "numpy")
    z = np.arange(-9, 9, 0.02)
    bell = np.exp(-(z**2) / 2)
    bell /= bell.sum()
    x, rest = np.sqrt(a) * z, np.sqrt(b - t * t / a) * z
    inner = np.array([bell @ f(t / a * one + rest + b + t) for one in x])
    return float((bell * f(x + a + t)) @ inner) * np.exp((a + b) / 2 + t)


@pytest.mark.parametrize("phi", FUNCTIONS)
@pytest.mark.parametrize("K", [(25.0, 22.0, 18.0), (40.0, 40.0, 38.0), (10.0, 10.0, 5.0)])
def test_average(phi, K):
    f = algebraic_of(phi, h)
    with mp.workdps(30):
        found = of_waves(f, [mpf(k) for k in K], [0, 0, 0])[0]
        left = left_near_zero(f, *map(mpf, K))
    expected = tilted(phi, *K)
    assert float(found) == pytest.approx(expected, rel=1e-12, abs=float(left))
    assert left < 1e-2 * abs(found) and (K[0] < 20 or left < 1e-13 * abs(found))


def test_functions_that_are_none():
    for phi in (
        sp.exp(h) * sp.sin(h) * sp.tanh(h),
        sp.exp(h) * sp.sin(h) / sp.sqrt(1 + h**4),
        sp.exp(h) * h,
        sp.sin(h) * h,
    ):
        assert algebraic_of(phi, h) is None
