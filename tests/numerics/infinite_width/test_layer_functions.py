"""Averages of a layer against finite differences of their own kernels, and of parallel inputs."""

import numpy as np
import pytest
from scipy import integrate

import fieldtheory as ft
from fieldtheory.numerics.infinite_width.block_functions import network_functions
from tests.tables import slow

SIGNAL = np.array([-0.1, 0.1, 0.9, 2.2, 0.7])
HOMOGENEOUS = ["relu", "leaky_relu", "abs(h)"]


def test_terms_that_cancel_in_the_tail():
    """The error of a table of variances is that of the largest average, 60 times this one."""
    net = ft.ResidualNetwork(
        depth=1, activation="where(h > 2, tanh(3*h/2) - tanh(3), 0)", weight_variance=1.0
    )

    def weighted(h):
        # tanh a − tanh b = sinh(a − b)/(cosh a cosh b).
        phi = np.sinh(1.5 * h - 3) / np.cosh(1.5 * h) / np.cosh(3)
        return phi**2 * np.exp(-(h**2) / 0.8) / np.sqrt(0.8 * np.pi)

    exact = integrate.quad(weighted, 2, 7, epsabs=0, epsrel=1e-13)[0]
    found = ft.solve(net.replace(bias_variance=0.0), 0.4).residual_kernels[1]
    assert found == pytest.approx(exact, rel=1e-12)


def test_oscillations_beside_a_power():
    """Panels resolve what is large: the left side oscillates and adds 1e-7 of the average."""
    net = ft.ResidualNetwork(depth=1, activation="where(h < -1, cos(h), h**2)", weight_variance=1.0)
    K = 940.0

    def density(h):
        return np.exp(-(h**2) / (2 * K)) / np.sqrt(2 * np.pi * K)

    # ⟨cos²⟩ on one side is 1/4 but for what lies between −1 and 0 and e^(−2K).
    between = integrate.quad(lambda h: np.cos(h) ** 2 * density(h), -1, 0)[0]
    power = integrate.quad(lambda h: h**4 * density(h), -1, 0)[0] + 3 * K**2 / 2
    found = ft.solve(net.replace(bias_variance=0.0), K).residual_kernels[1]
    assert found == pytest.approx(power + 1 / 4 - between, rel=1e-12)


@pytest.mark.slow_but(1)
@pytest.mark.parametrize("name", HOMOGENEOUS)
def test_opposite_inputs_of_many_dimensions_and_different_norms(name):
    rng = np.random.default_rng(0)
    net = ft.ResidualNetwork(depth=5, activation=name, bias_variance=0.0, weight_variance=2.0)
    for x in rng.normal(size=(20, 784)):
        X = np.array([x, -0.7 * x])
        K = ft.solve(net, ft.input_kernel(X, net)).kernels[-1]
        np.testing.assert_allclose(ft.kernel(net)(X), K, rtol=1e-12)
        # φ(−0.7 h) of φ(h), of single inputs.
        same = ft.solve(net, ft.input_kernel(np.array([SIGNAL, -SIGNAL]), net)).kernels
        ratio = same[-1, 0, 1] / same[-1, 0, 0]
        assert K[0, 1] / K[0, 0] == pytest.approx(0.7 * ratio, rel=1e-12)


@pytest.mark.parametrize("name", HOMOGENEOUS)
def test_tangent_kernel_of_parallel_inputs(name):
    net = ft.ResidualNetwork(depth=5, activation=name, bias_variance=0.0, weight_variance=2.0)
    factors = np.array([1.0, 2.0, 3.3])
    X = np.multiply.outer(factors, SIGNAL)
    for theta in (
        ft.solve(net, ft.input_kernel(X, net)).tangent_kernels[-1],
        ft.solve(net, ft.input_kernel(X, net)).output_tangent_kernel,
    ):
        np.testing.assert_allclose(theta / theta[0, 0], np.outer(factors, factors), rtol=1e-11)


@pytest.mark.parametrize("text", [slow("abs(1.5 - abs(h + 1.5))"), "h*(1 + h**2/(1 + h**4))"])
def test_functions_that_are_lines_at_both_ends_alone(text):
    """They are not homogeneous: the kernel of a solution is that of the layer functions."""
    net = ft.ResidualNetwork(depth=1, activation=text, weight_variance=1.0, bias_variance=0.0)
    found = ft.solve(net, [[0.6, 0.2], [0.2, 1.1]]).residual_kernels[1, 0, 1]
    assert found == pytest.approx(network_functions(net).covariance(0.6, 1.1, 0.2), rel=1e-12)
    assert network_functions(net).lines is None
