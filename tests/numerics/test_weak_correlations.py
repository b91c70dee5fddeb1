"""Fluctuations of inputs that correlate little, entry by entry relative to their own size."""

from functools import reduce
from math import factorial

import numpy as np
import pytest
from scipy.special import erf, ndtr

import fieldtheory as ft
from fieldtheory.numerics.layer_averages.entries import network_entries
from tests.oracles import closed_fluctuations
from tests.tables import slow

# φ, and whether it is even, odd or neither.
PHI = {
    "erf": (erf, "odd"),
    "tanh": (np.tanh, "odd"),
    "relu": (lambda h: np.maximum(h, 0), None),
    "gelu": (lambda h: h * ndtr(h), None),
    "hard_tanh": (lambda h: np.clip(h, -1, 1), "odd"),
    "softsign": (lambda h: h / (1 + np.abs(h)), "odd"),
    "elu": (lambda h: np.where(h > 0, h, np.expm1(np.minimum(h, 0))), None),
    "abs": (np.abs, "even"),
}
WEAK = (1e-12, 3e-8, 1e-6, 1.5e-4, 1e-2)
STRONG = (0.3, 0.9, 1 - 1e-3, 1 - 1e-6)


def network(name, depth, weight=1.0):
    return ft.ResidualNetwork(
        depth=depth,
        activation=name,
        bias_variance=0.0,
        weight_variance=1.0,
        branch_scale=weight**0.5,
        readout_weight_variance=1.0,
    )


def two(K, c):
    return K * np.array([[1.0, c], [c, 1.0]])


def three(K, c):
    """Of correlations that differ by orders of magnitude."""
    return K * np.array([[1.0, c, c**1.5], [c, 1.0, 0.3 * c], [c**1.5, 0.3 * c, 1.0]])


def assert_entries(found, expected, rtol=1e-9):
    for place in np.ndindex(found.shape):
        assert found[place] == pytest.approx(float(expected[place]), rel=rtol, abs=0), place


@pytest.mark.parametrize("name", list(closed_fluctuations.AVERAGES))
@pytest.mark.parametrize(
    ("depth", "inputs", "c"),
    [(1, two, c) for c in WEAK + STRONG]
    + [(1, three, c) for c in WEAK + STRONG[:1]]
    + [(3, two, 1e-12)]
    + [
        slow(3, inputs, c)
        for inputs, values in ((two, WEAK[1:] + STRONG), (three, WEAK + STRONG[:1]))
        for c in values
    ],
)
def test_closed_forms(name, depth, inputs, c):
    weight = 1 / 16 if name == "h**2" else 1.0
    K0, net = inputs(0.6, c), network(name, depth, weight)
    expected = closed_fluctuations.G11(name, K0, depth, weight)
    assert_entries(ft.solve(net, K0).G11 * net.width, expected)


def test_the_smallest_entry_of_cosines():
    net = network("cos(h)", 1)
    for c in (1e-12, 1e-8, 1e-4, 0.1):
        found = ft.solve(net, two(0.6, c)).G11[1, 1, 0, 2] * net.width
        assert found == pytest.approx(np.exp(-2.4) * np.sinh(1.2 * c) ** 2 / 2, rel=1e-12)


def series(phi, parity, K, count=64):
    """Hermite coefficients of φ, φ² and φ³, zero where they vanish by symmetry."""
    edges = np.array([-12.0, *sorted({-1 / K**0.5, 0.0, 1 / K**0.5}), 12.0])
    x, w = np.polynomial.legendre.leggauss(160)
    half = np.diff(edges)[:, None] / 2
    z = (edges[:-1, None] + half * (1 + x)).ravel()
    weights = (half * w).ravel() * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    h = [np.ones_like(z), z]
    for n in range(1, count - 1):
        h.append((z * h[n] - np.sqrt(n) * h[n - 1]) / np.sqrt(n + 1))
    found = np.array([np.array(h) @ (weights * phi(K**0.5 * z) ** k) for k in (1, 2, 3)])
    n, k = np.arange(count), np.arange(1, 4)[:, None]
    if parity:
        found[(n + k * (parity == "odd")) % 2 == 1] = 0.0
    return found


@pytest.mark.parametrize("name", list(PHI))
@pytest.mark.parametrize("c", [*WEAK, 0.3])
def test_mehler_series(name, c):
    K = 0.6
    one, square, cube = series(*PHI[name], K)
    powers = c ** np.arange(len(one))
    net = network(name, 1)
    G11 = ft.solve(net, two(K, c)).G11[1, 1] * net.width
    mean = powers @ one**2
    expected = [
        powers[1:] @ square[1:] ** 2,
        powers @ (cube * one) - square[0] * mean,
        powers @ square**2 - mean**2,
    ]
    np.testing.assert_allclose([G11[0, 2], G11[0, 1], G11[1, 1]], expected, rtol=1e-9, atol=0)


@pytest.mark.parametrize("name", ["tanh", "erf"])
@pytest.mark.parametrize("c", [1e-12, 1e-7, 1e-3])
def test_mehler_series_of_wide_signals(name, c):
    K = 300.0
    phi, parity = PHI[name]
    one, square, cube = series(phi, parity, K, 12)
    net, powers = network(name, 1), c ** np.arange(12)
    G11 = ft.solve(net, two(K, c)).G11[1, 1] * net.width
    mean = powers @ one**2
    expected = [powers[1:] @ square[1:] ** 2, powers @ (cube * one) - square[0] * mean]
    np.testing.assert_allclose([G11[0, 2], G11[0, 1]], expected, rtol=1e-9, atol=0)


@pytest.mark.parametrize("name", ["tanh", "erf", "sin(h)"])
@pytest.mark.parametrize("field", ["G11", "mean_shift", "four_point"])
def test_quantities_of_odd_functions_are_powers_of_the_correlation(name, field):
    near, far = (
        np.asarray(getattr(ft.solve(network(name, 3, 0.1), two(0.6, c)), field))
        for c in (1e-6, 1e-12)
    )
    assert ((near == 0) == (far == 0)).all()
    near, far = near[far != 0], far[far != 0]
    order = np.round(np.log(near / far) / np.log(1e6))
    assert set(order) <= {0, 1, 2}
    np.testing.assert_allclose(near, far * 1e6**order, rtol=1e-9)


@pytest.mark.parametrize(("name", "K"), [("softsign", 0.6), ("hard_tanh", 0.6), ("tanh", 300.0)])
def test_three_inputs_that_hermite_coefficients_do_not_resolve(name, K):
    correlation = np.array([[0.0, 1.0, -0.7], [1.0, 0.0, 0.4], [-0.7, 0.4, 0.0]])
    near, far = (
        ft.solve(network(name, 1), K * (np.eye(3) + c * correlation)).G11[1, 1]
        for c in (1e-10, 1e-11)
    )
    order = np.round(np.log10(near / far))
    assert set(order.ravel()) == {0, 1, 2}
    np.testing.assert_allclose(near, far * 10.0**order, rtol=2e-9)


def one_apart(K, c):
    """Two inputs that correlate, and one that hardly does with them."""
    return K * np.array([[1.0, 0.5, c], [0.5, 1.0, -0.3 * c], [c, -0.3 * c, 1.0]])


@pytest.mark.parametrize("name", ["softsign", "hard_tanh"])
def test_one_input_that_hardly_correlates_with_two_that_do(name):
    near, far = (ft.solve(network(name, 1), one_apart(0.6, c)).G11[1:, 1:] for c in (1e-7, 1e-10))
    order = np.round(np.log(near / far) / np.log(1e3))
    assert set(order.ravel()) == {0, 1, 2}
    np.testing.assert_allclose(near, far * 1e3**order, rtol=1e-9)
    K0 = one_apart(0.6, 0.0)
    assert np.abs(ft.solve(network(name, 1), K0).G11[1, 1, 1, [2, 4]]).max() < 1e-18


@pytest.mark.parametrize("four", [(0, 1, 0, 2), (0, 1, 3, 5), (0, 2, 3, 4), (2, 2, 3, 5)])
def test_one_signal_alone_against_closed_forms(four):
    """Of hard tanh, with digits at correlations of a percent, from which odd series go down."""
    g = network_entries(network("hard_tanh", 1)).averages.observable

    def both(c):
        C = one_apart(1.0, c)
        K = np.block([[C, C], [C, 1.1 * C]])
        own = K[np.ix_(four, four)]
        which = int(alone(own[..., None])[0])
        closed = connected(g, K, np.array(four)[:, None])[0]
        return correlator(PHI["hard_tanh"][0], (-1.0, 0.0, 1.0), own, which), closed

    places = np.array([0.01, 0.02, 0.03, 0.04])
    found, closed = np.array([both(c) for c in places]).T
    np.testing.assert_allclose(found, closed, rtol=1e-10)
    series = np.linalg.solve(places[:, None] ** [1, 3, 5, 7], closed)
    assert both(1e-9)[0] == pytest.approx(1e-9 * series[0], rel=1e-9)


def substituted(X, n, i):
    """Of z_1^i z_2^(n−i)/√(i! (n−i)!) with z = X w, coefficients and the sizes of their terms."""
    roots = np.array([(factorial(j) * factorial(n - j)) ** 0.5 for j in range(n + 1)])
    rows = [X[0]] * i + [X[1]] * (n - i)
    both = (reduce(np.convolve, [f(row[::-1]) for row in rows]) for f in (np.asarray, np.abs))
    return [values * roots / roots[i] for values in both]


@pytest.mark.parametrize(
    ("X", "orders"),
    [
        ([[0.8, 1e-9], [1e-6, 0.7]], 6),
        ([[1e-6, 1e-12], [1.0, 1e-9]], 6),
        ([[1e-9, 1e-3], [1.0, -1e-9]], 6),
        # A column or a row beside which the other one is small.
        ([[0.5, 1e-9], [0.87, 3e-9]], 3),
        ([[0.5, 0.3], [1e-12, 2e-12]], 3),
        ([[1e-12, 7e-13], [0.0, 0.0]], 2),
    ],
)
def test_powers_have_the_digits_of_every_entry(X, orders):
    for n in range(1, orders + 1):
        for i in range(n + 1):
            expected, size = substituted(X, n, i)
            f = np.zeros((block(n).stop, 1))
            f[block(n)][i] = 1.0
            found = correlated(np.array(X)[:, :, None], f, n + 1)[block(n), 0]
            assert (np.abs(found - expected) <= 1e-11 * size + 1e-40).all(), (n, i)
