"""The oracles of finite width agree: neurons, exact cases, one hidden layer, simulation."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.special import erf

from tests.oracles import exact, finite_width, neurons, one_hidden_layer, sampling
from tests.oracles.recursion import Net
from tests.tables import crossed, slow

UNEVEN = Net((0.5, 0.9, 1.1, 0.7), (1.0, 0.5, 0.8, -0.9), 1.25, 0.05, 1.4, 0.1)
FEEDFORWARD = UNEVEN._replace(gamma=(0.0,) * 4, bias_variance=0.0, readout_bias_variance=0.0)
PANELS = neurons.panel_nodes(4.0)


def identity(h):
    return h


def relu(h):
    return np.maximum(h, 0.0)


def leaky(h):
    return np.where(h > 0, h, 0.1 * h)


def uniform(depth, skip, scale=0.9):
    return Net((scale,) * depth, (skip,) * depth, 1.25, 0.05, 1.4, 0.1)


def against_fractions(found, C, V):
    """Largest difference of each field, relative to its largest entry or that of its order."""
    C, V = C.astype(float), V.astype(float)
    pairs = [
        (found.C, C[:, 0, 0]),
        (found.mean_1, C[:, 0, 1]),
        (found.mean_2, C[:, 0, 2]),
        (found.variance_1, C[:, 1, 1]),
        (found.variance_2, C[:, 1, 2]),
        (found.third_2, C[:, 2, 2]),
        (found.V_1, V[:, 1]),
        (found.V_2, V[:, 2]),
    ]
    return [np.max(np.abs(x - y)) / max(1.0, np.max(np.abs(y))) for x, y in pairs]


@pytest.mark.parametrize("nodes", [neurons.hermite_nodes(24), PANELS], ids=["hermite", "panels"])
@pytest.mark.parametrize("K0", [1e-6, 0.4, 50.0])
def test_neurons_of_a_linear_network(nodes, K0):
    net = UNEVEN._replace(bias_variance=0.05 * K0, readout_bias_variance=0.1 * K0)
    unit = finite_width.linear_orders(
        net._replace(bias_variance=0.05, readout_bias_variance=0.1), 1
    )
    found = neurons.orders(net, K0, identity, nodes)
    scaled = found._replace(
        C=found.C / K0,
        mean_1=found.mean_1 / K0,
        mean_2=found.mean_2 / K0,
        covariance_1=found.covariance_1 / K0**2,
        variance_2=found.variance_2 / K0**2,
        third_2=found.third_2 / K0**3,
        V_1=found.V_1 / K0**2,
        V_2=found.V_2 / K0**2,
    )
    assert max(against_fractions(scaled, *unit)) < 1e-10


@pytest.mark.parametrize("phi, slopes", [(relu, (0, 1)), (leaky, (0.1, 1))], ids=["relu", "leaky"])
def test_neurons_of_independent_factors(phi, slopes):
    found = neurons.orders(FEEDFORWARD, 0.4, phi, PANELS)
    expected = finite_width.homogeneous_orders(FEEDFORWARD, 0.4, slopes)
    assert max(against_fractions(found, *expected)) < 1e-11


def test_linear_networks_by_two_recursions():
    """The first two moments are those of another derivation, and series sum to the exact case."""
    mean, covariance = exact.linear_moments(UNEVEN, 0.4, 50)
    C, V = finite_width.linear_exact(UNEVEN, 0.4, 50)
    np.testing.assert_allclose(C[:, 0].astype(float), mean, rtol=1e-14)
    np.testing.assert_allclose(C[:, 1].astype(float), np.diagonal(covariance), rtol=1e-12)
    series, vertices = finite_width.linear_orders(UNEVEN, 0.4, order=30)
    powers = np.array([Fraction(1, 50) ** k for k in range(31)])
    np.testing.assert_allclose((series @ powers - C).astype(float), 0, atol=1e-14)
    np.testing.assert_allclose((vertices @ powers - V).astype(float), 0, atol=1e-14)


def test_linear_feedforward_networks_are_homogeneous():
    """Two recursions for the same third moments: one with slopes (1, 1), one for phi = id."""
    linear = finite_width.linear_orders(FEEDFORWARD, 0.4)
    factors = finite_width.homogeneous_orders(FEEDFORWARD, 0.4, slopes=(1, 1))
    assert np.all(linear[0] == factors[0])
    assert np.all(linear[1] == factors[1])


@pytest.mark.parametrize(("name", "skip"), crossed(["erf", "relu", "leaky"], [0.0, 0.7, 1.0]))
def test_neurons_of_one_hidden_layer(name, skip):
    K0, net = 0.4, uniform(1, skip)
    phi, squares, grid, tolerance = {
        "erf": (
            erf,
            one_hidden_layer.squares_of(erf, 48),
            one_hidden_layer.gauss_nodes(K0, 30),
            (1e-7, 2e-6),
        ),
        "relu": (
            relu,
            one_hidden_layer.squares_of_slopes(0, 1),
            one_hidden_layer.half_line_nodes(K0, 12),
            (1e-9, 1e-7),
        ),
        "leaky": (
            leaky,
            one_hidden_layer.squares_of_slopes(0.1, 1),
            one_hidden_layer.half_line_nodes(K0, 12),
            (1e-9, 1e-7),
        ),
    }[name]
    found = neurons.orders(net, K0, phi, PANELS)
    first, second = one_hidden_layer.orders(net, K0, phi, squares, grid)
    one = [(found.mean_1[1:], first.mean), (found.variance_1[1:], first.variance)]
    one += [(0.0, first.third), (found.V_1[1], first.vertex)]
    two = [(found.mean_2[1:], second.mean), (found.variance_2[1:], second.variance)]
    two += [(found.third_2[1:], second.third), (found.V_2[1], second.vertex)]
    for pairs, atol in zip((one, two), tolerance, strict=True):
        for x, y in pairs:
            np.testing.assert_allclose(y, x, rtol=atol, atol=atol)


def test_two_kinds_of_nodes():
    net = uniform(3, 0.7)
    hermite = neurons.orders(net, 0.4, erf, neurons.hermite_nodes(48))
    panels = neurons.orders(net, 0.4, erf, PANELS)
    finer = neurons.orders(net, 0.4, erf, neurons.panel_nodes(6.0))
    for name, x in panels._asdict().items():
        np.testing.assert_allclose(getattr(finer, name), x, rtol=0, atol=1e-11, err_msg=name)
        np.testing.assert_allclose(getattr(hermite, name), x, rtol=0, atol=5e-6, err_msg=name)


def test_the_closure_is_exact_without_skips_and_in_the_first_layer():
    for phi in (erf, relu):
        net = uniform(4, 0.0)
        V = neurons.orders(net, 0.4, phi, PANELS).V_1
        np.testing.assert_allclose(
            neurons.closure(net, 0.4, phi, PANELS), V, rtol=1e-10, atol=1e-12
        )
    net = Net((1.0,) * 2, (0.5**0.5,) * 2, 1.0, 0.0, 1.0, 0.0)
    exact_V, closed = (
        neurons.orders(net, 1.0, relu, PANELS).V_1,
        neurons.closure(net, 1.0, relu, PANELS),
    )
    assert exact_V[1] == pytest.approx(closed[1], rel=1e-12)
    assert exact_V[2] == pytest.approx(5.477, abs=5e-4)
    assert closed[2] == pytest.approx(4.5, rel=1e-12)


def test_simulation_of_a_linear_network_at_small_width():
    """At N = 6 every order in 1/N is seen; the exact moments pass."""
    found = sampling.estimate(UNEVEN, 0.4, identity, PANELS, N=6, samples=2e5, seed=4)
    C, V = (x.astype(float) for x in finite_width.linear_exact(UNEVEN, 0.4, 6))
    for k, name in enumerate(("mean", "variance", "third")):
        z = getattr(found, name).scores(C[:, k])
        assert np.max(np.abs(z)) < 4, (name, z)
    assert np.max(np.abs(found.vertex.scores(V)[1:])) < 4
    series = finite_width.linear_orders(UNEVEN, 0.4)[0].astype(float)
    one_loop = series[:, 1] @ (0, 1 / 6, 0)
    assert np.min(np.abs(found.variance.scores(one_loop)[2:])) > 10


@pytest.mark.parametrize(("phi", "samples"), [slow(erf, 1e5), (relu, 4e4)])
def test_simulation_against_neurons(phi, samples):
    net, N = uniform(3, 1.0), 32
    theory = neurons.orders(net, 0.4, phi, PANELS)
    found = sampling.estimate(net, 0.4, phi, PANELS, N, samples=samples, seed=5)
    mean = theory.C + theory.mean_1 / N + theory.mean_2 / N**2
    variance = theory.variance_1 / N + theory.variance_2 / N**2
    assert np.max(np.abs(found.mean.scores(mean))) < 4
    assert np.max(np.abs(found.variance.scores(variance))) < 4
    assert np.max(np.abs(found.variance.scores(variance - theory.variance_2 / N**2))) > 10
    assert np.max(np.abs(found.vertex.scores(theory.V_1 / N + theory.V_2 / N**2)[1:])) < 4
