"""Activation functions: what may be given as one, and a user's own."""

import numpy as np
import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.networks.activations import ACTIVATIONS, Activation, as_activation
from tests.tables import slow

x, y = sp.symbols("x y", real=True)


def test_users_own():
    phi = as_activation(y / (1 + sp.Abs(y)))
    assert phi(sp.Integer(-3)) == sp.Rational(-3, 4)
    assert phi(x) == x / (1 + sp.Abs(x))
    assert phi.name == "h/(Abs(h) + 1)"
    assert as_activation(phi) is phi
    assert Activation(y**2, name="square") == Activation(x**2, name="square")
    assert repr(Activation(y**2, name="square")) == "Activation('square': h**2)"
    # Symbols without assumptions become real, so that |h|² is h².
    assert Activation(sp.Abs(sp.Symbol("u")) ** 2).expression == Activation(x**2).expression


def test_networks_take_names_text_and_functions():
    named = ft.ResidualNetwork(depth=2, activation="Soft-Sign")
    assert named.activation is ACTIVATIONS["softsign"]
    typed = named.replace(activation="x/(1+abs(x))").activation.expression
    assert typed == named.replace(activation=lambda u: u / (1 + abs(u))).activation.expression
    assert named.replace(activation=np.tanh) == named.replace(activation="tanh")
    assert ft.derive(1, activation=np.tanh).activation is ACTIVATIONS["tanh"]


@pytest.mark.parametrize(
    ("expression", "point", "limit"),
    [
        slow(sp.sin(x) / x, 0, 1),
        slow(x / (sp.exp(x) - 1), 0, 1),
        (x / (sp.exp(x) - 1), 0.0, 1),
        slow((1 - sp.cos(x)) / x**2, 0, sp.Rational(1, 2)),
        ((x**2 - 1) / (x - 1) * sp.cos(x - 1), 1, 2),
    ],
)
def test_removable_singularities_have_their_limit(expression, point, limit):
    assert Activation(expression)(point) == limit
    assert Activation(sp.sin(x) / x).slope_at_zero == 0


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ("rectifier", ValueError, "activation must be one of erf, .* got 'rectifier'$"),
        ("tahn", ValueError, "activation must be .* got 'tahn'; did you mean tanh\\?"),
        ("leaky-rlu", ValueError, "activation must be .*; did you mean leaky_relu\\?"),
        ("hard swsh", ValueError, "activation must be .*; did you mean hard_swish\\?"),
        ("sigmiod", ValueError, "activation must be .*; did you mean sigmoid\\?"),
        ("sqrt(h)", ValueError, "activation must be real for every real h, got sqrt"),
        ("", ValueError, "activation must be one of"),
        (x * y, ValueError, "activation must have exactly one symbol, got x, y"),
        (sp.Max(0, x) + y * sp.Min(0, x), ValueError, "exactly one symbol, got x, y"),
        (sp.Integer(3), ValueError, "exactly one symbol, got none"),
        (sp.sign(x) ** 2, ValueError, r"must depend on its symbol, got sign\(h\)\*\*2 = 1$"),
        (3, TypeError, "activation must be a SymPy expression .* got 3"),
        (None, TypeError, "activation must be a SymPy expression"),
        (sp.Matrix([x]), TypeError, "activation must be a SymPy expression"),
    ],
)
def test_bad_activations(value, error, message):
    with pytest.raises(error, match=message) as caught:
        as_activation(value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", ["gelu", "x/(1 + abs(x))", np.tanh, lambda u: u * sp.erf(u)])
def test_activation_of_what_stands_for_one(value):
    assert Activation(value) == as_activation(value)
    mine = Activation(value, name="mine")
    assert mine.name == "mine" and mine.expression == as_activation(value).expression
    for wrong in (3, None, [1]):
        with pytest.raises(TypeError, match="activation must be a SymPy expression .* got"):
            Activation(wrong)
