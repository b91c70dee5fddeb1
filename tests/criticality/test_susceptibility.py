"""Susceptibilities, and the components of the kernel of two inputs."""

import numpy as np
import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.criticality import component_kernels, kernel_components, susceptibilities
from tests.oracles.quadrature import average1
from tests.tables import slow

RELU = ft.Activation(sp.Max(0, sp.Symbol("h")) * sp.Rational(3, 2), "steep relu")


@pytest.mark.parametrize(
    ("activation", "phi", "slope"),
    [
        ("tanh", np.tanh, lambda h: 1 - np.tanh(h) ** 2),
        (RELU, lambda h: 1.5 * np.maximum(h, 0), lambda h: 1.5 * (h > 0)),
        ("sin", np.sin, np.cos),
        ("elu", lambda h: np.where(h > 0, h, np.expm1(h)), lambda h: np.exp(np.minimum(h, 0))),
    ],
    ids=["tanh", "steep relu", "sin", "elu"],
)
@pytest.mark.parametrize("gamma", [-0.7, 0.0, 1.0])
def test_they_are_the_printed_averages(activation, phi, slope, gamma):
    net = ft.ResidualNetwork(
        depth=3, activation=activation, branch_scale=0.5, weight_variance=1.7, skip_scale=gamma
    )
    weight = 0.25 * 1.7
    for K in (1e-3, 0.4, 7.0):
        found = susceptibilities(net, K)
        parallel = average1(lambda h, K=K: phi(h) ** 2 * (h**2 - K), K) / (2 * K**2)
        assert found.parallel == pytest.approx(gamma**2 + weight * parallel, rel=1e-9)
        perpendicular = average1(lambda h: slope(h) ** 2, K)
        assert found.perpendicular == pytest.approx(gamma**2 + weight * perpendicular, rel=1e-9)


@pytest.mark.parametrize(
    ("activation", "parameters"),
    [
        slow("tanh", {"skip_scale": 0.7, "weight_variance": 0.8}),
        slow("gelu", {"skip_scale": (1.0, 0.0, -0.5, 0.9), "branch_scale": (0.3, 1.0, 2.0, 0.5)}),
        ("leaky_relu", {"skip_scale": 0.0, "weight_variance": 2.0}),
    ],
)
def test_components_are_those_of_the_kernels_of_nearby_inputs(activation, parameters):
    net = ft.ResidualNetwork(depth=4, activation=activation, **parameters)
    middle, apart = np.array([1.0, 0.3, 0.2]), np.array([0.4, -0.5, 0.3])
    errors = []
    for eps in (4e-3, 2e-3):
        X = np.stack([middle + eps * apart, middle - eps * apart])
        K = ft.solve(net, X @ X.T).kernels[:-1]
        found = component_kernels(net, kernel_components(K[0]))
        errors.append(np.abs(found - kernel_components(K)).max(axis=0))
    first, second = errors
    # K_00 to second order in the distance, its change to third, the distance to fourth, or to
    # third where φ has a kink.
    assert (second < 0.3 * first + 1e-14).all()
    assert second[0] < 1e-5 and second[1] < 1e-7 and second[2] < 1e-8


def test_change_of_the_variance_moves_the_distance():
    """The term of h(K) in (B.14): from inputs that differ in norm alone."""
    net = ft.ResidualNetwork(depth=1, activation="tanh", bias_variance=0.0)
    found = component_kernels(net, [0.8, 1.0, 0.0])[1]
    step = 1e-4
    low, high = (susceptibilities(net, 0.8 + sign * step).perpendicular for sign in (-1, 1))
    assert found[2] == pytest.approx((high - low) / (4 * step), rel=1e-6)
    assert found[2] < -0.05


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda net: susceptibilities(net, 0.0), "K must be > 0, got 0.0"),
        (lambda net: susceptibilities(net, "x"), "K must be a real number"),
        (lambda net: susceptibilities(3, 1.0), "network must be"),
        (lambda net: susceptibilities(net.replace(skip_scale=(1.0, 0.5)), 1.0), "one skip_scale"),
        (lambda net: component_kernels(net, [1.0, 0.0]), "components must have shape"),
        (lambda net: component_kernels(net, [0.0, 0.0, 0.0]), "must be > 0, got 0.0"),
        (lambda net: component_kernels(net.replace(skip_scale=[[1], [2]]), [1, 0, 0]), "batch"),
        (lambda net: kernel_components([1.0, 2.0]), "K must have shape"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises((TypeError, ValueError), match=f"^[^\n]*{words}[^\n]*$"):
        call(ft.ResidualNetwork(depth=2))
