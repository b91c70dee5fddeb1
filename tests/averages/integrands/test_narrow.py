"""Functions that are narrow, or wavy, beside their signals.

Oracles: averages of bells and Lorentzians in closed form (the Faddeeva function), and trapezoidal
sums over x and w of f(x) g(s x + w), whose spacing is that of the narrowest function: for analytic
functions they converge exponentially.
"""

import mpmath
import numpy as np
import pytest
import sympy as sp
from scipy.special import wofz

import fieldtheory as ft
from fieldtheory.averages import numeric, precise
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrals.vectorising import vectorised
from fieldtheory.averages.integrands.exponentials import expanded
from fieldtheory.averages.integrands.narrow import cuts_of, narrow_cuts
from fieldtheory.averages.nodes.connected import ConnectedCorrelator
from fieldtheory.averages.nodes.gaussian import GaussianAverage

x, y = sp.symbols("x y", real=True)
a, b, t = sp.symbols("a b t", real=True)
K = sp.Symbol("K", positive=True)

# Expressions and the spacing that resolves them.
BELL = sp.tanh(x) + sp.exp(-1500 * x**2), 0.0036
AWAY = sp.tanh(x) + sp.exp(-1500 * (x - sp.Rational("0.337")) ** 2), 0.0036
LORENTZIAN = 1 / (1 + 2500 * (x - 1) ** 2), 0.003
STEEP = sp.tanh(50 * x - 15), 0.0045
WAVE = x / (2 + sp.sin(x)), 0.15


def trapezoid(f, g, K_xx, K_yy, K_xy, spacing):
    """⟨f(x) g(y)⟩."""
    if K_xx > K_yy:
        f, g, K_xx, K_yy = g, f, K_yy, K_xx
    slope, rest = K_xy / K_xx, K_yy - K_xy * K_xy / K_xx
    nodes = []
    for variance, step in ((K_xx, spacing), (rest, min(spacing, np.sqrt(rest) / 8))):
        end = 10.5 * np.sqrt(variance)
        nodes.append(np.linspace(-end, end, int(2 * end / step) + 2))
    z, w = nodes
    values = f(z) * np.exp(-z * z / (2 * K_xx))
    bell, total = np.exp(-w * w / (2 * rest)), 0.0
    for start in range(0, len(w), 200):
        part = slice(start, start + 200)
        total += bell[part] @ (g(slope * z + w[part, None]) @ values)
    steps = 2 * z[-1] / (len(z) - 1) * 2 * w[-1] / (len(w) - 1)
    return total * steps / (2 * np.pi * np.sqrt(K_xx * rest))


def pair(F):
    """⟨F(x) F(y)⟩ of K_xx, K_yy and K_xy by the rule that is chosen."""
    node = GaussianAverage(F * F.subs(x, y), (x, y), sp.ImmutableMatrix([[a, t], [t, b]]))
    return numeric.average(node).function


def of_bell(q, m, variance):
    return np.exp(-q * m**2 / (1 + 2 * q * variance)) / np.sqrt(1 + 2 * q * variance)


def of_lorentzian(q, m, variance):
    width, deviation = q**-0.5, np.sqrt(2 * variance)
    return np.sqrt(np.pi) * width / deviation * wofz((m + 1j * width) / deviation).real


@pytest.mark.parametrize("variance", [1.0, 50.0])
@pytest.mark.parametrize("place", ["0", "0.337", "2.123"])
@pytest.mark.parametrize("q", [10**4, 10**6, 10**8])
def test_one_variable(q, place, variance):
    """What lies between the nodes of all fixed rules was zero; odd functions add nothing."""
    m = sp.Rational(place)
    shapes = {
        of_bell: sp.exp(-q * (x - m) ** 2),
        of_lorentzian: 1 / (1 + q * (x - m) ** 2),
    }
    for exact, shape in shapes.items():
        F = sp.tanh(x) + shape
        rule = numeric.average(GaussianAverage(F, (x,), sp.ImmutableMatrix([[K]])))
        found = rule.function(np.array([variance]))[0]
        # The tolerance is relative to ⟨|F|⟩, and places of features to rounding.
        assert found == pytest.approx(exact(q, float(m), variance), rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("correlation", [-0.9999, 0.3, 0.9, 0.985, 1 - 1e-7])
@pytest.mark.parametrize("case", [BELL, AWAY, LORENTZIAN, STEEP, WAVE], ids=str)
def test_pairs(case, correlation, order):
    F, spacing = case[0].diff(x, order), case[1]
    variances = 1.0, 1.7
    K_xy = correlation * np.sqrt(np.prod(variances))
    found = float(pair(F)(*variances, K_xy))
    with np.errstate(over="ignore"):
        f = vectorised([x], F)
        exact = trapezoid(f, f, *variances, K_xy, spacing)
        size = trapezoid(lambda h: np.abs(f(h)), lambda h: np.abs(f(h)), *variances, K_xy, spacing)
    assert found == pytest.approx(exact, rel=0, abs=5e-13 * size)


@pytest.mark.parametrize("order", [0, 1])
def test_waves_neither_resolved_nor_gone(order):
    """At these variances neither fixed panels resolve waves nor are their averages zero."""
    F = WAVE[0].diff(x, order)
    f = vectorised([x], F)
    for K_xx, K_yy, correlation in ((60.0, 90.0, 0.3), (100.0, 110.0, 0.9), (150.0, 80.0, -0.6)):
        K_xy = correlation * np.sqrt(K_xx * K_yy)
        exact = trapezoid(f, f, K_xx, K_yy, K_xy, 0.15)
        assert float(pair(F)(K_xx, K_yy, K_xy)) == pytest.approx(exact, rel=1e-12)


def test_many_pairs_are_those_one_by_one():
    function = pair(LORENTZIAN[0])
    K = np.array([[1.0, 2.0, 0.5], [3.0, 2.0, 2.4], [1.0, 1.0, 1.0], [0.0, 1.0, 0.0]]).T
    found = function(*K)
    assert found.tolist() == [float(function(*each)) for each in K.T]
    of_one = numeric.average(GaussianAverage(LORENTZIAN[0] ** 2, (x,), sp.ImmutableMatrix([[a]])))
    assert found[2] == pytest.approx(of_one.function(np.array([1.0]))[0], rel=1e-13)
    assert found[3] == pytest.approx(of_lorentzian(2500, 1.0, 1.0) / 2501, rel=1e-13)


@pytest.mark.parametrize("case", [BELL, AWAY, LORENTZIAN], ids=str)
def test_correlators_at_any_correlation(case):
    """Weak ones by the Mehler series, whose first terms come from averages of one variable."""
    F, spacing = case
    node = ConnectedCorrelator(F, F.subs(x, y), (x, y), sp.ImmutableMatrix([[a, t], [t, b]]))
    function = numeric.connected(node).function
    f = vectorised([x], F)
    plain = numeric.average(GaussianAverage(F, (x,), sp.ImmutableMatrix([[a]]))).function
    mean = float(plain(np.array([1.0]))[0])
    for correlation in (0.5, 0.95, 1 - 1e-7):
        exact = trapezoid(
            lambda h: f(h) - mean, lambda h: f(h) - mean, 1.0, 1.0, correlation, spacing
        )
        assert float(function(1.0, 1.0, correlation)) == pytest.approx(exact, rel=2e-12)
    # ⟨F'⟩ c to first order, by parts ⟨xF⟩.
    first = numeric.average(GaussianAverage(x * F, (x,), sp.ImmutableMatrix([[a]]))).function
    slope = float(first(np.array([1.0]))[0])
    assert float(function(1.0, 1.0, 1e-12)) == pytest.approx(1e-12 * slope**2, rel=1e-11)


def test_digits():
    """The same with mpmath, which took what it did not see for nothing."""
    with mpmath.workdps(40):
        q, m = mpmath.mpf(10) ** 6, mpmath.mpf(1) / 3
        exact = mpmath.exp(-q * m**2 / (1 + 2 * q)) / mpmath.sqrt(1 + 2 * q)
        F = sp.tanh(x) + sp.exp(-(10**6) * (x - sp.Rational(1, 3)) ** 2)
        found = precise.average(F, (x,), sp.Matrix([[1]]), 30)
        assert abs(found / exact - 1) < mpmath.mpf(10) ** -28
    rows = sp.Matrix([[1, sp.Rational(3, 10)], [sp.Rational(3, 10), 1]])
    F = sp.tanh(x) + sp.exp(-(10**4) * (x - sp.Rational(1, 3)) ** 2)
    found = precise.average(F * F.subs(x, y), (x, y), rows, 16)
    assert float(pair(F)(1.0, 1.0, 0.3)) == pytest.approx(float(found), rel=1e-13)


def test_places():
    """What polynomials inside functions and denominators say; waves have no place."""
    table = {
        sp.exp(-(10**4) * (x - 3) ** 2): (3.0, 0.02),
        sp.exp(-(10**4) * x**2 - 60000 * x - 90000): (-3.0, 0.02),
        1 / (1 + 10**6 * (x - 1) ** 2): (1.0, 0.002),
        sp.sqrt(x**2 + sp.Rational(1, 10**8)): (0.0, 2e-4),
        sp.log(x**2 + sp.Rational(1, 10**6)): (0.0, 2e-3),
        sp.tanh(100 * x - 30): (0.3, 0.02),
        sp.atan(1000 * x): (0.0, 0.002),
    }
    for F, (place, first) in table.items():
        cuts = np.array(cuts_of(F, x))
        assert np.abs(cuts - place).min() < 1e-9
        assert sorted(np.abs(cuts - place))[1] == pytest.approx(first)
        assert np.abs(cuts - place).max() < 1
    for F in (sp.tanh(x), sp.erf(3 * x), sp.exp(-(x**2) / 2), sp.sin(500 * x), x**2, sp.Abs(x)):
        assert narrow_cuts(F, x) == ()
    assert cuts_of(sp.Abs(x - 2), x) == [2.0]


def test_denominators_are_not_multiplied_out():
    """Expanded about zero they lose eight digits beside their roots."""
    F = 1 / (1 + 10**4 * (x - 1) ** 2) ** 2
    assert expanded(F * (1 + x)) == F + x * F


def test_products_of_exponentials_stay_together():
    """exp(40000 x) exp(−20000 x²) are infinity times zero at x = 1."""
    F = x * sp.exp(40000 * x, evaluate=False) * sp.exp(-20000 * x**2) * sp.exp(-20000)
    assert vectorised([x], F)(np.array([1.0, 0.0, 3.0])) == pytest.approx([1.0, 0.0, 0.0])


@pytest.mark.parametrize("skip_scale", [0.0, 1.0])
@pytest.mark.parametrize("text", ["tanh(h) + exp(-5000*h**2)", "1/(1 + 10000*(h - 1)**2)"])
def test_networks(text, skip_scale):
    """Responses are derivatives of kernels; G11 is positive and starts with ⟨φ²;φ²⟩/N."""
    network = ft.ResidualNetwork(
        depth=4, activation=text, weight_variance=1.5, bias_variance=0.1, skip_scale=skip_scale
    )
    solution = ft.solve(network, 1.0)
    step = 1e-3
    below, above = (ft.solve(network, 1 + sign * step).kernels for sign in (-1, 1))
    further, beyond = (ft.solve(network, 1 + sign * step).kernels for sign in (-2, 2))
    slopes = (8 * (above - below) - (beyond - further)) / (12 * step)
    assert solution.response == pytest.approx(slopes[:-1], rel=1e-7, abs=1e-10)
    assert np.linalg.eigvalsh(solution.G11)[0] > -1e-15
    f = vectorised([x], sp.sympify(text, locals={"h": x}))
    h = np.linspace(-10, 10, 40001)
    bell = np.exp(-h * h / 2) * 5e-4 / np.sqrt(2 * np.pi)
    variance = bell @ f(h) ** 4 - (bell @ f(h) ** 2) ** 2
    first = network.weight_variance**2 * variance / network.width
    assert solution.G11[1, 1] == pytest.approx(first, rel=1e-9)


def test_what_is_not_resolved_is_refused():
    """More panels than fit: an error, not a number."""
    F = sp.sin(30000 * x) / (2 + sp.sin(30000 * x + 1)) * sp.tanh(x)
    for correlation in (0.3, 1 - 1e-7):
        with pytest.raises(QuadratureError, match="needs more than 8192 panels"):
            pair(F)(1.0, 1.0, correlation)


@pytest.mark.parametrize("correlation", [0.5, 0.99, 1 - 1e-7])
@pytest.mark.parametrize(
    "F",
    [
        sp.tanh(x) * sp.sin(20 * x),
        sp.tanh(x) * sp.sin(75 * x),
        sp.tanh(x) * sp.cos(25 * sp.pi * x),
        sp.sin(15 * x) / (2 + sp.sin(15 * x)),
        sp.sin(x**2) * sp.tanh(x),
    ],
    ids=str,
)
def test_short_waves_are_not_taken_for_long_ones(F, correlation):
    """On even grids tanh(x) sin(75 x) looked like a longer wave, 2e8 times its correlation."""
    f = vectorised([x], F)
    K_xy = correlation * np.sqrt(1.7)
    exact = trapezoid(f, f, 1.0, 1.7, K_xy, 0.011)
    assert float(pair(F)(1.0, 1.7, K_xy)) == pytest.approx(exact, rel=1e-12, abs=3e-13)


def test_waves_whose_growing_terms_cancel():
    """The derivative of elu(h) cos(h) is written with eʰ − eʰ θ(h)."""
    network = ft.ResidualNetwork(depth=60, activation="elu(h)*cos(h)", weight_variance=2.0)
    solution = ft.solve(network, [[1.0, 0.3], [0.3, 2.0]])
    assert np.isfinite(solution.log_response).all()
    single = ft.solve(network, 1.0)
    assert solution.log_kernels[:, 0, 0] == pytest.approx(single.log_kernels, rel=1e-12)
