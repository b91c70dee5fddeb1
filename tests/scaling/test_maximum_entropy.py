"""Maximum entropy: F25 eq. (141), its minimum, other activations."""

import mpmath
import numpy as np
import pytest
import sympy as sp

from fieldtheory.averages.errors import PrecisionError
from fieldtheory.scaling.maximum_entropy import (
    VARIANCE,
    divergence,
    divergence_formula,
    maximum_entropy_variance,
    precise_divergence,
    precise_variance,
    variance_formula,
)
from tests.rounding import same

from ..oracles import entropy
from ..tables import slow, some

x = sp.Symbol("x", real=True)
PRINTED = sp.log(sp.sqrt(2)) + sp.log(VARIANCE) / 2 + (1 / (2 * VARIANCE) - 1) / 2
DECADES = some(["0.01", "0.03", "0.1", "0.25", "0.5", "1", "3", "10", "100"], {"0.25", "100"})


def gap(first, second, digits=50):
    """Difference relative to the larger of 1 and the second."""
    with mpmath.workdps(digits + 20):
        return abs(first - second) / max(1, abs(second))


def number(expr, digits=70):
    return mpmath.mpmathify(expr.evalf(digits))


class TestErf:
    def test_derived_divergence_is_the_printed_one(self):
        # F25 eq. (141).
        assert divergence_formula() == sp.expand(PRINTED)
        assert divergence_formula("erf") == divergence_formula(sp.erf(x))

    def test_derivative_and_minimum(self):
        slope = sp.diff(divergence_formula(), VARIANCE)
        assert sp.expand(slope - 1 / (2 * VARIANCE) + 1 / (4 * VARIANCE**2)) == 0
        assert sp.solve(slope, VARIANCE) == [sp.Rational(1, 2)]
        assert sp.diff(slope, VARIANCE).subs(VARIANCE, sp.Rational(1, 2)) == 2
        assert divergence_formula().subs(VARIANCE, sp.Rational(1, 2)) == 0

    def test_output_is_exactly_uniform_at_the_minimum(self):
        # erf(h) is 2 Φ(√2 h) − 1, the distribution function of N(0, 1/2).
        density = sp.exp(-(x**2)) / sp.sqrt(sp.pi)
        assert sp.simplify(density * 2 / sp.erf(x).diff(x)) == 1

    @pytest.mark.slow
    @pytest.mark.parametrize("variance", DECADES)
    def test_formula_and_integrals_at_fifty_digits(self, variance):
        integral = entropy.divergence("erf", number(sp.Rational(variance)), 50)
        exact = number(divergence_formula().subs(VARIANCE, sp.Rational(variance)))
        assert gap(exact, integral) < 1e-50
        assert gap(precise_divergence("erf", sp.Rational(variance), 50), integral) < 1e-50

    @pytest.mark.slow_but(0)
    @pytest.mark.parametrize("digits", [1, 20, 100])
    def test_digits_are_those_asked_for(self, digits):
        exact = number(divergence_formula().subs(VARIANCE, 3), 130)
        found = precise_divergence("erf", 3, digits)
        with mpmath.workdps(130):
            assert abs(found - exact) < 2 * mpmath.mpf(10) ** -digits


@pytest.mark.parametrize("name", ["erf", slow("tanh"), slow("logistic")])
class TestNamed:
    def test_minimum_is_the_second_moment(self, name):
        expected = entropy.second_moment(name, 50)
        assert gap(precise_variance(name, 50), expected) < 1e-50
        assert gap(number(variance_formula(name)), expected) < 1e-50
        assert maximum_entropy_variance(name) == float(expected)

    @pytest.mark.slow
    @pytest.mark.parametrize("variance", [0.01, 30.0])
    def test_divergence(self, name, variance):
        expected = entropy.divergence(name, mpmath.mpf(variance), 25)
        exact = number(divergence_formula(name).subs(VARIANCE, sp.Rational(variance)))
        assert gap(exact, expected) < 1e-25
        assert gap(precise_divergence(name, variance, 25), expected) < 1e-25
        assert divergence(name, variance) == pytest.approx(float(expected), rel=4e-16, abs=4e-16)

    def test_divergence_is_smallest_there(self, name):
        best = maximum_entropy_variance(name)
        values = divergence(name, best * np.geomspace(1e-3, 1e3, 101))
        assert values.argmin() == 50
        assert values[50] >= 0
        assert (np.diff(values[:51]) < 0).all() and (np.diff(values[50:]) > 0).all()


@pytest.mark.slow
def test_scale_and_offset_of_the_output_do_not_matter():
    assert divergence(3 - 5 * sp.tanh(x), 0.3) == pytest.approx(divergence("tanh", 0.3), rel=1e-15)


@pytest.mark.slow
def test_closed_forms_of_the_minimum():
    assert variance_formula("erf") == sp.Rational(1, 2)
    assert variance_formula("tanh") == sp.pi**2 / 12
    assert variance_formula("logistic") == sp.pi**2 / 3
    # The hyperbolic secant distribution, and Laplace's.
    assert variance_formula(2 / sp.pi * sp.atan(sp.sinh(x))) == sp.pi**2 / 4
    assert variance_formula(sp.sign(x) * (1 - sp.exp(-sp.Abs(x)))) == 2


@pytest.mark.slow
def test_activation_without_closed_form():
    # Gumbel's distribution, with mean γ_E and variance π²/6.
    phi = sp.exp(-sp.exp(-x))
    with mpmath.workdps(60):
        expected = mpmath.euler**2 + mpmath.pi**2 / 6
    assert gap(precise_variance(phi, 50), expected) < 1e-50
    assert gap(number(variance_formula(phi), 25), expected) < 1e-24
    exact = number(divergence_formula(phi).subs(VARIANCE, sp.Rational(4, 5)), 25)
    assert gap(exact, precise_divergence(phi, 0.8, 30)) < 1e-15
    assert divergence(phi, 0.8) == pytest.approx(float(exact), rel=1e-15)


def test_algebraic_tails():
    phi = x / (1 + x**4) ** sp.Rational(1, 4)
    exact = sp.sqrt(sp.pi) * sp.gamma(sp.Rational(3, 4)) / (4 * sp.gamma(sp.Rational(5, 4)))
    assert variance_formula(phi) == exact
    assert gap(precise_variance(phi, 50), number(exact)) < 1e-50


def test_divergence_keeps_the_shape_of_the_variances():
    variances = np.array([[0.25, 0.5], [1.0, 2.0]])
    values = divergence("tanh", variances)
    assert values.shape == (2, 2)
    assert values[1, 0] == same(divergence("tanh", 1.0))
    assert isinstance(divergence("tanh", 1), float)


@pytest.mark.parametrize(
    "phi",
    [
        "relu",
        "leaky_relu",
        "linear",
        slow("gelu"),
        slow("swish"),
        "sin",
        sp.exp(x),
        sp.log(1 + x**2),
    ],
)
def test_unbounded_or_oscillating_activations(phi):
    with pytest.raises(ValueError, match="activation must have finite limits at ±∞"):
        maximum_entropy_variance(phi)


@pytest.mark.parametrize("function", [divergence_formula, variance_formula, precise_variance])
def test_every_entry_checks_the_activation(function):
    with pytest.raises(ValueError, match="got relu"):
        function("relu")


@pytest.mark.parametrize(
    "phi",
    [
        slow(x * sp.exp(-(x**2))),
        slow(sp.erf(x) * sp.exp(-(x**2))),
        slow(sp.tanh(x) * (1 + 2 * sp.exp(-(x**2)))),
        sp.sign(x),
        sp.sign(x) + sp.erf(x),
        slow((sp.Abs(x + 1) - sp.Abs(x - 1)) / 2),
    ],
)
def test_activations_that_are_not_monotone(phi):
    with pytest.raises(ValueError, match="activation must be continuous and strictly monotone"):
        maximum_entropy_variance(phi)


@pytest.mark.parametrize(
    "phi", [slow(2 / sp.pi * sp.atan(x)), slow(x / (1 + sp.Abs(x))), x / sp.sqrt(1 + x**2)]
)
def test_activations_without_a_second_moment(phi):
    with pytest.raises(ValueError, match="activation must saturate faster than 1/h²"):
        maximum_entropy_variance(phi)


def test_limits_that_sympy_does_not_find_are_an_error():
    with pytest.raises(ValueError, match="activation must have limits that SymPy finds"):
        maximum_entropy_variance(sp.Max(-1, sp.Min(1, x)))


@pytest.mark.slow
def test_limits_that_sympy_gets_wrong_at_infinity():
    # sympy.limit(atan(x³ + x), x, −∞) is π/2 in SymPy 1.14.
    assert maximum_entropy_variance(sp.atan(x**3 + x)) == pytest.approx(1.5097553324933854)


def test_jump_without_a_delta_function_is_noticed():
    phi = sp.erf(x) + sp.Piecewise((0, x < 0), (1, True))
    with pytest.raises(PrecisionError, match="the density of .* did not reach 25 digits"):
        maximum_entropy_variance(phi)


@pytest.mark.parametrize("variance", [0.0, -1.0, float("inf"), float("nan"), [0.5, 0.0]])
def test_bad_variances(variance):
    with pytest.raises(ValueError, match="variance must be"):
        divergence("erf", variance)
    if not isinstance(variance, list):
        with pytest.raises(ValueError, match="variance must be a finite real number > 0"):
            precise_divergence("erf", variance)


def test_bad_activations_and_digits():
    with pytest.raises(ValueError, match="activation must be one of"):
        divergence("arf", 0.5)
    with pytest.raises(TypeError, match="activation must be a SymPy expression"):
        divergence(3, 0.5)
    with pytest.raises(ValueError, match="digits must be an integer >= 1"):
        precise_divergence("erf", 0.5, 0)
