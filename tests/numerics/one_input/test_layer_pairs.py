"""Pairs of layers by interpolation against the entries themselves."""

import numpy as np
import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.networks.activations import as_activation
from fieldtheory.numerics.layer_averages.entries import entries
from fieldtheory.numerics.one_input.layer_pairs import interpolated


def one_by_one(f):
    """f(K + D, K, K) for all variances K and steps D."""

    def steps(K, D):
        first, step = (k.ravel() for k in np.broadcast_arrays(K[:, None], D))
        return f(first + step, first, first).reshape(len(K), len(D))

    return steps


@pytest.mark.parametrize(
    "name,highest", [("erf", 0.3), ("erf", 100.0), ("tanh", 8.0), ("gelu", 40.0)]
)
def test_interpolated_entries_agree_with_direct_ones(name, highest):
    K = np.geomspace(0.05, highest, 150)
    e = entries(as_activation(name))
    connected, values = e.connected, interpolated(e.connected_steps, e.connected, K)
    earlier, later = np.sort(np.random.default_rng(5).integers(0, len(K), (2, 300)), axis=0)
    exact = connected(K[later], K[earlier], K[earlier])
    np.testing.assert_allclose(values[earlier, later], exact, rtol=2e-12)
    np.testing.assert_array_equal(values, values.T)


def test_few_values_serve_many_pairs():
    calls = []

    def counted(a, b, c):
        calls.append(len(a))
        return 2 * c**2 / (1 + a)

    assert interpolated(one_by_one(counted), counted, np.linspace(0.1, 3.0, 500)) is not None
    assert sum(calls) < 5000


@pytest.mark.parametrize(
    "f,K",
    [
        (lambda a, b, c: 2 * c**2, np.full(100, 0.3)),
        (lambda a, b, c: 2 * c**2, np.linspace(0.0, 1.0, 100)),
        (lambda a, b, c: 2 * c**2, np.array([0.1, 0.2])),
        (lambda a, b, c: 1e-9 + np.abs(c - 0.4), np.linspace(0.1, 1.0, 100)),
        (lambda a, b, c: c - 0.4, np.linspace(0.1, 1.0, 100)),
    ],
    ids=["no range", "zero", "too few", "kink", "negative"],
)
def test_what_cannot_be_interpolated_is_declined(f, K):
    assert interpolated(one_by_one(f), f, K) is None


@pytest.mark.parametrize("name", ["erf", "relu", "tanh"])
def test_G11_of_deep_networks_takes_the_same_value_either_way(name, monkeypatch):
    from fieldtheory.numerics.one_input import fluctuations

    net = ft.ResidualNetwork(depth=60, activation=name, branch_scale=0.2, width=10**6)
    fast = ft.solve(net, 0.05).G11
    monkeypatch.setattr(fluctuations, "interpolated", lambda steps, f, K: None)
    np.testing.assert_allclose(fast, ft.solve(net, 0.05).G11, rtol=1e-12)


@pytest.mark.parametrize("name", ["tanh", "swish", "erf", "relu"])
def test_steps_between_layers_are_the_entries_of_pairs(name):
    e = entries(as_activation(name))
    K, D = np.array([1e-3, 0.05, 0.4, 30.0, 200.0]), np.array([0.0, 1e-3, 0.7, 50.0])
    expected = one_by_one(e.connected)(K, D)
    np.testing.assert_allclose(e.connected_steps(K, D), expected, rtol=1e-12)


def test_nothing_is_evaluated_where_it_cannot_pay():
    def refuse(*_):
        raise AssertionError("no value was to be computed")

    assert interpolated(refuse, refuse, np.linspace(0.1, 0.5, 43)) is None


def test_an_activation_with_a_kink_at_small_depth():
    """A softsign, against G11 from the blocks of the symbolic derivation."""
    h = sp.Symbol("h", real=True)
    net = ft.ResidualNetwork(depth=1, activation=h / (1 + sp.Abs(h)), branch_scale=0.5)
    expected = ft.derive(net).lambdify("G11")(net, 0.05)
    np.testing.assert_allclose(ft.solve(net, 0.05).G11, expected, rtol=1e-8, atol=1e-20)
