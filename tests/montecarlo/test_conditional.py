"""Conditional expectations: against sums over many draws of one layer, and worth their cost."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.montecarlo.conditional import conditional_samples
from fieldtheory.montecarlo.forward import feature_functions
from fieldtheory.montecarlo.simulation import simulate
from tests.examples import network
from tests.montecarlo.test_estimators import gains


@pytest.mark.parametrize("activation", ["erf", "relu", "tanh"])
@pytest.mark.parametrize("skips", [[0.0, 0.0], [0.6, 0.0], [0.0, 0.6], [0.6, 0.6]], ids=str)
def test_they_are_means_over_draws_of_the_last_layer(activation, skips):
    # Two layers; those that come after h^(0) and C^(1) are drawn many times for one network.
    net = network(2, activation, skips, width=8, branch_scale=0.8)
    seed = 5
    found = conditional_samples(net, 0.4, np.random.default_rng(seed), 1)
    normals = np.random.default_rng(seed).standard_normal((1, 3, 8))
    psi = feature_functions(net)
    h = np.sqrt(0.4) * normals[0, 0]
    C1 = found["residual"][0, 0]
    z = np.random.default_rng(6).standard_normal((400_000, 8))
    later = skips[0] * h + np.sqrt(C1) * z
    a, c = 0.64 * net.weight_variance, 0.64 * net.bias_variance
    C2 = a * (psi(later)[0] ** 2).mean(axis=1) + c
    origin = ft.solve(net, 0.4)
    star = origin.residual_kernels
    if skips[0] == 0:
        assert found["rest"][0, 1] + star[2] == pytest.approx(C2.mean(), abs=5 * error(C2))
        square = (C2 - star[2]) ** 2
        assert found["product"][0, 1, 1] == pytest.approx(square.mean(), abs=5 * error(square))
        cross = (C1 - star[1]) * (C2 - star[2])
        assert found["product"][0, 0, 1] == pytest.approx(cross.mean(), abs=5 * error(cross))
    else:
        assert found["rest"][0, 1] == found["residual"][0, 1] - star[2]
    x = later**2 - origin.kernels[1]
    pairs = (x.sum(axis=1) ** 2 - (x**2).sum(axis=1)) / 56
    if skips[0]:
        assert found["vertex"][0, 1] == pytest.approx(pairs.mean(), abs=5 * error(pairs))
    np.testing.assert_array_equal(found["product"][0], found["product"][0].T)


def error(values):
    return values.std() / np.sqrt(len(values))


def test_the_first_kernel_has_its_exact_moments_in_every_network():
    net = network(2, "erf", 0.7, width=50)
    found = conditional_samples(net, 0.4, np.random.default_rng(0), 30)
    plain = simulate(net, 0.4, samples=40_000)
    assert (found["rest"][:, 0] == 0).all() and (found["vertex"][:, 0] == 0).all()
    assert np.ptp(found["product"][:, 0, 0]) == 0
    z = found["product"][0, 0, 0] - plain.covariance[1, 1]
    assert abs(z) < 4 * plain.covariance_error[1, 1]


def test_feed_forward_networks_gain():
    net = network(6, "erf", 0.0, width=100, branch_scale=1.0)
    plain = simulate(net, 0.4, samples=800)
    found = simulate(net, 0.4, samples=800, variance_reduction="conditional")
    assert gains(plain, found, "kernel_mean")[-2] > 3
    assert gains(plain, found, "covariance")[-1, -1] > 8
    assert gains(plain, found, "four_point")[-1] > 40
