"""Averages of powers times waves of quadratic phases, against a sum over a grid."""

import numpy as np
import pytest
import sympy as sp
from mpmath import mp, mpf

from fieldtheory.averages.growing.chirps import average, chirps_of

h = sp.Symbol("h", real=True)
FUNCTIONS = [
    h * sp.sin(h**2),
    h**2 * sp.cos(h**2 / 3 + h) + h,
    h * sp.exp(-(h**2) / 4) * sp.sin(h) + sp.cos(2 * h**2),
]


@pytest.mark.parametrize("phi", FUNCTIONS)
@pytest.mark.parametrize("K", [(1, 1, 0.5), (2, 0.7, -0.9), (3, 2.5, 0.99), (4, 4, -0.2)])
def test_average(phi, K):
    a, b, c = K
    f, chirps = sp.lambdify(h, phi, "numpy"), chirps_of(phi, h)
    z = np.linspace(-9, 9, 2401)
    bell = np.exp(-(z**2) / 2) * (z[1] - z[0]) / np.sqrt(2 * np.pi)
    y = np.sqrt(b) * (c * z[:, None] + np.sqrt(1 - c * c) * z)
    expected = (bell * f(np.sqrt(a) * z)) @ f(y) @ bell
    with mp.workdps(30):
        determinant = a * mpf(b) * (1 - mpf(c) ** 2)
        found = average(chirps, chirps, mpf(a), mpf(b), mpf(c) * mp.sqrt(a * mpf(b)), determinant)
    assert float(found) == pytest.approx(expected, rel=2e-12)


def test_functions_that_are_none():
    for phi in (sp.tanh(h) * sp.sin(h**2), sp.sin(h**3), sp.exp(h**2 / 9), sp.exp(h) + h):
        assert chirps_of(phi, h) is None
