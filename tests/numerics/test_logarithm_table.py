"""Logarithms of kernels, responses and tangent kernels of many φ, of one and of two inputs."""

import warnings

import numpy as np
import pytest
import sympy as sp
from mpmath import mp, mpf

import fieldtheory as ft
from fieldtheory.networks.activations import h
from tests.numerics.overflow.test_logarithms import layers, network
from tests.oracles.quadrature import average2
from tests.tables import some

FIELDS = "log_kernels", "log_response", "log_tangent_kernels"
CORRELATIONS = [0.3, -0.9, 0.9999, 1 - 1e-9]
# φ that grow linearly, and ⟨φ²⟩/K far out.
LINEAR = {
    "mish": 0.5,
    "softplus": 0.5,
    "elu": 0.5,
    "selu": 1.0507009873554804934**2 / 2,
    "hard_swish": 0.5,
    "swish(1.7*h)": 1.7**2 / 2,
    "abs(h)": 1.0,
    "h+sin(h)/h": 1.0,
}
OTHERS = [
    "relu(h)**2",
    "h**3",
    "h**5-h",
    "abs(h)**0.5*h",
    "gelu(h)**3",
    "cosh(h)",
    "sinh(h)",
    "h*exp(h)",
    "exp(h)-h**3",
    "h*tanh(h)+exp(h/4)",
    "sin(h)*h**2",
    "h**2*sin(h)*tanh(h)",
    "h*log(1+h**2)",
    "relu(h)*log(1+Abs(h))",
    "gelu(h)*log(1+h**2)",
    "softplus(h)*log(1+Abs(h))",
    "exp(h)*sin(h)*tanh(h)",
]
NAMES = [*LINEAR, *OTHERS]
QUICK = {"mish", "abs(h)**0.5*h", "exp(h)-h**3", "sin(h)*h**2"}


@pytest.mark.parametrize("name", some(LINEAR, {"mish", "abs(h)", "h+sin(h)/h"}))
def test_linear_growth(name):
    """Far out every layer multiplies K and χ by γ² + a ⟨φ²⟩/K."""
    net = network(name, 600, skip_scale=1.0, weight_variance=10.0)
    solution = ft.solve(net, 1.0)
    growth = np.log(1 + 10 * LINEAR[name])
    assert solution.log_kernels[-2] > 710
    for field in FIELDS[:2]:
        steps = np.diff(getattr(solution, field)[400:601])
        np.testing.assert_allclose(steps, growth, rtol=1e-12)


def test_tangents_of_waves_with_poles():
    """Θ^(l) = (γ² + a ⟨φ'²⟩) Θ^(l-1) + C^(l), and the last average is 1 far out."""
    net = network("h+sin(h)/h", 600, skip_scale=1.0, weight_variance=10.0)
    solution = ft.solve(net, 1.0)
    kernels, tangents = solution.log_kernels[400:601], solution.log_tangent_kernels[400:601]
    added = 10 * np.exp(kernels[:-1] - tangents[:-1])
    np.testing.assert_allclose(np.diff(tangents), np.log(11 + added), rtol=1e-11)


# The oracle resolves no cusps, and no kinks away from zero.
SMOOTH = [name for name in NAMES if name not in ("abs(h)**0.5*h", "hard_swish")]


@pytest.mark.parametrize("name", some(SMOOTH, QUICK))
@pytest.mark.parametrize("c", CORRELATIONS)
def test_first_layer_of_two_inputs(name, c):
    """K^(1) from dense quadrature, in a network whose kernels leave float64."""
    net = network(name, 1, skip_scale=2.0, weight_variance=2.0)
    phi = sp.lambdify(h, net.activation.expression, ["numpy", "scipy"])
    skip, weight, bias = map(float, layers(net)[0])
    expected = skip * c + weight * average2(lambda x, y: phi(x) * phi(y), [[1, c], [c, 1]]) + bias
    deep = ft.solve(net.replace(depth=8 if name in OTHERS else 600), [[1.0, c], [c, 1.0]])
    found = deep.log_kernels[1, 0, 1]
    assert found == pytest.approx(np.log(abs(expected)), rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("name", some(NAMES, QUICK))
@pytest.mark.parametrize("skip", [0.7, 2.0])
@pytest.mark.parametrize("K0", [1e-3, 1e6, *CORRELATIONS])
def test_no_error_and_no_unknown_numbers(name, skip, K0):
    """Of φ with growing waves signs may not be known, of two inputs; all others are numbers."""
    depth = 60 if name in OTHERS else 400
    net = network(name, depth, skip_scale=skip, weight_variance=10.0)
    K0 = K0 if K0 in (1e-3, 1e6) else [[1.0, K0], [K0, 1.0]]
    solution = ft.solve(net, K0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ft.ValidityWarning)
        for field in FIELDS:
            values = getattr(solution, field)
            if "exp(h)*sin(h)" in name and np.ndim(K0):
                values = values[:3]
            assert not np.isnan(values).any()


@pytest.mark.parametrize("name", some(NAMES, QUICK))
def test_variances_of_the_first_layers(name):
    """Integrals of mpmath, on the sides of kinks."""
    net = network(name, 3, weight_variance=2.0)
    phi = sp.lambdify(h, net.activation.expression, "mpmath")
    found = ft.solve(net.replace(depth=8 if name in OTHERS else 700), 0.5).log_kernels
    K = mpf(0.5)
    with mp.workdps(30):
        for l, (skip, weight, bias) in enumerate(layers(net)[:2], start=1):
            s = mp.sqrt(K)
            ends = sorted({mpf(k) for k in (-3, 0, 3)} | {k * s for k in range(-14, 15, 2)})
            if "exp" in name or "sh(h)" in name:
                ends += [ends[-1] + 14 * K, ends[-1] + 28 * K]
                ends = [-ends[-1], -ends[-2], *ends]
            moment = mp.quad(lambda z, s=s: phi(z) ** 2 * mp.npdf(z, 0, s), ends)
            K = skip * K + weight * moment + bias
            assert found[l] == pytest.approx(float(mp.log(K)), rel=1e-11, abs=1e-11)
