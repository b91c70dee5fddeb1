"""The formulas of the theory layer by layer, at a given depth.

They are those for symbolic layers at the numbers of the layers, in a_l, M'_l, Q_kl, A_lm and r_l.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import sympy as sp

from fieldtheory.networks.family import Coefficients
from fieldtheory.theory import generic
from fieldtheory.theory import notation as sym
from fieldtheory.theory.action import Action, chain_action, family_action
from fieldtheory.theory.definitions import Notation, of_pair
from fieldtheory.theory.formulas import (
    GENERIC,
    tangent_kernel,
    transposed,
    vanishing_conjugates,
)
from fieldtheory.theory.hessian import Hessian, hessian
from fieldtheory.theory.saddle_point import saddle_point
from fieldtheory.theory.typesetting.latex import latex
from fieldtheory.theory.typesetting.layer_quantities import (
    Bias,
    Growth,
    RelativeWidth,
    ResidualResponse,
    Response,
    SkipScale,
    Weight,
)
from fieldtheory.theory.typesetting.layout import Array, Equation

Formulas = Sequence[Equation | Array]
# Beyond this number of layers, read-in and readout among them, G11 is the product of its factors.
_WRITTEN_OUT = 5


def mixed_block(n: Notation) -> sp.ImmutableMatrix:
    """S21 of one input over N, M'_l standing for its averages."""

    def entry(k: int, l: int) -> sp.Expr:
        if k == 0:
            return -sym.INPUT_WIDTH if l == 0 else sp.S.Zero
        return n.short(generic.mixed_block(k, l, n.layers.family)) / sym.WIDTH

    return _matrix(n, entry)


def source_block(n: Notation) -> sp.ImmutableMatrix:
    """S22 of one input over N, Q_kl standing for its averages."""

    def entry(k: int, l: int) -> sp.Expr:
        if k * l == 0 or (k != l and n.layers.skip == 0):
            return sp.S.Zero
        block = generic.source_block(min(k, l), max(k, l), n.layers.family)
        return n.short(block) / sym.WIDTH

    return _matrix(n, entry)


def response_propagator(n: Notation) -> sp.ImmutableMatrix:
    """N G12 of one input, r_l standing for the growth of the response in a layer."""

    def entry(l: int, m: int) -> sp.Expr:
        if l <= m:
            return 1 / RelativeWidth(m) if l == m else sp.S.Zero
        last = n.short(generic.response_product(l, l - 1, n.layers.family)) * sym.WIDTH
        before = [growth(n, layer) for layer in range(m + 1, l)]
        return last * RelativeWidth(l - 1) * sp.Mul(*before) / RelativeWidth(m)

    return _matrix(n, entry)


def growth(n: Notation, layer: int) -> sp.Expr:
    """r_l, or what it is where that is a product."""
    ratio = n.short(generic.growth(layer, n.layers.family))
    return Growth(layer) if ratio.is_Add else ratio


def short_action(n: Notation) -> Action:
    """The action with a_l, c_l and γ_l as symbols; numbers stay numbers."""
    last = int(n.last)

    def coefficients(layer: int) -> Coefficients:
        weight, bias, _ = n.layers.readout if layer == last + 1 else n.layers.hidden(layer)
        return Coefficients(
            weight if weight.is_number else Weight(layer),
            bias if bias.is_number else Bias(layer),
            SkipScale(layer) if n.layers.skip is None else n.layers.skip,
        )

    return chain_action(last, n.inputs, n.layers.features, coefficients)


def _matrix(n: Notation, entry: Callable[[int, int], sp.Expr]) -> sp.ImmutableMatrix:
    size = int(n.last) + 2
    return sp.ImmutableMatrix(size, size, lambda k, l: entry(int(k), int(l)))


def _written(n: Notation, expr: sp.Expr) -> sp.Expr:
    """An expression in short symbols as it is printed."""
    return n.chosen(expr if n.abbreviate else n.written_out(expr))


def _action(n: Notation) -> Formulas:
    return [Equation(r"S(C, \tilde{C})", _written(n, short_action(n).expression))]


def _saddle_point(n: Notation) -> Formulas:
    solution = saddle_point(short_action(n))
    return [
        Equation(_starred(field), _written(n, value)) for field, value in solution.kernels.items()
    ] + [vanishing_conjugates(n)]


def _kernels(n: Notation) -> Formulas:
    kernels = [n.settled(generic.kernel(l)).doit() for l in range(int(n.last) + 1)]
    pair = r"_{\alpha \beta}" if n.matrices else ""
    expressions = [_written(n, of_pair(kernel) if n.matrices else kernel) for kernel in kernels]
    return [Equation(f"K^{{({l})}}{pair}", kernel) for l, kernel in enumerate(expressions)]


def _entrywise(
    quantity: str, of_layers: Callable[[Notation], Formulas]
) -> Callable[[Notation], Formulas]:
    """Matrices over layers, but for symbolic layers where those of pairs are written out."""
    return lambda n: _as_products(quantity, n) if n.matrices and not n.abbreviate else of_layers(n)


def _as_products(quantity: str, n: Notation) -> Formulas:
    """For symbolic layers, and that it is so."""
    limit = r"or } L > 3" if quantity == "G11" else "}"
    note = rf"\text{{not written out for several inputs {limit}"
    first, *others = GENERIC[quantity](n)
    return [replace(first, note=", ".join(filter(None, (first.note, note)))), *others]


def _mixed(n: Notation) -> Formulas:
    if n.matrices and not n.abbreviate:
        return [_pair_array("S21", n, _pair_hessian(n).S21)]
    return [_layer_array("S21", n, mixed_block(n), sym.WIDTH)]


def _source(n: Notation) -> Formulas:
    if n.matrices and not n.abbreviate:
        return [_pair_array("S22", n, _pair_hessian(n).S22, symmetric=True)]
    return [_layer_array("S22", n, source_block(n), sym.WIDTH, symmetric=not n.matrices)]


def _hessian(n: Notation) -> Formulas:
    return [*GENERIC["S11"](n), *transposed("S12", lambda n: [])(n), *_mixed(n), *_source(n)]


def has_fluctuations(n: Notation) -> bool:
    """Whether the entries of G11 are written out."""
    return not n.matrices and int(n.last) + 2 <= _WRITTEN_OUT


def _fluctuations(n: Notation) -> Formulas:
    if not has_fluctuations(n):
        return _as_products("G11", n)
    G12 = response_propagator(n)
    product = (G12 * source_block(n) * G12.T).applyfunc(sp.expand)
    return [_layer_array("G11", n, product, 1 / sym.WIDTH, symmetric=True)]


def _propagator(n: Notation) -> Formulas:
    others = [
        *transposed("G21", lambda n: [])(n),
        Equation("G_{11}", "G_{12} S_{22} G_{21}"),
        *GENERIC["G22"](n),
    ]
    return [*_response(n), *others, *_source(n)]


def _input_column(n: Notation) -> list[sp.Expr]:
    """η^(l) = N ν_0 G12[l,0]."""
    return [sym.INPUT_WIDTH * entry for entry in response_propagator(n)[:, 0]]


_response = _entrywise(
    "G12", lambda n: [_layer_array("G12", n, response_propagator(n), 1 / sym.WIDTH)]
)


def _residual_responses(n: Notation) -> Formulas:
    return [
        Equation(latex(ResidualResponse(l)), _written(n, value))
        for l, value in enumerate(_input_column(n))
    ]


def _responses(n: Notation) -> Formulas:
    values = [sp.Mul(*[growth(n, i) for i in range(1, l + 1)]) for l in range(int(n.last) + 1)]
    return [Equation(latex(Response(l)), _written(n, value)) for l, value in enumerate(values)]


def _output_response(n: Notation) -> Formulas:
    return [Equation(r"\chi^{\mathrm{out}}", _written(n, _input_column(n)[-1]))]


def _layer_array(
    name: str, n: Notation, matrix: sp.ImmutableMatrix, factor: sp.Expr, symmetric: bool = False
) -> Array:
    layers = [str(l) for l in range(int(n.last) + 2)]
    written = matrix.applyfunc(lambda entry: factor * _written(n, entry))
    return Array(_block(name), written, factor, layers, symmetric)


def _pair_array(
    name: str, n: Notation, matrix: sp.ImmutableMatrix, symmetric: bool = False
) -> Array:
    names = [
        f"({l}; {a + 1} {b + 1})" for l in range(int(n.last) + 2) for a, b in sym.pairs(n.inputs)
    ]
    return Array(_block(name), matrix.applyfunc(n.chosen), sym.WIDTH, names, symmetric)


def _pair_hessian(n: Notation) -> Hessian:
    """The Hessian of several inputs, entry by entry."""
    fixed = dict(n.layers.fixed)
    return hessian(family_action(n.layers.family, int(n.last), n.inputs, None, fixed))


def _block(name: str) -> str:
    return f"{name[0]}_{{{name[1:]}}}"


def _starred(symbol: sp.Symbol) -> str:
    name = latex(symbol)
    return f"{name[:-1]}, *}}" if "_{" in name else f"{name}_{{*}}"


EXPLICIT: dict[str, Callable[[Notation], Any]] = GENERIC | {
    "action": _action,
    "saddle_point": _saddle_point,
    "kernels": _kernels,
    "hessian": _hessian,
    "propagator": _propagator,
    "S12": transposed("S12", _mixed),
    "S21": _mixed,
    "S22": _source,
    "G11": _fluctuations,
    "G12": _response,
    "G21": transposed("G21", _response),
    "residual_response": _entrywise("residual_response", _residual_responses),
    "response": _entrywise("response", _responses),
    "output_response": _entrywise("output_response", _output_response),
    "tangent_kernel": lambda n: tangent_kernel(n, range(1, int(n.last) + 1)),
}
