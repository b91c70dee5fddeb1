"""Streamed moments against two passes over all samples, and the jackknife."""

from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fieldtheory.montecarlo.sampling.moments import jackknife, merge, moments_of, remove
from tests.tables import slow


def draws(n, offset=0.0, scale=1.0, seed=0):
    """Correlated, skewed samples (n, 2 groups, 3 variables)."""
    normal = np.random.default_rng(seed).standard_normal((n, 2, 3))
    return offset + scale * (np.cumsum(normal, axis=2) + normal[:, ::-1] ** 2)


def assert_same(found, samples, rtol):
    assert found.count == len(samples)
    np.testing.assert_allclose(found.mean, samples.mean(axis=0), rtol=1e-14)
    for group in range(samples.shape[1]):
        covariance = np.cov(samples[:, group], rowvar=False)
        tolerance = rtol * np.abs(covariance).max()
        np.testing.assert_allclose(found.covariance[group], covariance, rtol=0, atol=tolerance)


@given(st.lists(st.integers(1, 40), min_size=2, max_size=12), st.integers(0, 2**32))
def test_streamed_moments_are_those_of_two_passes(sizes, seed):
    samples = draws(sum(sizes), seed=seed)
    parts = np.split(samples, np.cumsum(sizes)[:-1])
    assert_same(reduce(merge, map(moments_of, parts)), samples, rtol=1e-12)


@pytest.mark.parametrize(("offset", "scale"), [(1e8, 1.0), (1.0, 1e-9), (1e150, 1e143)])
def test_a_large_mean_costs_no_digits_of_the_covariance(offset, scale):
    samples = draws(3000, offset, scale)
    found = reduce(merge, [moments_of(part) for part in np.split(samples, 100)])
    # The samples themselves are rounded to offset 1e-16.
    assert_same(found, samples, rtol=1e-7)
    shifted = reduce(merge, [moments_of(part) for part in np.split(draws(3000), 100)])
    np.testing.assert_allclose(found.covariance / scale**2, shifted.covariance, rtol=1e-5)
    naive = (samples**2).mean(axis=0) - samples.mean(axis=0) ** 2
    assert np.abs(naive / scale**2 - samples.var(axis=0) / scale**2).max() > 1e-3


def test_a_part_that_is_removed_was_never_there():
    samples = draws(60)
    total, part = moments_of(samples), moments_of(samples[20:45])
    assert_same(remove(total, part), np.delete(samples, np.s_[20:45], axis=0), rtol=1e-13)


def batches_of(samples, sizes):
    parts = np.split(samples, np.cumsum(sizes)[:-1])
    return [{"x": moments_of(part)} for part in parts]


def statistics(summary):
    covariance = summary["x"].covariance
    mean = summary["x"].mean
    return {
        "mean": mean,
        "variance": covariance[:, 0, 0],
        "ratio": covariance[:, 0, 0] / mean[:, 0],
    }


def test_the_error_of_a_mean_is_that_of_batch_means():
    samples = draws(200)
    found = jackknife(batches_of(samples, [5] * 40), statistics)
    means = samples.reshape(40, 5, 2, 3).mean(axis=1)
    np.testing.assert_allclose(found["mean_error"], stats.sem(means), rtol=1e-12)
    single = jackknife(batches_of(samples, [1] * 200), statistics)
    np.testing.assert_allclose(single["mean_error"], stats.sem(samples), rtol=1e-12)


def test_errors_are_those_of_leaving_out_the_batches_one_by_one():
    samples, sizes = draws(50), [3, 10, 7, 1, 20, 9]
    found = jackknife(batches_of(samples, sizes), statistics)
    edges = np.cumsum([0, *sizes])
    value = samples[:, :, 0].var(axis=0, ddof=1)
    h, n = 50 / np.array(sizes)[:, None], len(sizes)
    left = [np.delete(samples, np.s_[edges[j] : edges[j + 1]], axis=0) for j in range(n)]
    left = np.array([part[:, :, 0].var(axis=0, ddof=1) for part in left])
    pseudo = h * value - (h - 1) * left
    centre = n * value - ((1 - 1 / h) * left).sum(axis=0)
    expected = np.sqrt(((pseudo - centre) ** 2 / (h - 1)).mean(axis=0))
    np.testing.assert_allclose(found["variance"], value, rtol=1e-13)
    np.testing.assert_allclose(found["variance_error"], expected, rtol=1e-10)


def test_an_error_of_what_does_not_fluctuate_is_zero():
    samples = np.broadcast_to(draws(1), (40, 2, 3))
    found = jackknife(batches_of(samples, [1] * 40), statistics)
    assert np.abs(found["mean_error"] / found["mean"]).max() < 1e-15
    np.testing.assert_array_equal(found["variance_error"], 0)


@pytest.mark.parametrize(
    ("sizes", "lowest"),
    [slow([25] * 40, 0.93), slow([30] * 20 + [20] * 20, 0.93), ([2] * 40, 0.91), ([1] * 20, 0.87)],
)
def test_intervals_cover_moments_of_normal_samples(sizes, lowest):
    # 3000 groups of three variables are as many repetitions; the binomial error is 0.4 %.
    samples = 1 + np.random.default_rng(1).standard_normal((sum(sizes), 3000, 3))
    found = jackknife(batches_of(samples, sizes), statistics)
    quantile = stats.t.ppf(0.975, len(sizes) - 1)
    for name, least in (("mean", 0.94), ("variance", lowest), ("ratio", lowest)):
        inside = np.abs(found[name] - 1) <= quantile * found[f"{name}_error"]
        assert least < inside.mean() < 0.96, name
