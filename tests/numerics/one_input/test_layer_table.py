"""Averages of all pairs of layers from a table, and the mean shift from it, by neurons on nodes."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.numerics.neurons.finite_width import Neurons
from fieldtheory.numerics.neurons.interacting_neurons import connected_squares, first_order
from fieldtheory.numerics.one_input import fluctuations, layer_table


@pytest.mark.filterwarnings("ignore::fieldtheory.ValidityWarning")
@pytest.mark.parametrize(
    ("name", "scale", "K0"),
    [
        ("hard_tanh", 0.1, 0.5),
        ("softsign", 0.3, 20.0),
        ("tanh", 0.05, 1e3),
        ("heaviside(h-0.4)", 0.01, 1.0),
        ("softshrink", 0.3, 1e-3),
        ("gelu", 0.3, 20.0),
    ],
)
def test_table_and_neurons_on_nodes(name, scale, K0):
    net = ft.ResidualNetwork(depth=40, activation=name, branch_scale=scale)
    s, layers = ft.solve(net, K0), layer_coefficients(net)
    K, C = s.kernels[:-1], s.residual_kernels[:-1]
    assert fluctuations._table(net, K, C) is not None
    known = first_order(Neurons.of(net, layers.weights[1:], K, C).resolved(0, 1.0, 1))
    shift = net.width * s.mean_shift[1:]
    np.testing.assert_allclose(shift, known.shift, rtol=1e-9, atol=1e-9 * np.abs(shift).max())
    squares = connected_squares(Neurons.of(net, np.ones(len(K)), K, C).resolved(0, 1.0, 0))
    root = np.sqrt(np.diagonal(squares))
    found = fluctuations.connected_squares(net, K, C)
    # Early layers hardly reach the kinks of softshrink.
    assert np.all(np.abs(found - squares) <= 1e-10 * np.outer(root, root) + 1e-14 * root.max() ** 2)


def test_what_the_table_misses_is_an_error(monkeypatch):
    net = ft.ResidualNetwork(depth=40, activation="softsign", branch_scale=0.1)
    monkeypatch.setattr(layer_table, "_DIGITS", 3.0)
    monkeypatch.setattr(layer_table, "_MORE", 2)
    with pytest.raises(QuadratureError, match="averages of two layers, interpolated"):
        _ = ft.solve(net, 0.5).G11
