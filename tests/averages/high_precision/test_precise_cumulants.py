"""Averages of several variables with mpmath: every rule against another, and refusals."""

import mpmath
import numpy as np
import pytest
import sympy as sp
from mpmath import mpf

from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.averages.choosing import choose
from fieldtheory.averages.errors import PrecisionError
from fieldtheory.averages.high_precision import precise_orthants
from fieldtheory.averages.high_precision.precise import average
from fieldtheory.averages.high_precision.precise_cumulants import cumulant, method
from fieldtheory.averages.high_precision.precise_grid import separated
from fieldtheory.averages.rules import entry_indices
from tests.tables import slow

x, y, z, w = VARIABLES = sp.symbols("x y z w", real=True)
R = sp.Rational
K4 = sp.Matrix(
    [
        [1, R(1, 2), R(1, 3), R(1, 5)],
        [R(1, 2), R(6, 5), R(-1, 4), R(1, 4)],
        [R(1, 3), R(-1, 4), R(4, 5), R(1, 10)],
        [R(1, 5), R(1, 4), R(1, 10), R(9, 10)],
    ]
)
K3 = K4[:3, :3]


def relu(u):
    return sp.Max(0, u)


def in_float64(node):
    K = np.array(node.covariance.tolist(), dtype=float)
    return float(choose(node).function(*[K[i, j] for i, j in entry_indices(len(K))]))


@pytest.mark.parametrize(
    ("node", "digits"),
    [
        (ConnectedCorrelator(sp.erf(x) * sp.erf(y), sp.erf(z) ** 2, (x, y, z), K3), 15),
        slow(ConnectedCorrelator(sp.erf(x) * sp.erf(y), sp.erf(z) * sp.erf(w), VARIABLES, K4), 15),
        (ConnectedCorrelator(sp.tanh(x) * sp.tanh(y), sp.tanh(z) ** 2, (x, y, z), K3), 15),
        slow(ConnectedCorrelator(*[sp.tanh(v) ** 2 for v in (x, y, z)], (x, y, z), K3), 12),
        slow(GaussianAverage(sp.tanh(x) * sp.tanh(y) * sp.tanh(z) ** 2, (x, y, z), K3), 15),
        (ConnectedCorrelator(relu(x) * relu(y), relu(z) * relu(w), VARIABLES, K4), 15),
        (ConnectedCorrelator(relu(x), sp.Abs(y), relu(z) ** 2, (x, y, z), K3), 20),
        slow(
            ConnectedCorrelator(sp.tanh(x) * sp.tanh(y), sp.tanh(z) * sp.tanh(w), VARIABLES, K4), 8
        ),
        slow(GaussianAverage(relu(x - R(1, 2)) * relu(y) * sp.tanh(z), (x, y, z), K3), 10),
    ],
)  # fmt: skip
def test_against_float64(node, digits):
    """The two share no code but the choice of the rule; erf and ReLU not even the integral."""
    assert float(node.evalf(digits)) == pytest.approx(in_float64(node), rel=3e-10)


@pytest.mark.slow
def test_four_error_functions_to_twenty_digits():
    """Two splits of ⟨erf erf erf erf⟩ into F and G."""
    F = [sp.erf(v) for v in VARIABLES]
    total = []
    for (i, j), (k, l) in (((0, 1), (2, 3)), ((0, 2), (1, 3))):
        connected = cumulant([F[i] * F[j], F[k] * F[l]], VARIABLES, K4, 22)
        apart = [cumulant([F[p] * F[q]], VARIABLES, K4, 22) for p, q in ((i, j), (k, l))]
        total.append(connected + apart[0] * apart[1])
    assert mpmath.almosteq(*total, mpf("1e-19"))


@pytest.mark.parametrize("digits", [15, slow(25)])
def test_grid_against_wick(digits):
    """⟨cos x cos y cos z⟩ is a sum of exponentials, and grows none of the digits asked for."""
    node = GaussianAverage(sp.cos(x) * sp.cos(y) * sp.cos(z), (x, y, z), K3)
    value = average(node.integrand, tuple(node.variables), node.covariance, digits)
    with mpmath.workdps(digits + 5):
        expected = mpf(node.doit().evalf(digits + 5))
        assert abs(value - expected) < mpf(10) ** (1 - digits) * abs(expected)


@pytest.mark.slow
def test_one_function_of_two_variables_by_moments():
    """⟨tanh x tanh y;tanh x tanh y⟩ from two averages of precise."""
    F = sp.tanh(x) * sp.tanh(y)
    K = K3[:2, :2]
    value = ConnectedCorrelator(F, F, (x, y), K).evalf(15)
    second, first = (average(F**n, (x, y), K, 20) for n in (2, 1))
    assert abs(value - sp.Float(second - first**2, 18)) < 1e-14


def test_zero_by_symmetry():
    """⟨sin x; y; cos z − 1⟩-like cumulants vanish exactly where the parity is not seen."""
    free = sp.Matrix([[1, 0, R(1, 2)], [0, 1, R(1, 2)], [R(1, 2), R(1, 2), 2]])
    assert cumulant([x, y], (x, y, z), free, 15) == 0


def test_orthants():
    with mpmath.workdps(30):
        half = [[mpf(1 + (i == j)) / 2 for j in range(4)] for i in range(4)]
        assert mpmath.almosteq(precise_orthants.probability(half, 18), mpf(1) / 5, mpf("1e-17"))


def test_separated():
    assert separated(x * sp.tanh(y + z), (x, y, z)) is None
    terms = separated((x + y) * sp.tanh(z), (x, y, z))
    assert sp.expand(sum(c * sp.Mul(*f) for c, f in terms) - (x + y) * sp.tanh(z)) == 0


def test_methods():
    names = {
        (sp.erf(x) * sp.erf(y), sp.erf(z)): "Price's theorem",
        (sp.erf(x) * sp.erf(y) * sp.exp(-(z**2)),): "closed form",
        (relu(x), relu(y), relu(z)): "orthants",
        (sp.tanh(x), sp.tanh(y), sp.cos(z)): "trapezoidal rule",
        (relu(x - 1), sp.tanh(y) * z): "panels",
    }
    for functions, name in names.items():
        assert method(functions, (x, y, z)).name == name


# Refusals --------------------------------------------------------------------------------------


def test_strong_correlations_ask_for_fewer_digits():
    K = sp.eye(4) / 50 + sp.ones(4)
    F = sp.Mul(*[sp.tanh(v) for v in VARIABLES])
    with pytest.raises(PrecisionError, match="ask for fewer digits than 20"):
        average(F, VARIABLES, K, 20)


def test_singular_or_inseparable():
    F = sp.tanh(x) * sp.tanh(y) * sp.cos(z)
    with pytest.raises(ValueError, match="K must be positive definite"):
        average(F, (x, y, z), sp.ones(3), 15)
    with pytest.raises(ValueError, match="sums of products of functions of one variable each"):
        average(sp.tanh(x * y + z), (x, y, z), sp.eye(3), 15)
    with pytest.raises(ValueError, match="cannot locate the kinks"):
        method((sp.Max(x, y) * z,), (x, y, z))
