"""Pairs at every switch between Mehler's series and nested panels, and where the domain ends."""

import numpy as np
import pytest
from scipy.special import erf

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrands.exact_differences import determinant, one_minus_correlation
from fieldtheory.averages.quadrature.mehler import Series
from fieldtheory.averages.quadrature.nested import NestedPanels
from fieldtheory.averages.quadrature.one_variable import Coefficients, integrated
from fieldtheory.averages.quadrature.panelled_functions import Function
from fieldtheory.averages.quadrature.two_variables import PairAverages
from fieldtheory.averages.routes import SETTINGS
from tests.tables import crossed

ERF = Function(erf, lambda h: 2 / np.sqrt(np.pi) * np.exp(-(h**2)))
TANH = Function(np.tanh, lambda h: 1 / np.cosh(h) ** 2)
RELU = Function(lambda h: np.maximum(h, 0), lambda h: 1.0 * (h > 0), (0.0,))
CLIP = Function(
    lambda h: np.clip(2 * h - 1, -1, 3), lambda h: 2.0 * ((h > 0) & (h < 2)), (0.0, 2.0)
)
STEP = Function(lambda h: 1.0 * (h > 1), np.zeros_like, (1.0,))
# Correlations on both sides of where the orders of the series change, and the ends.
CORRELATIONS = np.array(
    [0, 1e-9, 0.3, 0.44, 0.45, 0.77, 0.78, 0.938, 0.9385, 0.94, 0.99, 1 - 1e-6, 1 - 1e-12, 1]
)
CORRELATIONS = np.concatenate([-CORRELATIONS[:0:-1], CORRELATIONS])


def of_erf(a, b, t):
    """⟨erf erf⟩ and its derivatives by t, a and b."""
    p, q = 1 + 2 * a, 1 + 2 * b
    det = np.sqrt(1 + 2 * a + 2 * b + 4 * determinant(a, b, t))
    angle = np.arctan2(2 * t, det)
    value, by_t = 2 / np.pi * angle, 4 / np.pi / det
    return value, by_t, -2 * t / p / det * 2 / np.pi, -2 * t / q / det * 2 / np.pi


def of_relu(a, b, t):
    root = np.sqrt(a * b)
    sine = np.sqrt(one_minus_correlation(a, b, t) * (1 + np.abs(t) / root))
    theta = np.arctan2(sine, t / root)
    value = root * (sine + (np.pi - theta) * t / root) / (2 * np.pi)
    by_t = (np.pi - theta) / (2 * np.pi)
    return value, by_t, np.sqrt(b / a) * sine / (4 * np.pi), np.sqrt(a / b) * sine / (4 * np.pi)


@pytest.mark.slow_but(0, 1, 2, 7)
@pytest.mark.parametrize(
    "variances", [(1e-8, 1e-8), (0.05, 2.0), (1.0, 1.0), (30.0, 0.3), (1e6, 1e4)]
)
@pytest.mark.parametrize(("function", "exact"), [(ERF, of_erf), (RELU, of_relu)])
def test_closed_forms(function, exact, variances):
    """Values and derivatives over all correlations, within 1e-12 of the natural size."""
    a, b = (np.full(len(CORRELATIONS), K) for K in variances)
    t = CORRELATIONS * np.sqrt(a * b)
    size = np.sqrt(Coefficients(function, 0)(np.array([a[0], b[0]]))[0][:, -1].prod())
    values, errors = PairAverages(function)(a, b, t)
    scales = np.ones(len(a)), 1 / np.sqrt(a * b), 1 / a, 1 / b
    for value, error, reference, scale in zip(values, errors, exact(a, b, t), scales, strict=True):
        np.testing.assert_array_less(np.abs(value - reference), 1e-12 * size * scale)
        assert (error > 0).all()


@pytest.mark.slow_but(0)
@pytest.mark.parametrize(
    ("functions", "c"),
    crossed([(TANH, TANH), (RELU, TANH), (CLIP, CLIP), (TANH, CLIP)], [0.4, -0.7, 0.9]),
)
def test_both_algorithms_agree(functions, c):
    """Mehler's series and nested panels where both converge, connected averages too."""
    a, b, correlation = np.array([0.8, 1.0, 1.2]), np.array([1.1, 1.0, 0.7]), np.full(3, c)
    sign, sides = np.sign(c), zip(functions, (a, b), strict=True)
    means = [Coefficients(f, 0)(K)[0][:, 0] for f, K in sides]
    second = functions[1] if sign > 0 else functions[1].reflected
    nested = NestedPanels(functions[0], second, 1e-12, 2)
    for connected in (False, True):
        series = Series(*functions, SETTINGS.series_orders[-1])(
            np.append(a, b), np.arange(3), np.arange(3, 6), correlation, connected
        )
        values, errors, _ = nested(a, b, np.full(3, 1 - abs(c)), np.array(means) * connected)
        allowed = 1e-12 * series[2]
        np.testing.assert_array_less(np.abs(series[0][0] - values[0]), allowed[0])
        np.testing.assert_array_less(np.abs(series[0][1] - sign * values[1]), allowed[1])
        np.testing.assert_array_less(errors[0], allowed[0])


def test_errors_of_a_series_are_in_units_of_the_functions():
    place, scale = np.zeros(1, dtype=int), 2.0**60
    errors, of_large = (
        Series(function, function, 32)(np.ones(1), place, place, np.array([0.9]), False, 2)[1]
        for function in (TANH, Function(lambda h: scale * np.tanh(h)))
    )
    np.testing.assert_allclose(of_large, errors * scale**2, rtol=1e-9)


@pytest.mark.slow_but(0, 2, 4, 6, 10, 12, 15, 17)
@pytest.mark.parametrize("function", [TANH, CLIP, STEP, Function(lambda h: 1 / (1 + h**2))])
@pytest.mark.parametrize("K", [1e-8, 1e-4, 1.0, 1e4, 1e6])
def test_connected_averages(function, K):
    """At c = 1 the variance, at c = 0 nothing, between them monotonous in c for ⟨φ;φ⟩."""
    c = np.array([0.0, 0.2, 0.5, 0.9, 0.99, 1 - 1e-9, 1.0])
    values, _ = PairAverages(function, connected=True)(K, K, c * K, kinds=1)
    f = integrated(function, K, 128)[0]
    variance = f[-1] - f[0] ** 2
    assert values.value[0] == 0
    assert values.value[-1] == pytest.approx(variance, rel=1e-12, abs=4e-16 * f[-1])
    assert (np.diff(values.value) >= 0).all()


def test_slopes_are_differences():
    """By finite differences, jumps included."""
    for function, connected in ((CLIP, False), (STEP, False), (TANH, False), (CLIP, True)):
        pairs = PairAverages(function, connected=connected)
        for t in (0.3, 0.95, -0.97):
            point, step = np.array([1.0, 1.2, t]), 1e-4
            exact = np.ravel(pairs(*point)[0])[1:]
            for index, slope in zip((2, 0, 1), exact, strict=True):
                way = step * np.eye(3)[index]
                ends = [pairs(*(point + k * way))[0].value[0] for k in (-2, -1, 1, 2)]
                numeric = (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * step)
                assert slope == pytest.approx(numeric, abs=1e-9)


def test_variances_of_zero():
    """Limits of small ones; two that vanish are one variable."""
    zero, one = np.array([0.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0])
    step = Function(lambda h: 1.0 * (h > 0), np.zeros_like, (0.0,))
    values, _ = PairAverages(step)(zero, one, 0 * zero, kinds=1)
    assert values.value == pytest.approx([0.25, 0.25, 0.5])
    shifted = Function(lambda h: 2 + np.tanh(h), lambda h: 1 / np.cosh(h) ** 2)
    values, _ = PairAverages(shifted)(zero, one, 0 * zero)
    assert values.value == pytest.approx([4.0, 4.0, 4.0])
    mean = Coefficients(shifted.slope, 0)(np.array([1.0]))[0][0, 0]
    assert values.by_t == pytest.approx([mean, mean, 1.0])


def test_many_pairs_are_those_of_one_each():
    """Tables in ln K of many variances against integrals at one."""
    a = np.exp(np.linspace(-3, 3, 50))
    pairs = PairAverages(TANH)
    many = pairs(a, 1.0, 0.6 * np.sqrt(a))[0]
    for place in (0, 17, 49):
        alone = PairAverages(TANH)(a[place], 1.0, 0.6 * np.sqrt(a[place]))[0]
        for one, other in zip(many, alone, strict=True):
            assert one[place] == pytest.approx(other[0], rel=1e-13)


def test_correlation_of_nearly_parallel_signals():
    assert determinant(*np.array([1e6, 1e6, 1e6 - 2**-20])) == pytest.approx(1.9073486328115905)
    assert one_minus_correlation(*np.array([1.0, 4.0, -2.0])) == 0


@pytest.mark.slow
def test_a_tolerance_that_is_missed():
    with pytest.raises(QuadratureError, match="did not reach"):
        PairAverages(TANH)(1.0, 1.0, 0.5, 1e-17)
    with pytest.raises(QuadratureError, match="panels"):
        fast = Function(lambda h: np.sin(30 * h) * np.tanh(h))
        PairAverages(fast)(1e3, 1e3, 0.999e3, kinds=1)
