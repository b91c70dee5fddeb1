"""Activations with decimal constants, typed by hand: exact fractions in every rule."""

import numpy as np
import pytest
import sympy as sp
from scipy.special import erf

import fieldtheory as ft
from fieldtheory.networks.activation_text import activation_from_text
from tests.examples import oracle
from tests.oracles import hessian
from tests.rounding import assert_same
from tests.tables import slow, some


def gelu(x):
    return x * (1 + erf(x / np.sqrt(2))) / 2


TABLE = {
    "erf(0.16*h-0.58)": lambda x: erf(0.16 * x - 0.58),
    "erf(2*h-1.37)": lambda x: erf(2 * x - 1.37),
    "erf(h-0.123)": lambda x: erf(x - 0.123),
    "erf(1.5*h+0.333)": lambda x: erf(1.5 * x + 0.333),
    "h*erf(0.9*h+0.123)": lambda x: x * erf(0.9 * x + 0.123),
    "gelu(h-0.123)": lambda x: gelu(x - 0.123),
    "gelu(1.702*h-0.17)": lambda x: gelu(1.702 * x - 0.17),
    "gelu(h+1.25)": lambda x: gelu(x + 1.25),
    "erf(h)+0.1*erf(h-0.37)": lambda x: erf(x) + 0.1 * erf(x - 0.37),
    "tanh(1.234*h-0.567)": lambda x: np.tanh(1.234 * x - 0.567),
    "log(1+exp(1.37*h-0.21))": lambda x: np.logaddexp(0, 1.37 * x - 0.21),
    "exp(-0.37*(h-0.123)**2)": lambda x: np.exp(-0.37 * (x - 0.123) ** 2),
    "h*gelu(0.16*h-0.37)": lambda x: x * gelu(0.16 * x - 0.37),
    "1.23*sin(0.77*h+0.41)": lambda x: 1.23 * np.sin(0.77 * x + 0.41),
    "0.5*h*(1+tanh(0.79788456*(h+0.044715*h**3)))": (
        lambda x: 0.5 * x * (1 + np.tanh(0.79788456 * (x + 0.044715 * x**3)))
    ),
}


QUICK = {
    "erf(0.16*h-0.58)",
    "h*erf(0.9*h+0.123)",
    "erf(h)+0.1*erf(h-0.37)",
    "h*gelu(0.16*h-0.37)",
    "0.5*h*(1+tanh(0.79788456*(h+0.044715*h**3)))",
}


@pytest.mark.slow_but(0)
@pytest.mark.parametrize("text", some(TABLE, QUICK))
def test_one_input(text):
    """χ^out and G11 against the quadrature of the oracles."""
    net = ft.ResidualNetwork(depth=2, activation=activation_from_text(text), branch_scale=0.4)
    found, phi = ft.solve(net, 0.3), TABLE[text]
    S21 = hessian.S21(oracle(net), 0.3, phi)
    G11 = hessian.propagator(hessian.hessian(S21, hessian.S22(oracle(net), 0.3, phi)))[0]
    response = -np.linalg.inv(S21)
    assert found.output_response == pytest.approx(response[-1, 0], rel=1e-9)
    np.testing.assert_allclose(net.width * found.G11, G11, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("phi", [slow("log(1 + exp(1.3*h))"), "max(0, 1.3*h) + min(0, 1.3*h)/100"])
def test_expressions_with_floats_are_those_of_text(phi):
    """Closed forms of floats lost the digits of softplus at K = 18, and SymPy took minutes."""
    h = sp.Symbol("h")
    scaled = {
        "log": sp.log(1 + sp.exp(1.3 * h)),
        "max": sp.Max(0, 1.3 * h) + sp.Min(0, 1.3 * h) / 100,
    }
    given = {"depth": 1, "skip_scale": 0.0, "branch_scale": 0.3, "bias_variance": 0.0}
    found = ft.solve(ft.ResidualNetwork(activation=scaled[phi[:3]], **given), [[18, 1], [1, 7]])
    expected = ft.solve(ft.ResidualNetwork(activation=phi, **given), [[18, 1], [1, 7]])
    assert_same(found.mean_shift, expected.mean_shift)
    assert_same(found.G11, expected.G11)
    assert not found.network.activation.expression.atoms(sp.Float)
    of_digits = ft.Activation(sp.tanh(sp.Float("0.1", 40) * h))
    assert of_digits.expression == ft.Activation(sp.tanh(h / 10)).expression
