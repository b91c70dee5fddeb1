"""Rewritten closed forms: equal in symbols, and right to the last digits in numbers."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mpf

from fieldtheory.averages import GaussianAverage
from fieldtheory.averages.integrands.exact_differences import determinant
from fieldtheory.averages.nodes.float_forms import NUMPY, holds_for_parallel, stable
from fieldtheory.averages.nodes.rounding import guarded, relative
from tests.tables import crossed

x, y = sp.symbols("x y", real=True)
a, b = sp.symbols("a b", positive=True)
c = sp.Symbol("c", real=True)
K = sp.ImmutableMatrix([[a, c], [c, b]])
PHI = {
    "erf": sp.erf(x),
    "relu": sp.Max(0, x),
    "leaky": sp.Max(0, x) + sp.Min(0, x) / 100,
    "gelu": x * (1 + sp.erf(x / sp.sqrt(2))) / 2,
    "sin": sp.sin(x),
    "sign": sp.sign(x),
}
PLAIN = {
    "determinant": lambda p, q, r: p * q - r**2,
    "difference_variance": lambda p, q, r: p + q - 2 * r,
    "exponential_difference": lambda u, v, gap: sp.exp(u) - sp.exp(v),
    "complement": lambda u: 1 - sp.erf(u),
    "arcsine": lambda p, q, r: sp.atan2(r, sp.sqrt(p * q - r**2)),
    "angle_from_opposite": lambda p, q, r: sp.pi / 2 + sp.atan2(r, sp.sqrt(p * q - r**2)),
}


@pytest.mark.parametrize(("name", "order"), crossed(PHI, [(), (c,), (a,), (c, c), (a, c)]))
def test_stable_forms_are_equal(name, order):
    product = GaussianAverage(PHI[name] * PHI[name].subs(x, y), (x, y), K)
    value = (product.diff(*order) if order else product).doit()
    form = stable(value, K)
    for called, plain in PLAIN.items():
        form = form.replace(sp.Function(called), plain)
    for point in ({a: 1.2, b: 0.7, c: 0.4}, {a: 0.3, b: 2, c: -0.7}):
        exact = {symbol: sp.Rational(str(v)) for symbol, v in point.items()}
        assert sp.N((form - value).subs(exact), 40, maxn=400) == pytest.approx(0, abs=1e-35)


def test_small_differences_are_named():
    form = stable(sp.sqrt(4 * a * b - 4 * c**2 + 2 * a + 1), K)
    assert form.has(sp.Function("determinant"))
    assert form.replace(sp.Function("determinant"), lambda *K: 0).free_symbols == {a}
    root = sp.sqrt(a * b - c**2)
    assert stable(sp.atan2(c, root) / 2 + sp.pi / 4, K).has(sp.Function("angle_from_opposite"))
    form = stable(sp.exp(-a / 2 - b / 2 + c) / 2 - sp.exp(-a / 2 - b / 2 - c) / 2, K)
    assert form.func == sp.Mul and form.has(sp.Function("exponential_difference"))
    assert stable(1 - sp.exp(-2 * a), sp.ImmutableMatrix([[a]])).has(
        sp.Function("exponential_difference")
    )


@pytest.mark.parametrize("sign", [1, -1])
def test_squares_of_sums_and_differences(sign):
    value = sp.exp(-2 * a) + 2 * sign * sp.exp(-a) + 1
    form = stable(value, sp.ImmutableMatrix([[a]]))
    assert form.has(sp.Function("exponential_difference")) == (sign < 0)
    form = form.replace(sp.Function("exponential_difference"), PLAIN["exponential_difference"])
    assert sp.N((form - value).subs(a, sp.Rational(1, 3)), 30) == pytest.approx(0, abs=1e-25)


def test_limits_for_parallel_variables():
    """The second form is 0/0 for equal variances alone."""
    assert holds_for_parallel(a * b, [a, b, c], lambda p, q, r: p * q)
    form = sp.erf((a - c) / sp.sqrt(a * b - c**2))
    assert not holds_for_parallel(form, [a, b, c], sp.lambdify([a, b, c], form, "scipy"))


def test_equal_entries_are_left_alone():
    same = sp.ImmutableMatrix([[a, a], [a, a]])
    assert stable(a * b - c**2, same) == a * b - c**2


@given(p=st.floats(1e-12, 1e8), q=st.floats(1e-12, 1e8), r=st.floats(-1, 1))
def test_determinant_is_right_to_rounding(p, q, r):
    s = float(r * np.sqrt(p * q))
    exact = max(Fraction(p) * Fraction(q) - Fraction(s) ** 2, Fraction(0))
    value = Fraction(float(determinant(p, q, s)))
    # Two roundings of the sum of the two products and of their rests.
    assert abs(value - exact) <= Fraction(2, 2**52) * exact + Fraction(p) * Fraction(q) / 2**104


@given(u=st.floats(-30, 3), gap=st.floats(1e-12, 40), sign=st.sampled_from([1, -1]))
def test_exponential_difference(u, gap, sign):
    v = u - sign * gap
    with mpmath.workdps(40):
        exact = mpmath.exp(mpf(max(u, v))) * -mpmath.expm1(-mpf(gap)) * sign
    assert NUMPY["exponential_difference"](u, v, sign * gap) == pytest.approx(
        float(exact), rel=1e-13
    )


def test_variance_of_a_difference():
    assert NUMPY["difference_variance"](1.0, 1.0 + 2**-52, 1.0) == 2**-52


def test_powers_have_the_sign_of_their_base():
    assert relative(1 + sp.erfc(c) ** 3) < np.inf
    assert relative(1 + (1 - 2 * a) ** 3) == np.inf


def test_products_with_a_factor_that_cancels():
    """A factor in front makes the error of the other one as much larger."""
    form = (sp.cosh(a) - 1) / a**2
    function = guarded([a], form, lambda K: np.full(np.shape(K), 0.5), lambda: form)
    assert function(np.array([1e-9, 1.0])).tolist() == [0.5, pytest.approx(np.cosh(1.0) - 1)]


def test_every_function_has_numpy_code():
    assert set(NUMPY) == set(PLAIN)
