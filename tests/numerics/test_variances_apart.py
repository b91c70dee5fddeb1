"""G11 of inputs whose variances or correlations are orders of magnitude apart, entry by entry."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import erf

import fieldtheory as ft
from fieldtheory.networks.coefficients import layer_coefficients
from tests.numerics.test_weak_correlations import network, one_apart
from tests.oracles import error_functions
from tests.oracles.shallow_pairs import ShallowPair
from tests.tables import slow

PHI = {
    "tanh": np.tanh,
    "softsign": lambda h: h / (1 + np.abs(h)),
    "erf": erf,
    "hard_tanh": lambda h: np.clip(h, -1, 1),
    "relu6": lambda h: np.clip(h, 0, 6),
}
APART = np.diag([1e-6, 1.0, 50.0]) + 5e-4 * (1 - np.eye(3))
# Two wide inputs, one narrow.
NARROW = np.array([[300.0, 122.0, 5e-6], [122.0, 200.0, 4e-9], [5e-6, 4e-9, 0.1]])
# Narrow beside wide, where differences of terms of size one have no digits left.
NARROWER = np.array([[1e-8, 3e-4], [3e-4, 100.0]])
# What an input is given by others, in units that are far apart.
FAR_APART = np.array([[1e4, 3e-3, 0.0], [3e-3, 1e-8, 1e-14], [0.0, 1e-14, 0.01]])
# Independent and narrow.
APART_ALONE = np.array([[1e-4, 0.0, -0.9], [0.0, 1e-8, 0.0], [-0.9, 0.0, 1e4]])


@pytest.mark.parametrize("depth", [1, slow(3)])
@pytest.mark.parametrize(
    "K0",
    [
        APART,
        NARROW,
        NARROWER,
        FAR_APART,
        APART_ALONE,
        one_apart(300.0, 1e-6),
        one_apart(300.0, 1e-9),
        30 * APART**0.5,
    ],
)
def test_error_functions(K0, depth):
    net, expected = network("erf", depth), error_functions.G11(K0, depth)
    deviations = np.sqrt(np.einsum("llpp->lp", expected))
    # Entries that are less of the deviations than this are nothing.
    size = 1e-13 * np.einsum("lp,mq->lmpq", deviations, deviations)
    error = np.abs(ft.solve(net, K0).G11 * net.width - expected)
    np.testing.assert_array_less(error, 1e-9 * np.abs(expected) + size + 1e-300)


def graded(first, end):
    """Ends of panels on both sides of zero that grow from there, and at ±1 and ±6."""
    cuts = np.minimum([0.0, 1.0, 6.0, *first * 2.2 ** np.arange(14)], end)
    return np.unique(np.concatenate([-cuts, cuts]))


def rule(K, count=14):
    """Three signals, and weights, by panels of each given those before."""
    x, w = np.polynomial.legendre.leggauss(count)
    L = np.linalg.cholesky(K)
    z, weights = np.zeros((3, 1)), np.ones(1)
    for i in range(3):
        mean, parts = L[i, :i] @ z[:i], []
        ends = graded(min(0.5, 2 * L[i, i]), 9 * L[i, i] + np.abs(mean).max())
        for low, high in pairwise(ends):
            cuts = [np.clip((end - mean) / L[i, i], -9.0, 9.0) for end in (low, high)]
            half = (cuts[1] - cuts[0]) / 2
            nodes = cuts[0] + half * (1 + x[:, None])
            parts.append((nodes, weights * half * w[:, None] * np.exp(-(nodes**2) / 2)))
        nodes, attached = (np.concatenate([p[k] for p in parts]) for k in (0, 1))
        used = attached > 1e-19
        z = np.repeat(z[:, None, :], len(nodes), axis=1)
        z[i] = nodes
        z, weights = z[:, used], attached[used] / np.sqrt(2 * np.pi)
    return L @ z, weights


WIDER = APART * np.outer([1.0, 1.0, 30.0], [1.0, 1.0, 30.0])


@pytest.mark.parametrize(
    ("name", "K0"),
    [(name, APART) for name in ("tanh", "softsign", "erf")]
    + [(name, WIDER) for name in ("hard_tanh", "relu6")],
)
def test_the_first_layer_by_panels(name, K0):
    """⟨φφ;φφ⟩ of three signals of which one is narrow and one is wide."""
    net, order = network(name, 1), [2, 1, 0]
    h, weights = rule(K0[np.ix_(order, order)])
    values = PHI[name](h[order])
    pairs = list(zip(*np.triu_indices(3), strict=True))
    products = np.array([values[i] * values[j] for i, j in pairs])
    means = products @ weights
    # Sums of what is left less the means, of parity even in all signals.
    expected = (products * weights) @ products.T - np.outer(means, means)
    found = ft.solve(net, K0).G11[1, 1] * net.width
    size = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    np.testing.assert_allclose(found / size, expected / size, rtol=0, atol=2e-11)
    seen = np.abs(expected) > 1e-4 * size
    np.testing.assert_allclose(found[seen], expected[seen], rtol=1e-9)


@pytest.mark.parametrize("name", ["tanh", "softsign"])
def test_wide_signals_of_which_one_hardly_correlates(name):
    net = network(name, 1)
    near, far = (ft.solve(net, one_apart(300.0, c)).G11[1:, 1:] for c in (1e-6, 1e-9))
    order = np.round(np.log(near / far) / np.log(1e3))
    assert set(order.ravel()) == {0, 1, 2}
    np.testing.assert_allclose(near, far * 1e3**order, rtol=1e-9)


@pytest.mark.parametrize("inputs", [2, 3])
@pytest.mark.parametrize("c", [0.3, 0.9])
def test_mean_shift_of_nearly_linear_networks(inputs, c):
    """tanh(h) = h − h³/3 + ... of narrow signals: to leading order −12 c K² and −108 c K²."""
    K, net = 5e-11, network("tanh", 2)
    K0 = K * (c + (1 - c) * np.eye(inputs))
    shift = net.width * ft.solve(net, K0).mean_shift[2:, 0, 1]
    np.testing.assert_allclose(shift / K**2, [-12 * c, -108 * c], rtol=4e-9)


@pytest.mark.parametrize("c", [-0.3, slow(0.9)])
def test_mean_shift_of_waves_of_a_narrow_and_a_wide_signal(c):
    """cos at variances 1e-4 and 50: it did not converge unless G11 was asked for before."""
    r = c * np.sqrt(5e-3)
    K0 = np.array([[1e-4, r], [r, 50.0]])
    given = {"bias_variance": 0.05, "readout_bias_variance": 0.0}
    net = ft.ResidualNetwork(depth=1, activation="cos", skip_scale=0.0, **given)
    layers = layer_coefficients(net)
    (_, *a), (_, b, _) = layers.weights.ravel(), layers.biases.ravel()
    dense = ShallowPair(np.cos, (), K0, 0.0, tuple(a), b, width=0.5)
    shift = net.width * ft.solve(net, K0).mean_shift[2][[0, 1, 0], [0, 1, 1]]
    np.testing.assert_allclose(shift, dense.shift, rtol=1e-11, atol=1e-16)
    deep = net.replace(depth=2, skip_scale=1.0)
    first, later = ft.solve(deep, K0), ft.solve(deep, K0)
    assert np.isfinite(later.G11).all()
    size = np.abs(later.mean_shift).max()
    np.testing.assert_allclose(first.mean_shift, later.mean_shift, atol=1e-9 * size)
