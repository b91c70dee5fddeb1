"""Panels between breakpoints: what they resolve, and what Function finds by itself."""

import numpy as np
import pytest

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.quadrature.one_variable import Means, integrated
from fieldtheory.averages.quadrature.panelled_functions import NODES, ORDER, Function
from fieldtheory.averages.quadrature.panels import nodes_of, subdivided, summed
from tests.tables import slow

RELU = Function(lambda h: np.maximum(h, 0), lambda h: 1.0 * (h > 0), (0.0,))


def integral(function, low, high):
    edges = subdivided(function.edges(max(-low, high)), low, high, np.inf)
    h, half = nodes_of(edges[:-1], edges[1:])
    return summed(function(h), half)[0].sum()


@pytest.mark.parametrize("scale", [0.2, 1.0, 30.0])
def test_panels_resolve(scale):
    """Integrals over panels of tanh(scale (h − 1/3))."""
    function = Function(lambda h: np.tanh(scale * (h - 1 / 3)))
    reach = 8.0
    exact = (np.logaddexp(0, 2 * scale * (reach - 1 / 3)) - scale * (reach - 1 / 3)) - (
        np.logaddexp(0, 2 * scale * (reach + 1 / 3)) - scale * (reach + 1 / 3)
    )
    assert integral(function, -reach, reach) == pytest.approx(exact / scale, abs=2e-14)


def test_panels_are_few():
    """Kinks cost nothing but an edge, polynomials one panel."""
    assert len(RELU.edges(1e3)) == 3
    assert len(Function(lambda h: h**3).edges(1e3)) == 3
    assert len(Function(lambda h: h**12).edges(1.0)) == 3
    assert len(Function(np.tanh).edges(1e4)) < 20


def test_breakpoints_that_are_not_given():
    """Found by bisection; the average has its digits."""
    undeclared = Function(lambda h: np.maximum(h - 0.3, 0))
    declared = Function(lambda h: np.maximum(h - 0.3, 0), None, (0.3,))
    for K in (0.01, 1.0, 100.0):
        values = [integrated(each, K, 4)[0] for each in (undeclared, declared)]
        np.testing.assert_allclose(*values, rtol=0, atol=1e-14 * np.sqrt(values[0][-1]))


def test_jumps_and_parity():
    step = Function(np.sign, np.zeros_like, (0.0,))
    assert step.jumps.tolist() == [2.0] and step.jumping.tolist() == [0.0]
    assert step.parity == -1 and step.square.parity == 1 and RELU.parity == 0
    assert RELU.jumping.size == 0 and RELU.nearest == 0.0
    assert step.at_zero().tolist() == [-1.0, 1.0] and RELU.at_zero().tolist() == [0.0, 0.0]
    assert Function(np.tanh).nearest == np.inf


def test_slope():
    """Of the polynomials on panels, if it is not given."""
    h = np.linspace(-5, 5, 7)
    np.testing.assert_allclose(Function(np.tanh).slope(h), 1 / np.cosh(h) ** 2, atol=1e-12)
    np.testing.assert_array_equal(RELU.reflected.slope(h), -1.0 * (h < 0))
    places = np.linspace(-0.2, 0.2, 41)
    waves = Function(lambda h: np.sin(60 * h))
    np.testing.assert_allclose(waves.slope(places), 60 * np.cos(60 * places), atol=1e-9)
    np.testing.assert_allclose(waves.interpolated(1.0)(places), np.sin(60 * places), atol=1e-13)


def test_large_powers():
    """⟨h⁴⁰⟩ = 39!!, most of which is five to eight deviations away."""
    exact = np.prod(np.arange(1.0, 40, 2))
    assert integrated(Function(lambda h: h**20), 1.0, 2)[0][-1] == pytest.approx(exact, rel=1e-13)


def test_constants():
    ones = Function(lambda h: 1)
    assert ones(np.zeros((2, 3))).shape == (2, 3)
    assert Means(ones)(np.array([0.0, 2.0]), 1e-12).tolist() == pytest.approx([1.0, 1.0])


def test_sums():
    """Errors of panels: rounding for polynomials, never below what is missed."""
    low, high = np.array([0.0]), np.array([3.0])
    h, half = nodes_of(low, high)
    value, error = summed(h ** (2 * ORDER - 1), half)
    assert value == pytest.approx(3.0 ** (2 * ORDER) / (2 * ORDER), rel=1e-13)
    for scale in (5.0, 10.0, 20.0):
        value, error = summed(np.cos(scale * h), half)
        assert abs(value - np.sin(3 * scale) / scale) <= 10 * error + 1e-15
    assert len(NODES) == ORDER


@pytest.mark.parametrize(
    ("value", "word"),
    [
        slow(lambda h: np.sin(500 * h), "varies too fast"),
        (lambda h: np.exp(h**2), "exponentially"),
        (lambda h: np.exp(h) * np.sin(h), "exponentially"),
        slow(lambda h: 1 / h**2, "did not reach"),
    ],
)
def test_outside_the_promise(value, word):
    """One error that says what is not promised, for signals of a thousand."""
    with pytest.raises(QuadratureError, match=word):
        Means(Function(value))(np.array([1e6]), 1e-12)


def test_steep_functions():
    """A jump of width 1e-9 is resolved by bisection; the result is that of the jump."""
    steep = Function(lambda h: np.tanh(1e9 * (h - 0.5)))
    jump = Function(lambda h: np.sign(h - 0.5), np.zeros_like, (0.5,))
    values = [Means(each)(np.array([1.0]), 1e-12)[0] for each in (steep, jump)]
    assert values[0] == pytest.approx(values[1], abs=1e-9)


@pytest.mark.xfail(reason="no node of the first panels meets it")
def test_a_bell_between_the_nodes():
    """⟨tanh(h) + exp(−10⁶ (h − 1/3)²)⟩ is the average of the bell alone."""
    bell = Function(lambda h: np.tanh(h) + np.exp(-1e6 * (h - 1 / 3) ** 2))
    exact = (1 + 8e6) ** -0.5 * np.exp(-1e6 / 9 / (1 + 8e6))
    assert Means(bell)(np.array([4.0]), 1e-12)[0] == pytest.approx(exact, rel=1e-9)
