"""Averages over variables of the variance zero: limits of small ones, whatever F(0) is."""

import numpy as np
import pytest
import sympy as sp

from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.compiling.functions import lambdify

x, y = sp.symbols("x y", real=True)
a, b = sp.symbols("a b", positive=True)
c = sp.Symbol("c", real=True)
K = sp.ImmutableMatrix([[a, c], [c, b]])
z, W = np.polynomial.legendre.leggauss(60)
z, W = 6 * (1 + z), 6 * W

# φ beside its jump at zero, and φ(0±).
STEPS = {
    "sign": (sp.sign, (1, -1)),
    "step": (sp.Heaviside, (1, 0)),
    "cosine": (lambda v: sp.Heaviside(v) * sp.cos(v), (1, 0)),
    "even square": (lambda v: sp.sign(v) * (1 + sp.tanh(v) ** 2), (1, -1)),
    "arctangent": (lambda v: sp.Heaviside(v) * sp.atan(v + 1), (np.pi / 4, 0)),
    "piecewise": (lambda v: sp.Piecewise((sp.exp(-v), v >= 0), (-3, True)), (1, -3)),
}


def mean(phi, variance):
    """⟨φ⟩ on either side of zero."""
    function = sp.lambdify(x, phi(x), "numpy")
    h = np.sqrt(variance) * z
    bell = W * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    return sum(bell @ (function(side * h) * np.ones_like(h)) for side in (1, -1))


@pytest.mark.parametrize("name", STEPS)
def test_variances_of_zero(name):
    phi, (above, below) = STEPS[name]
    square = lambdify([a], GaussianAverage(phi(x) ** 2, x, a))
    assert float(square(0.0)) == pytest.approx((above**2 + below**2) / 2, rel=1e-13)
    product = lambdify([a, b, c], GaussianAverage(phi(x) * phi(y), (x, y), K))
    expected = (above + below) / 2 * mean(phi, 0.3)
    for pair in ((0.0, 0.3), (0.3, 0.0)):
        assert float(product(*pair, 0.0)) == pytest.approx(expected, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("name", ["step", "cosine", "arctangent"])
def test_connected_correlators(name):
    """Of what jumps, at a variance of zero with itself, and with others none."""
    phi, (above, below) = STEPS[name]
    node = ConnectedCorrelator(phi(x) ** 2, phi(y) ** 2, (x, y), K)
    correlator = lambdify([a, b, c], node)
    squares = above**2, below**2
    expected = (squares[0] ** 2 + squares[1] ** 2) / 2 - (sum(squares) / 2) ** 2
    assert float(correlator(1e-30, 1e-30, 1e-30)) == pytest.approx(expected, rel=1e-10)
    assert float(correlator(0.0, 0.0, 0.0)) == pytest.approx(expected, rel=1e-10)
    assert float(correlator(0.0, 0.3, 0.0)) == 0.0


def test_continuous_functions_are_their_values():
    """To the last bit, so that what vanishes does so exactly."""
    for phi in (sp.Abs, sp.tanh, lambda v: sp.Max(0, v), lambda v: v / (1 + sp.Abs(v))):
        product = lambdify([a, b, c], GaussianAverage(phi(x) * phi(y), (x, y), K))
        assert product(0.0, 0.3, 0.0) == 0.0 and product(0.0, 0.0, 0.0) == 0.0


@pytest.mark.parametrize("order", [(0.0, 0.3), (0.3, 0.0)])
def test_slopes_beside_kinks(order):
    """⟨φ'(x) φ'(y)⟩ is the mean of both slopes at zero times ⟨φ'⟩, not that of the same signal."""
    for phi, slope in ((sp.Abs, 0.0), (lambda v: sp.Max(0, v), 0.25)):
        product = GaussianAverage(phi(x) * phi(y), (x, y), K)
        assert float(lambdify([a, b, c], product.diff(c))(*order, 0.0)) == pytest.approx(slope)
