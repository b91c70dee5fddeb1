"""Fluctuations of several inputs of which one is zero: its signals begin with the biases."""

import numpy as np
import pytest

import fieldtheory as ft
from tests.numerics.test_several_inputs import dense, network, of_pairs, upper
from tests.tables import slow

K0 = np.array([[0.0, 0.0, 0.0], [0.0, 0.3, 0.11], [0.0, 0.11, 0.2]])
# A signal so narrow that it is none: what is left of it is its deviation, 1e-13.
NARROW = np.diag([1e-26, 0.3])


@pytest.mark.parametrize(
    "name", ["relu", "abs", "tanh", *map(slow, ("hard_tanh", "relu6", "selu", "elu"))]
)
def test_without_biases_it_stays_zero(name):
    net = network(name, 0.7, 2, bias_variance=0.0, readout_bias_variance=0.0)
    s, two = ft.solve(net, K0), ft.solve(net, K0[1:, 1:])
    of_two = [3, 4, 5]
    expected = np.zeros_like(s.G11)
    expected[:, :, 3:, 3:] = two.G11
    np.testing.assert_allclose(s.G11, expected, rtol=1e-9, atol=1e-12 * expected.max())
    assert not s.G11[:, :, :3].any() and not s.four_point[:, :3].any()
    np.testing.assert_allclose(s.four_point[:, 3:, of_two], two.four_point, rtol=1e-9, atol=1e-12)
    assert not s.mean_shift[:, 0].any()
    np.testing.assert_allclose(s.mean_shift[:, 1:, 1:], two.mean_shift, rtol=1e-8, atol=1e-14)


@pytest.mark.parametrize(
    ("name", "count"), [("relu", 24), ("abs", 24), ("leaky_relu", 24), slow("softsign", 26)]
)
def test_with_biases_against_dense_blocks(name, count):
    """Of a readout of biases too, the first layer that zero signals change."""
    net = network(name, 0.7, 1)
    s, known, N = ft.solve(net, K0[:2, :2]), dense(net, NARROW, count), net.width
    np.testing.assert_allclose(N * of_pairs(s.G11), known.G11, rtol=0, atol=1e-9)
    np.testing.assert_allclose(s.four_point, known.vertex, rtol=0, atol=1e-9)
    shift = known.shift.reshape(3, -1)
    np.testing.assert_allclose(N * upper(s.mean_shift), shift, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["max(0,h)+1", "abs(h-1)"])
def test_features_of_zero_signals(name):
    """Where φ(0) is not zero: the limit of narrow signals."""
    net = network(name, 0.7, 2)
    s, near = (ft.solve(net, K0[:2, :2] + np.diag([k, 0.0])) for k in (0.0, 1e-16))
    for field in ("G11", "mean_shift", "four_point"):
        value = getattr(s, field)
        np.testing.assert_allclose(getattr(near, field), value, atol=1e-6 * np.abs(value).max())


@pytest.mark.parametrize("name", ["relu", "max(0,h)+1", "relu6"])
@pytest.mark.parametrize("inputs", [1, 2])
def test_no_input_at_all(name, inputs):
    net = network(name, 0.7, 2)
    one, s = ft.solve(net, 0.0), ft.solve(net, np.zeros((inputs, inputs)))
    for field in ("G11", "mean_shift"):
        value = getattr(one, field)
        assert np.isfinite(value).all() and value[-1].any()
        expected = np.broadcast_to(np.expand_dims(value, (-1, -2)), getattr(s, field).shape)
        np.testing.assert_allclose(getattr(s, field), expected, rtol=1e-9, atol=1e-18)
