"""Antithetic networks: other normals of the same law that fluctuate the other way."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import erf

from fieldtheory.montecarlo.antithetic import antithetic_samples, reflected
from fieldtheory.montecarlo.simulation import simulate
from tests.examples import network
from tests.montecarlo.comparison import linear_statistics, p_value, z_scores
from tests.montecarlo.test_estimators import NAMES, gains


@pytest.mark.parametrize(("layers", "width"), [(3, 5), (4, 4), (5, 3), (2, 1)])
def test_reflected_normals_are_normals(layers, width):
    z = np.random.default_rng(0).standard_normal((6000, layers, width))
    other = reflected(z)
    assert other.shape == z.shape
    for entry in other.reshape(6000, -1).T:
        assert stats.kstest(entry, "norm").pvalue > 1e-4
    fresh = np.random.default_rng(1).standard_normal(z.shape)
    assert p_value(other, fresh) > 1e-3
    # Products of entries too, which linear projections of entries do not show.
    products = [np.einsum("nli,nki->nlk", x, x) for x in (other, fresh)]
    assert p_value(*products) > 1e-3


def test_products_of_layers_fluctuate_the_other_way():
    left = []
    for width in (200, 800):
        z = np.random.default_rng(2).standard_normal((300, 6, width))
        products = [np.einsum("nli,nki->nlk", x, x) / width - np.eye(6) for x in (z, reflected(z))]
        left.append(np.std(products[0] + products[1]) / np.std(products[0]))
    # What is left is of second order.
    assert left[0] / left[1] == pytest.approx(2, rel=0.1) and left[1] < 0.15
    # Odd functions change their sign.
    assert np.corrcoef(z.ravel(), reflected(z).ravel())[0, 1] < -0.99


def test_reflecting_twice_gives_the_normals_back():
    z = np.random.default_rng(3).standard_normal((20, 4, 30))
    np.testing.assert_allclose(reflected(reflected(z)), z, rtol=1e-9, atol=1e-12)


def test_statistics_are_means_over_both_networks():
    net, n = network(3, "erf", 0.7, width=12), 50
    found = antithetic_samples(net, 0.4, np.random.default_rng(4), n)
    normals = np.random.default_rng(4).standard_normal((n, 4, 12))
    kernels = []
    for z in (normals, reflected(normals)):
        a = np.append(net.branch_scales**2 * net.weight_variance, net.readout_variances[0])
        c = np.append(net.branch_scales**2 * net.bias_variance, net.readout_variances[1])
        C, h = [np.full(n, 0.4)], np.zeros((n, 12))
        for l in range(4):
            h = (0.7 if l else 0) * h + np.sqrt(C[-1])[:, None] * z[:, l]
            C.append(a[l] * (erf(h) ** 2).mean(axis=1) + c[l])
        kernels.append(np.stack(C[1:], axis=1))
    shifted = found["rest"] - np.mean(kernels, axis=0)
    np.testing.assert_allclose(shifted, np.broadcast_to(shifted[0], shifted.shape), atol=1e-12)
    np.testing.assert_allclose(found["residual"], kernels[0], rtol=1e-12)


def test_more_layers_than_neurons_leave_no_bias():
    net = network(4, "linear", 0.7, width=3, branch_scale=0.4)
    exact = linear_statistics(net, 0.4)
    found = simulate(net, 0.4, samples=20_000, variance_reduction="antithetic")
    for name in NAMES:
        assert np.abs(z_scores(found, name, exact[name])).max() < 4, name


@pytest.mark.parametrize(("activation", "least"), [("relu", 25), ("linear", 25), ("erf", 4)])
def test_means_gain_more_than_the_second_network_costs(activation, least):
    net = network(6, activation, 1.0, width=200, branch_scale=0.3)
    plain = simulate(net, 0.4, samples=800)
    pairs = simulate(net, 0.4, samples=800, variance_reduction="antithetic")
    assert gains(plain, pairs, "kernel_mean")[-1] > least
