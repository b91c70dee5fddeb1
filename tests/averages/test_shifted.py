"""Averages of one variable with a mean in symbols, which kinks away from zero leave."""

from itertools import pairwise

import mpmath
import numpy as np
import pytest
import sympy as sp
from scipy.integrate import quad

from fieldtheory.averages import GaussianAverage
from fieldtheory.averages.choosing import mean_about, shifted
from fieldtheory.compiling.functions import lambdify
from tests.tables import slow

X, Y = sp.symbols("x y", real=True)
A, B, C = sp.symbols("a b c", real=True)
K = [[A, C], [C, B]]


def expected(f, a, b, c, kinks, place=1):
    """⟨δ(x − place) f(y)⟩, cut at the kinks."""
    mean, deviation = place * c / a, np.sqrt(b - c * c / a)
    ends = np.clip([-np.inf, *kinks, np.inf], mean - 12 * deviation, mean + 12 * deviation)
    inside = sum(
        quad(
            lambda y: f(y) * np.exp(-(((y - mean) / deviation) ** 2) / 2),
            *part,
            epsabs=0,
            epsrel=1e-12,
            limit=200,
        )[0]
        for part in pairwise(ends)
        if part[1] > part[0]
    )
    density = np.exp(-(place**2) / (2 * a)) / np.sqrt(2 * np.pi * a)
    return density * inside / (np.sqrt(2 * np.pi) * deviation)


@pytest.mark.parametrize(
    ("F", "f", "kinks", "c"),
    [
        (sp.Abs(Y - 1) / (1 + sp.Abs(Y)), lambda y: abs(y - 1) / (1 + abs(y)), (0, 1), 0.3),
        slow(sp.Abs(Y - 1) / (1 + sp.Abs(Y)), lambda y: abs(y - 1) / (1 + abs(y)), (0, 1), -0.69),
        slow(sp.Max(Y, 0) / (1 + Y**2), lambda y: max(y, 0) / (1 + y * y), (0,), -0.5),
        slow(sp.tanh(Y) ** 2 + sp.Abs(Y), lambda y: np.tanh(y) ** 2 + abs(y), (0,), 0.0),
    ],
)
def test_at_a_kink(F, f, kinks, c):
    """Of positive, negative and no correlation, in float64 and with mpmath."""
    node = GaussianAverage(sp.DiracDelta(X - 1) * F, (X, Y), K)
    value = expected(f, 0.7, 0.8, c, kinks)
    found = lambdify([A, B, C], node)(0.7, 0.8, c)
    assert found == pytest.approx(value, rel=1e-11, abs=1e-14)
    with mpmath.workdps(20):
        precise = lambdify([A, B, C], node, "mpmath")(*map(mpmath.mpf, ("0.7", "0.8", str(c))))
    assert float(precise) == pytest.approx(value, rel=1e-11, abs=1e-14)


@pytest.mark.parametrize("place", [slow(-1), 2])
def test_kinks_elsewhere(place):
    """The mean is a number times K_12/K_11."""
    F = sp.Max(-1, sp.Min(1, Y)) ** 2
    node = GaussianAverage(sp.DiracDelta(X - place) * F, (X, Y), K)
    value = expected(lambda y: min(y * y, 1), 0.7, 0.8, 0.3, (-1, 1), place)
    assert lambdify([A, B, C], node)(0.7, 0.8, 0.3) == pytest.approx(value, rel=1e-11)


def test_many_variances_and_means():
    """Also no variance, and a mean far from the kinks."""
    K, means = np.array([0.0, 1e-6, 2.0, 1e4]), np.array([[0.5], [-30.0]])
    found = mean_about(sp.Abs(X - 1) - X, X).function(K, means)
    distance, s = means - 1, np.sqrt(np.maximum(K, 1e-300))
    density = np.exp(-((distance / s) ** 2) / 2) * s * np.sqrt(2 / np.pi)
    known = density + distance * np.vectorize(sp.erf)(distance / s / np.sqrt(2)).astype(float)
    np.testing.assert_allclose(found, known - means, rtol=1e-12, atol=1e-14)


def test_what_is_no_shift_is_left_alone():
    """Other symbols inside still ask for numbers."""
    p = sp.Symbol("p", real=True)
    assert shifted(GaussianAverage(sp.tanh(p * X) ** 2, X, 1)) is None
    with pytest.raises(ValueError, match="must have a number for p"):
        lambdify([p], GaussianAverage(sp.tanh(X + p) ** 2, X, 1))
