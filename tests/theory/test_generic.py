"""Formulas for symbolic layers against the explicit derivation at depths 1 to 4."""

import itertools

import pytest
import sympy as sp

from fieldtheory.averages import GaussianAverage
from fieldtheory.theory import generic
from fieldtheory.theory import notation as sym
from tests.examples import derivation
from tests.expanding import expand_averages
from tests.theory.test_propagator import equal

depths = pytest.mark.parametrize("depth", [1, 2, 3, 4])


def explicit(formula, depth):
    return generic.explicit(formula, derivation(depth).network_action, depth)


@depths
def test_saddle_point(depth):
    found = derivation(depth).saddle_point.kernels
    for l in range(1, depth + 2):
        formula = explicit(generic.residual_kernel(l), depth)
        assert sp.expand(formula - found[sym.kernel(l)]) == 0


@depths
def test_kernel(depth):
    covariance = derivation(depth).network_action.covariance
    for l in range(depth + 1):
        assert sp.expand(explicit(generic.kernel(l), depth) - covariance[l, l]) == 0


@depths
def test_mixed_block(depth):
    S21 = derivation(depth).hessian.S21
    for k, l in itertools.product(range(1, depth + 2), range(depth + 2)):
        assert expand_averages(explicit(generic.mixed_block(k, l), depth) - S21[k, l]) == 0


@depths
def test_source_block(depth):
    S22 = derivation(depth).hessian.S22
    for k, l in itertools.product(range(1, depth + 2), repeat=2):
        difference = explicit(generic.source_block(min(k, l), max(k, l)), depth) - S22[k, l]
        assert expand_averages(difference.rewrite(GaussianAverage)) == 0


@depths
def test_response(depth):
    """The recursion with the explicit G12 put in, and the running product."""
    G12 = derivation(depth).propagator.G12
    for l, m in itertools.product(range(1, depth + 2), range(depth + 2)):
        if m > l:
            continue
        recursion = generic.response_recursion(l, m).doit()
        known = {g: G12[tuple(map(int, g.args))] for g in recursion.atoms(generic.G12)}
        assert equal(explicit(recursion.xreplace(known), depth), G12[l, m])
        if l > m:
            assert equal(explicit(generic.response_product(l, m), depth), G12[l, m])


@pytest.mark.parametrize("depth", [1, 2])
def test_covariance(depth):
    th = derivation(depth)
    for l, m in itertools.product(range(1, depth + 2), repeat=2):
        formula = generic.kernel_propagator(l, m).doit()
        known = {g: th.propagator.G12[tuple(map(int, g.args))] for g in formula.atoms(generic.G12)}
        known |= {s: th.hessian.S22[tuple(map(int, s.args))] for s in formula.atoms(generic.S22)}
        assert equal(formula.xreplace(known), th.propagator.G11[l, m])


def test_a_wrong_formula_is_seen():
    S21 = derivation(2).hessian.S21
    formula = explicit(generic.mixed_block(2, 0), 2)
    assert expand_averages(2 * formula - S21[2, 0]) != 0
    assert expand_averages(explicit(generic.mixed_block(2, 1), 2) - S21[2, 0]) != 0
