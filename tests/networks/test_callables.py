"""Functions of NumPy, SciPy, math, PyTorch and of one's own as activations."""

import math
from functools import partial

import numpy as np
import pytest
import scipy.special
import sympy as sp

from fieldtheory.networks.activation import h
from fieldtheory.networks.activations import ACTIVATIONS, as_activation
from fieldtheory.networks.callables import activation_of_callable

x = sp.Symbol("x")


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


# Modules and functions of PyTorch with the name of the activation, None for its formula.
OF_TORCH = {
    "GELU()": "gelu",
    "GELU('tanh')": "gelu_tanh",
    "GELU": "gelu",
    "ReLU(inplace=True)": "relu",
    "ReLU6()": "relu6",
    "SiLU()": "swish",
    "Mish()": "mish",
    "SELU()": "selu",
    "Sigmoid()": "logistic",
    "Hardsigmoid()": "hard_sigmoid",
    "Hardswish()": "hard_swish",
    "LogSigmoid()": "log_sigmoid",
    "Softsign()": "softsign",
    "Tanhshrink()": "tanhshrink",
    "LeakyReLU()": "leaky_relu",
    "LeakyReLU(0.2)": "leaky_relu(negative_slope=1/5)",
    "PReLU()": "leaky_relu(negative_slope=1/4)",
    "PReLU(init=-0.5)": "leaky_relu(negative_slope=-1/2)",
    "RReLU(0.25, 0.75).eval()": None,
    "ELU()": "elu",
    "ELU(0.5)": "elu(alpha=1/2)",
    "ELU(-0.5)": "elu(alpha=-1/2)",
    "CELU(2.0)": "celu(alpha=2)",
    "Hardtanh()": "hard_tanh",
    "Hardtanh(-2, 0.5)": "hard_tanh(min_val=-2, max_val=1/2)",
    "Threshold(0.1, 20)": None,
    "Threshold(-0.5, -0.5)": None,
    "Softplus()": "softplus",
    "Softplus(2)": "softplus(beta=2)",
    "Softplus(5, 1)": "softplus(beta=5, threshold=1)",
    "Softplus(1, 0.5)": "softplus(threshold=1/2)",
    "Softplus(-2, 3)": "softplus(beta=-2, threshold=3)",
    "Softshrink()": "softshrink",
    "Softshrink(0.2)": "softshrink(lambd=1/5)",
    "Hardshrink(1)": "hardshrink(lambd=1)",
    "Hardshrink(-1)": "hardshrink(lambd=-1)",
    "Identity()": None,
    "Dropout().eval()": None,
    "Sequential(nn.Identity(), nn.Tanh())": "tanh",
    "Sequential(nn.Tanh(), nn.Softplus(5, 1))": None,
    "partial(F.softplus, beta=5, threshold=1)": "softplus(beta=5, threshold=1)",
    "partial(F.threshold, threshold=1, value=-2)": None,
    "partial(F.hardtanh, min_val=-0.5)": "hard_tanh(min_val=-1/2)",
    "partial(F.gelu, approximate='tanh')": "gelu_tanh",
    "partial(F.prelu, weight=torch.tensor([0.25]).double())": "leaky_relu(negative_slope=1/4)",
    "partial(torch.clamp, max=0.5)": None,
    "lambda u: F.softplus(2 * u, 5, 1)": None,
    "lambda u: F.relu(u, inplace=True) + u": None,
    "lambda u: torch.where(u.gt(-1) & (u < 1), u.relu_(), torch.tensor(0.25) * u)": None,
    "lambda u: (u > 0.5) * u.pow(2).clamp(min=0.5)": "Max(1/2, h**2)",
    "torch.special.expit": "logistic",
    "torch.expm1": "expm1",
}


@pytest.mark.parametrize("text", OF_TORCH)
def test_modules_and_functions_of_torch(text):
    torch = pytest.importorskip("torch")
    scope = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "partial": partial}
    function = eval(text if text[0].islower() else f"nn.{text}", scope)
    found = as_activation(function)
    assert (OF_TORCH[text] or str(found.expression)) in found.name
    grid = np.array([-9.37, -2.3, -1.01, -0.6, -0.3, -0.07, 0.05, 0.15, 0.21, 0.4, 0.7, 1.6, 7.3])
    made = function() if isinstance(function, type) else function
    made = made.double() if isinstance(made, torch.nn.Module) else made
    with torch.no_grad():
        expected = made(torch.tensor(grid))
    values = [float(found(sp.Float(u, 20))) for u in grid]
    np.testing.assert_allclose(values, expected, rtol=1e-14, atol=1e-15)


REFUSED = {
    "RReLU()": "got RReLU, .*drawn anew at every call in training; call eval",
    "Dropout()": "got Dropout, .*drops at random in training; call eval",
    "PReLU(3)": "got PReLU, .*3 elements",
    "Softmax(-1)": "got Softmax, .*softmax is not one of them",
    "Linear(1, 1)": "got Linear",
    "Sequential(nn.Linear(1, 1), nn.Tanh())": "got Sequential",
    "Softshrink(-1)": "lambd must be >= 0, got -1",
    "Softplus(0)": "got Softplus",
    "BatchNorm1d(1)": "got BatchNorm1d",
    "functional.glu": "got glu",
}


@pytest.mark.parametrize("text", REFUSED)
def test_modules_that_are_no_function_of_one_number(text):
    torch = pytest.importorskip("torch")
    with pytest.raises(ValueError, match=f"^activation must be made of .*{REFUSED[text]}"):
        as_activation(eval(f"nn.{text}", {"nn": torch.nn}))


def test_names_of_other_functions_are_not_taken():
    """What carries the name of a known function, and is another."""

    def relu(u):
        return 2 * np.maximum(u, 0)

    assert as_activation(relu).expression == 2 * sp.Max(0, h)
    with pytest.raises(ValueError, match="cannot be called"):
        as_activation(np.vectorize(math.tanh))


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
        (lambda u: np.tan(u), "must have its jumps and kinks written"),
    ],
)
def test_says_what_to_write(function, message):
    with pytest.raises(ValueError, match=f"^activation [^\n]*{message}") as caught:
        as_activation(function)
    assert len(str(caught.value)) < 400
