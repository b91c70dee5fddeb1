"""Activation functions: the registry and a user's own."""

import math

import pytest
import sympy as sp

from fieldtheory.networks.activations import ACTIVATIONS, Activation, as_activation

x, y = sp.symbols("x y", real=True)

REFERENCES = {
    "erf": math.erf,
    "tanh": math.tanh,
    "relu": lambda u: max(u, 0.0),
    "leaky_relu": lambda u: u if u > 0 else u / 100,
    "linear": lambda u: u,
    "logistic": lambda u: 1 / (1 + math.exp(-u)),
    "gelu": lambda u: u * math.erfc(-u / math.sqrt(2)) / 2,
    "swish": lambda u: u / (1 + math.exp(-u)),
    "sin": math.sin,
}


def test_registry():
    assert set(ACTIVATIONS) == set(REFERENCES)
    for name, phi in ACTIVATIONS.items():
        assert phi.name == name
        assert as_activation(name) is phi
    assert as_activation("silu") is ACTIVATIONS["swish"]
    assert as_activation("identity") is ACTIVATIONS["linear"]


@pytest.mark.parametrize("name", REFERENCES)
def test_values(name):
    for u in (-30.0, -2.5, -1e-3, 0.0, 0.4, 3.0, 30.0):
        assert float(ACTIVATIONS[name](sp.Float(u, 30))) == pytest.approx(
            REFERENCES[name](u), rel=1e-12, abs=1e-15
        )


@pytest.mark.parametrize(
    ("name", "slope"),
    [
        ("erf", 2 / sp.sqrt(sp.pi)),
        ("tanh", 1),
        ("relu", sp.Rational(1, 2)),
        ("leaky_relu", sp.Rational(101, 200)),
        ("linear", 1),
        ("logistic", sp.Rational(1, 4)),
        ("gelu", sp.Rational(1, 2)),
        ("swish", sp.Rational(1, 2)),
        ("sin", 1),
    ],
)
def test_slope_at_zero(name, slope):
    assert sp.simplify(ACTIVATIONS[name].slope_at_zero - slope) == 0


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


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ("rectifier", ValueError, "activation must be one of erf, .* got 'rectifier'"),
        ("", ValueError, "activation must be one of"),
        (x * y, ValueError, "activation must have exactly one symbol, got x, y"),
        (sp.Max(0, x) + y * sp.Min(0, x), ValueError, "exactly one symbol, got x, y"),
        (sp.Integer(3), ValueError, "exactly one symbol, got none"),
        (3, TypeError, "activation must be a SymPy expression in one symbol, got 3"),
        (None, TypeError, "activation must be a SymPy expression"),
        (sp.Matrix([x]), TypeError, "activation must be a SymPy expression"),
        (math.tanh, TypeError, "activation must be a SymPy expression"),
    ],
)
def test_bad_activations(value, error, message):
    with pytest.raises(error, match=message) as caught:
        as_activation(value)
    assert "\n" not in str(caught.value)
