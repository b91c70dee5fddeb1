"""The average as a SymPy node: simplification, binding, Price's theorem, printing, numbers."""

import mpmath
import pytest
import sympy as sp
from mpmath import mpf

from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from tests.oracles import precise as oracle

x, y, z, w = sp.symbols("x y z w", real=True)
p, q, c = sp.symbols("p q c", real=True)
K, a, b = sp.symbols("K a b", positive=True)
K2 = sp.Matrix([[a, c], [c, b]])
phi = sp.Function("phi")


def covariances(size):
    """A symmetric matrix of independent real symbols."""
    return sp.Matrix(
        size, size, lambda i, j: sp.Symbol(f"K_{min(i, j)}{max(i, j)}", real=True)
    ).as_immutable()


# Simplification ----------------------------------------------------------------------------


def test_constants_and_factors_leave_the_average():
    assert GaussianAverage(p**2 + 3, x, K) == p**2 + 3
    node = GaussianAverage(phi(x), x, K)
    assert isinstance(node, GaussianAverage)
    assert GaussianAverage(2 * p * phi(x) + q, x, K) == 2 * p * node + q
    assert GaussianAverage(p * phi(x) + p * x**2, x, K) == p * GaussianAverage(phi(x) + x**2, x, K)


def test_unused_variables_are_integrated_out():
    assert GaussianAverage(phi(y), (x, y), K2) == GaussianAverage(phi(y), y, b)
    marginal = covariances(3).extract([0, 2], [0, 2])
    average = GaussianAverage(phi(x) * phi(z), (x, y, z), covariances(3))
    assert average == GaussianAverage(phi(x) * phi(z), (x, z), marginal)


@pytest.mark.parametrize(
    "F",
    [
        sp.erf(x) ** 3,
        x * sp.cos(x),
        x * sp.exp(-(x**2)),
        (x + x**3) * sp.cosh(x),
        sp.tanh(x) * sp.Abs(x),
        sp.sin(2 * x) / (1 + x**2),
        sp.sign(x),
        sp.Max(-1, sp.Min(1, x)),
        sp.Max(0, x) + sp.Min(0, x) / 2 - 3 * sp.Abs(x) / 4 + 0 * x + sp.Abs(x) / 2,
        sp.erf(x) * y**2,
        sp.sin(x + y) ** 3,
    ],
)
def test_odd_integrands_average_to_zero(F):
    assert GaussianAverage(F, (x, y), K2) == 0


@pytest.mark.parametrize(
    "F",
    [
        sp.Max(0, x),
        phi(x),
        x * phi(x),
        sp.erf(x) * sp.erf(y),
        sp.exp(x),
        sp.erf(x) + x**2,
        x * (1 + sp.tanh(x)),
        sp.Heaviside(x),
        sp.erf(x - 1),
    ],
)
def test_other_integrands_stay(F):
    assert GaussianAverage(F, (x, y), K2).has(GaussianAverage)


def test_a_variable_without_variance_is_zero():
    assert GaussianAverage(sp.cos(x) * phi(y), (x, y), [[0, 0], [0, b]]) == GaussianAverage(
        phi(y), y, b
    )
    assert GaussianAverage(phi(x), x, 0) == phi(0)


def test_independent_variables_factorise():
    separate = GaussianAverage(phi(x), x, a) * GaussianAverage(phi(y) ** 2, y, b)
    assert GaussianAverage(phi(x) * phi(y) ** 2, (x, y), [[a, 0], [0, b]]) == separate
    linked = sp.Matrix([[a, c, 0], [c, b, 0], [0, 0, K]])
    average = GaussianAverage(phi(x) * phi(y) * phi(z), (x, y, z), linked)
    pair = GaussianAverage(phi(x) * phi(y), (x, y), K2)
    assert average == pair * GaussianAverage(phi(z), z, K)
    assert GaussianAverage(phi(x + y), (x, y), [[a, 0], [0, b]]).variables == sp.Tuple(x, y)


def test_expand_is_linear():
    average = GaussianAverage((phi(x) + p) ** 2, x, K)
    first, second = GaussianAverage(phi(x), x, K), GaussianAverage(phi(x) ** 2, x, K)
    assert sp.expand(average) == second + 2 * p * first + p**2


# Substitution -------------------------------------------------------------------------------


def test_subs_of_parameters_and_covariances():
    average = GaussianAverage(phi(p * x), x, K)
    assert average.subs(p, 2) == GaussianAverage(phi(2 * x), x, K)
    assert average.subs(K, q**2) == GaussianAverage(phi(p * x), x, q**2)
    assert average.subs({p: q, K: 3}) == GaussianAverage(phi(q * x), x, 3)
    assert average.subs(K, 0) == phi(0)
    assert average.subs(p, 0) == phi(0)
    assert GaussianAverage(phi(x) * phi(y), (x, y), K2).subs(c, 0) == GaussianAverage(
        phi(x), x, a
    ) * GaussianAverage(phi(y), y, b)


def test_bound_variables_are_not_substituted():
    average = GaussianAverage(phi(x), x, K)
    assert average.subs(x, 2) == average
    assert average.subs(phi(x), 3) == average
    connected = ConnectedCorrelator(phi(x), phi(y), (x, y), K2)
    assert connected.subs(x, 2) == connected
    assert (x * average).subs(x, 2) == 2 * average


@pytest.mark.parametrize("how", ["subs", "xreplace"])
def test_bound_variables_do_not_capture(how):
    """⟨cos(p h)⟩ = exp(−p² K/2) also where p is called x."""
    average = getattr(GaussianAverage(sp.cos(p * x), x, K), how)({p: x})
    assert average.free_symbols == {x, K}
    assert sp.simplify(average.doit() - sp.exp(-(x**2) * K / 2)) == 0
    connected = getattr(ConnectedCorrelator(sp.cos(p * x), sp.cos(y), (x, y), K2), how)({p: y})
    assert y in connected.free_symbols
    reference = ConnectedCorrelator(sp.cos(p * x), sp.cos(y), (x, y), K2).doit()
    assert sp.simplify(connected.doit() - reference.subs(p, y)) == 0
    variance = getattr(GaussianAverage(x**2, x, K), how)({K: x})
    assert variance.doit() == x
    assert variance.diff(x).doit() == 1


def test_xreplace():
    average = GaussianAverage(phi(p * x), x, K)
    assert average.xreplace({average: q}) == q
    assert average.xreplace({p: q, K: a}) == GaussianAverage(phi(q * x), x, a)
    assert average.xreplace({q: a}) is average
    assert average.xreplace({x: y}) == GaussianAverage(phi(p * y), y, K)
    with pytest.raises(TypeError, match="variables"):
        average.xreplace({x: sp.Integer(2)})
    connected = ConnectedCorrelator(phi(x), phi(y), (x, y), K2)
    assert connected.xreplace({c: sp.S.Zero}) == 0
    assert connected.xreplace({connected: q}) == q


def test_replace_the_activation():
    average = GaussianAverage(phi(x) ** 2, x, K)
    assert average.replace(phi, sp.erf) == GaussianAverage(sp.erf(x) ** 2, x, K)
    assert average.subs(phi, sp.erf) == GaussianAverage(sp.erf(x) ** 2, x, K)


# Derivatives --------------------------------------------------------------------------------


def test_price_diagonal_has_the_half():
    average = GaussianAverage(phi(x), x, K)
    assert average.diff(K) == GaussianAverage(phi(x).diff(x, 2), x, K) / 2
    pair = GaussianAverage(phi(x) * phi(y), (x, y), K2)
    half = GaussianAverage(phi(x).diff(x, 2) * phi(y), (x, y), K2) / 2
    assert pair.diff(a) == half


def test_price_symmetric_pair_counts_twice():
    pair = GaussianAverage(phi(x) * phi(y), (x, y), K2)
    assert pair.diff(c) == GaussianAverage(phi(x).diff(x) * phi(y).diff(y), (x, y), K2)


def test_derivative_passes_through_parameters():
    average = GaussianAverage(phi(p * x), x, K)
    F = phi(p * x).diff(p)
    assert average.diff(p) == GaussianAverage(F, x, K)
    assert average.diff(q) == 0
    # d/dp of ⟨cos(p h)⟩ = exp(−p² K/2)
    assert GaussianAverage(sp.cos(p * x), x, K).diff(p).doit() == -p * K * sp.exp(-(p**2) * K / 2)


def test_derivative_by_a_symbol_in_both_integrand_and_covariance():
    average = GaussianAverage(sp.cos(p * x), x, p**2)
    assert sp.simplify(average.diff(p).doit() - sp.exp(-(p**4) / 2).diff(p)) == 0


def test_chain_rule_through_the_covariance():
    average = GaussianAverage(sp.erf(x) * sp.erf(y), (x, y), [[p**2, p * q * c], [p * q * c, q**2]])
    closed = 2 / sp.pi * sp.asin(2 * p * q * c / sp.sqrt((1 + 2 * p**2) * (1 + 2 * q**2)))
    point = {p: sp.Rational(3, 4), q: sp.Rational(5, 4), c: sp.Rational(1, 3)}
    for symbol in (p, q, c):
        difference = average.diff(symbol).doit() - closed.diff(symbol)
        assert abs(difference.subs(point).evalf(40)) < sp.Float("1e-38")


def test_four_variables_moments():
    V = covariances(4)
    average = GaussianAverage(x * y * z * w, (x, y, z, w), V)
    wick = V[0, 1] * V[2, 3] + V[0, 2] * V[1, 3] + V[0, 3] * V[1, 2]
    assert sp.expand(average.doit() - wick) == 0
    assert sp.expand(average.diff(V[1, 2]).doit() - V[0, 3]) == 0
    node = GaussianAverage(phi(x) * phi(y) * phi(z) * phi(w), (x, y, z, w), V)
    slopes = phi(x).diff(x) * phi(y) * phi(z) * phi(w).diff(w)
    assert node.diff(V[0, 3]) == GaussianAverage(slopes, (x, y, z, w), V)


def test_derivative_of_kinks_is_a_distribution():
    """d⟨|x|⟩/dK = ⟨δ(x)⟩ = 1/√(2πK), and ReLU written as Piecewise is ReLU."""
    slope = GaussianAverage(sp.Abs(x), x, K).diff(K)
    assert slope == GaussianAverage(sp.DiracDelta(x), x, K)
    assert slope.subs(K, 2).evalf(30) == (1 / sp.sqrt(4 * sp.pi)).evalf(30)
    relu = sp.Piecewise((x, x > 0), (0, True))
    assert GaussianAverage(relu, x, K).diff(K) == slope / 2
    assert GaussianAverage(relu**2, x, K).diff(K).doit() == sp.Rational(1, 2)


# Errors and printing ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "node", [GaussianAverage, lambda F, *rest: ConnectedCorrelator(F, F, *rest)]
)
@pytest.mark.parametrize(
    ("variables", "covariance", "message"),
    [
        ((x, y), [[1, a], [b, 1]], "K must be symmetric"),
        ((x, y), [[1]], r"K must have shape \(2, 2\)"),
        (x, K2, r"K must have shape \(1, 1\)"),
        ((x, y), [[1, 2], [3]], "K must be a symmetric matrix"),
        ((x, x), K2, "variables must be different"),
        (x, -1, "positive semidefinite, got the variance -1"),
        ((x, y), [[1, 2], [2, 1]], "positive semidefinite, got the covariance 2"),
        ((x, y), [[0, 1], [1, b]], "positive semidefinite, got the covariance 1"),
        (x, sp.nan, "real and finite, got the entry nan"),
        (x, sp.oo, "real and finite, got the entry oo"),
        (x, sp.I, "real and finite, got the entry I"),
    ],
)
def test_bad_measures(node, variables, covariance, message):
    with pytest.raises(ValueError, match=message) as error:
        node(x**2, variables, covariance)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("variables", ["x", 2, {x}, [x + 1], None])
def test_variables_must_be_symbols(variables):
    with pytest.raises(TypeError, match="variables must be SymPy symbols"):
        GaussianAverage(x**2, variables, 1)


def test_latex():
    average = GaussianAverage(phi(x) ** 2, x, K)
    text = r"\left\langle \phi^{2}{\left(x \right)} \right\rangle_{\mathcal{N}\left(0, K\right)}"
    assert sp.latex(average) == text
    assert average._repr_latex_() == rf"$\displaystyle {text}$"
    connected = ConnectedCorrelator(phi(x), phi(y), (x, y), K2)
    assert r"\phi{\left(x \right)} \,;\, \phi{\left(y \right)}" in sp.latex(connected)
    assert sp.latex(K2) in sp.latex(connected)


# Numbers ------------------------------------------------------------------------------------


@pytest.mark.slow_but(4)
@pytest.mark.parametrize("variance", ["1/100", "3/10", "12"])
@pytest.mark.parametrize("F", [sp.tanh(x) ** 2, sp.Max(0, x) * sp.atan(x), sp.cos(x) / (1 + x**2)])
def test_evalf_one_variable(F, variance):
    value = GaussianAverage(F, x, sp.Rational(variance)).evalf(30)
    with mpmath.workdps(30):
        expected = oracle.average1(sp.lambdify([x], F, "mpmath"), mpmath.mpf(sp.Rational(variance)))
        assert mpmath.almosteq(mpf(value), expected, mpf("1e-28"))


def test_evalf_inside_an_expression():
    average = GaussianAverage(sp.tanh(x) ** 2, x, K)
    value = (2 * average + K).evalf(20, subs={K: sp.Rational(1, 2)})
    assert abs(value - 2 * average.subs(K, sp.Rational(1, 2)).evalf(20) - sp.Rational(1, 2)) < 1e-19


def test_evalf_leaves_symbols_alone():
    assert GaussianAverage(phi(x), x, 1).evalf() == GaussianAverage(phi(x), x, 1)
    assert GaussianAverage(sp.tanh(x) ** 2, x, K).evalf().has(GaussianAverage)
    assert ConnectedCorrelator(phi(x), phi(x), x, 1).evalf().has(ConnectedCorrelator)
