"""Fluctuations of layers that correlate little, at any variance."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.numerics.layer_averages.entries import network_entries
from fieldtheory.numerics.one_input.distant_layers import connected_by_series
from fieldtheory.numerics.one_input.fluctuations import connected_squares

K = np.geomspace(0.3, 1e17, 60)


def ramp(h):
    return np.maximum(h, 0.0)


@pytest.mark.parametrize(("name", "phi"), [("relu", ramp), ("abs(h)", np.abs), ("h**2", np.square)])
def test_exact_cases(name, phi):
    """Of signals that add up from 0.3 to 1e17, by the closed forms of orthants and polynomials."""
    covariance = np.minimum.outer(K, K)
    found = connected_by_series(lambda h: phi(h) ** 2, (0.0,), K, covariance)
    closed = network_entries(ft.ResidualNetwork(depth=1, activation=name)).connected
    expected = closed(*np.broadcast_arrays(K[:, None], K, covariance))
    np.testing.assert_allclose(found, expected, rtol=2e-12)


def even_grid(F, a, b, c):
    """⟨F(x) ; F(y)⟩ by sums over an even grid."""
    z = np.arange(-9, 9, 0.01)
    bell = 0.01 * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    r = c / np.sqrt(a * b)
    Z = z[:, None]
    excess = -(r * r * (Z**2 + z**2) - 2 * r * Z * z) / (2 * (1 - r * r)) - np.log1p(-r * r) / 2
    return bell * F(np.sqrt(a) * z) @ np.expm1(excess) @ (bell * F(np.sqrt(b) * z))


@pytest.mark.parametrize(
    ("name", "phi"),
    [("softplus", lambda h: np.logaddexp(0, h)), ("tanh", np.tanh), ("tanh(h)*h", None)],
)
def test_smooth_functions(name, phi):
    net = ft.ResidualNetwork(depth=7, activation=name, skip_scale=0.6, weight_variance=3.0)
    kernels = ft.solve(net, 0.8).kernels[:-1]
    phi = phi or (lambda h: h * np.tanh(h))
    found = connected_squares(net, kernels)
    for k, l in ((0, 1), (2, 3), (1, 7)):
        a, b = kernels[k], kernels[l]
        expected = even_grid(lambda h: phi(h) ** 2, a, b, 0.6 ** (l - k) * a)
        assert found[k, l] == pytest.approx(expected, rel=1e-10)


def test_it_is_left_to_others_where_layers_correlate_or_saturate():
    covariance = np.minimum.outer(K, K)
    assert connected_by_series(np.square, (), K[:3], covariance[:3, :3]) is None
    assert connected_by_series(np.square, (), 0 * K, covariance) is None
    near = np.linspace(1.0, 1.2, 60)
    assert connected_by_series(np.square, (), near, np.minimum.outer(near, near)) is None
    assert connected_by_series(lambda h: 1 + 1e-9 * h**2, (), K[:8], covariance[:8, :8]) is None


@pytest.mark.parametrize("name", ["gelu", "softplus", "elu"])
def test_growing_kernels_of_a_hundred_layers(name):
    """K up to 1e17, where φ is a ramp: the correlators of the last layers are those of ReLU."""
    net = ft.ResidualNetwork(depth=100, activation=name, width=10**6)
    kernels = ft.solve(net, 1.0).kernels[:-1]
    late = kernels[70:]
    closed = network_entries(net.replace(activation="relu")).connected
    expected = closed(*np.broadcast_arrays(late[:, None], late, np.minimum.outer(late, late)))
    np.testing.assert_allclose(connected_squares(net, kernels)[70:, 70:], expected, rtol=1e-4)
