"""sin(h)/h and its like, at zero and close to it, in every rule."""

import mpmath
import numpy as np
import pytest
import sympy as sp
from mpmath import mpf

from fieldtheory.averages.integrands.removable import continued, has_quotient
from fieldtheory.averages.quadrature.compiled import vectorised
from fieldtheory.networks.activation_text import activation_from_text
from fieldtheory.numerics.infinite_width.layer_functions import layer_functions
from tests.oracles import precise
from tests.tables import crossed, some


def quotient(top, bottom, limit):
    return lambda h: top(h) / bottom(h) if h != 0 else mpf(limit)


TABLE = {
    "sin(h)/h": quotient(mpmath.sin, lambda h: h, 1),
    "tanh(h)/h": quotient(mpmath.tanh, lambda h: h, 1),
    "h/(exp(h)-1)": quotient(lambda h: h, mpmath.expm1, 1),
    "erf(h)/h": quotient(mpmath.erf, lambda h: h, 2 / mpmath.sqrt(mpmath.pi)),
}


@pytest.mark.slow_but(9)
@pytest.mark.parametrize(("text", "K"), crossed(TABLE, [1e-6, 0.3, 2.0]))
def test_one_variable(text, K):
    """M, and M' as ⟨φ² (h²/K − 1)⟩/(2K)."""
    found, phi = layer_functions(activation_from_text(text)), TABLE[text]
    with mpmath.workdps(40):
        M = precise.average1(lambda h: phi(h) ** 2, mpf(K))
        slope = precise.score1(lambda h: phi(h) ** 2, mpf(K))
    assert float(found.second_moment(K)) == pytest.approx(float(M), rel=1e-12)
    assert float(found.susceptibility(K)) == pytest.approx(float(slope), rel=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("text", some(TABLE, {"tanh(h)/h"}))
def test_two_variables(text):
    found, phi = layer_functions(activation_from_text(text)), TABLE[text]
    K = [[mpf("0.3"), mpf("0.1")], [mpf("0.1"), mpf("0.4")]]
    with mpmath.workdps(16):
        expected = precise.average2(lambda x, y: phi(x) * phi(y), K)
        squares = precise.connected2(lambda h: phi(h) ** 2, lambda h: phi(h) ** 2, K)
    assert float(found.covariance(0.3, 0.4, 0.1)) == pytest.approx(float(expected), rel=1e-12)
    assert float(found.connected(0.3, 0.4, 0.1)) == pytest.approx(float(squares), rel=1e-10)


def test_variables_that_are_no_product():
    x, y = sp.symbols("x y", real=True)
    places = np.array([1e-30, 0.0, 0.1])
    found = vectorised([x, y], sp.sin(x * y) / x)(places, np.full(3, 0.5))
    np.testing.assert_allclose(found, 0.5 * np.sinc(places / 2 / np.pi), rtol=1e-13)


def test_a_pole_stays_a_pole():
    h = sp.Symbol("h")
    assert has_quotient(sp.cos(h) / h, h)

    def function(x):
        return np.cos(x) / x

    assert continued(function, sp.cos(h) / h, [h]) is function


SUMS = {
    "h - tanh(h)": lambda x: x - mpmath.tanh(x),
    "(h - tanh(h))**2": lambda x: (x - mpmath.tanh(x)) ** 2,
    "h - sin(h)": lambda x: x - mpmath.sin(x),
    "cos(h) - 1": lambda x: mpmath.cos(x) - 1,
    "sqrt(1 + h**2) - 1": lambda x: mpmath.sqrt(1 + x**2) - 1,
    "exp(h) - 1 - h": lambda x: mpmath.exp(x) - 1 - x,
}


@pytest.mark.parametrize("text", SUMS)
def test_sums_whose_terms_cancel_at_zero(text):
    h = sp.Symbol("h", real=True)
    x = np.array([1e-30, 1e-8, -1e-4, 0.01, 0.24, 0.26, -0.6, 3.0])
    found = vectorised([h], sp.sympify(text, locals={"h": h}))(x)
    with mpmath.workdps(150):
        expected = [float(SUMS[text](mpf(place))) for place in x]
    np.testing.assert_allclose(found, expected, rtol=2e-14)
