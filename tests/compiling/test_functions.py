"""Symbolic results as numeric functions: backends, shapes, stability, errors."""

import itertools

import mpmath
import numpy as np
import pytest
import sympy as sp
from mpmath import mpf
from scipy.special import erf

from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.compiling.functions import lambdify
from fieldtheory.networks.activations import ACTIVATIONS, as_activation
from tests.oracles import exact, parallel
from tests.oracles import quadrature as oracle
from tests.tables import slow

x, y, z, p = sp.symbols("x y z p", real=True)
c = sp.Symbol("c", real=True)
K, a, b = sp.symbols("K a b", positive=True)
K2 = sp.Matrix([[a, c], [c, b]])
NAMES = ["erf", "gelu", "leaky_relu", "linear", "logistic", "relu", "sin", "swish", "tanh"]
POINTS = [(0.7, 1.3, -0.4), (0.05, 0.06, 0.05), (20.0, 3.0, 7.0)]
ELU = sp.Piecewise((x, x > 0), (sp.exp(x) - 1, True))


def second_moment(name):
    return GaussianAverage(ACTIVATIONS[name](x) ** 2, x, K)


def pair(name):
    phi = ACTIVATIONS[name]
    return GaussianAverage(phi(x) * phi(y), (x, y), K2)


def connected(name):
    phi = ACTIVATIONS[name]
    return ConnectedCorrelator(phi(x) ** 2, phi(y) ** 2, (x, y), K2)


# Backends -----------------------------------------------------------------------------------


@pytest.mark.slow_but(0, 2, 3, 5, 6)
@pytest.mark.parametrize("name", NAMES)
def test_backends_agree_for_one_variable(name):
    entries = [second_moment(name), second_moment(name).diff(K)]
    fast, exact_ = lambdify([K], entries), lambdify([K], entries, "mpmath")
    for variance in (1e-3, 0.3, 30.0):
        with mpmath.workdps(17):
            expected = exact_(mpf(variance))
        np.testing.assert_allclose(fast(variance), np.array(expected, dtype=float), rtol=1e-12)


@pytest.mark.parametrize("name", [slow("tanh"), "relu", slow("erf")])
def test_backends_agree_for_two_variables(name):
    entries = [pair(name), *(pair(name).diff(s) for s in (a, c)), connected(name)]
    fast, exact_ = lambdify([a, b, c], entries), lambdify([a, b, c], entries, "mpmath")
    point = POINTS[0]
    with mpmath.workdps(13):
        expected = exact_(*map(mpf, point))
    np.testing.assert_allclose(fast(*point), np.array(expected, dtype=float), rtol=1e-11)


def test_mpmath_follows_the_precision_at_the_call():
    function = lambdify([K], [second_moment("erf"), second_moment("tanh")], "mpmath")
    with mpmath.workdps(40):
        closed, integrated = function(mpf(1) / 3)
        assert mpmath.almosteq(closed, exact.erf_average(*[mpf(1) / 3] * 3), mpf("1e-38"))
    node = second_moment("tanh").subs(K, sp.Rational(1, 3))
    with mpmath.workdps(40):
        assert mpmath.almosteq(integrated, mpf(node.evalf(40)), mpf("1e-37"))


@pytest.mark.slow_but(0, 3, 4, 5, 8)
@pytest.mark.parametrize("name", NAMES)
def test_connected_against_the_oracle(name):
    function = lambdify([a, b, c], connected(name))
    phi = sp.lambdify(x, ACTIVATIONS[name](x), ["scipy", {"amax": _max, "amin": _min}, "numpy"])
    for A, B, C in POINTS[:2]:
        means = [oracle.average1(lambda u: phi(u) ** 2, v) for v in (A, B)]
        expected = oracle.average2(
            lambda u, v, m=means: (phi(u) ** 2 - m[0]) * (phi(v) ** 2 - m[1]), [[A, C], [C, B]]
        )
        assert function(A, B, C) == pytest.approx(expected, rel=1e-11)


def _max(values, axis):
    return np.maximum(*values)


def _min(values, axis):
    return np.minimum(*values)


# Special covariances --------------------------------------------------------------------------


@pytest.mark.slow_but(0, 3, 5)
@pytest.mark.parametrize("name", NAMES)
def test_singular_covariances_are_finite(name):
    moments = lambdify([K], second_moment(name))
    pairs = lambdify([a, b, c], [pair(name), pair(name).diff(c), connected(name)])
    for variance in (0.05, 1.0, 17.3):
        equal = pairs(variance, variance, variance)
        assert np.isfinite(equal).all()
        assert equal[0] == pytest.approx(moments(variance), rel=1e-12)
        scaled = pairs(variance, 4 * variance, 2 * variance)
        rounded = pairs(variance, 4 * variance, 2 * variance * (1 + 2e-16))
        np.testing.assert_allclose(scaled, rounded, rtol=1e-7)


def line(intercept, slope):
    return lambda h: (intercept + slope * h, slope + 0 * h, 0 * h)


def tanh_shifted(h):
    t = np.tanh(h - 0.25)
    return t, 1 - t**2, -2 * t * (1 - t**2)


ZERO = line(0, 0)
KINKED = [
    ("hard_tanh", (-1, 1), [line(-1, 0), line(0, 1), line(1, 0)], (1, -1, 2, -0.5)),
    ("hard_sigmoid", (-3, 3), [ZERO, line(0.5, 1 / 6), line(1, 0)], (1, -1)),
    ("relu6", (0, 6), [ZERO, line(0, 1), line(6, 0)], (1, -0.5)),
    ("softshrink", (-0.5, 0.5), [line(0.5, 1), ZERO, line(-0.5, 1)], (1, -1, 2)),
    ("relu(h - 0.5)", (0.5,), [ZERO, line(-0.5, 1)], (1, -1, 2)),
    ("min(relu(h-0.25), 1)", (0.25, 1.25), [ZERO, line(-0.25, 1), line(1, 0)], (1, 2)),
    ("max(0, tanh(h-0.25))", (0.25,), [ZERO, tanh_shifted], (1, -1)),
    ("hardshrink", (-0.5, 0.5), [line(0, 1), ZERO, line(0, 1)], (2, -0.5)),
]


@pytest.mark.slow
@pytest.mark.parametrize("name, at, pieces, ratios", KINKED, ids=[row[0] for row in KINKED])
def test_derivatives_of_parallel_inputs_with_kinks(name, at, pieces, ratios):
    product = as_activation(name)(x) * as_activation(name)(y)
    node = GaussianAverage(product, (x, y), K2)
    function = lambdify([a, b, c], [node.diff(a), node.diff(c)])
    for variance, ratio in itertools.product((0.5, 20.0), ratios):
        expected = parallel.derivatives(at, pieces, variance, ratio)
        found = function(variance, ratio**2 * variance, ratio * variance)
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-14)


@pytest.mark.slow_but(0, 1)
@pytest.mark.parametrize("backend", ["numpy", "mpmath"])
@pytest.mark.parametrize("name", ["sign", "hardshrink"])
def test_derivatives_diverge_where_signals_jump_together(name, backend):
    product = as_activation(name)(x) * as_activation(name)(y)
    node = GaussianAverage(product, (x, y), K2)
    function = lambdify([a, b, c], node.diff(a), backend)
    assert function(1.0, 1.0, 1.0) == -np.inf and function(1.0, 1.0, -1.0) == np.inf


@pytest.mark.slow
def test_divergent_terms_of_both_signs_are_refused():
    """Opposite inputs whose jumps at ±1 differ in sign, those at ±2 do not."""
    phi = as_activation("heaviside(h-1) - heaviside(h+1) + heaviside(h-2) + heaviside(h+2)")
    node = GaussianAverage(phi(x) * phi(y), (x, y), K2)
    with pytest.raises(QuadratureError, match="jumps of both signs"):
        lambdify([a, b, c], node.diff(a))(1.0, 1.0, -1.0)


@pytest.mark.parametrize("sign", [slow(1), -1])
def test_closed_forms_of_parallel_inputs_with_kinks(sign):
    """−N(1; 0, K) of hard tanh, as an expression and as a number."""
    phi = as_activation("hard_tanh")
    slope = GaussianAverage(phi(x) * phi(y), (x, y), K2).diff(a)
    identical = slope.subs({b: a, c: sign * a}, simultaneous=True).doit()
    assert sp.simplify(identical + sign * sp.exp(-1 / (2 * a)) / sp.sqrt(2 * sp.pi * a)) == 0
    scaled = slope.subs({a: 1, b: 4, c: 2 * sign}, simultaneous=True)
    assert float(scaled.evalf(20)) == pytest.approx(-sign * np.exp(-0.5) / np.sqrt(2 * np.pi))


@pytest.mark.slow_but(0, 3, 4, 5, 7, 8)
@pytest.mark.parametrize("name", NAMES)
def test_no_covariance(name):
    """At c = 0 the pair factorises and the connected correlator vanishes."""
    means = lambdify([K], GaussianAverage(ACTIVATIONS[name](x), x, K))
    both, spread = lambdify([a, b, c], [pair(name), connected(name)])(0.7, 2.0, 0.0)
    assert both == pytest.approx(means(0.7) * means(2.0), rel=1e-13, abs=1e-16)
    assert abs(spread) < 1e-15
    zero = lambdify([a, b], pair(name).subs(c, 0))
    assert zero(0.7, 2.0) == pytest.approx(both, rel=1e-13, abs=1e-16)


@pytest.mark.parametrize("name", NAMES)
def test_no_variance(name):
    value = float(ACTIVATIONS[name](sp.S.Zero)) ** 2
    assert lambdify([K], second_moment(name))(0.0) == value
    assert lambdify([a, b, c], pair(name))(0.0, 0.0, 0.0) == value


KINKED = {
    "abs(h-1)+tanh": sp.Abs(x - 1) + sp.tanh(x),
    "hardtanh": sp.Max(-1, sp.Min(1, x)),
    "relu(h-1/2)": sp.Max(0, x - sp.Rational(1, 2)),
    "elu": ELU,
}


@pytest.mark.slow_but(1)
@pytest.mark.parametrize("name", KINKED)
@pytest.mark.parametrize("backend", ["numpy", "mpmath"])
def test_kinks_contribute_to_the_derivative(name, backend):
    """M' holds δ-functions; against a central difference of M."""
    moment = GaussianAverage(KINKED[name] ** 2, x, K)
    value, slope = (lambdify([K], e, backend) for e in (moment, moment.diff(K)))
    with mpmath.workdps(20):
        step = 1e-3 if backend == "numpy" else mpf("1e-6")
        weights = (4 / 5, -1 / 5, 4 / 105, -1 / 280) if backend == "numpy" else (1 / mpf(2),)
        differences = sum(
            w * (value(1 + k * step) - value(1 - k * step)) / step
            for k, w in enumerate(weights, start=1)
        )
        assert float(slope(1)) == pytest.approx(float(differences), rel=1e-10)


def test_large_variance_does_not_overflow():
    """ELU is exp(h) − 1 for h < 0 only: M → K/2 + 1/2, never NaN from exp(h) at h > 0."""
    M = lambdify([K], GaussianAverage(ELU**2, x, K))
    with mpmath.workdps(15):
        expected = lambdify([K], GaussianAverage(ELU**2, x, K), "mpmath")(mpf(10) ** 6)
    assert M(1e6) == pytest.approx(float(expected), rel=1e-12)


# Shapes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["erf", "tanh"])
def test_arrays_broadcast(name):
    function = lambdify([a, b, c], pair(name))
    A, B, C = np.array([[0.5], [1.0]]), np.array([1.0, 2.0, 3.0]), 0.3
    values = function(A, B, C)
    assert values.shape == (2, 3)
    assert values[1, 2] == pytest.approx(float(function(1.0, 3.0, 0.3)), rel=1e-14)


def test_matrices_and_lists():
    entries = sp.Matrix([[second_moment("erf"), 0], [K, sp.Integer(2)]])
    values = lambdify([K], entries)(np.array([0.5, 1.0, 2.0]))
    assert values.shape == (3, 2, 2)
    np.testing.assert_array_equal(values[:, 0, 1], 0.0)
    np.testing.assert_array_equal(values[:, 1, 0], [0.5, 1.0, 2.0])
    np.testing.assert_array_equal(values[:, 1, 1], 2.0)
    assert lambdify([K], entries)(0.5).shape == (2, 2)
    nested = lambdify([K], [second_moment("erf"), [K, 1]])(0.5)
    assert nested[1][0] == 0.5
    with mpmath.workdps(30):
        rows = lambdify([K], entries, "mpmath")(mpf(1))
        assert rows[1][0] == 1 and len(rows) == 2


def test_constants_take_the_shape_of_the_arguments():
    assert lambdify([K], sp.Integer(3))(np.zeros(4)).shape == (4,)
    assert lambdify([K], [sp.Integer(3), K])(np.ones((2, 1)))[0].shape == (2, 1)


def test_averages_inside_expressions():
    expression = sp.sqrt(1 + p * second_moment("tanh")) / second_moment("erf")
    value = lambdify([K, p], expression)(0.6, 2.0)
    tanh2 = oracle.average1(lambda u: np.tanh(u) ** 2, 0.6)
    erf2 = oracle.average1(lambda u: erf(u) ** 2, 0.6)
    assert value == pytest.approx(np.sqrt(1 + 2 * tanh2) / erf2, rel=1e-13)


def test_mixed_observables():
    """⟨tanh(x)²;y²⟩, the two observables in either order."""
    for F, G in ((sp.tanh(x) ** 2, y**2), (y**2, sp.tanh(x) ** 2)):
        value = lambdify([a, b, c], ConnectedCorrelator(F, G, (x, y), K2))(0.7, 1.3, -0.4)
        expected = oracle.average2(
            lambda u, v: np.tanh(u) ** 2 * (v * v - 1.3), [[0.7, -0.4], [-0.4, 1.3]]
        )
        assert value == pytest.approx(expected, rel=1e-12)


# Errors ---------------------------------------------------------------------------------------

phi = sp.Function("phi")


@pytest.mark.parametrize(
    ("arguments", "expression", "message"),
    [
        ([K], second_moment("erf") * p, "arguments must contain every symbol .* missing p"),
        ([], second_moment("tanh"), "arguments must contain every symbol .* missing K"),
        ([K, p], GaussianAverage(sp.tanh(p * x), x, K) + 1, None),
        (
            [K, p],
            GaussianAverage(sp.tanh(p * x) ** 2, x, K),
            "expression must have a number for p inside the average",
        ),
        ([K], GaussianAverage(phi(x), x, K), "expression must have a known"),
        ([a, b, c], ConnectedCorrelator(phi(x), phi(y), (x, y), K2), "must have a known"),
        (
            [K, p],
            ConnectedCorrelator(sp.tanh(p * x) * y, sp.tanh(x) * y, (x, y), sp.eye(2)),
            "must have a number for p inside",
        ),
        (
            [K],
            GaussianAverage(sp.Max(x * y, z) * z, (x, y, z), sp.ones(3) * K / 2 + sp.eye(3)),
            "cannot locate the kinks|sums of products of functions of one variable",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("backend", ["numpy", "mpmath"])
def test_errors(arguments, expression, message, backend):
    if message is None:  # an odd integrand: nothing is left to evaluate
        assert lambdify(arguments, expression, backend)(1, 1) == 1
        return
    with pytest.raises(ValueError, match=message) as caught:
        lambdify(arguments, expression, backend)
    assert "\n" not in str(caught.value)


def test_unknown_backend():
    with pytest.raises(ValueError, match="backend must be one of numpy, mpmath, got 'torch'"):
        lambdify([K], second_moment("erf"), backend="torch")


def test_a_single_symbol_is_no_sequence():
    with pytest.raises(TypeError, match="^arguments must be a sequence of symbols, got K$"):
        lambdify(K, second_moment("erf"))


def test_nothing_is_silently_wrong():
    function = lambdify([K], GaussianAverage(sp.cos(sp.sinh(x)), x, K))
    with pytest.raises(QuadratureError, match="did not reach"):
        function(30.0)
