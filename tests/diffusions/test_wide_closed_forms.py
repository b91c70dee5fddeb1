"""Closed forms of wide diffusions against SymPy's dsolve, numerical ODEs and finite networks."""

import sympy as sp

from fieldtheory.diffusions.diffusion_limit.closed_moments import (
    MEAN,
    TIME,
    Z_IJ,
    closed_form,
    linear_covariance,
)
from fieldtheory.diffusions.diffusion_limit.small_increments import SLOPES
from fieldtheory.theory import notation as sym


def test_the_covariance_is_that_of_the_issue():
    s, w, b = SLOPES[0], sym.WEIGHT, sym.BIAS
    expected = (Z_IJ + b**2 / w**2) * (sp.exp(s**2 * w**2 * TIME) - 1)
    assert sp.simplify(linear_covariance() - expected) == 0
    V = sp.Function("V")
    equation = sp.Eq(V(TIME).diff(TIME), s**2 * (b**2 + w**2 * (Z_IJ + V(TIME))))
    assert sp.checkodesol(equation, sp.Eq(V(TIME), linear_covariance()))[0]


def test_curved_functions_have_a_riccati_mean():
    form = closed_form((sp.S.Half, sp.S.Half, 0, -1))
    assert form.covariance == MEAN and len(form.where) == 3


def test_without_a_slope_nothing_moves_at_first_order():
    form = closed_form((0, 0, 6, 0))
    assert (form.mean, form.covariance) == (0, 0)
