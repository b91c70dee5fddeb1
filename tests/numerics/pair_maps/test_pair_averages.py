"""Averages of pairs by interpolation against the averages themselves."""

import numpy as np
import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.numerics.layer_averages.entries import network_entries
from fieldtheory.numerics.pair_maps.pair_averages import HermiteCoefficients, InterpolatedEntries
from tests.tables import some

x = sp.Symbol("x", real=True)
SMOOTH = ["erf", "tanh", "sin", "swish", sp.atan(x), sp.exp(-(x**2)), x * sp.tanh(x / 2)]
KINKED = {
    "softsign": x / (1 + sp.Abs(x)),
    "hard tanh": sp.Max(-1, sp.Min(1, x)),
    "elu": sp.Piecewise((x, x > 0), (sp.exp(x) - 1, True)),
}


def entries_of(activation):
    return network_entries(ft.ResidualNetwork(depth=1, activation=activation))


def pairs(count, seed=0):
    rng = np.random.default_rng(seed)
    p = 10 ** rng.uniform(-2, 1.3, count)
    q = p * 10 ** rng.uniform(-0.5, 0.5, count)
    c = rng.uniform(-0.97, 0.97, count)
    c[:2] = 0.0, 1e-7
    return p, q, c * np.sqrt(p * q)


def as_pairs(p, q, r):
    """The variances of all inputs, which are those of each pair, and the covariances."""
    own = np.concatenate([p, q])
    return own, np.arange(own.size).reshape(2, -1), r


@pytest.mark.parametrize("activation", some(SMOOTH, ["erf", "swish", sp.exp(-(x**2))]), ids=str)
def test_averages_of_pairs_are_those_without_interpolation(activation):
    exact = entries_of(activation)
    found, (p, q, r) = InterpolatedEntries(exact), pairs(60)
    G, *rest = exact.covariance_flow(p, q, r)
    size = np.sqrt(exact.second_moment(p) * exact.second_moment(q))
    P = np.abs(rest[2]) + 0.01 * size / np.sqrt(p * q)
    scales = [size, size / p, size / q, P, P / p, P / q, P / np.sqrt(p * q)]
    for values, known, scale in zip(
        found.covariance_flow(*as_pairs(p, q, r)), [G, *rest], scales, strict=True
    ):
        np.testing.assert_array_less(np.abs(values - known), 2e-11 * scale)
    for values, known, scale in zip(
        found.covariance_gain(*as_pairs(p, q, r)), (G, rest[2]), (size, P), strict=True
    ):
        np.testing.assert_array_less(np.abs(values - known), 2e-11 * scale)


@pytest.mark.parametrize("name", KINKED)
def test_averages_of_pairs_of_functions_with_kinks(name):
    exact = entries_of(KINKED[name])
    found, (p, q, r) = InterpolatedEntries(exact), pairs(3, seed=5)
    G = exact.covariance(p, q, r)
    np.testing.assert_allclose(
        found.covariance_gain(*as_pairs(p, q, r))[0], G, rtol=1e-11, atol=1e-15
    )
    # The derivatives are those of the average.
    G, by_p, by_q, P, P_by_p, P_by_q, P_by_r = found.covariance_flow(*as_pairs(p, q, r))
    state = [p, q, r]
    known = [(by_p, P_by_p), (by_q, P_by_q), (P, P_by_r)]
    for i, (of_G, of_P) in enumerate(known):
        step = 1e-5 * np.sqrt(p * q)
        moved = [[k + sign * step * (i == j) for j, k in enumerate(state)] for sign in (1, -1)]
        up, down = (found.covariance_gain(*as_pairs(*m)) for m in moved)
        for a, b, slope, size in zip(up, down, (of_G, of_P), (G, P), strict=True):
            tolerance = 1e-6 * np.abs(size).max() / step.min()
            np.testing.assert_allclose((a - b) / (2 * step), slope, rtol=1e-6, atol=tolerance)


@pytest.mark.parametrize("activation", ["tanh", "hard tanh"])
def test_averages_of_one_variable(activation):
    exact = entries_of(KINKED.get(activation, activation))
    found = InterpolatedEntries(exact)
    K = np.array([[1e-6, 0.01, 0.3], [2.0, 17.0, 400.0]])
    np.testing.assert_allclose(found.second_moment(K), exact.second_moment(K), rtol=1e-12)
    slope = exact.susceptibility(K)
    np.testing.assert_allclose(found.susceptibility(K), slope, rtol=1e-11)
    np.testing.assert_allclose(found.curvature(K) * K, exact.curvature(K) * K, atol=1e-9)


def test_what_the_series_do_not_resolve_is_taken_without_them():
    exact = entries_of("tanh")
    found, p = InterpolatedEntries(exact), np.array([0.0, 0.3, 0.3, 1e3])
    r = p * np.array([0.0, 1 - 1e-9, -1.0, 0.999])
    for values, known in zip(
        found.covariance_flow(*as_pairs(p[1:], p[1:], r[1:])),
        exact.covariance_flow(p[1:], p[1:], r[1:]),
        strict=True,
    ):
        np.testing.assert_array_equal(values[:2], known[:2])
        np.testing.assert_allclose(values, known, rtol=1e-9)


def test_a_function_that_is_not_resolved_says_so():
    rough = HermiteCoefficients(lambda h: np.sign(np.sin(40 * h)), ())
    assert not rough(np.array([0.3]), 32)[1].any()


@pytest.mark.parametrize("activation", [sp.tanh(x + 1), "logistic", 1 / (1 + x**2)], ids=str)
def test_averages_of_functions_that_hardly_depend_on_the_variance(activation):
    """At small variances, and where φ saturates: 2 K M' is a small part of M."""
    exact, K = entries_of(activation), np.geomspace(1e-12, 1e3, 31)
    known = exact.second_moment(K), exact.susceptibility(K), exact.curvature(K)
    found = InterpolatedEntries(exact)._of_square(K)
    for values, expected, rtol in zip(found, known, (1e-13, 2e-12, 5e-11), strict=True):
        np.testing.assert_allclose(values, expected, rtol=rtol)
