"""The table of named activations: formulas against definitions in NumPy, names, and results."""

import numpy as np
import pytest
import sympy as sp
from scipy import special

import fieldtheory as ft
from fieldtheory.montecarlo.sampling.forward import feature_functions
from fieldtheory.networks.activation import (
    ACTIVATIONS,
    DEFINITIONS,
    known_names,
    plain,
    registered_name,
    similar,
    with_parameters,
)


def sigmoid(u):
    return special.expit(u)


def elu(u, alpha=1.0):
    return np.where(u > 0, u, alpha * np.expm1(np.minimum(u, 0)))


def softplus(u):
    return np.logaddexp(0, u)


# As PyTorch documents them.
REFERENCES = {
    "erf": special.erf,
    "tanh": np.tanh,
    "relu": lambda u: np.maximum(u, 0),
    "leaky_relu": lambda u: np.where(u > 0, u, 0.01 * u),
    "linear": lambda u: u,
    "logistic": sigmoid,
    "gelu": lambda u: u * special.ndtr(u),
    "swish": lambda u: u * sigmoid(u),
    "sin": np.sin,
    "gelu_tanh": lambda u: u / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (u + 0.044715 * u**3))),
    "quick_gelu": lambda u: u * sigmoid(1.702 * u),
    "elu": elu,
    "selu": lambda u: 1.0507009873554805 * elu(u, 1.6732632423543772),
    "celu": elu,
    "softplus": softplus,
    "softsign": lambda u: u / (1 + np.abs(u)),
    "mish": lambda u: u * np.tanh(softplus(u)),
    "hard_tanh": lambda u: np.clip(u, -1, 1),
    "hard_sigmoid": lambda u: np.clip(u + 3, 0, 6) / 6,
    "hard_swish": lambda u: u * np.clip(u + 3, 0, 6) / 6,
    "relu6": lambda u: np.clip(u, 0, 6),
    "squared_relu": lambda u: np.maximum(u, 0) ** 2,
    "softshrink": lambda u: np.where(u > 0.5, u - 0.5, np.where(u < -0.5, u + 0.5, 0)),
    "hardshrink": lambda u: np.where(np.abs(u) > 0.5, u, 0),
    "tanhshrink": lambda u: u - np.tanh(u),
    "log_sigmoid": lambda u: -softplus(-u),
    "arctan": np.arctan,
    "arcsinh": np.arcsinh,
    "sinh": np.sinh,
    "isru": lambda u: u / np.sqrt(1 + u**2),
    "gaussian": lambda u: np.exp(-(u**2)),
    "abs": np.abs,
    "sign": np.sign,
    "heaviside": lambda u: np.heaviside(u, 0.5),
    "cos": np.cos,
    "square": np.square,
    "cubic": lambda u: u**3,
    "log_cosh": lambda u: np.logaddexp(u, -u) - np.log(2),
    "exp": np.exp,
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_formulas(name):
    phi, reference = ACTIVATIONS[name], REFERENCES[name]
    assert phi.name == name
    for u in (-30.0, -6.5, -2.5, -0.7, -1e-3, 0.0, 0.3, 0.9, 3.0, 5.0, 30.0):
        value = float(phi(sp.Float(u, 30)))
        assert value == pytest.approx(float(reference(u)), rel=1e-12, abs=1e-15)


def test_every_row_has_a_reference_and_a_source():
    assert list(REFERENCES) == list(ACTIVATIONS) == list(DEFINITIONS)
    assert all(row.source for row in DEFINITIONS.values())
    # No name or synonym stands for two functions.
    names = [plain(n) for name, row in DEFINITIONS.items() for n in (name, *row.synonyms.split())]
    assert sorted(names) == sorted(known_names())


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        *(("sigmoid", "logistic"), ("SiLU", "swish"), ("Hard Swish", "hard_swish")),
        *(("hardtanh", "hard_tanh"), ("hard-tanh", "hard_tanh"), ("relu2", "squared_relu")),
        *(("atan", "arctan"), ("step", "heaviside"), ("ReLU6", "relu6"), ("Soft Plus", "softplus")),
        *(("LeakyReLU", "leaky_relu"), ("identity", "linear"), ("LogSigmoid", "log_sigmoid")),
    ],
)
def test_what_people_type(typed, name):
    assert registered_name(typed) == name
    assert ft.ResidualNetwork(depth=1, activation=typed).activation is ACTIVATIONS[name]


def test_similar_names():
    assert similar("sigmiod") == "; did you mean sigmoid?"
    assert similar("Hard-Swich") == "; did you mean hard_swish?"
    assert similar("xyz") == similar("") == ""


def test_parameters():
    values = {"elu": {"alpha": 2}, "celu": {"alpha": 2}, "softplus": {"beta": 3}}
    expected = {"elu": 2 * np.expm1(-0.4), "celu": 2 * np.expm1(-0.2)}
    expected["softplus"] = np.log1p(np.exp(-1.2)) / 3
    for name, given in values.items():
        phi = with_parameters(name, **{key: sp.Integer(v) for key, v in given.items()})
        assert float(phi(-0.4)) == pytest.approx(expected[name], rel=1e-14)
        assert phi.name == f"{name}({next(iter(given))}={next(iter(given.values()))})"
    assert with_parameters("elu", alpha=sp.S.One).name == "elu"
    assert len(ACTIVATIONS) == len(set(ACTIVATIONS.values()))


def test_long_decimal_constants_are_numbers_in_float64():
    values = np.array([-1.3, 0.7])
    (found,) = feature_functions(ft.ResidualNetwork(depth=1, activation="selu"))(values)
    assert found == pytest.approx(REFERENCES["selu"](values), rel=1e-14)
