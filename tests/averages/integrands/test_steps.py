"""Kinks and jumps written by steps, and their derivatives as distributions."""

from itertools import pairwise, product

import numpy as np
import pytest
import sympy as sp
from sympy import Abs, DiracDelta, Heaviside, Max, Min, Piecewise, sign

from fieldtheory.averages.integrands.breakpoints import break_points, has_steps, pieces
from fieldtheory.averages.integrands.steps import reduce_steps, second_derivative, sift, step_form
from tests.tables import slow

x, y, p = sp.symbols("x y p", real=True)
HALF = sp.Rational(1, 2)

FUNCTIONS = [
    Max(0, x),
    Max(0, x) + Min(0, x) / 100,
    Abs(x),
    Abs(x - 1),
    sign(x) * x**2,
    Max(-1, Min(1, x)),
    Max(0, x, 2 * x - 1),
    Max(0, 1 - 2 * x),
    Max(0, sp.tanh(x)),
    Abs(sp.tanh(x) - HALF),
    Abs(x**2 - 1),
    Max(x, x**3),
    x / (1 + Abs(x)),
    Piecewise((x, x > 0), (0, True)),
    Piecewise((x, x > 0), (sp.exp(x) - 1, True)),
    Piecewise((sp.exp(x) - 1, x <= 0), (x, True)),
    Piecewise((0, x < -1), (x, x < 1), (1, True)),
    Piecewise((1, (x > -1) & (x < 1)), (0, True)),
    Piecewise((1, (x < -1) | (x > 1)), (x, True)),
    Piecewise((1, sp.Eq(x, 7)), (Abs(x), True)),
]
POINTS = [sp.Rational(k, 7) for k in range(-15, 16) if k % 7]  # no kink


@pytest.mark.parametrize("f", FUNCTIONS, ids=str)
def test_step_form_is_the_function(f):
    form, smooth = step_form(f), pieces(f, (x,))
    assert not form.has(Max, Min, Abs, sign, Piecewise)
    for point in POINTS:
        assert abs((form.subs(x, point) - f.subs(x, point)).evalf(20)) < 1e-18
        assert abs((smooth.subs(x, point) - f.subs(x, point)).evalf(20)) < 1e-18


def test_steps_are_normalised():
    assert step_form(Heaviside(-x)) == 1 - Heaviside(x)
    assert step_form(Heaviside(3 * x)) == Heaviside(x)
    assert step_form(Heaviside(x) ** 3) == Heaviside(x)
    assert step_form(Abs(x) ** 2) == x**2
    assert step_form(Max(0, x) + Min(0, x)) == x
    assert reduce_steps(Heaviside(x - 1) * Heaviside(x + 1) * Heaviside(y)) == (
        Heaviside(x - 1) * Heaviside(y)
    )
    assert not has_steps(sp.erf(x))
    assert step_form(sp.erf(x)) == sp.erf(x)


def test_conditions_must_compare():
    with pytest.raises(ValueError, match="conditions of a Piecewise"):
        step_form(Piecewise((x, sp.Contains(x, sp.S.Integers)), (0, True)))


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (Max(0, x) ** 2, 2 * Heaviside(x)),
        (Max(0, x), DiracDelta(x)),
        (Abs(x), 2 * DiracDelta(x)),
        (Abs(x - 1), 2 * DiracDelta(x - 1)),
        (Abs(x) * x, 4 * Heaviside(x) - 2),
        (Abs(x) * sp.cos(x), None),
        (x * Heaviside(x - 1), None),
        (Max(-1, Min(1, x)), DiracDelta(x + 1) - DiracDelta(x - 1)),
        (Piecewise((x, x > 0), (0, True)) ** 2, 2 * Heaviside(x)),
        (Piecewise((x, x > 0), (sp.exp(x) - 1, True)), sp.exp(x) * (1 - Heaviside(x))),
        slow(Max(0, sp.tanh(x) - HALF), None),
        (sign(x), 2 * DiracDelta(x, 1)),
        (sp.tanh(x), sp.tanh(x).diff(x, 2)),
    ],
)
def test_second_derivative(f, expected):
    """As stated, and against two integrations by parts with a bump g."""
    second = second_derivative(f, x, x)
    if expected is not None:
        assert sp.expand(second - expected) == 0
    g = sp.exp(-((x - HALF) ** 2))
    nodes, weights = np.polynomial.legendre.leggauss(60)
    cuts = sorted({-7.0, *map(float, break_points(f, x)), 7.0})

    def integral(expr):
        function = sp.lambdify(x, pieces(expr, (x,)), ["scipy", "numpy"])
        total = 0.0
        for left, right in pairwise(cuts):
            for a, b in pairwise(np.linspace(left, right, 9)):
                u = (a + b) / 2 + (b - a) / 2 * nodes
                total += (b - a) / 2 * np.sum(weights * function(u) * np.ones_like(u))
        return total

    smooth = second.replace(DiracDelta, lambda *args: sp.S.Zero)
    singular = sp.S.Zero
    for term in sp.Add.make_args(sp.expand(second)):
        for delta in term.atoms(DiracDelta):
            point = sp.solve(delta.args[0], x)[0]
            order = delta.args[1] if len(delta.args) > 1 else 0
            coefficient = (term / delta) * g
            singular += (-1) ** order * coefficient.diff(x, order).subs(x, point)
    by_parts = integral(f * g.diff(x, 2))
    assert integral(smooth * g) + float(singular) == pytest.approx(by_parts, abs=1e-12)


def test_products_stay_products():
    """Averages of these take rules for functions of one variable each."""
    for f in (x / (1 + Abs(x)), x * sp.tanh(x) * sp.cosh(x) / (1 + x**2)):
        found = second_derivative(f * f.subs(x, y), x, y)
        for factor in sp.Mul.make_args(found):
            assert not (factor.has(x) and factor.has(y))


def test_products_stay_products_beside_the_terms_of_jumps():
    f = Piecewise((x, x > HALF), (x, x < -HALF), (0, True))
    found = second_derivative(f * f.subs(x, y), x, y)
    smooth = found.replace(DiracDelta, lambda *_: sp.S.Zero)
    assert len([factor for factor in sp.Mul.make_args(smooth) if not factor.is_number]) == 2
    assert sift(found, (x, y)).replace(DiracDelta, lambda *_: sp.S.Zero) == smooth
    # φ' = θ(|h| − 1/2) + (δ(h − 1/2) + δ(h + 1/2))/2.
    jumps = (DiracDelta(x - HALF) + DiracDelta(x + HALF)) / 2
    slope = Heaviside(x - HALF) + 1 - Heaviside(x + HALF) + jumps
    expected = slope * slope.subs(x, y)
    ends = [(v, side) for v in (x, y) for side in (1, -1)]
    scale = {DiracDelta(2 * v - s): DiracDelta(v - s * HALF) / 2 for v, s in ends}
    scale |= {Heaviside(2 * v - s): Heaviside(v - s * HALF) for v, s in ends}
    assert sp.expand(found.xreplace(scale) - expected) == 0


def test_sift():
    assert sift(sp.cos(x) * DiracDelta(x), (x,)) == DiracDelta(x)
    assert sift(x * DiracDelta(x), (x,)) == 0
    assert sift(sp.exp(x) * y * DiracDelta(x - 1), (x, y)) == sp.E * y * DiracDelta(x - 1)
    # f δ' = f(a) δ' − f'(a) δ
    expected = sp.S(3) * DiracDelta(x, 1) - 2 * DiracDelta(x)
    assert sp.expand(sift((3 + 2 * x) * DiracDelta(x, 1), (x,)) - expected) == 0
    assert sift(sp.erf(x), (x,)) == sp.erf(x)
    assert sift(x * DiracDelta(p), (x,)) == x * DiracDelta(p)
    # At 40 digits of a root of the factor.
    root = sp.Rational(str(sp.sqrt(2).evalf(40)))
    assert sift((x**2 - 2) * DiracDelta(x - root), (x,)) == 0


def test_products_are_reduced_factor_by_factor():
    """All at once, products of two squares with three kinks had a hundred thousand terms."""
    leaky = Max(0, x - 5 * HALF / 2) + Min(0, x - 5 * HALF / 2) / 100
    f = (10 * x * Max(0, Min(1, (10 * x + 3) / 6)) * leaky) ** 2
    form = step_form(f * f.subs(x, y))
    assert len(sp.Add.make_args(form)) < 500
    values = [sp.Rational(value, 10) for value in (-31, -2, 1, 13, 40)]
    for one, other in product(values, values):
        both = {x: one, y: other}
        assert form.subs(both) == f.subs(both) * f.subs(x, other)
