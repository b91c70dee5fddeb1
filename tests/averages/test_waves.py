"""What is left of waves over wide signals, against closed forms."""

import pytest
import sympy as sp
from mpmath import mp, mpf

from fieldtheory.averages import beyond_float
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.waves import without_waves

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
