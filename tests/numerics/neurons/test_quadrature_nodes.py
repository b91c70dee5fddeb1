"""Neurons on quadrature nodes: narrow noise, kinks and steep functions, by other derivations."""

import numpy as np
import pytest
import sympy as sp
from mpmath import mp

import fieldtheory as ft
from fieldtheory.averages.quadrature.panelled_functions import Function
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.numerics.neurons.finite_width import (
    Neurons,
    connected_squares,
    sums_of_squares,
)
from fieldtheory.numerics.neurons.fourier_basis import spectrum_of
from fieldtheory.numerics.neurons.interacting_neurons import second_order
from fieldtheory.numerics.recursion import ratio
from tests.numerics.neurons.test_finite_width import (
    assert_agrees_with_neurons,
    coefficients,
    uniform,
)
from tests.tables import slow


def network(name, scale, skip=1.0, depth=3, **others):
    return ft.ResidualNetwork(
        depth=depth, activation=name, branch_scale=scale, skip_scale=skip, width=10**6, **others
    )


def sizes(solution):
    """What the coefficients of 1/N² are if kernels fluctuate by their size."""
    C, q = solution.residual_kernels[1:], np.diagonal(solution.G11)[1:]
    spread = solution.network.width**2 * q**2
    return np.array([ratio(spread, C**power) for power in (3, 2, 1)])


def neurons_of(net, K0):
    K = ft.solve(net, K0).kernels[:-1]
    return Neurons.of(net, layer_coefficients(net).weights[1:], K, None)


def test_spectra_do_not_depend_on_the_size_of_phi():
    arguments = np.array([0.5, 0.8]), np.array([1.0]), np.array([0.3]), True
    one, *others = (
        spectrum_of(Function(lambda h, c=c: c * np.tanh(3 * h) ** 2), *arguments)
        for c in (1.0, 1e-6, 1e6)
    )
    for other in others:
        np.testing.assert_array_equal(other, one)


@pytest.mark.parametrize(
    ("scale", "skip"),
    [
        (0.9, 0.7),
        (0.1, 1.0),
        (0.02, 1.0),
        (0.5, 0.0),
        ((0.3, 0.7, 0.1), (1.0, -0.5, 1.0)),
        # Layers that add nothing: there is no noise between their nodes.
        ((0.3, 0.0, 0.0, 0.2), (1.0, -0.7, 0.5, 1.0)),
    ],
)
@pytest.mark.parametrize("name", ["erf", slow("gelu")])
def test_smooth_functions_on_nodes_and_in_fourier_series(name, scale, skip):
    net = network(name, scale, skip, np.size(scale) if np.size(scale) > 1 else 3)
    net = net.replace(bias_variance=0.0)
    s, layers = ft.solve(net, 0.5), neurons_of(net, 0.5)
    fine, _ = layers.resolutions(3)
    assert not isinstance(fine, int)
    known, found = (connected_squares(layers.runs(each)) for each in (fine, 20))
    np.testing.assert_allclose(found, known, rtol=1e-12, atol=1e-15)
    known, found = (second_order(layers.layers(each, 3)) for each in (fine, 20))
    for x, y, size in zip(found[:3], known[:3], sizes(s), strict=True):
        np.testing.assert_array_less(np.abs(x - y), 1e-9 * (np.abs(y) + 1e-5 * size) + 1e-300)
    # The pairing is zero where one layer has noise: its scale is the term of order 1/N, V/K².
    size = np.max(s.four_point / s.kernels[:-1] ** 2)
    np.testing.assert_allclose(found.pairing, known.pairing, rtol=1e-9, atol=1e-13 + 1e-12 * size)


@pytest.mark.parametrize("name", ["erf", "gelu"])
def test_covariances_of_many_layers_in_runs_and_on_nodes(name):
    neurons = neurons_of(network(name, 0.5, 1.0, 30), 0.5)
    fine, _ = neurons.resolutions(0)
    runs = list(neurons.runs(fine))
    # Factors between layers are divided by, and limited.
    assert 1 < max(len(run.squares) for run in runs) < 15
    found, known = connected_squares(runs), connected_squares(neurons.runs(20))
    np.testing.assert_allclose(found, known, rtol=1e-12)
    weights = np.linspace(1.0, 2.0, len(known))
    np.testing.assert_allclose(sums_of_squares(runs, weights), np.tril(known) @ weights, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["relu", "hard_tanh"])
def test_kinks_of_layers_near_one_another(name):
    assert_agrees_with_neurons(name, uniform(2, 1.0, scale=0.4), 0.4, 1e-8)


def mean_of_one_hidden_layer(K, a, c, a_out):
    """1/N² of ⟨C^(2)⟩ for ReLU and γ = 1, from the moments of C^(1) given one neuron h.

    With F_k the derivatives by C of ⟨φ²(h + √C ξ)⟩ and C^(1) = C* + (1/N) Σ_j D(h_j) it is
    a ⟨F_2 (D² − q)/2 + F_3 (3 D q + κ)/6 + F_4 q²/8⟩, q = ⟨D²⟩, κ = ⟨D³⟩.
    """
    h, C = sp.symbols("h C", positive=True)
    slope = (1 + sp.erf(h / sp.sqrt(2 * C))) / 2  # ∂F/∂C
    start, kinked = a * K / 2 + c, sp.Symbol("D")
    q, kappa = a**2 * sp.Rational(5, 4) * K**2, a**3 * sp.Rational(11, 2) * K**3
    factors = (kinked**2 - q) / 2, (3 * kinked * q + kappa) / 6, q**2 / 8
    F = sum(slope.diff(C, j) * x for j, x in enumerate(factors, start=1)).subs(C, start)
    value = sp.lambdify([h, kinked], F, "mpmath")
    with mp.workdps(30):
        scale = mp.sqrt(start)

        def weighted(x):
            D = a * ((x**2 if x > 0 else 0) - K / 2)
            return value(x, D) * mp.exp(-(x**2) / (2 * K)) / mp.sqrt(2 * mp.pi * K)

        cuts = [n * scale for n in (-16, -8, -4, -2, 0, 2, 4, 8, 16)]
        return float(a_out * mp.quad(weighted, cuts))


@pytest.mark.parametrize("scale", [slow(0.2), slow(0.05), 1e-3, slow(5e-4)])
def test_kinks_of_one_hidden_layer_near_the_input(scale):
    K0, net = 0.4, uniform(1, 1.0, scale=scale)
    _, G11, _, mean_2, *_ = coefficients(net, "relu", K0)
    exact = [sp.Rational(str(x)) for x in (K0, scale**2 * 1.25, scale**2 * 0.05, 1.4)]
    q, C = G11[2, 2], 1.4 * 0.5 * 0.4 + 0.1
    assert mean_2[2] == pytest.approx(mean_of_one_hidden_layer(*exact), abs=1e-14 * q**2 / C**3)
