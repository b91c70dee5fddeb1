"""The printed closure: where it is exact, and by how much it is not."""

from functools import cache
from itertools import product

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.criticality import (
    closure_four_point,
    closure_G11,
    closure_kernel_variance,
    critical_network,
)
from fieldtheory.numerics.infinite_width.gains import variance_gains
from tests.oracles.four_point import four_point
from tests.oracles.quadrature import average_smooth
from tests.tables import slow


def relu(h):
    return np.maximum(h, 0)


@pytest.mark.parametrize(
    ("activation", "phi", "gamma", "exact"),
    [
        ("tanh", np.tanh, 0.0, True),
        ("relu", relu, 0.0, True),
        ("linear", lambda h: h, 0.9, True),
        ("abs", np.abs, 0.9, True),
        ("relu", relu, 0.9, False),
        ("tanh", np.tanh, 1.0, False),
    ],
)
def test_where_it_is_exact(activation, phi, gamma, exact):
    net = ft.ResidualNetwork(depth=6, activation=activation, skip_scale=gamma)
    _, expected = four_point(phi, gamma, 1.25, 0.05, 0.7, 6)
    np.testing.assert_allclose(ft.solve(net, 0.7).four_point, expected, rtol=1e-9, atol=1e-15)
    found = closure_four_point(net, 0.7)
    np.testing.assert_allclose(found[:2], expected[:2], rtol=1e-10)
    if exact:
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    else:
        assert (found[2:] < expected[2:] * (1 - 1e-3)).all()


@pytest.mark.parametrize("activation", ["relu", slow("tanh")])
def test_simulation_tells_the_two_apart(activation):
    gamma, width = 0.5**0.5, 100
    net = critical_network(activation, skip_scale=gamma, depth=8, width=width)
    phi = relu if activation == "relu" else np.tanh
    _, expected = four_point(phi, gamma, net.weight_variance, 0.0, 2.0, 8)
    e = ft.simulate(net, 2.0, samples=20_000, seed=3)
    z = (e.four_point - expected) / e.four_point_error
    if activation == "relu":
        assert np.abs(z[1:3]).max() < 4
        closure = closure_four_point(net, 2.0)
        assert (e.four_point[2] - closure[2]) / e.four_point_error[2] > 10
    else:
        assert np.abs(z[1:]).max() < 4


@pytest.mark.parametrize(
    "scales", [slow((0.5, 1.0)), ((1.0, 0.3, -0.8, 0.6), (0.5, 2.0, 1.0, 0.7))]
)
def test_propagators_of_the_closure_give_its_vertex(scales):
    """V = N Var K + 2 N Σ A² G12 β of section 8, with the G11 of the closure."""
    skip, branch = scales
    net = ft.ResidualNetwork(depth=4, activation="gelu", skip_scale=skip, branch_scale=branch)
    s = ft.solve(net, 0.6)
    gain = variance_gains(net, s.kernels)
    A = np.eye(5)
    for l in range(1, 5):
        A[l, :l] = net.skip_scales[l - 1] * A[l - 1, :l]
    beta = np.zeros((5, 5))
    for l in range(5):
        for m in range(1, l + 1):
            beta[l, m] = 2 * gain[m] * (A[l, m - 1] * s.kernels[m - 1]) ** 2
    own = 2 * np.einsum("lk,km,lm->l", A**2, s.G12[:-1, :-1], beta)
    V = net.width * (closure_kernel_variance(net, 0.6) + own)
    np.testing.assert_allclose(closure_four_point(net, 0.6), V, rtol=1e-11, atol=1e-15)
    G11 = closure_G11(net, 0.6)
    np.testing.assert_allclose(G11, G11.T, rtol=1e-13)
    np.testing.assert_allclose(np.diag(s.G11)[:2], np.diag(G11)[:2], rtol=1e-12)


def printed_pairs(phi, gamma, weight, K, V):
    """(B.25) as it stands, with sums over raised indices; V and the result as (2, 2, 2, 2)."""
    inverse = np.linalg.inv(K)
    raised = np.einsum("abcd,ae,bf,cg,dh->efgh", V, *[inverse] * 4)

    @cache
    def average(*chosen, moved_by=()):
        def f(*h):
            values = np.prod([phi(h[i]) for i in chosen], axis=0)
            if moved_by:
                values = values * (h[moved_by[0]] * h[moved_by[1]] - K[moved_by])
            return values

        return average_smooth(f, K, step=0.2, cut=8.0)

    def moved(a, b, c, d):
        return average(a, b, moved_by=(c, d))

    found = np.empty((2,) * 4)
    for a, b, c, d in product(range(2), repeat=4):
        total = weight**2 * (average(a, b, c, d) - average(a, b) * average(c, d))
        mixed = moved(a, b, c, d) + moved(c, d, a, b)
        for e, f, g, h in product(range(2), repeat=4):
            both = moved(a, b, e, f) * moved(c, d, g, h)
            total += weight**2 / 4 * raised[e, f, g, h] * both
            mixed += raised[e, f, g, h] / 2 * moved(a, b, e, f) * K[g, c] * K[h, d]
            mixed += raised[e, f, g, h] / 2 * moved(c, d, e, f) * K[g, a] * K[h, b]
        found[a, b, c, d] = total + weight * gamma**2 * mixed + gamma**4 * V[a, b, c, d]
    return found


def test_pairs_of_two_inputs_are_as_printed():
    gamma, weight, K0 = 0.8, 1.5, np.array([[1.0, 0.4], [0.4, 0.7]])
    net = ft.ResidualNetwork(
        depth=2, activation="tanh", skip_scale=gamma, weight_variance=weight, bias_variance=0.1
    )
    found, kernels = closure_four_point(net, K0), ft.solve(net, K0).kernels
    first, second = np.triu_indices(2)
    V = np.zeros((2,) * 4)
    for l in (1, 2):
        V = printed_pairs(np.tanh, gamma, weight, kernels[l - 1], V)
        own = V[first[:, None], second[:, None], first, second]
        np.testing.assert_allclose(found[l], own, rtol=1e-8)


def test_pairs_hold_the_single_inputs_and_simulations_without_skip_connections():
    K0 = np.array([[1.0, 0.5, -0.2], [0.5, 0.8, 0.1], [-0.2, 0.1, 0.6]])
    net = ft.ResidualNetwork(depth=3, activation="relu", skip_scale=0.7)
    found = closure_four_point(net, K0)
    assert found.shape == (4, 6, 6)
    np.testing.assert_allclose(found, np.swapaxes(found, 1, 2), rtol=1e-12)
    for pair, K in zip((0, 3, 5), np.diag(K0), strict=True):
        np.testing.assert_allclose(found[:, pair, pair], closure_four_point(net, K), rtol=1e-11)
    plain = ft.FeedForwardNetwork(depth=2, activation="erf", width=60)
    e = ft.simulate(plain, K0, samples=4000, seed=2)
    own = np.diagonal(closure_four_point(plain, K0), axis1=1, axis2=2)[1:]
    z = e.four_point[1:, *np.triu_indices(3)] - own
    assert np.abs(z / e.four_point_error[1:, *np.triu_indices(3)]).max() < 4


@pytest.mark.parametrize(
    ("network", "K0", "words"),
    [
        (ft.ResidualNetwork(depth=2, skip_scale=[[1.0], [0.5]]), 1.0, "network must be one"),
        (ft.ResidualNetwork(depth=2), np.ones(2), "K0 must be a variance, got shape"),
        (ft.ResidualNetwork(depth=2), -np.eye(2), "K0 must be"),
        (ft.ResidualNetwork(depth=2), -1.0, "K0 must be a variance >= 0"),
        (None, 1.0, "network must be"),
    ],
)
def test_bad_input(network, K0, words):
    for function in (closure_four_point, closure_G11, closure_kernel_variance):
        with pytest.raises((TypeError, ValueError), match=words):
            function(network, K0)
