"""Two inputs at order 1/N from neurons that interact, against averages of pairs of layers."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.numerics.neurons.neurons_of_two_inputs import (
    first_order_of_pair,
    shift_of_covariance,
)
from tests.numerics.pair_examples import OPPOSED, TWO, dense, network
from tests.tables import slow

# Entries 11, 12, 22 of the oracle, and 11, 22, 12.
ORDER = [0, 2, 1]


def found(net, K0, count):
    return first_order_of_pair(net, layer_coefficients(net), ft.solve(net, K0).kernels[:-1], count)


@pytest.mark.parametrize(
    ("name", "gamma", "K0", "depth", "nodes"),
    [
        ("erf", 0.7, TWO, 2, 32),
        ("gelu", 0.0, TWO, 2, 26),
        ("tanh", -0.7, OPPOSED / 2, 1, 38),
        slow("tanh", 1.0, TWO / 2, 1, 38),
        slow("gelu", 0.7, OPPOSED, 1, 32),
    ],
)
def test_against_dense_blocks(name, gamma, K0, depth, nodes):
    """Sums over all neurons' signals know nothing of Hermite polynomials or of a chain."""
    net = network(name, gamma, depth)
    known, two = dense(net, K0, nodes), found(net, K0, 72)
    shift = known.shift.reshape(depth + 2, 3)[1:, ORDER]
    np.testing.assert_allclose(two.shift, shift, rtol=0, atol=1e-9)
    blocks = known.G11.reshape(depth + 2, 3, depth + 2, 3)
    for l, q in enumerate(two.covariance, start=1):
        np.testing.assert_allclose(q, blocks[l, ORDER, l][:, ORDER], rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["erf", "gelu"])
def test_one_input_twice_as_wide_is_that_input(name):
    """The variances of two inputs are those of one, whose chain is another program."""
    net = network(name, (1.0, 0.5, -0.3, 1.0), 4)
    two = found(net, TWO, 90)
    for entry, K0 in enumerate(np.diagonal(TWO)):
        one = ft.solve(net, float(K0))
        np.testing.assert_allclose(two.shift[:, entry], net.width * one.mean_shift[1:], rtol=1e-9)
        variance = net.width * np.diagonal(one.G11)[1:]
        np.testing.assert_allclose(two.covariance[:, entry, entry], variance, rtol=1e-10)


@pytest.mark.parametrize("gamma", [0.0, 0.7, 1.0])
def test_linear_networks_have_no_shift(gamma):
    net = network("linear", gamma, 5)
    two, s = found(net, TWO, 12), ft.solve(net, TWO)
    np.testing.assert_allclose(two.shift, 0, atol=1e-13)
    own = net.width * s.G11[range(1, 7), range(1, 7)][:, ORDER][:, :, ORDER]
    np.testing.assert_allclose(two.covariance, own, rtol=1e-12)


@pytest.mark.parametrize("correlation", [-0.99, -1e-3, 1e-6, 0.5, 0.99])
def test_orders_are_enough_or_the_answer_is_none(correlation):
    net = network("tanh", 1.0, 6, branch_scale=0.2)
    K0 = 0.3 * np.array([[1, correlation], [correlation, 1]])
    K, layers = ft.solve(net, K0).kernels[:-1], layer_coefficients(net)
    shift = shift_of_covariance(net, layers, K, 1e-9)
    finer = first_order_of_pair(net, layers, K, 200).shift[:, 2]
    np.testing.assert_allclose(shift, finer, rtol=2e-9)


def test_what_few_orders_do_not_resolve_is_left_to_others():
    net, layers = network("tanh", 1.0, 2), layer_coefficients(network("tanh", 1.0, 2))
    for name, K0 in [("tanh", 1e3 * TWO), ("relu", TWO), ("tanh", np.full((2, 2), 0.3))]:
        other = net.replace(activation=name)
        K = ft.solve(other, K0).kernels[:-1]
        assert shift_of_covariance(other, layers, K, 1e-9) is None
