"""Functions of NumPy, SciPy, math, PyTorch, JAX and of one's own as activations."""

import math
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.special
import sympy as sp

from fieldtheory.networks.activation import h
from fieldtheory.networks.activations import ACTIVATIONS, as_activation
from fieldtheory.networks.callables import activation_of_callable

x = sp.Symbol("x")


def module(name, **attributes):
    """A stand-in for a module of PyTorch: what is read of it is its class and its attributes."""
    room = {"__module__": "torch.nn.modules.activation", "__call__": lambda self, u: u.relu()}
    kind = type(name, (), room)
    made = kind()
    vars(made).update({"training": True, "_parameters": {}}, **attributes)
    return made


def relu(u):
    return max(0, u)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        *((np.tanh, "tanh"), (np.sin, "sin"), (np.abs, "abs"), (np.square, "square")),
        *((np.arctan, "arctan"), (np.heaviside, "heaviside"), (np.exp, "exp"), (np.sign, "sign")),
        *((math.tanh, "tanh"), (math.erf, "erf"), (math.fabs, "abs"), (math.asinh, "arcsinh")),
        *((scipy.special.erf, "erf"), (scipy.special.expit, "logistic")),
        *((sp.tanh, "tanh"), (sp.erf, "erf"), (sp.Abs, "abs")),
    ],
)
def test_functions_of_libraries(function, name):
    assert as_activation(function) is ACTIVATIONS[name]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (module("GELU", approximate="none"), "gelu"),
        (module("GELU", approximate="tanh"), "gelu_tanh"),
        (module("ReLU", inplace=True), "relu"),
        (module("ReLU6", min_val=0.0, max_val=6.0), "relu6"),
        (module("SiLU", inplace=False), "swish"),
        (module("LeakyReLU", negative_slope=0.01), "leaky_relu"),
        (module("LeakyReLU", negative_slope=0.2), sp.Max(0, h) + sp.Min(0, h) / 5),
        (
            module("PReLU", num_parameters=1, weight=SimpleNamespace(item=lambda: 0.25)),
            sp.Max(0, h) + sp.Min(0, h) / 4,
        ),
        (module("ELU", alpha=1.0), "elu"),
        (module("ELU", alpha=0.5), sp.Piecewise((h, h > 0), ((sp.exp(h) - 1) / 2, True))),
        (module("Hardtanh", min_val=-1.0, max_val=1.0), "hard_tanh"),
        (module("Hardtanh", min_val=-2, max_val=0.5), sp.Max(-2, sp.Min(sp.Rational(1, 2), h))),
        (module("Softplus", beta=2.0, threshold=20.0), sp.log(1 + sp.exp(2 * h)) / 2),
        (module("Softshrink", lambd=0.5), "softshrink"),
        (module("Hardswish", inplace=False), "hard_swish"),
        (module("LogSigmoid"), "log_sigmoid"),
        (module("Identity"), "linear"),
        (type(module("GELU")), "gelu"),
    ],
)
def test_modules_of_torch(given, expected):
    found = as_activation(given)
    if isinstance(expected, str):
        assert found == ACTIVATIONS[expected]
    else:
        assert sp.simplify(found.expression - expected) == 0


@pytest.mark.parametrize("name", ["Linear", "Softmax", "RReLU", "Threshold", "PReLU", "Sequential"])
def test_modules_that_are_no_known_function(name):
    with pytest.raises(ValueError, match=rf"^activation must be one of .*, got torch\.nn\.{name}$"):
        as_activation(module(name, num_parameters=3))


def test_jax():
    jax = pytest.importorskip("jax")
    for function, name in (
        *((jax.nn.gelu, "gelu_tanh"), (partial(jax.nn.gelu, approximate=False), "gelu")),
        *((jax.nn.relu, "relu"), (jax.nn.silu, "swish"), (jax.nn.hard_tanh, "hard_tanh")),
        *((jax.nn.soft_sign, "softsign"), (jax.numpy.tanh, "tanh"), (jax.scipy.special.erf, "erf")),
    ):
        assert as_activation(function) is ACTIVATIONS[name]
    leaky = as_activation(partial(jax.nn.leaky_relu, negative_slope=0.2))
    assert leaky.expression == sp.Max(0, h) + sp.Min(0, h) / 5
    with pytest.raises(ValueError, match="elu, got beta$"):
        as_activation(partial(jax.nn.elu, beta=2.0))
    with pytest.raises(ValueError, match="^activation must be made of functions of NumPy"):
        as_activation(lambda u: jax.numpy.tanh(u))


def test_torch():
    torch = pytest.importorskip("torch")
    F = torch.nn.functional
    for function, name in (
        *((torch.tanh, "tanh"), (torch.sigmoid, "logistic"), (torch.special.erf, "erf")),
        *((F.relu, "relu"), (F.gelu, "gelu"), (F.silu, "swish"), (F.logsigmoid, "log_sigmoid")),
        *((torch.nn.GELU(), "gelu"), (torch.nn.Softsign(), "softsign"), (torch.nn.ELU, "elu")),
        *((torch.nn.PReLU(), "leaky_relu(negative_slope=1/4)"), (torch.nn.Mish(), "mish")),
        (partial(F.leaky_relu, negative_slope=0.2), "leaky_relu(negative_slope=1/5)"),
    ):
        assert as_activation(function).name == name
    swish = as_activation(lambda u: u * torch.sigmoid(u)).expression
    assert sp.simplify(swish - ACTIVATIONS["swish"].expression) == 0
    leaky = as_activation(lambda u: F.leaky_relu(u, 0.2)).expression
    assert leaky == sp.Max(0, h) + sp.Min(0, h) / 5


@pytest.mark.parametrize(
    "own",
    [
        lambda u: u / (1 + abs(u)),
        lambda u: u**2 + 3 * u - 1,
        lambda u: 0.5 * np.tanh(2 * u) + u,
        lambda u: np.maximum(0, u) - np.minimum(u, 0.1 * u),
        lambda u: np.where(u > 0, u, np.expm1(u)),
        lambda u: np.where((u > -1) & (u < 1), u, np.sign(u)),
        lambda u: (u > 0) * u,
        lambda u: u * scipy.special.expit(1.5 * u),
        lambda u: scipy.special.erf(u) * np.exp(-(u**2)),
        lambda u: np.clip(u, -1, 0.5),
        lambda u: np.log1p(np.square(u)) / np.sqrt(2 + np.cos(u)),
        lambda u: np.logaddexp(0, u),
        lambda u: np.float64(0.3) * u,
        lambda u: np.sinc(u),
        partial(lambda u, slope: np.arctan(slope * u), slope=3),
    ],
)
def test_functions_of_ones_own(own):
    found = activation_of_callable(own)
    for u in (-2.0, -0.7, 0.3, 1.8):
        assert float(found(sp.Float(u, 20))) == pytest.approx(float(own(u)), rel=1e-14)
    typed = "Piecewise((h, (h > -1) & (h < 1)), (sign(h), True))"
    assert found.name in (str(found.expression), typed)


def test_functions_of_sympy():
    assert as_activation(lambda u: sp.tanh(u) + u).expression == sp.tanh(h) + h
    assert as_activation(lambda u: sp.Max(u, 0)).expression == sp.Max(0, h)
    assert as_activation(sp.Lambda(x, x * sp.erf(x))).expression == h * sp.erf(h)
    # Decimal numbers are exact, as in text.
    assert as_activation(lambda u: 0.1 * u).expression == h / 10


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (relu, "got relu, which cannot be called .*choose with np.where.*; did you mean 'relu'"),
        (lambda u: math.tanh(u), "got <lambda>, which cannot be called with a symbol"),
        (lambda u: u % 2, "which cannot be called with a symbol"),
        (lambda u: np.linalg.norm(u), "which cannot be called with a symbol"),
        (lambda u, v: u * v, "missing 1 required positional argument"),
        (lambda u: "text", "it gives 'text'"),
        (lambda u: 3.0, "exactly one symbol, got none"),
        (np.maximum, "got maximum, which cannot be called with a symbol"),
        (np.sqrt, r"must be real for every real h, got sqrt\(h\)"),
        (lambda u: np.tan(u), "must be finite for every real h"),
    ],
)
def test_says_what_to_write(function, message):
    with pytest.raises(ValueError, match=f"^activation [^\n]*{message}") as caught:
        as_activation(function)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (np.tanh, "tanh"),
        (np.expm1, "expm1"),
        (np.sinc, "sinc"),
        (lambda x: x / (1 + x**2), "h/(h**2 + 1)"),
    ],
)
def test_functions_of_libraries_keep_their_names(function, name):
    assert as_activation(function).name == name
    assert f"Activation({name!r}: " in repr(as_activation(function))


def test_a_lambda_that_cannot_be_read_is_shown_as_it_was_written():
    with pytest.raises(ValueError, match=r"got lambda z: np.sort\(z\), which cannot be called"):
        as_activation(lambda z: np.sort(z))
    with pytest.raises(ValueError, match="got <lambda>, which cannot be called"):
        as_activation(eval("lambda z: np.sort(z)"))
