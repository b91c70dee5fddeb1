"""Price's integral over the covariance against exact values, with and without its singularity."""

import mpmath
import numpy as np
import pytest
import sympy as sp
from mpmath import mpf

from fieldtheory.averages import ConnectedCorrelator
from fieldtheory.averages.integrals.price import connected_by_price
from fieldtheory.averages.integrals.quadrature import QuadratureError
from fieldtheory.averages.integrands.exact_differences import determinant
from fieldtheory.averages.numeric import connected


@pytest.mark.parametrize("K", [1e-3, 1.0, 30.0, 1e3])
@pytest.mark.parametrize("correlation", [1.0, 0.9, 1e-6, 0.0, -0.7])
def test_polynomials_are_exact(K, correlation):
    """⟨x²;y²⟩ = ∫_0^c 4 t dt = 2c²."""
    c = correlation * K
    value = connected_by_price(lambda a, b, t, *_: 4 * t, None, K, K, c)
    assert value == pytest.approx(2 * c**2, rel=1e-14)


@pytest.mark.parametrize("K", [1e-8, 1e-2, 1.0, 100.0, 1e6])
@pytest.mark.parametrize("gap", [0.0, 1e-12, 1e-4, 0.5, 1.0, 1.9, 2.0])
@pytest.mark.parametrize("with_singularity", [True, False])
def test_an_inverse_root_over_all_magnitudes(K, gap, with_singularity):
    """⟨erf;erf⟩: ∫ (4/π) dt / √(1 + 4K + 4(K²−t²)) = (2/π) asin(2c / (1 + 2K))."""
    c = K * (1 - gap)

    def slope(a, b, t, det, *_):
        return 4 / np.pi / np.sqrt(1 + 2 * a + 2 * b + 4 * det)

    offset = (lambda a, b: (1 + 2 * a + 2 * b) / 4) if with_singularity else None
    with mpmath.workdps(40):
        k = mpf(K)
        root = mpmath.sqrt(1 + 4 * k + 4 * (k * k - mpf(c) ** 2))
        exact = 2 / mpmath.pi * mpmath.atan2(2 * mpf(c), root)
        error = abs(connected_by_price(slope, offset, K, K, c) - exact)
        assert error <= 3e-14 * abs(exact)


def test_differences_under_the_integral_are_those_of_the_nodes():
    seen = []

    def slope(a, b, t, det, apart, together):
        seen.append((det, determinant(a, b, t)))
        seen.extend([(apart, a + b - 2 * t), (together, a + b + 2 * t)])
        return np.ones_like(t)

    connected_by_price(slope, None, 2.0, 3.0, 1.7)
    connected_by_price(slope, lambda a, b: 1.0 + 0 * a, 2.0, 3.0, 1.7)
    for det, expected in seen:
        np.testing.assert_allclose(det, expected, rtol=1e-13)


@pytest.mark.parametrize("K", [0.3, 300.0, 1e4, 1e5])
@pytest.mark.parametrize("added", [0.0, 0.1, 2.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_shifted_waves_of_wide_signals(K, added, sign):
    """⟨sin² ; sin²⟩ of h + 5/4: a covariance under the integral has lost K − t from K = 1000 on."""
    h, g = sp.symbols("h g", real=True)
    K_hh, K_gg, K_hg = sp.symbols("K_hh K_gg K_hg", real=True)
    F, G = (sp.sin(v + sp.Rational(5, 4)) ** 2 for v in (h, g))
    node = ConnectedCorrelator(F, G, (h, g), ((K_hh, K_hg), (K_hg, K_gg)))
    found = connected(node).function(K, K + added, sign * K)
    with mpmath.workdps(40):
        a, b, c = mpf(K), mpf(K + added), sign * mpf(K)
        both = [(mpmath.exp(s * 4 * c - 2 * (a + b)) - mpmath.exp(-2 * (a + b))) for s in (1, -1)]
        expected = (both[0] + mpmath.cos(5) * both[1]) / 8
        assert abs(found - expected) <= 1e-13 * abs(expected)


def test_pairs_that_do_not_converge_raise():
    with pytest.raises(QuadratureError, match="did not converge"):
        connected_by_price(lambda a, b, t, *_: np.abs(t - 0.3) ** 0.5, None, 1.0, 1.0, 1.0)


def test_algebraic_decay_is_not_taken_for_convergence():
    """The coefficients at a kink fall like a power; the square of the last ones would pass."""
    with pytest.raises(QuadratureError):
        connected_by_price(
            lambda a, b, t, *_: np.abs(0.37 - t) ** 1.5, lambda a, b: 1.0 + 0 * a, 1.0, 1.0, 0.9
        )


def test_shapes_broadcast():
    K = np.array([[1.0], [2.0]])
    values = connected_by_price(lambda a, b, t, *_: 4 * t, None, K, np.array([1.0, 3.0, 4.0]), 0.5)
    np.testing.assert_allclose(values, np.full((2, 3), 0.5), rtol=1e-14)
