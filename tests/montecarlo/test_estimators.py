"""`variance_reduction`: unbiased against exact networks and plain sampling, and worth its cost."""

from functools import cache

import numpy as np
import pytest

from fieldtheory.montecarlo.simulation import simulate
from tests.examples import network
from tests.montecarlo.statistics_of_draws import linear_statistics, p_value, z_between, z_scores
from tests.tables import crossed

NAMES = (
    "mean",
    "covariance",
    "kernel_mean",
    "kernel_covariance",
    "kernel_variance",
    "four_point",
    "output_kurtosis",
)

REDUCED = {"variance_reduction": "control_variate"}


def gains(plain, reduced, name):
    """How much smaller the variance of an estimate is, for one and the same number of networks."""
    errors = getattr(plain, f"{name}_error"), getattr(reduced, f"{name}_error")
    with np.errstate(divide="ignore", invalid="ignore"):
        return plain.samples / reduced.samples * (errors[0] / errors[1]) ** 2


@pytest.mark.slow_but(4)
@pytest.mark.parametrize(("gamma", "width"), crossed([0.0, 0.7, 1.0], [5, 40]))
def test_linear_networks_have_their_exact_statistics(gamma, width):
    net = network(3, "linear", gamma, width=width, branch_scale=0.5)
    exact = linear_statistics(net, 0.4)
    exact["four_point"][0] = 0.0
    found = simulate(net, 0.4, samples=20_000, seed=3, **REDUCED)
    for name in NAMES:
        z = z_scores(found, name, exact[name])
        assert np.abs(z).max() < 4, name
    # Errors so small that a bias of a few percent in the 1/N terms is found.
    covariance = np.diag(found.covariance_error)[1:] / np.diag(exact["covariance"])[1:]
    assert covariance.max() < 0.05
    assert (found.four_point_error / exact["four_point"].max()).max() < 0.08


@cache
def plain_sampling(activation, gamma):
    return simulate(network(3, activation, gamma, width=16), 0.4, samples=20_000, seed=1)


@pytest.mark.slow_but(4)
@pytest.mark.parametrize(("activation", "gamma"), crossed(["erf", "relu", "gelu"], [0.0, 0.7, 1.0]))
def test_plain_sampling_gives_the_same(activation, gamma):
    plain = plain_sampling(activation, gamma)
    reduced = simulate(plain.network, 0.4, samples=6000, seed=2, **REDUCED)
    for name in NAMES:
        assert np.abs(z_between(plain, reduced, name)).max() < 4, name


def test_networks_follow_the_same_law():
    net = network(3, "erf", 0.7, width=6)
    plain = simulate(net, 0.4, samples=4000, seed=1, keep=True).residual_kernels
    reduced = simulate(net, 0.4, samples=4000, seed=2, keep=True, **REDUCED)
    assert reduced.residual_kernels.shape == plain.shape == (4000, 5)
    assert p_value(plain, reduced.residual_kernels) > 1e-3


def test_a_matrix_or_data_of_one_input_has_the_axes_of_a_matrix():
    net = network(2, "erf", 0.7, width=20)
    options = {"samples": 50, **REDUCED}
    one = simulate(net, 0.4, **options)
    for other in (
        simulate(net, [[0.4]], **options),
        simulate(
            net.replace(readin_weight_variance=0.4, readin_bias_variance=0.0), X=[[1.0]], **options
        ),
    ):
        for name in NAMES:
            value = getattr(one, name)
            shape = (1,) if name == "output_kurtosis" else (*value.shape, 1, 1)
            assert getattr(other, name).shape == shape
            np.testing.assert_allclose(getattr(other, name).reshape(value.shape), value, rtol=1e-12)
