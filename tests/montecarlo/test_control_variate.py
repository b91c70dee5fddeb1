"""Known fluctuations as control variates: what they leave unbiased, and what they save."""

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

from fieldtheory.montecarlo import control_variate
from fieldtheory.montecarlo.simulation import simulate
from tests.examples import network
from tests.montecarlo.statistics_of_draws import linear_statistics, z_between, z_scores
from tests.montecarlo.test_estimators import NAMES, gains
from tests.tables import slow


@pytest.mark.parametrize("gamma", [slow(0.0), slow(0.7), 1.0])
def test_coefficients_that_are_wrong_leave_no_bias(gamma, monkeypatch):
    net = network(3, "linear", gamma, width=20, branch_scale=0.5)
    exact, original = linear_statistics(net, 0.4), control_variate._origin
    exact["four_point"][0] = 0.0

    def wrong(*arguments):
        point = original(*arguments)
        gains = replace(point.gains, own=0.5 * point.gains.own)
        return point._replace(gains=gains, curvatures=point.curvatures + 0.3)

    right = simulate(net, 0.4, samples=10_000, variance_reduction="control_variate")
    monkeypatch.setattr(control_variate, "_origin", wrong)
    slopes = {"feature_functions": lambda net, slopes: lambda h: (np.cos(h),)}
    monkeypatch.setattr(control_variate, *slopes.popitem())
    found = simulate(net, 0.4, samples=10_000, variance_reduction="control_variate")
    for name in NAMES:
        assert np.abs(z_scores(found, name, exact[name])).max() < 4, name
    assert gains(found, right, "kernel_mean")[-1] > 2


@pytest.mark.slow_but(0)
@pytest.mark.parametrize("gamma", [0.0, 0.7, 1.0])
def test_the_noise_falls_with_the_width(gamma):
    net = network(6, "erf", gamma, branch_scale=0.5)
    found = {}
    for width in (32, 128):
        wide = net.replace(width=width)
        plain = simulate(wide, 0.4, samples=1000)
        reduced = simulate(wide, 0.4, samples=1000, variance_reduction="control_variate")
        found[width] = [gains(plain, reduced, name)[-1] for name in ("kernel_mean", "four_point")]
        found[width].append(gains(plain, reduced, "covariance")[-1, -1])
    # Variances: by N² for the mean and N for the others.
    ratio = np.array(found[128]) / found[32]
    assert 6 < ratio[0] < 40 and (ratio[1:] > 1.6).all()
    assert found[128][0] > 1000 and min(found[128][1:]) > 4


@pytest.mark.filterwarnings("ignore::fieldtheory.ValidityWarning")
def test_activations_with_jumps_and_networks_of_width_one_stay_unbiased():
    x = sp.Symbol("x", real=True)
    step = network(2, sp.Heaviside(x, sp.Rational(1, 2)) + x / 2, 0.7, width=10)
    one = network(2, "erf", 0.7, width=1)
    for net, samples in ((step, 4000), (one, 20_000)):
        plain = simulate(net, 0.4, samples=4 * samples, seed=1)
        reduced = simulate(net, 0.4, samples=samples, seed=2, variance_reduction="control_variate")
        assert (reduced.four_point is None) == (net.width == 1)
        for name in ("mean", "covariance", "kernel_variance"):
            assert np.abs(z_between(plain, reduced, name)).max() < 4, name
