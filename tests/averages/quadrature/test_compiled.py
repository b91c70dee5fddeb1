"""Integrands in float64 against mpmath, where terms of theirs cancel."""

import mpmath
import numpy as np
import pytest
import sympy as sp

from fieldtheory.averages.quadrature.compiled import vectorised

x = sp.Symbol("x", real=True)


@pytest.mark.parametrize(
    "F",
    [
        (1 + sp.erf(2 * x - 5)) * x,
        1 - sp.erf(x + 4),
        3 - 3 * sp.erf(x + 4) ** 2,
        1 + sp.erf(x),
        (1 - sp.tanh(3 * x + 9)) * (x - 1),
    ],
)
def test_tails_of_steps(F):
    places = np.array([-1.5, -0.3, 0.25, 1.0])
    with mpmath.workdps(40):
        precise = sp.lambdify([x], F, "mpmath")
        expected = [float(precise(mpmath.mpf(place))) for place in places]
    np.testing.assert_allclose(vectorised([x], F)(places), expected, rtol=1e-13)


def test_a_sum_that_is_zero():
    function = vectorised([x], sp.sqrt(x**2 + 2 * x + 1) - x - 1)
    np.testing.assert_allclose(function(np.array([1e-9, 0.3])), 0, atol=1e-15)
