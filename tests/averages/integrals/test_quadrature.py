"""Float64 quadrature over six decades of variance and all correlations, against other routes."""

import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fieldtheory.averages import precise
from fieldtheory.averages.integrals.quadrature import QuadratureError, average_1d, by_parts_1d
from fieldtheory.averages.integrals.two_variables import average_2d, connected_2d
from fieldtheory.networks.activations import ACTIVATIONS
from tests.oracles import exact
from tests.oracles import quadrature as oracle
from tests.tables import slow, some

x, y = sp.symbols("x y", real=True)
NAMES = ["erf", "gelu", "leaky_relu", "linear", "logistic", "relu", "sin", "swish", "tanh"]
KINKED = ("relu", "leaky_relu")
VARIANCES = [1e-3, 0.05, 1.0, 30.0, 1e3]
PAIRS = [(1e-3, 1e-3), (0.05, 0.3), (1.0, 1.0), (30.0, 2.0), (1e3, 1e3), (1e-3, 1e3)]
CORRELATIONS = [1.0, 0.99, 0.3, 0.0, -0.5, -0.99, -1.0]


def numpy_function(name):
    if name == "relu":
        return lambda u: np.maximum(u, 0.0)
    if name == "leaky_relu":
        return lambda u: np.where(u > 0, u, u / 100)
    return sp.lambdify(x, ACTIVATIONS[name](x), ["scipy", "numpy"])


def kinks(name):
    return (0.0,) if name in KINKED else ()


@pytest.mark.parametrize("name", some(NAMES, NAMES[::2]))
def test_second_moment_against_mpmath(name):
    phi = numpy_function(name)
    variances = VARIANCES if name != "sin" else VARIANCES[:-1]
    values = average_1d(lambda u: phi(u) ** 2, variances, kinks(name))
    F = ACTIVATIONS[name](x) ** 2
    for variance, value in zip(variances, values, strict=True):
        expected = precise.average(F, (x,), [[mpmath.mpf(variance)]], 16)
        assert value == pytest.approx(float(expected), rel=1e-13)


@pytest.mark.parametrize("name", some(NAMES, {"relu", "swish", "sin"}))
def test_pairs_against_the_oracle(name):
    """sin oscillates too fast for the oracle at large variance; see its closed form below."""
    phi = numpy_function(name)
    for a, b in PAIRS[1:3] if name == "sin" else PAIRS[1::2]:
        size = np.sqrt(oracle.average1(lambda u: phi(u) ** 2, a))
        size *= np.sqrt(oracle.average1(lambda u: phi(u) ** 2, b))
        for correlation in CORRELATIONS:
            c = correlation * np.sqrt(a * b)
            value = average_2d(lambda u, v: phi(u) * phi(v), a, b, c, (kinks(name), kinks(name)))
            expected = oracle.average2(lambda u, v: phi(u) * phi(v), [[a, c], [c, b]])
            assert abs(value - expected) < 1e-12 * size


@pytest.mark.parametrize("name", some(NAMES, {"leaky_relu", "tanh", "gelu"}))
def test_connected_against_the_oracle(name):
    phi = numpy_function(name)
    for a, b in PAIRS[1:3] if name == "sin" else PAIRS[::2]:
        means = [oracle.average1(lambda u: phi(u) ** 2, v) for v in (a, b)]
        for correlation in (1.0, 0.99, 0.3, -0.5, -0.99):
            c = correlation * np.sqrt(a * b)
            value = connected_2d(
                lambda u: phi(u) ** 2, lambda u: phi(u) ** 2, a, b, c, (kinks(name), kinks(name))
            )
            expected = oracle.average2(
                lambda u, v, m=means: (phi(u) ** 2 - m[0]) * (phi(v) ** 2 - m[1]),
                [[a, c], [c, b]],
            )
            assert value == pytest.approx(expected, rel=2e-12)


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_erf_and_relu_against_closed_forms(a, b):
    erf, relu = numpy_function("erf"), numpy_function("relu")
    for correlation in CORRELATIONS:
        c = correlation * np.sqrt(a * b)
        with mpmath.workdps(20):
            expected = float(exact.erf_average(a, b, c))
            kernel = float(exact.relu_average(1, mpmath.mpf(a), b, c))
        assert average_2d(lambda u, v: erf(u) * erf(v), a, b, c) == pytest.approx(
            expected, rel=1e-12, abs=1e-15 * np.sqrt(a * b) / (1 + a + b)
        )
        assert average_2d(
            lambda u, v: relu(u) * relu(v), a, b, c, ((0.0,), (0.0,))
        ) == pytest.approx(kernel, rel=1e-12, abs=1e-14 * np.sqrt(a * b))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tanh", "gelu", "swish", "leaky_relu"])
@pytest.mark.parametrize(("a", "b"), PAIRS[:4])
def test_pairs_against_mpmath(name, a, b):
    phi = numpy_function(name)
    F = ACTIVATIONS[name](x) * ACTIVATIONS[name](y)
    for correlation in (0.9, -0.5):
        c = correlation * np.sqrt(a * b)
        matrix = [[mpmath.mpf(v) for v in row] for row in ((a, c), (c, b))]
        expected = precise.average(F, (x, y), matrix, 13)
        value = average_2d(lambda u, v: phi(u) * phi(v), a, b, c, (kinks(name), kinks(name)))
        assert value == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_identical_inputs_agree_with_one_input(name):
    phi = numpy_function(name)
    variances = np.array(VARIANCES[:-1])
    pair = average_2d(
        lambda u, v: phi(u) * phi(v), variances, variances, variances, (kinks(name), kinks(name))
    )
    single = average_1d(lambda u: phi(u) ** 2, variances, kinks(name))
    np.testing.assert_allclose(pair, single, rtol=1e-13)
    spread = connected_2d(phi, phi, variances, variances, variances, (kinks(name), kinks(name)))
    mean = average_1d(phi, variances, kinks(name))
    np.testing.assert_allclose(spread, single - mean**2, rtol=1e-10, atol=0)


@pytest.mark.parametrize("kink", [-3.0, 0.0, 0.7, 40.0])
@pytest.mark.parametrize("variance", [0.05, 1.0, 900.0])
def test_kinks_away_from_zero(kink, variance):
    """⟨|h − k|⟩ = s √(2/π) e^{−k²/2s²} + k erf(k/(s√2))."""
    s = np.sqrt(variance)
    exact_value = s * np.sqrt(2 / np.pi) * np.exp(-(kink**2) / (2 * variance))
    exact_value += kink * float(mpmath.erf(kink / (s * mpmath.sqrt(2))))
    value = average_1d(lambda u: np.abs(u - kink), variance, (kink,))
    assert value == pytest.approx(exact_value, rel=1e-13)


def test_kinks_in_two_variables():
    """⟨|x − 1| |y + 2|⟩ by the oracle in shifted steps: |u| = u (2θ(u) − 1)."""
    matrix = [[2.0, 0.9], [0.9, 0.6]]
    value = average_2d(lambda u, v: np.abs(u - 1) * np.abs(v + 2), 2.0, 0.6, 0.9, ((1.0,), (-2.0,)))
    F = sp.Abs(x - 1) * sp.Abs(y + 2)
    expected = precise.average(
        F, (x, y), [[2, sp.Rational(9, 10)], [sp.Rational(9, 10), sp.Rational(3, 5)]], 15
    )
    assert value == pytest.approx(float(expected), rel=1e-12)
    assert matrix[0][1] ** 2 < matrix[0][0] * matrix[1][1]


def test_variables_without_variance():
    assert average_1d(np.cos, 0.0) == 1.0
    assert average_2d(lambda u, v: np.cos(u) + np.sin(v), 0.0, 0.0, 0.0) == 1.0
    single = average_1d(np.cos, 0.8)
    assert average_2d(lambda u, v: np.cos(u + v), 0.0, 0.8, 0.0) == pytest.approx(single, rel=1e-14)
    assert average_2d(lambda u, v: np.cos(u + v), 0.8, 0.0, 0.0) == pytest.approx(single, rel=1e-14)


def test_shapes():
    variances = np.array([[0.5], [2.0]])
    assert average_1d(np.cos, variances).shape == (2, 1)
    values = average_2d(np.multiply, variances, np.array([1.0, 2.0, 3.0]), 0.1)
    assert values.shape == (2, 3)
    np.testing.assert_allclose(values, 0.1, rtol=1e-12)
    assert connected_2d(np.square, np.square, variances, 1.0, 0.2).shape == (2, 1)


@pytest.mark.parametrize(
    "f",
    [
        slow(lambda u: np.sign(u - 0.4321)),
        lambda u: np.log(u),
        lambda u: np.exp(u**2),
        slow(lambda u: 1 / u**2),
    ],
)
def test_nasty_integrands_raise(f):
    with pytest.raises(QuadratureError, match="did not reach"):
        average_1d(f, 1.0)
    with pytest.raises(QuadratureError, match="did not reach"):
        average_2d(lambda u, v: f(u) * np.cos(v), 1.0, 1.0, 0.3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("f", "expected"),
    [
        # ∫ N(u; 0, 1) √|u − 0.123| du, to 15 digits.
        (lambda u: np.sqrt(np.abs(u - 0.123)), 0.825282774587742),
        (lambda u: np.cos(1e4 * u), 0.0),
    ],
)
def test_panels_halve_towards_what_is_nasty_in_one_variable_alone(f, expected):
    assert average_1d(f, 1.0) == pytest.approx(expected, rel=1e-12, abs=1e-15)
    with pytest.raises(QuadratureError, match="did not reach"):
        average_2d(lambda u, v: f(u) * np.cos(v), 1.0, 1.0, 0.3)


@pytest.mark.parametrize("variance", [1.0, 9.0, 25.0, 100.0])
def test_growing_integrands_are_right_or_raise(variance):
    """⟨exp h⟩ = exp(K/2): its peak moves out of any fixed range."""
    try:
        value = average_1d(np.exp, variance)
    except QuadratureError:
        assert variance > 9
    else:
        assert value == pytest.approx(np.exp(variance / 2), rel=1e-12)


@settings(max_examples=8)
@given(
    a=st.floats(1e-3, 1e3),
    b=st.floats(1e-3, 1e3),
    correlation=st.floats(-1, 1),
    name=st.sampled_from(["tanh", "swish", "leaky_relu"]),
)
def test_cauchy_schwarz_and_symmetry(a, b, correlation, name):
    phi = numpy_function(name)
    c = correlation * np.sqrt(a * b)
    cuts = kinks(name)
    pair = average_2d(lambda u, v: phi(u) * phi(v), a, b, c, (cuts, cuts))
    bound = np.sqrt(np.prod(average_1d(lambda u: phi(u) ** 2, [a, b], cuts)))
    assert abs(pair) <= bound * (1 + 1e-12)
    swapped = average_2d(lambda u, v: phi(u) * phi(v), b, a, c, (cuts, cuts))
    assert swapped == pytest.approx(pair, rel=1e-11, abs=1e-12 * bound)


@pytest.mark.parametrize("variance", [0.3, 2.0, 10.9689, 1e3, 1e6])
@pytest.mark.parametrize(
    ("function", "places"),
    [
        (lambda h, m: (m.tanh(h) + m.exp(-5000 * h**2)) ** 2, (0,)),
        (lambda h, m: 1 / (1 + 10000 * h**2) ** 2, (0,)),
        (lambda h, m: (h / (1 + 10000 * (h - 1) ** 2)) ** 2, (1,)),
        (lambda h, m: h**2 * m.exp(-10000 * (h - 1) ** 2), (1,)),
        (lambda h, m: m.tanh(h) ** 2 / m.cosh(80 * (h + 2)), (-2,)),
    ],
)
def test_what_is_narrow_is_halved_out(function, places, variance):
    found = average_1d(lambda h: function(h, np), np.array(variance))
    with mpmath.workdps(25):
        root = mpmath.sqrt(mpmath.mpf(variance))
        near = {p + s * mpmath.mpf(10) ** -k for p in places for k in range(-3, 4) for s in (-1, 1)}
        ends = {s * root * n for s in (-1, 1) for n in (0.25, 0.5, 1, 2, 4, 6, 8, 12)}
        cuts = sorted(
            c for c in near | ends | {mpmath.mpf(p) for p in places} if abs(c) <= 12 * root
        )
        exact = mpmath.quad(lambda h: function(h, mpmath) * mpmath.npdf(h, 0, root), cuts)
    assert found == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize(
    ("function", "variance"), [(lambda h: np.floor(h + 0.123), 9.0), (lambda h: 1 + h - 1, 1e-30)]
)
def test_jumps_that_nobody_named(function, variance):
    """Also those that rounding makes."""
    with pytest.raises(QuadratureError, match="did not reach the relative tolerance"):
        average_1d(lambda h: np.abs(function(h)), np.array(variance))


def test_noise_is_refused_in_time():
    with pytest.raises(QuadratureError, match="did not reach the relative tolerance"):
        average_1d(lambda h: np.sin(1e9 * h) ** 2, np.array(2.0))


@pytest.mark.parametrize("other", [1.0 + 1e-7, 1.0 + 1e-13])
def test_forms_that_cancel_little_are_not_given_up(other):
    """⟨h²⟩ = ⟨h² + 10 (h⁴ − 3h²)⟩ loses a digit or two, and the other form has no estimate."""
    form = (lambda h, K: h**2 + 10 * (h**4 - 3 * K * h**2), np.reciprocal)
    found = by_parts_1d([form], lambda K: np.full(K.shape, other), np.array([0.5, 2.0]))
    np.testing.assert_allclose(found, 1.0, rtol=1e-12)
