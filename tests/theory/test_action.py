"""The action: its form, and its derivatives against differentiating everything first."""

import itertools
from functools import cache

import mpmath
import numpy as np
import pytest
import sympy as sp
from mpmath import mpf

import fieldtheory as ft
from fieldtheory.averages import GaussianAverage
from fieldtheory.compiling.functions import lambdify
from fieldtheory.theory import notation as sym
from fieldtheory.theory.action import family_action
from fieldtheory.theory.evaluation import symbol_values
from tests.examples import derivation, network, oracle
from tests.expanding import expand_averages
from tests.oracles import action as oracle_action
from tests.oracles import exact, recursion


def equal(left, right):
    """Equality of expressions that are polynomials in averages."""
    return expand_averages((left - right).rewrite(GaussianAverage)) == 0


def at_zero(action, expression):
    return expression.xreplace(dict.fromkeys(action.conjugates, sp.S.Zero))


def test_action_of_depth_one_is_the_typed_one():
    C = [sym.kernel(l) for l in range(3)]
    Ct = [sym.conjugate(l) for l in range(3)]
    nu = [sym.INPUT_WIDTH, 1, 1]
    h0, h1 = sym.signal(0), sym.signal(1)
    rho, gamma = sym.branch_scale(1), sym.skip_scale(1)
    g0 = nu[0] * sym.data_kernel()
    g1 = rho**2 * (sym.WEIGHT**2 * sym.phi(h0) ** 2 + sym.BIAS**2)
    g2 = sym.READOUT_WEIGHT**2 * sym.phi(h1) ** 2 + sym.READOUT_BIAS**2
    K = [[C[0], gamma * C[0]], [gamma * C[0], gamma**2 * C[0] + C[1]]]
    source = sp.expand(sum(c * g for c, g in zip(Ct, (g0, g1, g2), strict=True)))
    average = GaussianAverage(sp.exp(source), (h0, h1), K)
    typed = -sym.WIDTH * sum(n * c * t for n, c, t in zip(nu, C, Ct, strict=True))
    typed += sym.WIDTH * sp.log(average)
    assert sp.simplify(family_action(ft.ResidualNetwork, 1).expression - typed) == 0


@pytest.mark.parametrize("depth, inputs", [(1, 1), (2, 1), (5, 1), (1, 2), (2, 2)])
def test_action_vanishes_without_conjugates(depth, inputs):
    action = family_action(ft.ResidualNetwork, depth, inputs)
    assert action.derivative(()) == 0
    assert at_zero(action, action.expression) == 0


@cache
def gradient(action, field):
    return action.expression.diff(field)


def naive_derivative(action, first, second):
    # One at a time: SymPy factors the result of several, and with it the covariances.
    return at_zero(action, gradient(action, first).diff(second))


PAIRS = {1: list(itertools.product(range(3), repeat=2)), 2: [(1, 2), (3, 1), (2, 3)]}


@pytest.mark.slow_but(1)
@pytest.mark.parametrize("depth", PAIRS)
def test_hessian_by_differentiating_the_whole_action_first(depth):
    """Derivatives of the full S(C, C̃), C̃ = 0 only afterwards; at depth 2 between any two layers."""
    action = derivation(depth).network_action
    hessian = derivation(depth).hessian
    C, Ct = action.kernels, action.conjugates
    for k, l in PAIRS[depth]:
        assert naive_derivative(action, C[k], C[l]) == 0
        assert equal(naive_derivative(action, Ct[k], Ct[l]), hessian.S22[k, l])
        assert equal(naive_derivative(action, C[l], Ct[k]), hessian.S21[k, l])


def test_gradient_by_differentiating_the_whole_action_first():
    action = family_action(ft.ResidualNetwork, 2)
    for j, (C, Ct) in enumerate(zip(action.kernels, action.conjugates, strict=True)):
        assert at_zero(action, gradient(action, C)) == 0
        assert equal(at_zero(action, gradient(action, Ct)), action.derivative((j,)))


def test_third_derivatives_are_derivatives_of_the_hessian():
    action, hessian = derivation(3).network_action, derivation(3).hessian
    C = action.kernels
    for m, k, j in itertools.product(range(5), repeat=3):
        vertex = action.derivative((m,), (k, j))
        assert equal(vertex, hessian.S21[m, k].diff(C[j]))
        if j < m and k < m:
            assert vertex != 0
        else:
            assert vertex == 0
    for m, k, j in [(1, 2, 0), (2, 2, 1), (4, 3, 2), (1, 1, 0), (2, 1, 3)]:
        vertex = action.derivative((m, k), (j,))
        assert equal(vertex, hessian.S22[m, k].rewrite(GaussianAverage).diff(C[j]))


@pytest.mark.slow
def test_derivatives_are_those_of_the_action_integrated_numerically():
    """All blocks at depth one against finite differences of S itself, ν_0 = 2."""
    net, K0 = network(1, branch_scale=0.8), 0.3
    precise = recursion.Net(
        *(tuple(map(mpf, x)) if isinstance(x, tuple) else mpf(x) for x in oracle(net))
    )
    with mpmath.workdps(18):
        C, _ = recursion.kernels(precise, mpf(K0), exact.erf_average)
        H = oracle_action.hessian(precise, list(C), mpmath.erf, nu0=mpf(2))
    th = derivation(1, activation="erf")
    values = symbol_values(net, K0) | {sym.INPUT_WIDTH: 2.0}
    numbers = [*values.values(), *map(float, C)]

    def evaluated(name):
        return lambdify([*values, *th.network_action.kernels], th.block(name))(*numbers)

    blocks = {name: evaluated(name) / net.width for name in ("S11", "S12", "S21", "S22")}
    dense = np.block([[blocks["S11"], blocks["S12"]], [blocks["S21"], blocks["S22"]]])
    np.testing.assert_allclose(H, dense, rtol=0, atol=2e-9)
