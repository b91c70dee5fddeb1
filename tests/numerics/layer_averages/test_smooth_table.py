"""Averages that layers ask for one after the other, against sums on an even grid."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.numerics.layer_averages.entries import network_entries
from fieldtheory.numerics.layer_averages.smooth_table import SmoothTable

ACTIVATIONS = ["tanh", "gelu", "softplus", "softsign", "hard_tanh", "elu", "relu6", "tanh(5*h)"]
ACTIVATIONS += ["h*exp(-h**2)", "sin(h)/h", "tanh(h-3)", "cos"]


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_values_are_those_of_the_average_to_rounding(activation):
    """From 1e-12 to 1e8, tens of variances of one power of four, single ones and few together."""
    f = network_entries(ft.ResidualNetwork(depth=1, activation=activation)).second_moment
    table, rng = SmoothTable(f), np.random.default_rng(0)
    for power in (-20, -6, -1, 0, 1, 3, 6) if "sin" not in activation else (-20, -6, -1):
        K = 4.0**power * np.sort(np.exp(rng.uniform(0, np.log(4), 24)))
        found = np.array([table(np.array(each)) for each in K])
        np.testing.assert_allclose(found, f(K), rtol=1e-14)
        np.testing.assert_allclose(table(K[:3]), f(K[:3]), rtol=1e-14)


def test_deep_chains_are_those_of_sums_on_an_even_grid():
    """Kernels of 300 layers of tanh(h) + h/3, growing and decaying, which no other code made."""
    step = 0.05
    z = step * np.arange(-260, 261)
    bell = step * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    for skip, weight, bias in ((1.0, 0.02, 0.0), (0.0, 0.6, 0.1), (0.0, 0.45, 0.0)):
        network = ft.ResidualNetwork(
            depth=300,
            activation="tanh(h)+h/3",
            skip_scale=skip,
            weight_variance=weight,
            bias_variance=bias,
        )
        K = [2.0]
        for _ in range(300):
            h = np.sqrt(K[-1]) * z
            K.append(skip**2 * K[-1] + weight * bell @ (np.tanh(h) + h / 3) ** 2 + bias)
        np.testing.assert_allclose(ft.solve(network, 2.0).kernels[:-1], K, rtol=1e-12)


def test_many_layers_take_few_integrals():
    calls = []

    def root(K):
        calls.append(np.size(K))
        return np.sqrt(K)

    table = SmoothTable(root)
    for K in np.linspace(1.1, 3.9, 500):
        assert table(np.array(K)) == pytest.approx(np.sqrt(K), rel=5e-15)
    assert len(calls) <= 8


def test_what_is_not_smooth_or_not_positive_is_left_to_the_function():
    def steps(K):
        return np.floor(8 * K)

    def shifted(K):
        return K - 1.5

    def nothing(K):
        return 0 * K

    def lost(K):
        if np.size(K) > 1:
            raise QuadratureError("not here")
        return np.sqrt(K)

    for f in (steps, shifted, nothing, lost):
        table = SmoothTable(f)
        for K in np.linspace(1.0, 3.9, 12):
            assert table(np.array(K)) == f(np.array(K))
    for K in (0.0, np.inf):
        assert SmoothTable(np.sqrt)(np.array(K)) == np.sqrt(K)
    many = np.linspace(1.0, 2.0, 9)
    assert (SmoothTable(np.sqrt)(many) == np.sqrt(many)).all()
