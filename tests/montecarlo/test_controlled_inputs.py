"""Known fluctuations of several inputs as control variates: no bias, less noise."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.montecarlo import control_variate
from tests.examples import network
from tests.montecarlo.statistics_of_draws import linear_statistics, mistaken, z_between
from tests.montecarlo.test_estimators import gains
from tests.tables import slow

TWO = np.array([[0.5, 0.2], [0.2, 0.4]])
THREE = np.array([[0.5, 0.2, 0.1], [0.2, 0.4, -0.1], [0.1, -0.1, 0.3]])
OF_PAIRS = ("mean", "covariance", "kernel_mean", "kernel_covariance", "four_point")


def reduced(net, K0, **options):
    return ft.simulate(net, K0, variance_reduction="control_variate", **options)


@pytest.mark.parametrize("gamma", [0.0, slow(0.7)])
def test_linear_networks_have_their_exact_statistics(gamma, monkeypatch):
    """Also with wrong coefficients. C_11 + 2 C_12 + C_22 of φ = id is C of the inputs' sum."""
    net = network(3, "linear", gamma, width=20, branch_scale=0.5, bias_variance=0.0)
    net = net.replace(readout_bias_variance=0.0)
    original = control_variate._origin

    def wrong(*arguments):
        point = original(*arguments)
        parts = point.gains.own, point.gains.pair, point.gains.first, point.gains.second
        return point._replace(gains=type(point.gains)(*(0.5 * part + 0.01 for part in parts)))

    right = reduced(net, TWO, samples=4000)
    monkeypatch.setattr(control_variate, "_origin", wrong)
    biased = reduced(net, TWO, samples=10_000)
    alone = linear_statistics(net, 0.5), linear_statistics(net, 0.4)
    both = linear_statistics(net, 0.5 + 0.4 + 2 * 0.2)
    for found in (right, biased):
        for name in OF_PAIRS:
            value, error = getattr(found, name), getattr(found, f"{name}_error")
            for i, exact in enumerate(alone):
                expected = exact[name].copy()
                if name == "four_point":
                    expected[0] = 0.0
                moves = error[..., i, i] > 1e-14 * np.abs(value[..., i, i])
                z = (value[..., i, i] - expected)[moves] / error[..., i, i][moves]
                assert np.abs(z).max() < 4, name
        crossed = (both["mean"] - alone[0]["mean"] - alone[1]["mean"]) / 2
        z = (found.mean[2:, 0, 1] - crossed[2:]) / found.mean_error[2:, 0, 1]
        assert np.abs(z).max() < 4


@pytest.mark.parametrize("name", [slow("erf"), "relu"])
def test_against_plain_sampling(name):
    """All fields, of different pairs of inputs as well, which each pair with itself is among."""
    net = network(2, name, 0.7, width=10, branch_scale=0.6)
    plain = ft.simulate(net, THREE, samples=20_000, seed=1, cross_inputs=True)
    found = reduced(net, THREE, samples=4000, seed=2, cross_inputs=True)
    for field in (*OF_PAIRS, "output_kurtosis", "cross_covariance", "cross_four_point"):
        assert np.abs(z_between(plain, found, field)).max() < 4.5, field
    alone = reduced(net, THREE, samples=4000, seed=2)
    for field in OF_PAIRS:
        np.testing.assert_allclose(
            getattr(alone, field), getattr(found, field), rtol=1e-9, atol=1e-13
        )


def test_the_noise_falls_with_the_width():
    """Variances by N, as products of two neurons are left."""
    net, found = network(4, "erf", 0.7, branch_scale=0.5), []
    for width in (32, 128):
        wide = net.replace(width=width)
        plain, less = (way(wide, TWO, samples=1000) for way in (ft.simulate, reduced))
        names = "kernel_mean", "four_point", "covariance"
        found.append([np.nanmedian(gains(plain, less, name)[2:]) for name in names])
    ratio = np.divide(*found[::-1])
    assert (ratio > 2).all() and (ratio < 8).all()
    assert found[1][0] > 100 and min(found[1][1:]) > 5


def test_a_theory_that_is_two_percent_off_is_refuted():
    """By 4000 networks, beyond the first layer as well, whose mean is that of the theory."""
    net = ft.ResidualNetwork(depth=4, activation="relu", branch_scale=0.5, width=100)
    off = net.replace(weight_variance=1.02 * net.weight_variance)
    right, wrong = ft.solve(net, TWO), mistaken(off, net, TWO)
    plain, less = (
        [way(net.replace(width=N), TWO, samples=2000, seed=N) for N in (100, 200)]
        for way in (ft.simulate, reduced)
    )
    assert ft.compare(wrong, plain).verdict != "disagrees"
    found = ft.compare(wrong, less)
    assert found.verdict == "disagrees"
    kernels = found.extrapolated[0]
    later = kernels.index["layer"] > 1
    assert (np.abs(kernels.z[later]) > 2 * kernels.threshold).any()
    assert ft.compare(right, less).verdict == "agrees"


def test_inputs_that_are_the_same_stay_so():
    net = network(2, "erf", 0.7, width=10)
    found = reduced(net, np.full((2, 2), 0.4), samples=400)
    np.testing.assert_allclose(found.mean[:, 0, 1], found.mean[:, 0, 0], rtol=1e-12)
    one = reduced(net, 0.4, samples=4000, seed=1)
    error = np.hypot(one.mean_error, found.mean_error[:, 0, 0])[2:]
    assert (np.abs(one.mean - found.mean[:, 0, 0])[2:] < 4 * error).all()


def test_networks_narrower_than_the_inputs():
    """Their kernels are singular, and so are those of a zero input."""
    net = network(2, "erf", 0.7, width=2)
    plain = ft.simulate(net, THREE, samples=20_000, seed=1)
    found = reduced(net, THREE, samples=4000, seed=2)
    assert np.abs(z_between(plain, found, "mean")).max() < 4
    zero = reduced(net, np.diag([0.5, 0.0]), samples=40)
    assert zero.mean[0, 1, 1] == 0 and np.isfinite(zero.mean).all()


def test_steps_have_no_response_of_parallel_inputs_and_stay_unbiased():
    net = ft.ResidualNetwork(depth=2, activation="heaviside", skip_scale=0.7, width=10)
    K0 = [[0.4, 0.4], [0.4, 0.4]]
    plain = ft.simulate(net, K0, samples=20_000, seed=1)
    found = reduced(net, K0, samples=4000, seed=2)
    assert np.abs(z_between(plain, found, "covariance")).max() < 4
