"""1 + exp(u) where exp overflows, and where sums of its ratios cancel, against mpmath."""

import mpmath
import numpy as np
import pytest
import sympy as sp

from fieldtheory.averages.integrands.exponentials import factored
from fieldtheory.averages.quadrature.compiled import vectorised

h = sp.Symbol("h", real=True)
SOFTPLUS = sp.log(1 + sp.exp(h))
FORMS = {
    "softplus": SOFTPLUS,
    "its third derivative, multiplied out": sp.expand(SOFTPLUS.diff(h, 3)),
    "its square, three times": (SOFTPLUS**2).diff(h, 3),
    "SiLU": h / (1 + sp.exp(-h)),
    "SiLU of 2h, twice": (h / (1 + sp.exp(-2 * h))).diff(h, 2),
    "log cosh": sp.log(sp.cosh(2 * h)),
    "log cosh, twice": sp.log(sp.cosh(h)).diff(h, 2),
    "mish": h * sp.tanh(SOFTPLUS),
}
POINTS = [-900.0, -40.0, -3.0, -0.1, 1e-9, 0.1, 3.0, 40.0, 900.0]


@pytest.mark.parametrize("name", FORMS)
def test_against_mpmath(name):
    with np.errstate(over="ignore", under="ignore"):
        values = vectorised([h], FORMS[name])(np.array(POINTS))
    exact = sp.lambdify(h, FORMS[name], "mpmath")
    for point, value in zip(POINTS, values, strict=True):
        # Decaying as exp(−|h|), sums of terms of order one lose that many digits in mpmath.
        with mpmath.workdps(850):
            expected = float(exact(mpmath.mpf(point)))
        assert value == pytest.approx(expected, rel=1e-13, abs=1e-300)


def test_exponentials_of_long_numbers_are_not_powers():
    """exp(−5000 h²) as a power of exp(−h²) would be a polynomial of degree 5000."""
    F = ((sp.tanh(h) + sp.exp(-5000 * h**2)) ** 2).expand()
    assert factored(F) == (sp.tanh(h) + sp.exp(-5000 * h**2)) ** 2
    assert factored(sp.exp(4000 * h) - 2 * sp.exp(2000 * h) + 1) == (sp.exp(2000 * h) - 1) ** 2
