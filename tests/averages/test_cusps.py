"""Averages of two signals of functions with cusps at zero, against hypergeometric functions."""

import numpy as np
import pytest
from mpmath import mp, mpf

import fieldtheory as ft
from fieldtheory.networks.activations import as_activation
from fieldtheory.numerics.layer_averages.entries import entries, network_entries


@pytest.fixture(autouse=True)
def thirty_digits():
    with mp.workdps(30):
        yield


def even_powers(a, b, c):
    """<|x|^a |y|^b> of variance one."""
    gammas = mp.gamma((1 + mpf(a)) / 2) * mp.gamma((1 + mpf(b)) / 2)
    series = mp.hyp2f1(-mpf(a) / 2, -mpf(b) / 2, mpf(1) / 2, c**2)
    return 2 ** ((mpf(a) + b) / 2) / mp.pi * gammas * series


def odd_powers(a, b, c):
    """<x |x|^(a-1) y |y|^(b-1)> of variance one."""
    gammas = mp.gamma(1 + mpf(a) / 2) * mp.gamma(1 + mpf(b) / 2)
    series = mp.hyp2f1((1 - mpf(a)) / 2, (1 - mpf(b)) / 2, mpf(3) / 2, c**2)
    return 2 ** ((mpf(a) + b) / 2 + 1) / mp.pi * c * gammas * series


def of_power(moments, p):
    return lambda x, y, c: moments(p, p, c) * (x * y) ** (mpf(p) / 2)


def h_log(x, y, c):
    """<φφ> of h log|h|, by derivatives of the powers."""

    def powers(s, t):
        return odd_powers(1 + s, 1 + t, c)

    a, b = mp.log(x) / 2, mp.log(y) / 2
    parts = (a * b * powers(0, 0), a * mp.diff(powers, (0, 0), (0, 1)))
    parts += (b * mp.diff(powers, (0, 0), (1, 0)), mp.diff(powers, (0, 0), (1, 1)))
    return mp.sqrt(x * y) * sum(parts)


def exp_root(x, y, c):
    """<φφ> of exp(-sqrt|h|), as a series of powers."""
    return mp.fsum(
        (-1) ** (n + m)
        * even_powers(mpf(n) / 2, mpf(m) / 2, c)
        * x ** (mpf(n) / 4)
        * y ** (mpf(m) / 4)
        / mp.factorial(n)
        / mp.factorial(m)
        for n in range(28)
        for m in range(28)
    )


CASES = {
    **{f"Abs(h)**{p}": of_power(even_powers, p) for p in (0.1, 0.5, 0.6, 0.75, 1.5, 2.5, 3.5)},
    **{f"sign(h)*Abs(h)**{p}": of_power(odd_powers, p) for p in (0.25, 0.6, 1.5)},
    "h*log(Abs(h))": h_log,
    "exp(-sqrt(Abs(h)))": exp_root,
}
RARE = ("Abs(h)**0.5", "Abs(h)**0.75", "Abs(h)**3.5")
# The series of exp(-sqrt|h|) does not converge for wide signals.
PLACES = [
    pytest.param(name, variance, marks=pytest.mark.slow if name in RARE else ())
    for name in CASES
    for variance in (1e-8, 0.5, 1e6)
    if variance < 1 or not name.startswith("exp")
]
CORRELATIONS = (0.3, -0.99, 1 - 1e-6, -1 + 1e-9, 1e-5, 0.0)


@pytest.mark.parametrize(("name", "variance"), PLACES)
def test_two_signals(name, variance):
    averages, oracle = network_entries(ft.ResidualNetwork(depth=1, activation=name)), CASES[name]
    x, y = variance, 2 * variance
    for correlation in CORRELATIONS:
        K_xy = correlation * np.sqrt(x * y)
        # The correlation of the numbers that are given.
        c = mpf(float(K_xy)) / mp.sqrt(mpf(x) * mpf(y))
        found = float(averages.covariance(x, y, K_xy))
        expected = oracle(mpf(x), mpf(y), c)
        assert found == pytest.approx(float(expected), rel=1e-13, abs=0)
        if name.startswith("exp"):
            continue
        slope = float(averages.covariance_susceptibility(x, y, K_xy))
        exact = mp.diff(lambda c: oracle(mpf(x), mpf(y), c), c) / mp.sqrt(mpf(x) * mpf(y))
        assert slope == pytest.approx(float(exact), rel=1e-13, abs=0)


@pytest.mark.parametrize("name", ["Abs(h)**0.6", "sign(h)*Abs(h)**0.75", "h*log(Abs(h))"])
def test_kernels_and_tangent_kernels(name):
    net = ft.ResidualNetwork(depth=3, activation=name)
    K0 = np.array([[1.0, 0.3, 1.0], [0.3, 2.0, 0.3], [1.0, 0.3, 1.0]])
    solution = ft.solve(net, K0)
    for field in ("kernels", "tangent_kernels", "response"):
        values = getattr(solution, field)
        assert np.isfinite(values).all()
        np.testing.assert_array_equal(values, values.swapaxes(-1, -2))
        alone = getattr(ft.solve(net, 2.0), field)
        np.testing.assert_allclose(values[:, 1, 1], alone, rtol=1e-13)


@pytest.mark.parametrize("p", [0.25, 0.6, 0.75])
@pytest.mark.parametrize("c", [0.999, 0.95, 0.3, -0.3, 0.1, 0.01, 1e-6])
def test_connected_correlators(p, c):
    """⟨φ²(x);φ²(y)⟩ of |h|^p, from strong correlations to those that a series alone resolves."""
    found = float(entries(as_activation(f"Abs(h)**{p}")).connected(0.5, 2.0, c))
    exact = even_powers(2 * p, 2 * p, mpf(c)) - even_powers(2 * p, 2 * p, 0)
    assert found == pytest.approx(float(exact), rel=1e-12, abs=0)


def test_depth():
    """With fluctuations of distant layers and of near ones."""
    solution = ft.solve(ft.ResidualNetwork(depth=5, activation="Abs(h)**0.6"), 0.5)
    assert np.linalg.eigvalsh(solution.G11[1:, 1:]).min() > 0


# cosh h tanh h = sinh h, of which no closed form is known as written.
GROWING = "cosh(h)*tanh(h)"


@pytest.mark.parametrize("variance", [1e-4, 0.5, 2.0, 4.0, 5.0, 8.0, 20.0, 35.0])
@pytest.mark.parametrize("c", [0.01, 0.15, 0.45, 0.9, 1 - 1e-9, -0.15, -0.5, -0.99])
def test_functions_that_grow_exponentially(variance, c):
    """Signals that count are ten and more standard deviations out."""
    averages = network_entries(ft.ResidualNetwork(depth=1, activation=GROWING))
    for ratio in (1.0, 7.0) if variance < 35 else (1.0, 2.0):
        p, q = variance, ratio * variance
        r = c * np.sqrt(p * q)
        scale = mp.exp((mpf(p) + q) / 2)
        # Logarithms of 1e2 lose two of sixteen digits.
        close = dict(rel=2e-13, abs=0)
        assert float(averages.covariance(p, q, r) / scale) == pytest.approx(
            float(mp.sinh(r)), **close
        )
        found = averages.covariance_susceptibility(p, q, r)
        assert float(found / scale) == pytest.approx(float(mp.cosh(r)), **close)


@pytest.mark.parametrize("variance", [1e-4, 1.0, 20.0, 60.0, 80.0])
def test_one_signal_of_functions_that_grow_exponentially(variance):
    averages = network_entries(ft.ResidualNetwork(depth=1, activation=GROWING))
    exact = mp.expm1(2 * mpf(variance)) / 2
    found = float(averages.second_moment(variance) / exact)
    assert found == pytest.approx(1, rel=2e-13, abs=0)
    both = averages.second_moment(np.array([variance, 0.5]))
    np.testing.assert_allclose(both[0], float(exact), rtol=2e-13)


def on_graded_panels(f, K, c, odd):
    """<f(x) f(y)> of one variance and an even or odd f, panels of 12 nodes growing from zero."""
    t, w = np.polynomial.legendre.leggauss(12)
    cuts = np.concatenate([[0], 2.0 ** np.arange(-100, 0), np.arange(1, 9.5 * np.sqrt(K))])
    half = np.diff(cuts)[:, None] / 2
    x = (cuts[:-1, None] + half * (1 + t)).ravel()
    z, weighted = x / np.sqrt(K), (half * w).ravel() * f(x) / np.sqrt(K)
    total = 0.0
    for sign in (1, -1):
        density = np.exp(-((z[:, None] - sign * c * z) ** 2) / 2 / (1 - c**2) - z**2 / 2)
        total += (sign if odd else 1) * (weighted @ density @ weighted)
    return total / np.pi / np.sqrt(1 - c**2)


@pytest.mark.parametrize("K", [9.0, 400.0])
@pytest.mark.parametrize("c", [0.5, 0.02])
def test_cusps_with_waves(K, c):
    averages = network_entries(ft.ResidualNetwork(depth=1, activation="cos(2*h)*sqrt(abs(h))"))
    found = averages.covariance(K, K, c * K)
    expected = on_graded_panels(lambda h: np.cos(2 * h) * np.sqrt(h), K, c, False)
    np.testing.assert_allclose(found, expected, rtol=1e-9)

    def slope(h):
        return np.cos(2 * h) / np.sqrt(h) / 2 - 2 * np.sin(2 * h) * np.sqrt(h)

    found = averages.covariance_susceptibility(K, K, c * K)
    # Terms of size one cancel.
    expected = on_graded_panels(slope, K, c, True)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-15)
