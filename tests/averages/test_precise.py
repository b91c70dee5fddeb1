"""mpmath integration: digits reached, refusals, and agreement with the oracle."""

import mpmath
import pytest
import sympy as sp
from mpmath import mpf

from fieldtheory.averages import precise
from fieldtheory.networks.activations import ACTIVATIONS
from tests.oracles import exact
from tests.oracles import precise as oracle
from tests.tables import crossed, slow

x, y = sp.symbols("x y", real=True)
R = sp.Rational


@pytest.mark.slow_but(3)
@pytest.mark.parametrize(("variance", "digits"), crossed([R(1, 10**6), R(1), R(10**4)], [50, 15]))
def test_erf_to_many_digits(variance, digits):
    value = precise.average(sp.erf(x) ** 2, (x,), [[variance]], digits)
    with mpmath.workdps(digits + 10):
        K = mpf(variance.p) / variance.q
        assert mpmath.almosteq(value, exact.erf_average(K, K, K), mpf(10) ** (1 - digits))


@pytest.mark.slow_but(1, 2, 3)
@pytest.mark.parametrize(
    ("F", "expected"),
    [
        (sp.Abs(x - 1), lambda s: s * mpmath.sqrt(2 / mpmath.pi) * mpmath.exp(-1 / (2 * s * s))
         + mpmath.erf(1 / (s * mpmath.sqrt(2)))),
        (sp.Heaviside(x - 2), lambda s: mpmath.erfc(2 / (s * mpmath.sqrt(2))) / 2),
        (sp.Piecewise((0, x < -1), (1, x < 1), (0, True)),
         lambda s: mpmath.erf(1 / (s * mpmath.sqrt(2)))),
        (sp.Max(-1, sp.Min(1, x)) ** 2, lambda s: s * s * mpmath.erf(1 / (s * mpmath.sqrt(2)))
         - s * mpmath.sqrt(2 / mpmath.pi) * mpmath.exp(-1 / (2 * s * s))
         + mpmath.erfc(1 / (s * mpmath.sqrt(2)))),
    ],
)  # fmt: skip
@pytest.mark.parametrize("variance", [R(1, 4), R(9), R(400)])
def test_kinks_away_from_zero(F, expected, variance):
    value = precise.average(F, (x,), [[variance]], 30)
    with mpmath.workdps(35):
        reference = expected(mpmath.sqrt(mpf(variance.p) / variance.q))
        assert abs(value - reference) < mpf("1e-28") * max(1, abs(reference))


@pytest.mark.parametrize(
    ("K", "digits"),
    [
        slow(("1", "2", "0.3"), 16),
        slow(("1", "2", "1e-9"), 20),
        slow(("1", "2", "1.3"), 20),
        (("0.01", "30", "-0.2"), 16),
        # Strong coupling takes nested panels, about a minute at 16 digits.
        slow(("1", "2", "1.41"), 8),
    ],
)
def test_two_variables_against_closed_forms(K, digits):
    A, B, C = map(sp.Rational, K)
    erf = precise.average(sp.erf(x) * sp.erf(y), (x, y), [[A, C], [C, B]], digits)
    relu = precise.average(sp.Max(0, x) * sp.Max(0, y), (x, y), [[A, C], [C, B]], digits)
    with mpmath.workdps(25):
        a, b, c = (mpf(v.p) / v.q for v in (A, B, C))
        tolerance = mpf(10) ** (2 - digits)
        assert mpmath.almosteq(erf, exact.erf_average(a, b, c), tolerance)
        assert mpmath.almosteq(relu, exact.relu_average(1, a, b, c), tolerance)


@pytest.mark.parametrize("c", [slow("0.5"), slow("-1.3"), "1e-8"])
def test_kinks_away_from_zero_of_two_variables(c):
    """⟨|x−1|'' |y+½|''⟩/4 is a density; here ⟨θ(x−1) θ(y+½)⟩ by an integral of it over c."""
    a, b, c = R(1), R(2), R(c)
    found = precise.average(
        sp.Heaviside(x - 1) * sp.Heaviside(y + R(1, 2)), (x, y), [[a, c], [c, b]], 20
    )
    with mpmath.workdps(25):
        A, B, C = (mpf(v.p) / v.q for v in (a, b, c))

        def density(t):
            minor = A * B - t * t
            return mpmath.exp(-(B - 2 * t * mpf(-0.5) + A * mpf("0.25")) / (2 * minor)) / (
                2 * mpmath.pi * mpmath.sqrt(minor)
            )

        apart = mpmath.ncdf(-1) * mpmath.ncdf(mpf("0.5") / mpmath.sqrt(2))
        assert abs(found - apart - mpmath.quad(density, [0, C])) < mpf("1e-19")


@pytest.mark.slow
@pytest.mark.parametrize("c", [R(1, 10**12), R(-1, 2), R(13, 10), slow(R(7, 5))])
def test_connected_to_all_digits_at_any_correlation(c):
    """⟨x² ; y²⟩ = 2c², ⟨erf x ; erf y⟩ is an angle, and ⟨cos x ; cos y⟩ is known."""
    K = [[1, c], [c, 2]]
    with mpmath.workdps(40):
        exact_c = mpf(c.p) / c.q
        cosines = 2 * mpmath.exp(-mpf(3) / 2) * mpmath.sinh(exact_c / 2) ** 2
        for f, expected in (
            (lambda u: u**2, 2 * exact_c**2),
            (sp.erf, exact.erf_average(mpf(1), mpf(2), exact_c)),
            (sp.cos, cosines),
        ):
            value = precise.cumulant([f(x), f(y)], (x, y), K, 12 if c == R(7, 5) else 22)
            assert abs(value / expected - 1) < mpf("1e-11" if c == R(7, 5) else "1e-21")


@pytest.mark.slow
def test_connected_to_all_digits_of_coefficients_that_fall_off_differently():
    """By ⟨cos x⟩ given y, which is exp[−(K_xx − k² K_yy)/2] cos(k y), k = K_xy/K_yy = 9/50."""
    a, b, k, square = R(1, 100), R(1, 4), R(9, 50), sp.tanh(y) ** 2
    value = precise.cumulant([sp.cos(x), square], (x, y), [[a, k * b], [k * b, b]], 20)
    with mpmath.workdps(25):
        given, free = (
            precise.mpf(sp.exp((c * c * b - a) / 2), 25)
            * precise.average(sp.cos(c * y) * square, (y,), [[b]], 25)
            for c in (k, 0)
        )
        assert abs(value / (given - free) - 1) < mpf("1e-19")


@pytest.mark.slow
def test_cumulants_of_more_functions():
    assert precise.cumulant([x, y], (x, y), [[1, 0], [0, 1]], 15) == 0
    value = precise.cumulant([x**2, x**2, x**2], (x,), [[R(3, 2)]], 20)
    assert mpmath.almosteq(value, 27, mpf("1e-19"))
    F = sp.tanh(x) * sp.tanh(y)
    K = [[1, R(1, 2)], [R(1, 2), R(6, 5)]]
    second, first = (precise.average(F**n, (x, y), K, 20) for n in (2, 1))
    found = precise.cumulant([F, F], (x, y), K, 15)
    assert abs(found - (second - first**2)) < 1e-15


@pytest.mark.parametrize("sign", [1, slow(-1)])
def test_singular_covariances(sign):
    """y = ±2x: the average of one variable."""
    F = sp.tanh(x) * sp.atan(y) + sp.Max(0, x - 1) * sp.Max(0, y)
    pair = precise.average(F, (x, y), [[1, 2 * sign], [2 * sign, 4]], 25)
    single = precise.average(F.subs(y, 2 * sign * x), (x,), [[1]], 25)
    assert mpmath.almosteq(pair, single, mpf("1e-23"))


def test_variables_without_variance():
    assert precise.average(sp.cos(x), (x,), [[0]], 20) == 1
    F = sp.cos(x) * sp.tanh(y) ** 2
    single = precise.average(sp.tanh(y) ** 2, (y,), [[3]], 25)
    for order, matrix in (((x, y), [[0, 0], [0, 3]]), ((y, x), [[3, 0], [0, 0]])):
        assert mpmath.almosteq(precise.average(F, order, matrix, 25), single, mpf("1e-23"))


@pytest.mark.slow
def test_inseparable_integrand():
    """⟨cos(xy)⟩ = 1/√(1 + K_xx K_yy) for independent x and y."""
    value = precise.average(sp.cos(x * y), (x, y), [[R(1, 2), 0], [0, R(1, 3)]], 4)
    with mpmath.workdps(15):
        assert mpmath.almosteq(value, 1 / mpmath.sqrt(1 + mpf(1) / 6), mpf("1e-4"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tanh", slow("logistic"), "swish"])
def test_activations_against_the_oracle(name):
    phi = ACTIVATIONS[name]
    F = phi(x) * phi(y)
    value = precise.average(F, (x, y), [[R(1, 2), R(2, 5)], [R(2, 5), R(3)]], 15)
    with mpmath.workdps(14):
        matrix = [[mpf("0.5"), mpf("0.4")], [mpf("0.4"), mpf(3)]]
        expected = oracle.average2(sp.lambdify([x, y], F, "mpmath"), matrix)
        assert mpmath.almosteq(value, expected, mpf("1e-12"))


def test_growth_in_the_tail_is_noticed():
    """exp(5h) at unit variance has its peak at h = 5; a fixed cut would miss digits silently."""
    value = precise.average(sp.exp(5 * x), (x,), [[1]], 20)
    with mpmath.workdps(25):
        assert mpmath.almosteq(value, mpmath.exp(mpf(25) / 2), mpf("1e-18"))
    with pytest.raises(precise.PrecisionError, match="did not reach 20 digits"):
        precise.average(sp.exp(x**2), (x,), [[1]], 20)


@pytest.mark.slow
def test_precision_error_for_a_hidden_kink():
    with pytest.raises(precise.PrecisionError, match="did not reach 30 digits"):
        precise.average((x**2) ** R(1, 3) * sp.cos(40 * x), (x,), [[1]], 30)


def test_bad_input():
    with pytest.raises(ValueError, match="positive semidefinite"):
        precise.average(x * y, (x, y), [[1, 2], [2, 1]], 15)
    three = sp.symbols("h:3", real=True)
    with pytest.raises(ValueError, match="variables must be one or two, got 3"):
        precise.average(sp.Mul(*three), three, sp.eye(3), 15)


def test_precision_of_the_caller_is_kept():
    before = mpmath.mp.dps
    precise.average(x**2, (x,), [[1]], 60)
    assert mpmath.mp.dps == before


def test_signals_may_have_the_names_of_formulas():
    one, other = (sp.Dummy(f"h^{{({l})}}", real=True) for l in range(2))
    K = [[1, sp.Rational(1, 2)], [sp.Rational(1, 2), 2]]
    found = precise.average(sp.exp(one) * sp.tanh(other) ** 2, (one, other), K, 15)
    x, y = sp.symbols("x y", real=True)
    assert found == precise.average(sp.exp(x) * sp.tanh(y) ** 2, (x, y), K, 15)
