"""`derive` and the object it returns."""

import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.theory import notation as sym
from fieldtheory.theory.linearised import saturation_formula
from fieldtheory.theory.typesetting.latex import latex
from tests.examples import derivation
from tests.tables import slow


@pytest.mark.parametrize("name", ["S11", "S12", "S21", "S22", "G11", "G12", "G21", "G22"])
def test_blocks_by_name(name):
    th = derivation(1)
    part = th.hessian if name[0] == "S" else th.propagator
    assert th.block(name) is getattr(part, name)
    assert th.block(name).shape == (3, 3)


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
    assert all(square.is_positive for square in sym._NAMED.values())
    th = ft.derive(2, branch_scale=rho, skip_scale=1)
    symbols = th.hessian.S21.free_symbols
    assert rho in symbols
    assert not any(sym.branch_scale(l) in symbols or sym.skip_scale(l) in symbols for l in (1, 2))
    general = derivation(2).hessian.S21
    values = {sym.branch_scale(l): rho for l in (1, 2)} | {sym.skip_scale(l): 1 for l in (1, 2)}
    assert (general.subs(values) - th.hessian.S21).applyfunc(sp.expand).is_zero_matrix


@pytest.mark.parametrize(
    "name, meant",
    [
        ("Saddle point", "saddle_point"),
        ("g11", "G11"),
        ("eta", "residual_response"),
        ("χ", "response"),
        ("chi_out", "output_response"),
        ("(67)", "saturation"),
        ("68", "large_depth"),
    ],
)
def test_quantities_have_the_names_that_one_types(name, meant):
    th = ft.derive(1)
    assert th.latex(name) == th.latex(meant)


def test_generic_layers_are_the_default():
    th = ft.derive(2)
    for quantity in ("action", "S21", "response"):
        assert th.latex(quantity) == th.latex(quantity, "generic") != th.latex(quantity, "explicit")


def test_generic_formulas_do_not_depend_on_the_depth():
    for quantity in ("action", "hessian", "output_response"):
        assert ft.derive(1).latex(quantity) == ft.derive(5).latex(quantity)


@pytest.mark.parametrize("quantity", ["saturation", "large_depth"])
def test_saturation_is_that_of_the_network_of_the_paper(quantity):
    formula = saturation_formula(quantity == "large_depth").rhs
    th = ft.derive(3, activation="erf")
    assert th.latex(quantity).splitlines()[1] == rf"\rho^{{*}} &= {latex(formula)} \\"
    assert latex(formula.subs(sym.DEPTH, 3)) in th.latex(quantity, layers="explicit")
    assert r"\phi'(0) &= \frac{2}{\sqrt{\pi}}" in th.latex(quantity)
    for other in (ft.derive(2, skip_scale=0), ft.derive(2, branch_scale="per layer")):
        with pytest.raises(ValueError, match=f"quantity '{quantity}' is that of a ResidualNet"):
            other.latex(quantity)


def test_symbols_by_name():
    found = derivation(2, 2).symbols
    assert found.N == sym.WIDTH and found.sigma_w == sym.WEIGHT
    assert found.sigma_b_out == sym.READOUT_BIAS and found.nu_0 == sym.INPUT_WIDTH
    assert found.rho_1 == sym.branch_scale(1) and found["gamma_2"] == sym.skip_scale(2)
    assert found.C_1_12 == sym.kernel(1, (0, 1), 2) and found.h_0_2 == sym.signal(0, 1, 2)
    assert found.Ctilde_3_22 == sym.conjugate(3, (1, 1), 2)
    assert found.C_0_data_11 == sym.data_kernel((0, 0), 2)
    assert {"sigma_w", "C_1_12"} <= set(dir(found)) & set(found)
    assert all(name.isidentifier() for name in found) and len(found) == len(set(found.values()))
    assert ft.derive(2).symbols.rho == sym.branch_scale()
    assert ft.derive(2).action.diff(ft.derive(2).symbols.C_1) != 0


def test_a_derivation_is_shown_in_one_line():
    assert repr(ft.derive(2)) == "Derivation(ResidualNetwork, depth 2, one input, φ undetermined)"
    th = ft.derive(ft.FeedForwardNetwork(depth=1, activation="relu"), 2)
    assert str(th) == "Derivation(FeedForwardNetwork, depth 1, 2 inputs, φ relu)"


@pytest.mark.parametrize("inputs", [1, slow(2)])
def test_a_notebook_shows_the_formulas(inputs, katex_failures):
    text = ft.derive(2, inputs)._repr_latex_()
    assert text.startswith("$$\\begin{aligned}") and text.endswith("\\end{aligned}$$")
    assert "$" not in text[2:-2]
    assert katex_failures({"notebook": text[2:-2]}) == {}
    for left in (r"S(C, \tilde{C}) &=", "S_{21}^{k l} &=", "G_{12}^{l m} &=", "G_{11}^{l m} &="):
        assert left in text
