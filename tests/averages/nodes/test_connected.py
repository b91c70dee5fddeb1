"""Connected correlators of two functions, and averages expanded."""

import pytest
import sympy as sp

from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from tests.expanding import expand_averages
from tests.tables import slow

x, y = sp.symbols("x y", real=True)
p, q, c = sp.symbols("p q c", real=True)
K, a, b = sp.symbols("K a b", positive=True)
K2 = sp.Matrix([[a, c], [c, b]])
phi = sp.Function("phi")
POINT = {a: sp.Rational(7, 10), b: sp.Rational(13, 10), c: sp.Rational(-2, 5)}


def test_connected_zero_cases():
    assert ConnectedCorrelator(3, phi(x), x, K) == 0
    assert ConnectedCorrelator(phi(x), p, x, K) == 0
    assert ConnectedCorrelator(phi(x), phi(y), (x, y), [[a, 0], [0, b]]) == 0
    assert ConnectedCorrelator(phi(x), phi(y), (x, y), K2) != 0
    assert ConnectedCorrelator(phi(x), phi(x), x, K) != 0


def test_connected_drops_constants_and_is_bilinear():
    node = ConnectedCorrelator(phi(x), y**2, (x, y), K2)
    assert ConnectedCorrelator(2 * p * phi(x) + 3, 5 * y**2 - q, (x, y), K2) == 10 * p * node
    both = ConnectedCorrelator(phi(x) + p * x**2, y**2, (x, y), K2)
    assert sp.expand(both) == node + p * ConnectedCorrelator(x**2, y**2, (x, y), K2)


def test_connected_by_averages():
    node = ConnectedCorrelator(phi(x), phi(y), (x, y), K2)
    joint = GaussianAverage(phi(x) * phi(y), (x, y), K2)
    apart = GaussianAverage(phi(x), x, a) * GaussianAverage(phi(y), y, b)
    assert node.rewrite(GaussianAverage) == joint - apart
    for symbol in (a, b, c):
        slope = node.diff(symbol).rewrite(GaussianAverage)
        assert sp.expand(slope - joint.diff(symbol) + apart.diff(symbol)) == 0


def test_connected_closed_forms():
    assert ConnectedCorrelator(x**2, y**2, (x, y), K2).doit() == 2 * c**2
    assert (
        ConnectedCorrelator(sp.exp(x), sp.exp(y), (x, y), K2)
        .doit()
        .equals(sp.exp((a + b) / 2) * (sp.exp(c) - 1))
    )
    node = ConnectedCorrelator(sp.erf(x) ** 2, sp.erf(y) ** 2, (x, y), K2)
    assert node.doit() == node


@pytest.mark.parametrize("covariance", [slow("1/2"), "1/1000", slow("1/1000000")])
def test_connected_evalf_is_relative(covariance):
    """Weak coupling: ⟨x⁴;y⁴⟩ = 72 K_xx K_yy c² + 24 c⁴ is tiny against ⟨x⁴⟩⟨y⁴⟩."""
    value = sp.Rational(covariance)
    node = ConnectedCorrelator(x**4, y**4, (x, y), [[1, value], [value, 2]])
    exact = 72 * 2 * value**2 + 24 * value**4
    assert abs(node.evalf(8) / exact - 1) < 1e-7


# Expanding ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "expr",
    [
        p * GaussianAverage((x**2 + p * sp.exp(y)) ** 2, (x, y), K2) * (1 + q),
        GaussianAverage(x**2 * sp.cos(y), (x, y), K2)
        - GaussianAverage(x**2, x, a) * GaussianAverage(sp.cos(y), y, b),
        (GaussianAverage(sp.cos(x), x, K) + q) ** 3,
    ],
)
@pytest.mark.parametrize("rewrite", [expand_averages, sp.expand])
def test_rewriting_keeps_the_value(expr, rewrite):
    point = {**POINT, K: sp.Rational(1, 2), p: sp.Rational(1, 3), q: 2}
    difference = (rewrite(expr).doit() - expr.doit()).subs(point)
    assert abs(difference.evalf(30)) < sp.Float("1e-28")
