"""What is left of waves over wide signals, against closed forms."""

import numpy as np
import pytest
import sympy as sp
from mpmath import mp, mpf

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.growing import beyond_float
from fieldtheory.averages.oscillating.waves import without_waves
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.layer_averages.entries import network_entries

h = sp.Symbol("h", real=True)
sin, cos = sp.sin, sp.cos


@pytest.mark.parametrize(
    ("F", "left"),
    [
        (sin(h) ** 4, sp.Rational(3, 8)),
        (sin(h) * cos(h + 1), -sin(1) / 2),
        ((h + sin(2 * h)) ** 2, h**2 + sp.Rational(1, 2)),
        ((sin(h) + cos(sp.sqrt(2) * h)) ** 2, 1),
        (sin(2 * h) * sin(h) * cos(h), sp.Rational(1, 4)),
        (sp.tanh(h) * sin(h), 0),
        (h * sin(sp.Abs(h)) ** 2 + cos(sp.sqrt(1 + h**2)), h / 2),
        (h * sin(sp.log(1 + h**2)), h * sin(sp.log(1 + h**2))),
        (h**3, h**3),
    ],
)
def test_means_over_phases(F, left):
    assert sp.simplify(without_waves(F, h).function - left) == 0


@pytest.mark.parametrize("F", [sin(h**2), sp.sqrt(2 + h**2 + sin(h)), h ** sin(h)])
def test_waves_of_other_kinds_are_refused(F):
    with pytest.raises(QuadratureError, match="at such large signals are not resolved"):
        without_waves(F, h)


# ⟨f²⟩.
SQUARES = {
    h**2 * sin(h): lambda K: 3 * K**2 / 2 - (3 * K**2 - 24 * K**3 + 16 * K**4) / 2 * mp.exp(-2 * K),
    h + sin(h): lambda K: K + 2 * K * mp.exp(-K / 2) + (1 - mp.exp(-2 * K)) / 2,
    sp.exp(h) * sin(h): lambda K: mp.exp(2 * K) * (1 - mp.exp(-2 * K) * mp.cos(4 * K)) / 2,
}


@pytest.mark.parametrize("f", SQUARES)
@pytest.mark.parametrize("variance", ["210", "1e8", "1e40"])
def test_squares(f, variance):
    with mp.workdps(60):
        K = mpf(variance)
        found, exact = beyond_float.single(f, f, h, K), SQUARES[f](K)
        # Exponentials are as exact as their exponents.
        assert abs(found / exact - 1) < 1e-13 or abs(mp.log(found) / mp.log(exact) - 1) < 1e-14


def test_pairs():
    """Their waves are unrelated, unless the signals are too similar, or the waves grow."""
    with mp.workdps(30):
        K = mpf(10) ** 40
        found = beyond_float.pair(h + sin(h), h, (K, 2 * K), 0.25, 0.75)
        assert abs(found / (mp.sqrt(2) * K / 4) - 1) < 1e-13
        with pytest.raises(QuadratureError, match="are not resolved at the variance"):
            beyond_float.pair(h + sin(h), h, (K, K), 1.0, 1e-39)

        with pytest.raises(QuadratureError, match="grow exponentially have no average over two"):
            beyond_float.pair(sp.exp(h) * sin(h) * sp.tanh(h), h, (K, 2 * K), 0.5, 0.5)


def _of_sinc(K):
    """⟨s²⟩, its derivative by K, and ⟨s'²⟩ of s = sin(h)/h, from its Fourier transform 1/2."""
    with mp.workdps(50):
        K = mp.mpf(K)
        most = min(mp.mpf(2), 16 / mp.sqrt(K))

        def integral(f):
            return mp.quad(lambda u: f(u) * mp.exp(-(u**2) * K / 2), [0, most / 4, most]) / 2

        square = integral(lambda u: 2 - u)
        change = integral(lambda u: -(2 - u) * u**2 / 2)
        slope = integral(lambda u: (1 - (u - 1) ** 3) / 3 - u * (1 - (u - 1) ** 2) / 2)
        return square, change, slope


@pytest.mark.parametrize("K", [2e4, 1e9, 1e30])
def test_means_of_waves_with_poles(K):
    """sin²(h)/h² has no pole, its mean over the phase has one."""
    square, change, slope = _of_sinc(K)
    of_line = network_entries(ResidualNetwork(depth=1, activation="h+sin(h)/h"))
    alone = network_entries(ResidualNetwork(depth=1, activation="sin(h)/h"))
    for found, expected in (
        (of_line.second_moment(K), K + square),
        (of_line.susceptibility(K), 1 + change),
        (of_line.slope_square(K), 1 + slope),
        (alone.second_moment(K), square),
        (alone.susceptibility(K), change),
        (alone.slope_square(K), slope),
    ):
        np.testing.assert_allclose(float(found), float(expected), rtol=1e-11)
