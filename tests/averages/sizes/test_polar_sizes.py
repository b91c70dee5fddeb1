"""Averages of two wide signals by radius and angle, against sums of Gaussians and closed forms."""

import numpy as np
import pytest
from mpmath import mp, mpf

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.sizes.polar_sizes import average, half_square
from tests.tables import crossed

VARIANCES, AWAY = [1.0, 1e4, 1e12, 1e20, 1e30], [0.7, 1e-4, 1e-9, 1e-14]


def slope(h):
    return 1 / np.sqrt(1 + h * h)


def of_asinh(K, a, away):
    """⟨φ'φ'⟩: φ' = ∫ ds e^{-s(1 + h²)}/√(πs)."""
    s = np.exp(np.arange(-160.0, 5.0, 0.125))
    weights = 0.125 * np.sqrt(s / np.pi) * np.exp(-s)
    minor = 4 * np.outer(s, s) * K * a * away * (2 - away)
    return weights @ (1 / np.sqrt(1 + 2 * s[:, None] * K + 2 * s * a + minor)) @ weights


@pytest.mark.parametrize(("K", "away"), crossed(VARIANCES, AWAY))
@pytest.mark.parametrize("ratio", [1.0, 30.0])
def test_slopes_that_count_at_all_sizes(K, away, ratio):
    found = average(slope, slope, K, ratio * K, away)
    assert found == pytest.approx(of_asinh(K, ratio * K, away), rel=2e-12)


@pytest.mark.parametrize(("K", "away"), crossed(VARIANCES, AWAY))
def test_digits_of_small_differences(K, away):
    """⟨(x − y)²⟩/2 = K (1 − c), the arc-cosine kernel, and Price's theorem for asinh."""
    # Signals are rounded, and their differences are of √(1 − c).
    rounding = 1e-15 / np.sqrt(away)
    line = half_square(lambda h: h, lambda h: h, K, K, away)
    assert line == pytest.approx(K * away, rel=max(1e-12, rounding))
    with mp.workdps(50):
        c = 1 - mpf(away)
        sector = 1 - 2 / mp.pi * (mp.sqrt(1 - c * c) + c * mp.asin(c))
        bent = half_square(np.abs, np.abs, K, K, away)
    assert bent == pytest.approx(float(K * sector), rel=max(1e-12, rounding))
    # In θ ∝ √(1 − c), in logarithms of which the integrand is smooth.
    share = 1 / (1 + np.exp(-np.pi * np.sinh(step := np.arange(-3.5, 3.5, 0.0625))))
    weights = 0.0625 * np.pi * np.cosh(step) * share * (1 - share)
    terms = [K * 2 * p * of_asinh(K, K, p * p * away) for p in share]
    right = away * float(weights @ terms)
    found = half_square(np.arcsinh, np.arcsinh, K, K, away)
    assert found == pytest.approx(right, rel=max(2e-12, rounding))


def test_kinks_at_zero():
    K, away = 1e20, 1e-5
    relu = average(lambda h: np.maximum(h, 0), lambda h: np.maximum(h, 0), K, 4 * K, away)
    theta = 2 * np.arcsin(np.sqrt(away / 2))
    sector = np.sin(theta) + (np.pi - theta) * np.cos(theta)
    assert relu == pytest.approx(2 * K * sector / (2 * np.pi), rel=1e-12)


@pytest.mark.parametrize("K", [1.0, 100.0, 1e4, 1e8])
def test_functions_that_grow_or_diverge_have_no_sums(K):
    """e^h is largest at signals 2√K times as large as their standard deviation."""
    if K == 1.0:
        assert average(np.exp, np.exp, K, K, 0.5) == pytest.approx(np.exp(1.5), rel=1e-11)
    else:
        with pytest.raises(QuadratureError):
            average(np.exp, np.exp, K, K, 0.5)
    with pytest.raises(QuadratureError):
        average(lambda h: np.abs(h) ** -0.9, lambda h: np.abs(h) ** -0.9, K, K, 0.5)


@pytest.mark.parametrize("K", [1.0, 1e8])
@pytest.mark.parametrize("away", [0.5, 1e-9])
def test_slopes_of_square_roots(K, away):
    """⟨|xy|^{-1/2}⟩ = √(2/K) Γ(1/4)²/(2π) 2F1(1/4, 1/4; 1/2; c²)."""
    found = average(lambda h: np.abs(h) ** -0.5, lambda h: np.abs(h) ** -0.5, K, K, away)
    with mp.workdps(40):
        c = 1 - mpf(away)
        size = mp.gamma(0.25) ** 2 / mp.sqrt(2 * K) / mp.pi
        expected = size * mp.hyp2f1(0.25, 0.25, 0.5, c * c)
    assert found == pytest.approx(float(expected), rel=1e-12)


def test_what_cancels_is_refused():
    """⟨|x||y|⟩ of independent signals is 2K/π, ⟨xy⟩ is nothing beside it."""
    assert average(np.abs, np.abs, 9.0, 9.0, 1.0, 0.1) == pytest.approx(18 / np.pi, rel=1e-12)
    with pytest.raises(QuadratureError, match="cancel"):
        average(lambda h: h, lambda h: h, 9.0, 9.0, 0.999, 0.1)


def test_what_is_narrow_is_not_resolved():
    def steep(h):
        return np.tanh(300 * (h - 3))

    with pytest.raises(QuadratureError):
        average(steep, steep, 4.0, 4.0, 0.1)
