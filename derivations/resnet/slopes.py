"""The averages ⟨φ'² + φφ''⟩ by the name that they have in the text, M'_l."""

from __future__ import annotations

import sympy as sp

import fieldtheory as ft
from fieldtheory.averages import GaussianAverage
from fieldtheory.theory import generic
from fieldtheory.theory.layer_quantities import LayerQuantity


class WeightedSlope(LayerQuantity):
    """M'_l, which stands behind the weight of its layer."""

    template = "M'_{{{0}}}"
    is_positive = True


def slope(layer: sp.Expr | int) -> sp.Expr:
    """M'_l, for a symbol or a number."""
    return WeightedSlope(layer)


def short(formula: sp.Expr, *layers: sp.Expr) -> sp.Expr:
    """A formula for symbolic layers with M'_l for its averages."""
    return formula.xreplace({generic.susceptibility(i): slope(i) for i in layers})


def slope_of(theory: ft.Derivation, layer: int) -> sp.Expr:
    """The average in the derivation of M'_l."""
    (average,) = theory.hessian.S21[layer + 1, layer].atoms(GaussianAverage)
    return average


def names_of_slopes(theory: ft.Derivation) -> dict[sp.Expr, sp.Expr]:
    """M'_l for the averages ⟨φ'² + φφ''⟩ of a derivation."""
    return {slope_of(theory, i): slope(i) for i in range(theory.depth + 1)}
