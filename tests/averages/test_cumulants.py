"""Cumulants of n functions as nodes: symmetry, linearity, independence, Price's theorem."""

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.averages.precise import partitions

x, y, z, w = VARIABLES = sp.symbols("x y z w", real=True)
p, q = sp.symbols("p q", real=True)
a, b, c = sp.symbols("a b c", positive=True)
phi, psi = sp.Function("phi"), sp.Function("psi")


def covariance(size):
    """A symmetric matrix of independent real symbols."""
    return sp.ImmutableMatrix(
        size, size, lambda i, j: sp.Symbol(f"K_{min(i, j)}{max(i, j)}", real=True)
    )


K3, K4 = covariance(3), covariance(4)


def entries(K):
    return sorted(K.free_symbols, key=str)


# Definition -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "bell"), [(1, 1), (2, 2), (3, 5), (4, 15), (5, 52)])
def test_partitions(count, bell):
    found = list(partitions(range(count)))
    assert len(found) == bell
    for weight, blocks in found:
        assert sorted(k for block in blocks for k in block) == list(range(count))
        assert weight == (-1) ** (len(blocks) - 1) * sp.factorial(len(blocks) - 1)
    # The weights of the cumulant of a constant function 1 add up to ln e^J at order n > 1.
    assert sum(weight for weight, _ in found) == (1 if count == 1 else 0)


def test_derivatives_of_the_logarithm():
    """The cumulant is ∂³/∂J∂J∂J ln⟨exp ΣJg⟩."""
    J = sp.symbols("J:3")
    F = [phi(x) ** 2, psi(y), phi(z) * psi(x)]
    weight = GaussianAverage(sp.exp(sum(j * f for j, f in zip(J, F, strict=True))), (x, y, z), K3)
    slope = sp.log(weight)
    for j in J:
        slope = slope.diff(j)
    slope = slope.xreplace(dict.fromkeys(J, sp.S.Zero))
    node = ConnectedCorrelator(*F, (x, y, z), K3)
    assert sp.expand(slope - node.rewrite(GaussianAverage)) == 0


def test_wick():
    """⟨x²;y²;z²⟩ = 8 K_xy K_yz K_zx, and the fourth cumulant of x² is 48 K⁴."""
    node = ConnectedCorrelator(x**2, y**2, z**2, (x, y, z), K3)
    assert sp.expand(node.doit() - 8 * K3[0, 1] * K3[1, 2] * K3[0, 2]) == 0
    assert ConnectedCorrelator(*[x**2] * 4, x, a).doit() == 48 * a**4
    four = ConnectedCorrelator(x * y, z * w, (x, y, z, w), K4)
    wick = K4[0, 2] * K4[1, 3] + K4[0, 3] * K4[1, 2]
    assert sp.expand(four.doit() - wick) == 0


def test_one_function_is_the_average():
    assert ConnectedCorrelator(phi(x), x, a) == GaussianAverage(phi(x), x, a)
    with pytest.raises(TypeError, match="expected functions, variables and K, got 2"):
        ConnectedCorrelator(x, a)


# Simplification ---------------------------------------------------------------------------------


@settings(max_examples=20)
@given(order=st.permutations(range(4)), names=st.permutations(range(4)))
def test_symmetric_in_functions_and_variables(order, names):
    functions = [phi(x), psi(y) ** 2, phi(z) * psi(w), phi(w)]
    node = ConnectedCorrelator(*functions, VARIABLES, K4)
    other = ConnectedCorrelator(
        *[functions[k] for k in order], [VARIABLES[k] for k in names], K4.extract(names, names)
    )
    assert node == other


@settings(max_examples=20)
@given(
    numbers=st.lists(st.integers(-3, 3), min_size=3, max_size=3),
    position=st.integers(0, 2),
)
def test_multilinear(numbers, position):
    one, two, constant = numbers
    functions = [phi(x), psi(y), phi(z)]

    def with_function(F):
        changed = [*functions[:position], F, *functions[position + 1 :]]
        return ConnectedCorrelator(*changed, (x, y, z), K3)

    F, G = phi(x) ** 2, psi(z)
    combined = with_function(one * p * F + two * G + constant)
    assert sp.expand(combined) == one * p * with_function(F) + two * with_function(G)


def test_zero():
    assert ConnectedCorrelator(phi(x), 3, psi(y), (x, y), K3[:2, :2]) == 0
    split = sp.Matrix([[a, p, 0], [p, b, 0], [0, 0, c]])
    assert ConnectedCorrelator(phi(x), psi(y), phi(z), (x, y, z), split) == 0
    # Linked through a function of two variables that are independent of each other.
    free = sp.diag(a, b)
    assert ConnectedCorrelator(phi(x), psi(y), (x, y), free) == 0
    assert ConnectedCorrelator(phi(x), psi(y), phi(x) * psi(y), (x, y), free) != 0
    assert ConnectedCorrelator(sp.tanh(x), sp.tanh(y), sp.erf(z), (x, y, z), K3) == 0
    assert ConnectedCorrelator(sp.tanh(x) * y, sp.tanh(y), (x, y), K3[:2, :2]) == 0
    assert ConnectedCorrelator(sp.tanh(x), sp.tanh(y), sp.cos(z), (x, y, z), K3) != 0


def test_unused_variables_and_bound_symbols():
    node = ConnectedCorrelator(phi(p * x), psi(z), phi(z), (x, y, z), K3)
    assert node.variables == sp.Tuple(x, z)
    assert node.free_symbols == {p, K3[0, 0], K3[0, 2], K3[2, 2]}
    assert node.subs(x, 2) == node
    moved = node.subs(p, z)
    assert z in moved.free_symbols and moved.rewrite(GaussianAverage).free_symbols == (
        node.free_symbols - {p} | {z}
    )
    assert node.xreplace({K3[0, 2]: sp.S.Zero}) == 0


# Price's theorem for cumulants ------------------------------------------------------------------


@pytest.mark.parametrize("symbol", entries(K3))
@pytest.mark.parametrize(
    "functions",
    [
        (phi(x), psi(y), phi(z) ** 2),
        (phi(x), phi(x) * psi(z), psi(y)),
        (phi(x) * psi(y), psi(z) * phi(y)),
    ],
)
def test_derivative_is_that_of_the_averages(functions, symbol):
    node = ConnectedCorrelator(*functions, (x, y, z), K3)
    slope = node.diff(symbol)
    assert (
        sp.expand(slope.rewrite(GaussianAverage) - node.rewrite(GaussianAverage).diff(symbol)) == 0
    )


def test_derivative_stays_connected():
    """Every term is one node, never a product of averages that would nearly cancel."""
    node = ConnectedCorrelator(phi(x) ** 2, phi(y) ** 2, phi(z) ** 2, (x, y, z), K3)
    for symbol in entries(K3):
        for term in sp.Add.make_args(sp.expand(node.diff(symbol))):
            nodes = [
                f for f in sp.Mul.make_args(term) if f.has(GaussianAverage, ConnectedCorrelator)
            ]
            assert len(nodes) == 1


def test_derivative_by_a_parameter():
    node = ConnectedCorrelator(sp.cos(p * x), sp.cos(y), sp.cos(z), (x, y, z), K3)
    assert sp.expand(node.diff(p).doit() - node.doit().diff(p)) == 0


@pytest.mark.slow_but(4)
@pytest.mark.parametrize("symbol", entries(K3))
def test_derivative_with_kinks_against_differences(symbol):
    """|x|, ReLU and their δ-functions, each number by the moments of orthants."""
    node = ConnectedCorrelator(sp.Abs(x), sp.Max(0, y), sp.Max(0, z), (x, y, z), K3)
    point = dict(zip(entries(K3), map(sp.Rational, "1 1/2 1/3 6/5 -1/4 4/5".split()), strict=True))
    slope = node.diff(symbol).subs(point)
    value = sp.sympify(sp.Add(*[t.doit() for t in sp.Add.make_args(sp.expand(slope))])).evalf(20)
    step = sp.Rational(1, 10**5)
    ends = [node.subs({**point, symbol: point[symbol] + s * step}).evalf(30) for s in (1, -1)]
    assert abs(value - (ends[0] - ends[1]) / (2 * step)) < 1e-9


def test_numbers_of_one_variable():
    """The third cumulant of tanh² from its three moments."""
    F = sp.tanh(x) ** 2
    m1, m2, m3 = (GaussianAverage(F**n, x, 2).evalf(30) for n in (1, 2, 3))
    value = ConnectedCorrelator(F, F, F, x, 2).evalf(20)
    assert abs(value / (m3 - 3 * m1 * m2 + 2 * m1**3) - 1) < sp.Float("1e-18")
    assert np.isfinite(float(value))
