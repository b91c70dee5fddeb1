"""Interpolated averages of strongly correlated pairs against dense sums and the other rules."""

import numpy as np
import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.averages.integrals import spectral
from fieldtheory.numerics.layer_averages.entries import network_entries
from fieldtheory.numerics.pair_maps.pair_averages import InterpolatedEntries
from fieldtheory.numerics.pair_maps.strong_pairs import StrongPairs
from tests.tables import some

x = sp.Symbol("x", real=True)
SMOOTH = [
    "logistic",
    1 / (1 + x**2),
    1 / sp.cosh(x),
    sp.tanh(x + 1),
    sp.sin(x) / x,
    sp.tanh(x) ** 2,
]


def many_pairs(count, seed=3):
    rng = np.random.default_rng(seed)
    p = np.exp(rng.uniform(3, 5, count))
    q = p * np.exp(rng.uniform(-0.03, 0.03, count))
    return p, q, np.sqrt(p * q) * (1 - 10 ** rng.uniform(-2.6, -1.3, count))


@pytest.mark.parametrize("activation", some(SMOOTH, ["logistic", 1 / (1 + x**2)]), ids=str)
def test_boxes_have_the_averages_of_pairs(activation):
    exact = network_entries(ft.ResidualNetwork(depth=1, activation=activation))
    found, (p, q, r) = InterpolatedEntries(exact), many_pairs(3000)
    pairs = np.arange(2 * len(p)).reshape(2, -1)
    values = np.array(found.covariance_gain(np.concatenate([p, q]), pairs, r))
    assert found._strong is not None and found._strong[1].of_two.made
    chosen = slice(None, None, 60)
    known = np.array(exact.covariance_gain(p[chosen], q[chosen], r[chosen]))
    np.testing.assert_allclose(values[:, chosen], known, rtol=1e-11)


@pytest.mark.parametrize("activation", some(SMOOTH, ["logistic", 1 / (1 + x**2)]), ids=str)
@pytest.mark.parametrize("rest", [1e-12, 1e-3])
def test_boxes_of_pairs_of_one_variance(activation, rest):
    exact = network_entries(ft.ResidualNetwork(depth=1, activation=activation))
    found, (p, _, r) = InterpolatedEntries(exact, rest), many_pairs(300)
    r = np.minimum(r, p * (1 - 1e-3))
    # Norms of one length differ by rounding.
    pairs, q = np.arange(2 * len(p)).reshape(2, -1), p * (1 + 4e-16)
    values = np.array(found.covariance_gain(np.concatenate([p, q]), pairs, r))
    assert found._strong is not None and found._strong[1].of_one_variance.made
    assert not found._strong[1].of_two.made
    chosen = slice(None, None, 20)
    known = np.array(exact.covariance_gain(p[chosen], q[chosen], r[chosen]))
    np.testing.assert_allclose(values[:, chosen], known, rtol=1e-11 if rest < 1e-9 else 1e-2)


@pytest.mark.parametrize("place", [(30.0, 31.0, 0.97), (110.0, 109.0, 0.995)])
def test_a_box_against_dense_sums(place):
    phi = network_entries(ft.ResidualNetwork(depth=1, activation="logistic"))
    found, (p, q, r) = InterpolatedEntries(phi), many_pairs(3000)
    p[0], q[0], r[0] = place[0], place[1], place[2] * np.sqrt(place[0] * place[1])
    pairs = np.arange(2 * len(p)).reshape(2, -1)
    values = found.covariance_gain(np.concatenate([p, q]), pairs, r)
    # φ(x)φ(y) averaged over y given x, both on the trapezoidal rule, which suits bells.
    K_xx, K_yy, K_xy = (np.longdouble(k[0]) for k in (p, q, r))
    z, step = np.arange(-400, 401, dtype=np.longdouble) / 40, np.longdouble(1) / 40
    bell = np.exp(-z * z / 2) * step / np.sqrt(2 * np.longdouble(np.pi))
    at = np.sqrt(K_xx) * z
    y = K_xy / K_xx * at[:, None] + np.sqrt(K_yy - K_xy**2 / K_xx) * z

    def logistic(h):
        return 1 / (1 + np.exp(-h))

    def slope(h):
        return logistic(h) * logistic(-h)

    for f, value in zip((logistic, slope), values, strict=True):
        known = (bell * f(at)) @ f(y) @ bell
        np.testing.assert_allclose(float(value[0]), float(known), rtol=1e-11)


def test_functions_with_poles_far_away_are_transformed_on_fewer_nodes():
    nodes = []

    def logistic(h):
        nodes.append(np.size(h))
        return 1 / (1 + np.exp(-h))

    def slope(h):
        return 1 / (2 + 2 * np.cosh(h))

    p, q, r = many_pairs(50)
    products = [(f, f) for f in (logistic, slope)]
    known, converged = spectral.averages(products, p, q, r)
    usual, nodes = sum(nodes), []
    values, resolved = StrongPairs(logistic, slope, lambda *K: None).transformed(p, q, r)
    assert converged.all() and resolved.all() and sum(nodes) < 0.7 * usual
    np.testing.assert_allclose(values, known, rtol=1e-12)


def test_what_is_not_resolved_is_left_out():
    def exact(p, q, r):
        return np.full((2, len(p)), 7.0)

    wrong = StrongPairs(np.tanh, lambda h: 1 / np.cosh(h) ** 2, exact)
    steps = StrongPairs(np.sign, np.zeros_like, exact)
    growing = StrongPairs(np.exp, np.exp, exact)
    p, q, r = many_pairs(400)
    for pairs in (wrong, steps, growing):
        for other in (p, q):
            values, known = pairs(p, other, np.minimum(r, 0.999 * p), 1.0)
            assert not known.any() and np.isnan(values).all()


def test_boxes_wait_for_enough_pairs():
    def slope(h):
        return 1 / np.cosh(h) ** 2

    def exact(*K):
        return network_entries(ft.ResidualNetwork(depth=1, activation="tanh")).covariance_gain(*K)

    of_few, K = StrongPairs(np.tanh, slope, exact), many_pairs(100)
    seen = [of_few(*K, 0.5)[1].any() for _ in range(9)]
    assert not seen[0] and seen[-1]
    assert not StrongPairs(np.tanh, slope, exact)(*K, 0.0)[1].any()


def test_opposite_and_vanishing_inputs_have_no_box():
    pairs = StrongPairs(np.tanh, lambda h: 1 / np.cosh(h) ** 2, lambda *K: np.zeros((2, len(K[0]))))
    p = np.array([50.0, 0.0, 50.0])
    assert not pairs(p, p, np.array([-49.0, 0.0, 0.0]), 1e9)[1].any()
