"""Closed forms of wide diffusions against SymPy's dsolve, numerical ODEs and finite networks."""

import numpy as np
import pytest
import sympy as sp
from scipy.integrate import solve_ivp
from scipy.special import erf

from fieldtheory.compiling.functions import lambdify
from fieldtheory.theory import notation as sym
from fieldtheory.theory.diffusion_limit.small_increments import SLOPES
from fieldtheory.theory.diffusion_limit.wide_closed_forms import (
    MEAN,
    TIME,
    Z_IJ,
    closed_form,
    linear_covariance,
)

START = np.array([[1.0, -0.4, 0.3], [0.2, 0.9, -1.1]])
WEIGHT, BIAS, HORIZON = 1.3, 0.6, 0.8


def test_the_covariance_is_that_of_the_issue():
    s, w, b = SLOPES[0], sym.WEIGHT, sym.BIAS
    expected = (Z_IJ + b**2 / w**2) * (sp.exp(s**2 * w**2 * TIME) - 1)
    assert sp.simplify(linear_covariance() - expected) == 0
    V = sp.Function("V")
    equation = sp.Eq(V(TIME).diff(TIME), s**2 * (b**2 + w**2 * (Z_IJ + V(TIME))))
    assert sp.checkodesol(equation, sp.Eq(V(TIME), linear_covariance()))[0]


def test_the_covariance_is_that_of_a_numerical_solution():
    Z = START @ START.T / START.shape[1]
    s = 2 / np.sqrt(np.pi)

    def rate(_, V):
        return (s**2 * (BIAS**2 + WEIGHT**2 * (Z + V.reshape(2, 2)))).ravel()

    solved = solve_ivp(rate, (0, HORIZON), np.zeros(4), "DOP853", rtol=1e-12, atol=1e-14)
    found = closed_form((2 / sp.sqrt(sp.pi), 0, 0, 0)).covariance
    compiled = lambdify([sym.WEIGHT, sym.BIAS, TIME, Z_IJ], found)
    assert np.allclose(compiled(WEIGHT, BIAS, HORIZON, Z), solved.y[:, -1].reshape(2, 2), rtol=1e-9)


FUNCTIONS = {
    "tanh": (np.tanh, (1, 0, -2, 0)),
    "erf": (erf, (2 / sp.sqrt(sp.pi), 0, -4 / sp.sqrt(sp.pi), 0)),
    "sin": (np.sin, (1, 0, -1, 0)),
    "x + x^4/3": (lambda x: x + x**4 / 3, (1, 0, 0, 8)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_deep_networks_approach_the_limit(name):
    """The wide network itself, layer by layer, with averages over Gaussian u by quadrature."""
    function, slopes = FUNCTIONS[name]
    form = closed_form(slopes)
    symbols = [sym.WEIGHT, sym.BIAS, TIME, Z_IJ]
    Z = START @ START.T / START.shape[1]
    V = lambdify(symbols, form.covariance)(WEIGHT, BIAS, HORIZON, Z)
    left = []
    for depth in (200, 400):
        m, covariance = deep(function, depth)
        left.append([np.abs(covariance - V).max(), np.abs(m).max()])
    for far, near in zip(*left, strict=True):
        assert near < 1e-14 or far / near == pytest.approx(2, rel=0.05)


def deep(function, depth):
    """m (2,) and V (2, 2) of two inputs after all layers of the wide network."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(20)
    weights = weights / weights.sum()
    x, y = np.meshgrid(nodes, nodes, indexing="ij")
    both = np.outer(weights, weights)
    means, V = np.zeros(2), np.zeros((2, 2))
    Z, bar = START @ START.T / START.shape[1], START.mean(axis=1)
    for _ in range(depth):
        gram = Z + np.outer(bar, means) + np.outer(means, bar) + np.outer(means, means) + V
        u = np.linalg.cholesky(HORIZON / depth * (BIAS**2 + WEIGHT**2 * gram))
        values = function(np.tensordot(u, np.array([x, y]), 1))
        averages = np.einsum("aij,ij->a", values, both)
        products = np.einsum("aij,bij,ij->ab", values, values, both)
        means, V = means + averages, V + products - np.outer(averages, averages)
    return means, V


def test_curved_functions_have_a_riccati_mean():
    form = closed_form((sp.S.Half, sp.S.Half, 0, -1))
    assert form.covariance == MEAN and len(form.where) == 3


def test_without_a_slope_nothing_moves_at_first_order():
    form = closed_form((0, 0, 6, 0))
    assert (form.mean, form.covariance) == (0, 0)
