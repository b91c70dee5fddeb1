"""What every family offers, and the coefficients made of it."""

from dataclasses import dataclass

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.networks.coefficients import layer_coefficients, unit_branch
from fieldtheory.networks.family import FAMILIES, Coefficients, checked_network

NET = ft.ResidualNetwork(depth=3, branch_scale=[0.5, 0.4, 0.3], skip_scale=0.7, bias_variance=0.2)


@dataclass(frozen=True, kw_only=True)
class Offset(ft.ResidualNetwork):
    """A family whose weights do not grow as ρ²."""

    @staticmethod
    def layer(parameters):
        scale = parameters["branch_scale"]
        return Coefficients(1 + scale**2, scale**2, parameters["skip_scale"])


def test_families_are_known_by_the_names_of_their_classes():
    assert FAMILIES["ResidualNetwork"] is ft.ResidualNetwork
    assert FAMILIES["FeedForwardNetwork"] is ft.FeedForwardNetwork
    assert FAMILIES["Offset"] is Offset


@pytest.mark.parametrize("wrong", [3, None, "erf", ft.ResidualNetwork])
def test_what_is_no_network_is_refused(wrong):
    with pytest.raises(
        TypeError, match="network must be a ResidualNetwork or of another layered family"
    ):
        checked_network(wrong)


def test_coefficients_of_the_layers():
    found = layer_coefficients(NET)
    squares = np.array([0.25, 0.16, 0.09])
    np.testing.assert_allclose(found.weights, [0, *(1.25 * squares), 1.25], rtol=1e-15)
    np.testing.assert_allclose(found.biases, [0, *(0.2 * squares), 0.2], rtol=1e-15)
    np.testing.assert_allclose(found.skips, [0, 0.49, 0.49, 0.49, 0], rtol=1e-15)


def test_coefficients_of_a_batch_broadcast_with_pairs():
    net = NET.replace(branch_scale=[[0.1], [0.2]])
    found = layer_coefficients(net, trailing=1, batch=2)
    assert found.weights.shape == (5, 1, 2, 1)
    np.testing.assert_allclose(found.weights[1, 0, :, 0], 1.25 * np.array([0.01, 0.04]))


def test_members_of_a_batch():
    net = NET.replace(branch_scale=[[0.1], [0.2]])
    assert net.batch_shape == (2,)
    member = net.member((2,), (1,))
    assert member.batch_shape == () and member.branch_scale == (0.2, 0.2, 0.2)
    assert member.skip_scale == (0.7, 0.7, 0.7)


def test_coefficients_of_a_branch_of_scale_one():
    assert unit_branch(NET) == (1.25, 0.2)
    with pytest.raises(ValueError, match="coefficients that grow as branch_scale²"):
        unit_branch(Offset(depth=2))


class TestFeedForward:
    def test_is_the_residual_network_without_skip_connections(self):
        net = ft.FeedForwardNetwork(depth=4, activation="tanh")
        residual = ft.ResidualNetwork(depth=4, activation="tanh", skip_scale=0.0)
        s, expected = ft.solve(net, 0.3), ft.solve(residual, 0.3)
        for name in ("kernels", "response", "G11"):
            np.testing.assert_allclose(getattr(s, name), getattr(expected, name), rtol=1e-14)

    def test_keeps_its_scales_when_replaced(self):
        net = ft.FeedForwardNetwork(depth=4).replace(depth=5, width=7)
        assert (type(net), net.depth, net.skip_scale) == (ft.FeedForwardNetwork, 5, 0.0)


class TestDerive:
    def test_of_a_network_is_that_of_its_depth_and_activation(self):
        net = ft.ResidualNetwork(depth=2, activation="erf")
        assert ft.derive(net).hessian == ft.derive(depth=2, activation="erf").hessian
        assert ft.derive(2).hessian == ft.derive(depth=2).hessian

    @pytest.mark.parametrize(
        "arguments, error, message",
        [
            ({}, TypeError, "derive needs a network or a depth"),
            ({"network": NET, "depth": 3}, TypeError, "derive needs a network or a depth"),
            ({"network": NET, "activation": "erf"}, TypeError, "activation is that of the network"),
            ({"network": "erf"}, TypeError, "depth must be an integer"),
            ({"depth": 0}, ValueError, "depth must be an integer >= 1"),
        ],
    )
    def test_bad_arguments(self, arguments, error, message):
        with pytest.raises(error, match=message):
            ft.derive(**arguments)
