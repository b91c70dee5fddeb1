"""Connected correlators of functions that are steep far from zero."""

import numpy as np
import pytest
import sympy as sp
from scipy.special import erfc

from fieldtheory.averages import ConnectedCorrelator
from fieldtheory.averages.integrands.exponentials import factored
from fieldtheory.compiling.functions import lambdify
from tests.tables import slow

x, y = sp.symbols("x y", real=True)
p, q, c = sp.symbols("p q c")

# φ² − φ(0)² as a function that keeps its relative digits.
STEEP = {
    "erf(10*x-15)": lambda h: -erfc(10 * h - 15) * erfc(15 - 10 * h),
    "exp(-100*(x-1)**2)": lambda h: np.exp(-200 * (h - 1) ** 2),
    "tanh(20*x-10)": lambda h: -1 / np.cosh(np.clip(20 * h - 10, -300, 300)) ** 2,
}
COVARIANCES = [(0.05, 3.9, 0.05), slow((1.3, 3.9, 1.35)), slow((2, 1, -1))]


def by_the_trapezoidal_rule(F, a, b, r, step):
    """∫∫ p(x) p(y) [p(x, y)/(p(x) p(y)) − 1] F(x) F(y)."""
    h, k = (np.arange(-13 * np.sqrt(v), 13 * np.sqrt(v), step) for v in (a, b))
    sides = [
        np.exp(-z * z / (2 * v)) / np.sqrt(2 * np.pi * v) * F(z) * step for z, v in ((h, a), (k, b))
    ]
    X, Y = h[:, None] / np.sqrt(a), k / np.sqrt(b)
    rho = r / np.sqrt(a * b)
    E = -(rho**2 * (X**2 + Y**2) - 2 * rho * X * Y) / (2 * (1 - rho**2)) - np.log1p(-(rho**2)) / 2
    return sides[0] @ np.expm1(E) @ sides[1]


@pytest.mark.parametrize("text", ["erf(10*x-15)", *map(slow, list(STEEP)[1:])])
@pytest.mark.parametrize("covariance", COVARIANCES)
def test_correlators_of_steep_functions(text, covariance):
    square = sp.sympify(text, {"x": x}) ** 2
    node = ConnectedCorrelator(square, square.subs(x, y), (x, y), [[p, c], [c, q]])
    found = lambdify([p, q, c], node)(*np.array(covariance)[:, None])
    expected = by_the_trapezoidal_rule(STEEP[text], *covariance, 0.01)
    np.testing.assert_allclose(found, expected, rtol=2e-12)


def test_exponentials_of_long_numbers_are_not_powers():
    """exp(−5000 h²) as a power of exp(−h²) would be a polynomial of degree 5000."""
    F = ((sp.tanh(x) + sp.exp(-5000 * x**2)) ** 2).expand()
    assert factored(F) == (sp.tanh(x) + sp.exp(-5000 * x**2)) ** 2
    assert factored(sp.exp(4000 * x) - 2 * sp.exp(2000 * x) + 1) == (sp.exp(2000 * x) - 1) ** 2
