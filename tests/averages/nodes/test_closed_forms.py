"""Closed forms against formulas of the literature, the package's integration and the oracles."""

import mpmath
import pytest
import sympy as sp
from mpmath import mpf

from fieldtheory.averages import GaussianAverage
from fieldtheory.averages.nodes.closed_forms import closed_form
from fieldtheory.networks.activations import ACTIVATIONS
from tests.oracles import precise as oracle
from tests.tables import slow, some

x, y, z = sp.symbols("x y z", real=True)
c, p = sp.symbols("c p", real=True)
K, a, b = sp.symbols("K a b", positive=True)
K2 = sp.ImmutableMatrix([[a, c], [c, b]])
R = sp.Rational
theta = sp.Heaviside
gelu = ACTIVATIONS["gelu"]
root = sp.sqrt(a * b - c**2)
angle = sp.atan2(c, root)

# (K_xx, K_yy, K_xy): weak, moderate, strong (positive and negative), small, large, mixed sizes.
COVARIANCES = [
    (R(1), R(2), R(1, 1000)),
    (R(7, 10), R(13, 10), R(-2, 5)),
    (R(1), R(2), R(14, 10)),
    (R(1), R(2), R(-14, 10)),
    (R(1, 500), R(1, 300), R(1, 600)),
    (R(300), R(500), R(200)),
    (R(1, 100), R(50), R(1, 2)),
]


def one(F):
    return closed_form(F, (x,), sp.ImmutableMatrix([[K]]))


def two(F):
    return closed_form(F, (x, y), K2)


def vanishes(expr, digits=40, covariances=COVARIANCES):
    """Zero to a number of digits at every covariance."""
    for A, B, C in covariances:
        at = {a: A, b: B, c: C, K: A, p: R(3, 4)}
        if abs(expr.subs(at).evalf(digits)) > sp.Float(10) ** (4 - digits):
            return False
    return True


ONE_VARIABLE = {
    "1": (sp.S.One, sp.S.One),
    "erf^2": (sp.erf(x) ** 2, 2 / sp.pi * sp.asin(2 * K / (1 + 2 * K))),
    "erf'^2": (sp.erf(x).diff(x) ** 2, 4 / (sp.pi * sp.sqrt(1 + 4 * K))),
    "x erf": (x * sp.erf(x), 2 * K / sp.sqrt(sp.pi * (1 + 2 * K))),
    "erfc^2": (sp.erfc(x) ** 2, 1 + 2 / sp.pi * sp.asin(2 * K / (1 + 2 * K))),
    "x erf^3": (x * sp.erf(x) ** 3, None),
    "relu": (sp.Max(0, x), sp.sqrt(K / (2 * sp.pi))),
    "relu^2": (sp.Max(0, x) ** 2, K / 2),
    "relu^4": (sp.Max(0, x) ** 4, 3 * K**2 / 2),
    "leaky^2": ((sp.Max(0, x) + p * sp.Min(0, x)) ** 2, K * (1 + p**2) / 2),
    "abs": (sp.Abs(x), sp.sqrt(2 * K / sp.pi)),
    "abs^3": (sp.Abs(x) ** 3, 2 * sp.sqrt(2 / sp.pi) * K ** R(3, 2)),
    "sign^2": (sp.sign(x) ** 2, sp.S.One),
    "step": (theta(x), R(1, 2)),
    "step(x-1)": (theta(x - 1), sp.erfc(1 / sp.sqrt(2 * K)) / 2),
    "abs(x-1)": (
        sp.Abs(x - 1),
        sp.erf(1 / sp.sqrt(2 * K)) + sp.sqrt(2 * K / sp.pi) * sp.exp(-1 / (2 * K)),
    ),
    "exp": (sp.exp(p * x), sp.exp(p**2 * K / 2)),
    "exp 1+x": (sp.exp(p * x + 1), sp.E * sp.exp(p**2 * K / 2)),
    "exp(-x^2)": (sp.exp(-(x**2)), 1 / sp.sqrt(1 + 2 * K)),
    "x^2 exp(-x^2)": (x**2 * sp.exp(-(x**2)), K / (1 + 2 * K) ** R(3, 2)),
    "exp(x-x^2)": (sp.exp(x - x**2), sp.exp(K / (2 * (1 + 2 * K))) / sp.sqrt(1 + 2 * K)),
    "exp step": (sp.exp(x) * theta(x), sp.exp(K / 2) * (1 + sp.erf(sp.sqrt(K / 2))) / 2),
    "cos": (sp.cos(p * x), sp.exp(-(p**2) * K / 2)),
    "cos(x+1)": (sp.cos(x + 1), sp.cos(1) * sp.exp(-K / 2)),
    "sin^2": (sp.sin(x) ** 2, (1 - sp.exp(-2 * K)) / 2),
    "x sin": (x * sp.sin(x), K * sp.exp(-K / 2)),
    "x^2 cos": (x**2 * sp.cos(x), (K - K**2) * sp.exp(-K / 2)),
    "cosh": (sp.cosh(x), sp.exp(K / 2)),
    "sinh^2": (sp.sinh(x) ** 2, (sp.exp(2 * K) - 1) / 2),
    "polynomial": ((1 + x) ** 4 * (2 - x), 2 + 8 * K - 6 * K**2),
    "delta": (sp.DiracDelta(x - 1), sp.exp(-1 / (2 * K)) / sp.sqrt(2 * sp.pi * K)),
    "delta'": (x * sp.DiracDelta(x, 1), -1 / sp.sqrt(2 * sp.pi * K)),
    "delta''": (sp.DiracDelta(x, 2), -1 / (sp.sqrt(2 * sp.pi * K) * K)),
    "gelu": (gelu(x), K / sp.sqrt(2 * sp.pi * (1 + K))),
}

TWO_VARIABLES = {
    "erf erf": (
        sp.erf(x) * sp.erf(y),
        2 / sp.pi * sp.asin(2 * c / sp.sqrt((1 + 2 * a) * (1 + 2 * b))),
    ),
    "erf' erf'": (
        sp.erf(x).diff(x) * sp.erf(y).diff(y),
        4 / sp.pi / sp.sqrt((1 + 2 * a) * (1 + 2 * b) - 4 * c**2),
    ),
    "sign sign": (sp.sign(x) * sp.sign(y), 2 / sp.pi * sp.asin(c / sp.sqrt(a * b))),
    "erf sign": (
        sp.erf(x) * sp.sign(y),
        2 / sp.pi * sp.asin(sp.sqrt(2) * c / sp.sqrt(b * (1 + 2 * a))),
    ),
    "step step": (theta(x) * theta(y), R(1, 4) + angle / (2 * sp.pi)),
    "relu relu": (
        sp.Max(0, x) * sp.Max(0, y),
        (root + c * (sp.pi / 2 + angle)) / (2 * sp.pi),
    ),
    "relu2 relu2": (
        x**2 * theta(x) * y**2 * theta(y),
        (3 * c * root + (a * b + 2 * c**2) * (sp.pi / 2 + angle)) / (2 * sp.pi),
    ),
    "abs abs": (sp.Abs(x) * sp.Abs(y), 2 / sp.pi * (root + c * angle)),
    "step delta": (
        theta(y) * sp.DiracDelta(x),
        1 / (2 * sp.sqrt(2 * sp.pi * a)),
    ),
    "delta delta": (sp.DiracDelta(x) * sp.DiracDelta(y), 1 / (2 * sp.pi * root)),
    "y step delta'": (
        y * theta(y) * sp.DiracDelta(x, 1),
        -c / (2 * a * sp.sqrt(2 * sp.pi * a)),
    ),
    "cos cos": (sp.cos(x) * sp.cos(y), sp.exp(-(a + b) / 2) * sp.cosh(c)),
    "sin sin": (sp.sin(x) * sp.sin(y), sp.exp(-(a + b) / 2) * sp.sinh(c)),
    "erf linear": (sp.erf(x) * y, 2 * c / sp.sqrt(sp.pi * (1 + 2 * a))),
    "exp polynomial": (sp.exp(x) * (y**2 + y), (b + c**2 + c) * sp.exp(a / 2)),
    "exp exp": (sp.exp(x - y), sp.exp((a + b - 2 * c) / 2)),
    "gauss gauss": (
        sp.exp(-(x**2) - y**2),
        1 / sp.sqrt((1 + 2 * a) * (1 + 2 * b) - 4 * c**2),
    ),
    "x2 y2": (x**2 * y**2, a * b + 2 * c**2),
    "x3 y3": (x**3 * y**3, 9 * a * b * c + 6 * c**3),
    "erf(x+y)^2": (
        sp.erf(x + y) ** 2,
        2 / sp.pi * sp.asin(2 * (a + b + 2 * c) / (1 + 2 * (a + b + 2 * c))),
    ),
    "gelu gelu": (gelu(x) * gelu(y), None),
    "relu erf": (sp.Max(0, x) * sp.erf(y), None),
    "leaky leaky": (ACTIVATIONS["leaky_relu"](x) * ACTIVATIONS["leaky_relu"](y), None),
    "erf cos": (sp.erf(x) * y * sp.cos(y), None),
}


@pytest.mark.parametrize(("F", "formula"), ONE_VARIABLE.values(), ids=ONE_VARIABLE)
def test_one_variable(F, formula):
    result = one(F)
    assert result is not None and not result.has(GaussianAverage)
    if formula is not None:
        assert vanishes(result - formula)


@pytest.mark.parametrize(("F", "formula"), TWO_VARIABLES.values(), ids=TWO_VARIABLES)
def test_two_variables(F, formula):
    result = two(F)
    assert result is not None and not result.has(GaussianAverage)
    if formula is not None:
        assert vanishes(result - formula)


def test_formulas_as_written():
    """Where the form matters: atan2 keeps its digits, nothing is left unsimplified."""
    assert one(sp.erf(x) ** 2) == 2 * sp.atan2(2 * K, sp.sqrt(1 + 4 * K)) / sp.pi
    assert two(sp.sign(x) * sp.sign(y)) == 2 * angle / sp.pi
    assert two(sp.erf(x) * sp.erf(y)) == (
        2 * sp.atan2(2 * c, sp.sqrt(1 + 2 * a + 2 * b + 4 * a * b - 4 * c**2)) / sp.pi
    )
    slope = GaussianAverage(sp.erf(x) ** 2, x, K).diff(K).doit()
    assert slope == 4 / (sp.pi * (1 + 2 * K) * sp.sqrt(1 + 4 * K))
    assert sp.expand(two(x**2 * theta(x) * y**2 * theta(y)).coeff(angle)) == (
        a * b / (2 * sp.pi) + c**2 / sp.pi
    )


# Numbers by integration -----------------------------------------------------------------------


@pytest.mark.parametrize("variance", [slow(R(1, 500)), R(1), slow(R(300))])
def test_one_variable_against_the_oracle(variance):
    """⟨x erf³⟩, of which no formula is typed."""
    F, _ = ONE_VARIABLE["x erf^3"]
    value = one(F).subs(K, variance).evalf(40)
    with mpmath.workdps(20):
        expected = oracle.average1(mp_function([x], F), mpf(variance.p) / variance.q)
        assert mpmath.almosteq(mpf(value), expected, mpf("1e-17"))


SMOOTH = ["erf erf", "gelu gelu", "erf cos", "sin sin"]
KINKED = ["relu erf", "relu2 relu2", "erf sign", "leaky leaky"]


@pytest.mark.parametrize(
    "covariance",
    [COVARIANCES[1], *(pytest.param(point, marks=pytest.mark.slow) for point in COVARIANCES[2:5])],
)
@pytest.mark.parametrize(
    "name", some([*SMOOTH, *KINKED], {"erf cos", "sin sin", "relu erf", "leaky leaky"})
)
def test_two_variables_against_the_oracle(name, covariance):
    F, _ = TWO_VARIABLES[name]
    A, B, C = covariance
    with mpmath.workdps(14):
        matrix = [[mpf(v.p) / v.q for v in row] for row in ((A, C), (C, B))]
        expected = oracle.average2(mp_function([x, y], F), matrix)
        value = two(F).subs({a: A, b: B, c: C}).evalf(20)
        assert abs(mpf(value) - expected) < mpf("1e-11") * abs(expected)


def mp_function(variables, F):
    """F with its kinks evaluated by mpmath alone."""
    step = {"Heaviside": lambda u, _: mpf(u > 0) if u != 0 else mpf("0.5")}
    return sp.lambdify(variables, F, [step, "mpmath"])


# Derivatives ---------------------------------------------------------------------------------

PAIRS = ["erf erf", "relu relu", "relu2 relu2", "sign sign", "erf sign", "gelu gelu", "relu erf",
         "leaky leaky", "sin sin", "exp polynomial", "abs abs"]  # fmt: skip


@pytest.mark.slow_but(8)
@pytest.mark.parametrize("name", some(PAIRS, list(PAIRS)[::2]))
def test_derivative_and_closed_form_commute(name):
    node = GaussianAverage(TWO_VARIABLES[name][0], (x, y), K2)
    closed = node.doit()
    for symbols in [(a,), (b,), (c,), (c, c), (a, c), (a, b)]:
        price = node.diff(*symbols).doit()
        assert not price.has(GaussianAverage)
        assert vanishes(closed.diff(*symbols) - price, 45, COVARIANCES[1:3])


def test_third_derivatives_with_delta_functions():
    """Derivatives of δ are integrated by parts: ⟨x²θ y²θ⟩ has finite third derivatives."""
    node = GaussianAverage(TWO_VARIABLES["relu2 relu2"][0], (x, y), K2)
    for symbols in [(a, a), (c, c, c), (a, c, c), (a, a, c), (a, a, b)]:
        price = node.diff(*symbols).doit()
        assert not price.has(GaussianAverage, sp.DiracDelta)
        assert vanishes(node.doit().diff(*symbols) - price, 45, COVARIANCES[1:3])


# Special covariances --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["erf", "relu", "leaky_relu", "linear", slow("gelu"), "sin"])
def test_identical_inputs_are_one_input(name):
    phi = ACTIVATIONS[name]
    pair = GaussianAverage(phi(x) * phi(y), (x, y), [[K, K], [K, K]]).doit()
    single = GaussianAverage(phi(x) ** 2, x, K).doit()
    for variance in (R(1, 100), R(1), R(40)):
        assert abs((pair - single).subs(K, variance).evalf(30)) < sp.Float("1e-26")


# No closed form ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "F",
    [
        sp.tanh(x),
        sp.erf(x) ** 4,
        1 / (1 + x**2),
        sp.log(1 + sp.exp(x)),
        sp.exp(x**4),
        sp.sqrt(sp.Abs(x)),
        sp.sinc(x),
        theta(x - 1) * sp.erf(x),
        theta(x + y) * sp.DiracDelta(x, 1) * theta(x),
        sp.Abs(sp.sin(x)),
        sp.exp(sp.exp(x)),
    ],
)
def test_none_where_no_rule_applies(F):
    assert closed_form(F, (x, y), K2) is None
    node = GaussianAverage(F, (x, y), K2)
    assert node == 0 or node.doit().has(GaussianAverage)


@pytest.mark.parametrize("variance", [R(1, 2), 1, 3])
def test_divergent_integrals_stay(variance):
    """⟨exp h²⟩ = 1/√(1−2K) for K < 1/2 only."""
    node = GaussianAverage(sp.exp(x**2), x, variance)
    assert node.doit() == node
    assert GaussianAverage(sp.exp(x**2), x, R(3, 8)).doit() == 2


def test_complex_parameters_are_left_alone():
    q = sp.Symbol("q")
    assert sp.simplify(GaussianAverage(sp.cos(q * x), x, K).doit() - sp.exp(-K * q**2 / 2)) == 0


def test_three_signs_and_three_variables():
    """⟨θ θ θ⟩ = 1/8 + Σ asin(r_ij)/(4π), the orthant probability."""
    names = sp.symbols("r s t", real=True)
    r, s, t = names
    matrix = sp.ImmutableMatrix([[1, r, s], [r, 1, t], [s, t, 1]])
    value = closed_form(theta(x) * theta(y) * theta(z), (x, y, z), matrix)
    at = {r: R(1, 3), s: R(-1, 5), t: R(1, 2)}
    expected = R(1, 8) + sum(sp.asin(v) for v in at.values()) / (4 * sp.pi)
    assert abs((value.subs(at) - expected).evalf(40)) < sp.Float("1e-38")


def test_waves_beside_steps_have_no_tilt():
    """⟨θ(x) x sin x⟩ is half of ⟨x sin x⟩; a step would be moved into the complex plane."""
    assert closed_form(theta(x) * x * sp.sin(x), (x,), sp.ImmutableMatrix([[K]])) is None
    node = GaussianAverage(theta(x) * x * sp.sin(x), x, R(3, 2)).doit()
    assert abs(node.evalf(30) - (R(3, 4) * sp.exp(-R(3, 4))).evalf(30)) < sp.Float("1e-25")
