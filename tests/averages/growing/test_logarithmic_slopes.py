"""⟨φ'φ'⟩ of wide signals of functions that grow as logarithms, against sums of Gaussians."""

import numpy as np
import pytest
import sympy as sp
from mpmath import mp, mpf

import fieldtheory as ft
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.growing import beyond_float
from fieldtheory.averages.growing.logarithmic_slopes import slope
from fieldtheory.averages.sizes import size_logarithms
from fieldtheory.numerics.layer_averages.entries import network_entries

h = sp.Symbol("h", real=True)
CORRELATIONS = [-0.9, -0.2, 0.0, 0.3, 1 - 1e-9]
K, SECOND = mpf(10) ** 100, 3 * mpf(10) ** 102


def of_asinh(K, a, t):
    """φ' = ∫ ds e^{-s(1 + h²)}/√(πs), in units of K."""
    step, size = 0.25, float(mp.log(K))
    logs = np.arange(-90.0, size + 5, step)
    weights = step * np.sqrt(1 / np.pi) * np.exp(-np.exp(logs - size))
    inverse, a, t = np.exp(-logs), float(a / K), float(t / K)
    minor = 2 * inverse[:, None] * a + 2 * inverse + np.outer(inverse, inverse) + 4 * (a - t * t)
    return (weights @ (1 / np.sqrt(minor)) @ weights) / K


@pytest.mark.parametrize("c", CORRELATIONS)
def test_odd(c):
    t = c * mp.sqrt(K * SECOND)
    found = slope(sp.asinh(h), h, K, SECOND, t)
    # 1 − c² of the sum has digits of float64.
    assert found / of_asinh(K, SECOND, t) == pytest.approx(1, rel=1e-7 if c > 0.9 else 1e-12)


@pytest.mark.parametrize("c", [-0.9, 0.3])
@pytest.mark.parametrize("name", ["log(1+h**2)", "log(1+Abs(h))", "log(cosh(asinh(h)))"])
def test_even(name, c):
    """Both signals are of the size of their standard deviations: a quadrature on a plane."""
    f = sp.sympify(name, {"h": h})
    expected = beyond_float.pair(f.diff(h).doit(), h, (K, SECOND), c, 1 - c)
    found = slope(f, h, K, SECOND, c * mp.sqrt(K * SECOND))
    assert found / expected == pytest.approx(1, rel=1e-11)


def test_both():
    """⟨φ'φ'⟩ of odd and even functions are added."""
    t = mpf(0.3) * mp.sqrt(K * SECOND)
    parts = [slope(f, h, K, SECOND, t) for f in (sp.asinh(h), sp.log(1 + h**2))]
    both = slope(sp.asinh(h) + sp.log(1 + h**2), h, K, SECOND, t)
    assert both / sum(parts) == pytest.approx(1, rel=1e-14)
    one_sided = slope(sp.log(1 + sp.Max(0, h)), h, K, SECOND, t)
    odd, even = (slope(f, h, K, SECOND, t) for f in (sp.asinh(h / 2), sp.log(1 + h**2)))
    assert one_sided / (odd / 4 + even / 16) == pytest.approx(1, rel=1e-14)


@pytest.mark.parametrize("name", ["h*log(1+Abs(h))", "log(1+exp(h))", "exp(h)", "sin(h)+asinh(h)"])
def test_others(name):
    assert slope(sp.sympify(name, {"h": h}), h, K, K, mp.zero) is None


def test_narrow_and_parallel_signals():
    assert slope(sp.asinh(h), h, mpf(100), K, mp.zero) is None
    assert slope(sp.asinh(h), h, K, K, K) is None


def test_moderately_wide_signals():
    """From 1e32 on the logarithms are all that counts."""
    K = mpf(10) ** 33
    for t in (3 * K / 10, -K / 5):
        assert slope(sp.asinh(h), h, K, K, t) / of_asinh(K, K, t) == pytest.approx(1, rel=1e-13)


@pytest.mark.parametrize("K", [1e16, 1e20, 1e21, 1e24, 1e30, 1e40])
@pytest.mark.parametrize("away", [1e-4, 1e-9, 1e-14])
def test_nearly_parallel_signals_in_float64(K, away):
    """Panels of both signals are off by per cents from K = 1e21 on, without a word."""
    averages = network_entries(ft.ResidualNetwork(depth=1, activation="asinh"))
    t = K * (1 - away)
    found = averages.covariance_susceptibility(*(np.array([v]) for v in (K, K, t)))
    s = np.exp(np.arange(-160.0, 5.0, 0.125))
    weights = 0.125 * np.sqrt(s / np.pi) * np.exp(-s)
    sums = 1 + 2 * K * (s[:, None] + s) + 4 * np.outer(s, s) * (K - t) * (K + t)
    assert found[0] == pytest.approx(weights @ (1 / np.sqrt(sums)) @ weights, rel=1e-12)


def test_what_is_narrow_in_parallel_signals_is_not_left_to_panels(monkeypatch):
    """Where the logarithms of the signals fail there is no number instead of a wrong one."""

    def fails(*given):
        raise QuadratureError("not resolved")

    monkeypatch.setattr(size_logarithms, "pairs", fails)
    none = np.zeros(1), np.zeros(1, dtype=bool)
    monkeypatch.setattr(size_logarithms, "by_angles", lambda *given: none)
    averages = network_entries(ft.ResidualNetwork(depth=1, activation="asinh(h/7)"))
    K = np.array([1e24])
    with pytest.raises(QuadratureError, match="not resolved"):
        averages.covariance_susceptibility(K, K, K * (1 - 1e-9))
