"""Averages of functions with kinks at zero in polar coordinates, against integrals of mpmath."""

import numpy as np
import pytest
from mpmath import mp, mpf

import fieldtheory as ft
from fieldtheory.averages.integrals import two_variables
from fieldtheory.averages.polynomial_pieces.sectors import average
from fieldtheory.numerics.layer_averages.entries import network_entries
from tests.tables import crossed

VARIANCES = [(1e-6, 1e-6), (1.0, 7.0), (52.0, 52.0), (100.0, 2.0)]
CORRELATIONS = [0.0, 0.3, -0.6, 0.98, 1 - 1e-9, 1e-4 - 1]


def elu(h):
    return np.where(h > 0, h, np.expm1(np.minimum(h, 0)))


def slope_of_elu(h):
    return np.where(h > 0, 1.0, np.exp(np.minimum(h, 0)))


def given(m, s, order):
    """⟨φ(y)⟩ and ⟨φ'(y)⟩ of mean m and deviation s, φ = ELU."""
    above, below = mp.ncdf(m / s), mp.exp(m + s * s / 2) * mp.ncdf(-(m + s * s) / s)
    if order:
        return above + below
    return m * above + s * mp.npdf(m / s) + below - mp.ncdf(-m / s)


def of_elu(K_xx, K_yy, K_xy, order):
    with mp.workdps(25):
        a, b, t = map(mpf, (K_xx, K_yy, K_xy))
        s, root = mp.sqrt(b - t * t / a), mp.sqrt(a)
        far = [s * k / (abs(t) / root + s / 9) for k in (-1, 1)]
        places = sorted({-12, 12, *np.linspace(-6, 6, 7), *(p / root for p in far)})

        def f(x):
            value = (mp.one if order else x) if x > 0 else (mp.exp(x) if order else mp.expm1(x))
            return value * given(t / a * x, s, order) * mp.npdf(x / root) / root

        return float(mp.quad(lambda z: root * f(root * z), [mpf(p) for p in places]))


@pytest.mark.parametrize(("K", "c"), crossed(VARIANCES, CORRELATIONS))
@pytest.mark.parametrize("order", [0, 1])
def test_elu(K, c, order):
    a, b = K
    t = c * np.sqrt(a * b)
    f = slope_of_elu if order else elu
    (found,), (known,) = average(f, f, *(np.array([v]) for v in (a, b, t)))
    right = of_elu(a, b, t, order)
    # Of small signals that hardly correlate the sectors cancel.
    assert known or (order and max(K) > 10) or abs(right) < 1e-2 * np.sqrt(a * b)
    if known:
        assert found == pytest.approx(right, rel=2e-13)


@pytest.mark.parametrize("c", CORRELATIONS)
def test_arc_cosine_kernel(c):
    K = np.array([1e-8, 1.0, 1e3])
    values, known = average(
        lambda h: np.maximum(h, 0), lambda h: np.maximum(h, 0), K, 4 * K, 2 * c * K
    )
    theta = float(mp.acos(mpf(c)))
    expected = 2 * K * (np.sin(theta) - theta * np.cos(theta) + np.pi * c) / (2 * np.pi)
    if c > -0.99:
        assert known.all()
        np.testing.assert_allclose(values, expected, rtol=1e-12)


def test_what_is_not_analytic_is_not_known():
    """Kinks away from zero, poles beside it, and cusps."""
    K = np.array([30.0])
    for f in (
        lambda h: np.clip(h, -1, 1),
        lambda h: h / (1 + np.abs(h)),
        lambda h: np.abs(h) ** 0.5,
    ):
        assert not average(f, f, K, K, 0.7 * K)[1].any()
    assert not average(np.abs, np.abs, 0 * K, K, 0 * K)[1].any()
    assert not average(elu, elu, 1e4 * K, 1e4 * K, 0 * K)[1].any()


def test_deep_elu_needs_no_panels(monkeypatch):
    """At K = 52 and c = 0.98 series of Hermite polynomials do not converge."""

    def fails(*given):
        raise AssertionError("two variables on panels")

    monkeypatch.setattr(two_variables, "_integrals", fails)
    averages = network_entries(ft.ResidualNetwork(depth=1, activation="elu"))
    K = np.array([52.0])
    found = averages.covariance(K, K, 0.98 * K)
    assert found[0] == pytest.approx(of_elu(52.0, 52.0, 0.98 * 52.0, 0), rel=2e-13)
