"""Averages of many pairs by Mehler's series, against those of the layer itself."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.numerics.infinite_width.block_functions import network_functions
from fieldtheory.numerics.pair_maps.pair_averages import PairFunctions
from tests.tables import slow


def inputs(count, seed=1):
    """Variances of inputs, the inputs of pairs, and their covariances."""
    random = np.random.default_rng(seed)
    own = np.exp(random.uniform(-4, 3, 7))
    pairs = random.integers(0, 7, (2, count))
    c = random.uniform(-1, 1, count)
    return own, pairs, c * np.sqrt(own[pairs[0]] * own[pairs[1]])


@pytest.mark.parametrize(
    "name",
    [slow("tanh"), "gelu", slow("elu"), slow("softsign"), slow("hard_tanh"), slow("logistic")],
)
def test_both_averages(name):
    functions = network_functions(ft.ResidualNetwork(depth=1, activation=name))
    found, (own, pairs, r) = PairFunctions(functions), inputs(60)
    p, q = own[pairs[0]], own[pairs[1]]
    sizes = np.sqrt(functions.second_moment(p) * functions.second_moment(q))
    average, slope = found.covariance_gain(own, pairs, r)
    expected = functions.covariance_gain(p, q, r)
    np.testing.assert_allclose(average / sizes, expected[0] / sizes, rtol=0, atol=2e-12)
    scale = np.sqrt(functions.slope_square(p) * functions.slope_square(q))
    np.testing.assert_allclose(slope / scale, expected[1] / scale, rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", ["tanh", slow("elu")])
def test_rough_averages_have_few_digits(name):
    functions = network_functions(ft.ResidualNetwork(depth=1, activation=name))
    own, pairs, r = inputs(60)
    rough = PairFunctions(functions, 1e-3, searching=True).covariance_gain(own, pairs, r)
    exact = functions.covariance_gain(own[pairs[0]], own[pairs[1]], r)
    for one, other in zip(rough, exact, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=2e-2 * np.abs(other).max())


def test_moments_and_what_is_too_wide():
    functions = network_functions(ft.ResidualNetwork(depth=1, activation="tanh"))
    found, K = PairFunctions(functions), np.array([0.3, 1e14])
    M, slope, curvature = found.moments(K)
    assert np.isnan([M[1], slope[1], curvature[1]]).all()
    assert slope[0] == pytest.approx(float(functions.susceptibility(0.3)), rel=1e-13)
    assert curvature[0] == pytest.approx(float(functions.curvature(0.3)), rel=1e-12)
