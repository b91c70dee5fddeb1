"""Averages of functions with cusps over one signal, against moments of normal numbers."""

import numpy as np
import pytest
from mpmath import mp, mpf

from fieldtheory.averages.integrals.line_sizes import with_sizes
from fieldtheory.averages.integrals.quadrature import average_1d, by_parts_1d


def moment(power, K):
    """⟨|h|^p⟩ = (2K)^{p/2} Γ((p + 1)/2)/√π."""
    with mp.workdps(30):
        p = mpf(power)
        return float((2 * mpf(K)) ** (p / 2) * mp.gamma((p + 1) / 2) / mp.sqrt(mp.pi))


@pytest.mark.parametrize("power", [-0.5, 0.3, 0.5, 1.5])
@pytest.mark.parametrize("K", [1e-8, 1.0, 1e12])
def test_powers(power, K):
    value, size, error = with_sizes(lambda h, K: np.abs(h) ** power, np.array([K]), 1e-13)[:, 0]
    assert value == pytest.approx(moment(power, K), rel=1e-13)
    assert size == pytest.approx(value) and error <= 1e-13


def test_what_does_not_converge_has_an_error():
    K = np.array([1e6])
    assert not with_sizes(lambda h, K: np.sin(h) ** 2, K, 1e-13)[2] <= 1e-10
    assert with_sizes(lambda h, K: 1 / np.abs(h), K, 1e-13)[2] > 1


@pytest.mark.parametrize("K", [0.3, 15.2833, 1e4])
def test_both_sides_and_derivatives(K):
    """⟨(√|h| + θ(h))²⟩, of which 2M' = ⟨h φφ'⟩ 2/K has a cusp too."""
    square = average_1d(lambda h: (np.sqrt(np.abs(h)) + (h > 0)) ** 2, np.array([K]), (0.0,))
    assert square[0] == pytest.approx(moment(1, K) + moment(0.5, K) + 0.5, rel=1e-13)
    form = (lambda h, K: h * (np.sign(h) + (h > 0) / np.sqrt(np.abs(h))) / 2, np.reciprocal)
    slope = by_parts_1d([form], lambda K: K / 0, np.array([K]), (0.0,))[0]
    assert slope == pytest.approx((moment(1, K) / 2 + moment(0.5, K) / 4) / K, rel=1e-13)
