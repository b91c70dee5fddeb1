"""Derived formulas in the letters of F25, in which its equations are recognised."""

import re

import pytest

import fieldtheory as ft
from fieldtheory.theory.formulas import FORMULAS
from tests.theory.typesetting.test_latex import typeset
from tests.theory.typesetting.test_symbols import undefined

_SLOPE = r"\langle[\phi^{\prime,(k-1)}]^{2}+\phi^{(k-1)}\phi^{\prime\prime,(k-1)}\rangle"
_MEASURE = r"_{\mathcal{N}(0,K^{(k-1)})}"
# Number in F25: quantity, inputs, and its equation for a hidden layer as it holds.
EQUATIONS = {
    29: (
        "saddle_point",
        1,
        r"C^{(l)}_{*}=\rho^{2}\sigma_{w}^{2}\langle[\phi^{(l-1)}]^{2}\rangle"
        r"_{\mathcal{N}(0,K^{(l-1)})}+\rho^{2}\sigma_{b}^{2}",
    ),
    39: (
        "S22",
        1,
        r"\mathcal{S}_{22}^{kl}=N\rho^{4}\sigma_{w}^{4}\langle[\phi^{(k-1)}]^{2},"
        r"[\phi^{(l-1)}]^{2}\rangle_{\mathcal{N}(0,K)}^{c}",
    ),
    40: ("S22", 1, r"\langleA,B\rangle^{c}=\langleAB\rangle-\langleA\rangle\langleB\rangle"),
    41: (
        "S21",
        1,
        r"\mathcal{S}_{21}^{kl}=N(-\nu_{k}\delta_{kl}+\rho^{2}\sigma_{w}^{2}"
        + _SLOPE
        + _MEASURE
        + "1_{l<k})",
    ),
    48: ("G22", 1, r"\mathcal{G}_{22}=0"),
    49: (
        "G12",
        1,
        r"\mathcal{G}_{12}^{lm}=\frac{\delta_{lm}}{N\nu_{l}}+\rho^{2}\sigma_{w}^{2}"
        + (_SLOPE + _MEASURE).replace("k-1", "l-1")
        + r"\sum_{k=m}^{l-1}\mathcal{G}_{12}^{km}",
    ),
    108: (
        "saddle_point",
        2,
        r"C^{(l)}_{\alpha\beta,*}=\rho^{2}\sigma_{w}^{2}\langle\phi_{\alpha}^{(l-1)}"
        r"\phi_{\beta}^{(l-1)}\rangle_{\mathcal{N}(0,K^{(l-1)})}+\rho^{2}\sigma_{b}^{2}",
    ),
}


def bare(text):
    """A formula without spaces, alignment and sizes of brackets."""
    text = re.sub(r"\\\\\n&(\\quad)?|&|\\(left|right|[bB]ig+[lr]?)(?![a-z])|\\q?quad", "", text)
    return re.sub(r"\s", "", text)


@pytest.mark.parametrize("number", EQUATIONS)
def test_equations_of_the_paper_are_recognised(number):
    quantity, inputs, expected = EQUATIONS[number]
    assert expected in bare(ft.derive(3, inputs).latex(quantity, notation="F25", width=2000))


@pytest.mark.slow
@pytest.mark.parametrize("inputs", [1, 2])
@pytest.mark.parametrize("column", [246, 345])
def test_it_fits_and_every_symbol_is_defined(inputs, column, tmp_path):
    th = ft.derive(2, inputs)
    found = {
        f"{q} {numbered}": th.latex(q, notation="F25", width=column, numbered=numbered)
        for q in FORMULAS
        for numbered in (True, False)
    }
    assert typeset(tmp_path, found, column=column) == {}
    listed = re.sub(r"\\text\{.*?\}", "", th.latex("symbols", notation="F25"))
    assert {q: undefined(text, listed) for q, text in found.items() if "False" in q} == {
        q: set() for q in found if "False" in q
    }
