"""Nested integrals of functions with kinks, at every correlation, against other routes."""

import mpmath
import numpy as np
import pytest

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrals.two_variables import average_2d, connected_2d, connected_layers
from fieldtheory.averages.tolerance import relative_tolerance
from tests.oracles import exact
from tests.tables import crossed

PAIRS = [(1e-3, 1e-3), (0.05, 0.3), (1.0, 1.0), (30.0, 2.0), (1e-3, 1e3), (1e6, 1e6)]
NEAR_ONE = [1.0, 1 - 1e-15, 1 - 1e-12, 1 - 1e-9, 1 - 1e-6, 0.999, 0.71, 0.69]
CORRELATIONS = [*NEAR_ONE, 0.3, 0.0, *(-c for c in NEAR_ONE)]


def shifted_relu_pair(shift, a, b, c):
    """⟨(x − s)₊ (y − s)₊⟩ by one integral over x with the other in closed form, at 30 digits."""
    with mpmath.workdps(40):
        a, b, c, s = map(mpmath.mpf, (a, b, c, shift))
        slope, spread = c / a, mpmath.sqrt(max(b - c * c / a, 0))

        def inner(x):
            mean = slope * x - s
            if spread == 0:
                return max(mean, 0)
            u = mean / spread
            return mean * mpmath.ncdf(u) + spread * mpmath.npdf(u)

        dev = mpmath.sqrt(a)
        reach = 12 * dev
        cuts = {s, reach + abs(s)}
        if slope:
            for width in (0, 1, 3, 9, 30):
                cuts |= {(s + sign * width * spread) / slope for sign in (1, -1)}
        cuts |= {dev * k for k in range(-12, 13)}
        points = sorted(p for p in cuts if s <= p <= reach + abs(s))
        return mpmath.quad(lambda x: (x - s) * inner(x) * mpmath.npdf(x, 0, dev), points)


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_relu_at_every_correlation(a, b):
    def relu(u):
        return np.maximum(u, 0.0)

    c = np.array(CORRELATIONS) * np.sqrt(a * b)
    c = np.clip(c, -np.sqrt(a) * np.sqrt(b), np.sqrt(a) * np.sqrt(b))
    values = average_2d(lambda x, y: relu(x) * relu(y), a, b, c, ((0.0,), (0.0,)))
    with mpmath.workdps(30):
        expected = [float(exact.relu_average(1, mpmath.mpf(a), b, t)) for t in c]
    np.testing.assert_allclose(values, expected, rtol=0, atol=2e-15 * np.sqrt(a * b))


NEAR_PERFECT = [1 - 1e-12, 1 - 1e-6, 0.99, 0.72, 0.68, -0.999]


SHIFTED = [(1.0, 1.0, 0.5), (0.3, 40.0, -1.25), (0.3, 40.0, 0.5), (1.0, 1.0, -1.25)]


@pytest.mark.parametrize(("correlation", "case"), crossed(NEAR_PERFECT, SHIFTED))
def test_shifted_kinks_near_perfect_correlation(correlation, case):
    a, b, shift = case
    c = correlation * np.sqrt(a * b)

    def f(u):
        return np.maximum(u - shift, 0.0)

    value = average_2d(lambda x, y: f(x) * f(y), a, b, c, ((shift,), (shift,)))
    expected = float(shifted_relu_pair(shift, a, b, c))
    size = np.sqrt((a + shift**2) * (b + shift**2))
    assert value == pytest.approx(expected, rel=1e-12, abs=1e-15 * size)


def test_layers_agree_with_pairs():
    K = np.array([0.2, 0.2000001, 0.21, 0.5, 3.0])
    kinks = (-1.0, 1.0)

    def f(u):
        return np.clip(u, -1, 1) ** 2

    values = connected_layers(f, K, kinks)
    k, l = np.triu_indices(len(K))
    pairs = connected_2d(f, f, K[k], K[l], K[k], (kinks, kinks))
    np.testing.assert_allclose(values[k, l], pairs, rtol=2e-12)
    np.testing.assert_array_equal(values, values.T)
    assert np.linalg.eigvalsh(values).min() > -1e-12


def test_layers_of_relu_in_closed_form():
    K = np.geomspace(1e-8, 1e4, 7)
    values = connected_layers(lambda u: np.maximum(u, 0.0) ** 2, K, (0.0,))
    with mpmath.workdps(30):
        for k, a in enumerate(K):
            for l, b in enumerate(K[k:], k):
                joint = exact.relu_average(2, mpmath.mpf(a), b, a)
                expected = float(joint - mpmath.mpf(a) * b / 4)
                assert values[k, l] == pytest.approx(expected, rel=1e-9)


def test_tolerance_asked_for():
    """A function with a kink that is not told: three digits are met, twelve are not."""

    def cusp(x, y):
        return np.abs(x - 0.1234) * np.cos(y)

    with pytest.raises(QuadratureError, match=r"relative tolerance 1e-12.*larger one \(rtol=\)"):
        average_2d(cusp, 1.0, 1.0, 0.3)
    with relative_tolerance(1e-3):
        loose = average_2d(cusp, 1.0, 1.0, 0.3)
    fine = average_2d(cusp, 1.0, 1.0, 0.3, ((0.1234,), ()))
    assert loose == pytest.approx(fine, rel=1e-3)
