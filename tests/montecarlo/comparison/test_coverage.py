"""Standard errors: how often intervals cover the exact values of deep linear networks."""

import numpy as np
import pytest
from scipy import stats

from fieldtheory.montecarlo.simulation import simulate
from tests.examples import network
from tests.montecarlo.statistics_of_draws import linear_statistics


def coverage(net, K0, samples, repetitions, **options):
    """How often the 95 % intervals of every entry of every field hold the exact value."""
    exact, hits = linear_statistics(net, K0), {}
    for seed in range(repetitions):
        found = simulate(net, K0, samples=samples, seed=seed, **options)
        quantile = stats.t.ppf(0.975, found.batches - 1)
        for name, values in exact.items():
            error = getattr(found, f"{name}_error")
            inside = np.abs(getattr(found, name) - values) <= quantile * error
            # C^(0) is fixed, and so is K^(0).
            fixed = np.broadcast_to(error <= 1e-14 * np.abs(values), inside.shape)
            hits[name] = hits.get(name, 0) + np.where(fixed, np.nan, inside)
    rates = {name: np.asarray(count / repetitions) for name, count in hits.items()}
    return {name: rate[~np.isnan(rate)] for name, rate in rates.items()}


REDUCED = {"variance_reduction": "control_variate"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("samples", "options", "low", "high"), [(400, {}, 0.92, 0.98), (200, REDUCED, 0.89, 0.99)]
)
def test_intervals_cover_about_as_often_as_they_say(samples, options, low, high):
    # Entries of one field are correlated; the binomial error of each is 1.8 %.
    net = network(2, "linear", 0.7, width=60)
    rates = coverage(net, 0.4, samples, repetitions=150, **options)
    assert set(rates) >= {"mean", "covariance", "four_point", "output_kurtosis"}
    for name, rate in rates.items():
        assert len(rate) > 0 and low < rate.mean() < high, name


@pytest.mark.slow
@pytest.mark.parametrize(("gamma", "options"), [(0.0, {}), (0.7, {}), (1.0, {}), (0.7, REDUCED)])
def test_intervals_cover_93_to_97_percent_of_the_time(gamma, options):
    net = network(5, "linear", gamma, width=100, branch_scale=0.6)
    rates = coverage(net, 0.4, 1000, repetitions=2000, **options)
    for name, rate in rates.items():
        assert rate.min() > 0.93 and rate.max() < 0.97, name
        assert abs(rate.mean() - 0.95) < 0.015, name
