"""Interpolated series of φ with kinks, pairs of one variance, against the averages themselves."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.numerics.layer_averages.entries import network_entries
from fieldtheory.numerics.pair_maps import kinked_pairs
from fieldtheory.numerics.pair_maps.pair_averages import InterpolatedEntries


def pairs_of_one_variance(count, seed=5):
    rng = np.random.default_rng(seed)
    p = np.exp(rng.uniform(-1.0, 2.0, count))
    # Norms of one length differ by rounding.
    return p, p * (1 + 4e-16), p * rng.uniform(0.75, 0.96, count)


@pytest.mark.parametrize("activation", ["exp(-Abs(h))", "1/(1+Abs(h))", "elu"])
@pytest.mark.parametrize("rest", [1e-12, 1e-3])
def test_boxes_have_the_averages_of_pairs(activation, rest):
    exact = network_entries(ft.ResidualNetwork(depth=1, activation=activation))
    found, (p, q, r) = InterpolatedEntries(exact, rest), pairs_of_one_variance(3000)
    pairs = np.arange(2 * len(p)).reshape(2, -1)
    values = np.array(found.covariance_gain(np.concatenate([p, q]), pairs, r))
    assert found._long_series.made
    some = slice(None, None, 300)
    known = np.array(exact.covariance_gain(p[some], q[some], r[some]))
    np.testing.assert_allclose(values[:, some], known, rtol=2e-11 if rest < 1e-9 else 1e-2)


def test_different_variances_have_no_box():
    def series(*_):
        raise AssertionError("nothing was to be averaged")

    boxes = kinked_pairs.boxes(series, series, 1e-12, 1536)
    p, q, r = pairs_of_one_variance(500)
    values, known = np.full((2, len(p)), np.nan), np.zeros(len(p), dtype=bool)
    boxes.fill(values, known, (p, 1.01 * q, r), 1e9)
    assert not known.any()


def test_what_series_do_not_resolve_has_no_box():
    def series(K, c):
        return np.where(c > 0.9, np.nan, np.ones((2, len(K), len(c))))

    boxes = kinked_pairs.boxes(series, lambda *K: np.ones((2, len(K[0]))), 1e-12, 1536)
    K = pairs_of_one_variance(500)
    values, known = np.full((2, 500), np.nan), np.zeros(500, dtype=bool)
    boxes.fill(values, known, K, 1e9)
    assert not known.any() and boxes.in_vain
    weak = [k[K[2] < 0.85 * K[0]] for k in K]
    values, known = np.full((2, len(weak[0])), np.nan), np.zeros(len(weak[0]), dtype=bool)
    boxes.fill(values, known, tuple(weak), 1e9)
    assert known.all() and (np.abs(values - 1) < 1e-13).all()
