"""Averages in balls against mpmath's quadrature, closed forms, and wrong references."""

import mpmath
import numpy as np
import pytest
import sympy as sp

from fieldtheory.averages import precise
from fieldtheory.averages.errors import PrecisionError
from fieldtheory.networks.activations import ACTIVATIONS
from fieldtheory.precision import enclosures, hermite
from fieldtheory.precision.balls import arb, arb_poly, ctx, power_tail
from fieldtheory.precision.enclosures import average, correlator, integral
from fieldtheory.precision.hermite import coefficients
from fieldtheory.precision.majorants import majorant
from tests.tables import crossed, slow

x, y = sp.symbols("x y", real=True)
DIGITS = 40
FUNCTIONS = {
    "erf": mpmath.erf,
    "tanh": mpmath.tanh,
    "gelu": lambda h: h * (1 + mpmath.erf(h / mpmath.sqrt(2))) / 2,
    "relu": lambda h: max(h, mpmath.mpf(0)),
    "hard_tanh": lambda h: max(mpmath.mpf(-1), min(h, mpmath.mpf(1))),
    "swish": lambda h: h / (1 + mpmath.exp(-h)),
}


@pytest.fixture(autouse=True)
def precision():
    with ctx.workprec(110), mpmath.workdps(DIGITS):
        yield


def exact(value):
    return arb(sp.Rational(value).p) / int(sp.Rational(value).q)


def holds(ball, value):
    """Whether a ball contains a number of ``DIGITS`` digits."""
    middle, radius = mpmath.mpf(ball.mid()), mpmath.mpf(ball.rad())
    return abs(middle - value) <= radius + abs(value) * mpmath.mpf(10) ** (2 - DIGITS)


def quadrature(function, K):
    """⟨f⟩ by mpmath's own rule on panels around the kinks."""
    root = mpmath.sqrt(K)
    above = {*(root * k for k in (0, 1, 3, 6, 15)), *(k for k in (1, 4, 40) if k < 15 * root)}
    norm = mpmath.sqrt(2 * mpmath.pi * K)
    return mpmath.quad(
        lambda h: function(h) * mpmath.exp(-h * h / (2 * K)) / norm,
        sorted({*above, *(-k for k in above)}),
    )


@pytest.mark.slow_but(0)
@pytest.mark.parametrize(("name", "K"), crossed(FUNCTIONS, [2.0**-20, 0.5, 30.0]))
def test_one_variable(name, K):
    F, f = ACTIVATIONS[name](x) ** 2, FUNCTIONS[name]
    ball, reference = average(F, [x], [[arb(K)]]), quadrature(lambda h: f(h) ** 2, mpmath.mpf(K))
    assert holds(ball, reference)
    assert not holds(ball, reference * (1 + mpmath.mpf(10) ** -23))
    assert ball.rel_accuracy_bits() > 80
    assert ball.overlaps(integral(F, x, arb(K)))


def test_extreme_variances():
    """tanh² is h² − 2h⁴/3 for narrow signals, and 1 − ⟨sech²⟩ with ⟨sech²⟩ = 2/√(2πK) for wide."""
    small, large = (average(sp.tanh(x) ** 2, [x], [[arb(10) ** n]]) for n in (-12, 6))
    K = arb(10) ** -12
    assert small.overlaps(K - 2 * K**2 + arb(17) / 3 * K**3 + arb(0, 1e-45))
    assert abs(1 - large - 2 / (2 * arb.pi() * 10**6).sqrt()) < 1e-8
    assert small.rel_accuracy_bits() > 90 < large.rel_accuracy_bits()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "K"),
    crossed(
        ["erf", "tanh", "gelu", "relu"],
        [("1/2", "1", "1/2"), ("3/10", "1", "-1/4"), ("2", "2", "0")],
    ),
)
def test_two_variables(name, K):
    a, b, c = map(sp.Rational, K)
    F, G = ACTIVATIONS[name](x) ** 2, ACTIVATIONS[name](y) ** 2
    ball = correlator(F, G, (x, y), [[exact(a), exact(c)], [exact(c), exact(b)]])
    reference = precise.cumulant((F, G), (x, y), [[a, c], [c, b]], 20)
    assert abs(mpmath.mpf(ball.mid()) - reference) <= ball.rad() + abs(reference) * 1e-19
    assert c == 0 or ball.rel_accuracy_bits() > 80


@pytest.mark.parametrize("name", [slow("erf"), slow("tanh"), "relu"])
def test_a_ball_of_covariances_holds_all_of_them(name):
    F, G = ACTIVATIONS[name](x) ** 2, ACTIVATIONS[name](y) ** 2
    radius, at = 1e-6, np.array([0.5, 0.75, 0.375])
    a, b, c = (arb(k, radius) for k in at)
    wide = correlator(F, G, (x, y), [[a, c], [c, b]])
    alone = average(F, [x], [[a]])
    assert 1e-8 < wide.rad() < 1e-5 and alone.rad() < 1e-5
    for shift in np.random.default_rng(0).choice([-radius, 0, radius], (5, 3)):
        a, b, c = map(arb, at + shift)
        assert wide.contains(correlator(F, G, (x, y), [[a, c], [c, b]]))
        assert alone.contains(average(F, [x], [[a]]))


def test_precision_shrinks_the_radius():
    K = [[arb(1), arb(0.5)], [arb(0.5), arb(2)]]
    found = []
    for bits in (60, 100):
        with ctx.workprec(bits):
            found.append(correlator(sp.tanh(x) ** 2, sp.tanh(y) ** 2, (x, y), K))
    assert found[0].contains(found[1]) and found[0].rad() > 1e10 * found[1].rad() > 0


@pytest.mark.parametrize("name, K", [slow("tanh", 0.3), slow("gelu", 2.0), ("sin", 1.0)])
def test_hermite_coefficients(name, K):
    F, order = ACTIVATIONS[name](x) ** 2, 12
    found = coefficients(F, x, arb(K), order)
    z = x / sp.sqrt(sp.Rational(K))
    for n in (0, 1, 2, 7, 12):
        polynomial = sp.expand(2 ** sp.Rational(-n, 2) * sp.hermite(n, z / sp.sqrt(2)))
        expected = precise.average(F * polynomial, (x,), [[K]], 30) / mpmath.sqrt(
            mpmath.factorial(n)
        )
        assert abs(mpmath.mpf(found[n].mid()) - expected) <= found[n].rad() + 1e-28


@pytest.mark.parametrize(
    "F",
    [
        slow(sp.erf(2 * x)),
        sp.tanh(x),
        sp.tanh(x / 2) ** 3 - x,
        x * sp.exp(-2 * x**2 + x),
        sp.cos(x + 1) * x**2,
    ],
)
def test_majorants_bound_in_the_strip(F):
    """At random points, and on the upper edge, where maxima are."""
    function, height = sp.lambdify(x, F, "mpmath"), 1.3
    bound = majorant(F, x, arb(height))
    for u, v in np.random.default_rng(1).uniform(-1, 1, (200, 2)):
        for point in (mpmath.mpc(5 * u, height * v), mpmath.mpc(5 * u, height)):
            assert abs(function(point)) <= float(bound(arb(abs(5 * u))).upper()) * (1 + 1e-12)


def test_tails_are_bounded(monkeypatch):
    K, r = mpmath.mpf(2), mpmath.mpf(3)
    outside = mpmath.erfc(r / mpmath.sqrt(2 * K))
    edge = 2 * r * K * mpmath.npdf(r, 0, mpmath.sqrt(K))
    found = power_tail(arb_poly([1, 0, 1]), arb(2), arb(3))
    assert holds(found, (1 + K) * outside + edge)
    whole = integral(sp.tanh(x) ** 2, x, arb(1))
    monkeypatch.setattr(enclosures, "_GUARD", 6 - ctx.prec)
    monkeypatch.setattr(enclosures, "_integral", enclosures._integral.__wrapped__)
    short = integral(sp.tanh(x) ** 2, x, arb(1))
    assert short.contains(whole) and abs(short.mid() - whole) > 1e-4


@pytest.mark.parametrize("step, strip", [(1.0, 1.5), (0.5, 1.2)])
def test_coarse_trapezoidal_rules_are_widened(monkeypatch, step, strip):
    F, K, order = sp.tanh(x) ** 2, arb(0.5), 6
    exact_values = coefficients(F, x, K, order)

    def coarse(f, variable, variance, order, precision):
        bound = hermite._bound(f, variable, variance, order, arb(strip))
        return step, 2 * bound / ((2 * arb.pi() * strip / step).exp() - 1)

    monkeypatch.setattr(hermite, "_step", coarse)
    monkeypatch.setattr(hermite, "_coefficients", hermite._coefficients.__wrapped__)
    for wide, narrow in zip(coefficients(F, x, K, order), exact_values, strict=True):
        assert wide.contains(narrow)
    assert abs(wide.mid() - narrow) > 1e-20


@pytest.mark.parametrize(
    "F, words",
    [
        (1 / (1 + sp.Abs(x)), "no bound"),
        (sp.exp(x) * sp.tanh(x), "no bound"),
        (sp.Max(0, x - sp.Rational(1, 3)) ** 2 * sp.tanh(x), "power of 1/2"),
        (sp.tanh(x * y), "sum of products"),
        (sp.Max(0, x) * sp.tanh(x) * sp.tanh(y), "kink"),
    ],
)
def test_what_is_not_offered(F, words):
    variables = tuple(sorted(F.free_symbols, key=str))
    K = [[arb(1), arb(0.5)], [arb(0.5), arb(1)]]
    with pytest.raises(ValueError, match=words):
        average(F, variables, [row[: len(variables)] for row in K[: len(variables)]])


@pytest.mark.slow
def test_series_that_do_not_end():
    K = [[arb(1000), arb(1000)], [arb(1000), arb(1001)]]
    with ctx.workprec(60), pytest.raises(PrecisionError, match=r"nodes at the variance 1e\+03"):
        correlator(sp.tanh(x) ** 2, sp.tanh(y) ** 2, (x, y), K)
