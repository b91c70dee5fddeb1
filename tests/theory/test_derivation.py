"""`derive` and the object it returns."""

import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.theory import notation as sym
from tests.examples import derivation


def test_parts_are_derived_once():
    th = derivation(2)
    assert th.hessian is th.hessian
    assert th.propagator.G12 is th.propagator.G12
    assert th.saddle_point is th.saddle_point
    assert th.action is th.network_action.expression


@pytest.mark.parametrize("name", ["S11", "S12", "S21", "S22", "G11", "G12", "G21", "G22"])
def test_blocks_by_name(name):
    th = derivation(1)
    part = th.hessian if name[0] == "S" else th.propagator
    assert th.block(name) is getattr(part, name)
    assert th.block(name).shape == (3, 3)


def test_undetermined_activation_stays_a_function():
    th = derivation(2)
    assert th.activation is None
    assert sym.phi in {f.func for f in th.action.atoms(sp.core.function.AppliedUndef)}


@pytest.mark.parametrize("activation", ["erf", "relu", "tanh"])
def test_named_activation_is_put_in(activation):
    th = derivation(1, activation=activation)
    assert th.activation.name == activation
    for part in (th.action, th.hessian.S21, th.hessian.S22):
        assert not part.atoms(sp.core.function.AppliedUndef)
        assert part.atoms(GaussianAverage, ConnectedCorrelator)


def test_own_activation():
    x = sp.Symbol("x")
    th = ft.derive(1, activation=x**3)
    C = th.saddle_point.kernels[sym.kernel(1)].doit()
    rho, K = sym.branch_scale(), sym.kernel(0)
    assert sp.expand(C - rho**2 * (15 * sym.WEIGHT**2 * K**3 + sym.BIAS**2)) == 0


def test_scales_of_all_layers_may_be_given():
    rho = sp.Symbol("rho", positive=True)
    th = ft.derive(2, branch_scale=rho, skip_scale=1)
    symbols = th.hessian.S21.free_symbols
    assert rho in symbols
    assert not any(sym.branch_scale(l) in symbols or sym.skip_scale(l) in symbols for l in (1, 2))
    general = derivation(2).hessian.S21
    values = {sym.branch_scale(l): rho for l in (1, 2)} | {sym.skip_scale(l): 1 for l in (1, 2)}
    assert (general.subs(values) - th.hessian.S21).applyfunc(sp.expand).is_zero_matrix


@pytest.mark.parametrize("inputs, fields", [(1, 1), (2, 3), (3, 6)])
def test_number_of_fields(inputs, fields):
    action = ft.derive(1, inputs).network_action
    assert len(action.kernels) == len(action.conjugates) == 3 * fields


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ({"depth": 0}, ValueError, "depth must be an integer >= 1, got 0"),
        ({"depth": 2.0}, TypeError, "depth must be an integer >= 1, got 2.0"),
        ({"depth": True}, TypeError, "depth must be an integer >= 1, got True"),
        ({"depth": 1, "inputs": 0}, ValueError, "inputs must be an integer >= 1, got 0"),
        ({"depth": 1, "inputs": "2"}, TypeError, "inputs must be an integer >= 1, got '2'"),
        (
            {"depth": 1, "activation": "nothing"},
            ValueError,
            "activation must be one of erf, .*'nothing'",
        ),
        ({"depth": 1, "activation": sp.Symbol("x") * sp.Symbol("y")}, ValueError, "one symbol"),
        ({"depth": 1, "activation": 3}, TypeError, "activation must be a SymPy expression"),
        ({"depth": 1, "branch_scale": [1, 2]}, TypeError, r"branch_scale must .* got \[1, 2\]"),
        ({"depth": 1, "branch_scale": "rho"}, ValueError, "branch_scale must .* got 'rho'"),
        ({"depth": 1, "skip_scale": (1,)}, TypeError, r"skip_scale must be .* got \(1,\)"),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message) as caught:
        ft.derive(**arguments)
    assert "\n" not in str(caught.value)
