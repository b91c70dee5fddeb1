"""Fluctuations of inputs that correlate little, entry by entry relative to their own size."""

from functools import reduce
from math import factorial

import numpy as np
import pytest
from scipy.special import erf, ndtr

import fieldtheory as ft
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


def substituted(X, n, i):
    """Of z_1^i z_2^(n−i)/√(i! (n−i)!) with z = X w, coefficients and the sizes of their terms."""
    roots = np.array([(factorial(j) * factorial(n - j)) ** 0.5 for j in range(n + 1)])
    rows = [X[0]] * i + [X[1]] * (n - i)
    both = (reduce(np.convolve, [f(row[::-1]) for row in rows]) for f in (np.asarray, np.abs))
    return [values * roots / roots[i] for values in both]
