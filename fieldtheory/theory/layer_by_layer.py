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
    ACTION,
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


def _saddle_point(n: Notation) -> Formulas:
    formulas = []
    for field, value in saddle_point(short_action(n)).kernels.items():
        name = latex(field)
        starred = f"{name[:-1]}, *}}" if "_{" in name else f"{name}_{{*}}"
        formulas.append(Equation(starred, n.written(value)))
    return [*formulas, vanishing_conjugates(n)]


def _kernels(n: Notation) -> Formulas:
    kernels = [n.settled(generic.kernel(l)).doit() for l in range(int(n.last) + 1)]
    pair = r"_{\alpha \beta}" if n.matrices else ""
    return [
        Equation(f"K^{{({l})}}{pair}", n.written(of_pair(kernel) if n.matrices else kernel))
        for l, kernel in enumerate(kernels)
    ]


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


def has_fluctuations(n: Notation) -> bool:
    """Whether the entries of G11 are written out, those of one input up to L = 3."""
    return not n.matrices and int(n.last) <= 3


def _fluctuations(n: Notation) -> Formulas:
    if not has_fluctuations(n):
        return _as_products("G11", n)
    G12 = response_propagator(n)
    product = (G12 * source_block(n) * G12.T).applyfunc(sp.expand)
    return [_layer_array("G11", n, product, 1 / sym.WIDTH, symmetric=True)]


def _propagator(n: Notation) -> Formulas:
    others = [*transposed("G21")(n), Equation("G_{11}", "G_{12} S_{22} G_{21}"), *GENERIC["G22"](n)]
    return [*_response(n), *others, *_source(n)]


def _input_column(n: Notation) -> list[sp.Expr]:
    """η^(l) = N ν_0 G12[l,0]."""
    return [sym.INPUT_WIDTH * entry for entry in response_propagator(n)[:, 0]]


_response = _entrywise(
    "G12", lambda n: [_layer_array("G12", n, response_propagator(n), 1 / sym.WIDTH)]
)


def _responses(n: Notation) -> Formulas:
    values = [sp.Mul(*[growth(n, i) for i in range(1, l + 1)]) for l in range(int(n.last) + 1)]
    return _of_layers(Response, n, values)


def _of_layers(kind: type, n: Notation, values: Sequence[sp.Expr]) -> Formulas:
    return [Equation(latex(kind(l)), n.written(value)) for l, value in enumerate(values)]


def _layer_array(
    name: str, n: Notation, matrix: sp.ImmutableMatrix, factor: sp.Expr, symmetric: bool = False
) -> Array:
    layers = [str(l) for l in range(int(n.last) + 2)]
    written = matrix.applyfunc(lambda entry: factor * n.written(entry))
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


EXPLICIT: dict[str, Callable[[Notation], Any]] = GENERIC | {
    "action": lambda n: [Equation(ACTION, n.written(short_action(n).expression))],
    "saddle_point": _saddle_point,
    "kernels": _kernels,
    "hessian": lambda n: [*GENERIC["S11"](n), *transposed("S12")(n), *_mixed(n), *_source(n)],
    "propagator": _propagator,
    "S12": transposed("S12", _mixed),
    "S21": _mixed,
    "S22": _source,
    "G11": _fluctuations,
    "G12": _response,
    "G21": transposed("G21", _response),
    "residual_response": _entrywise(
        "residual_response", lambda n: _of_layers(ResidualResponse, n, _input_column(n))
    ),
    "response": _entrywise("response", _responses),
    "output_response": _entrywise(
        "output_response",
        lambda n: [Equation(r"\chi^{\mathrm{out}}", n.written(_input_column(n)[-1]))],
    ),
    "tangent_kernel": lambda n: tangent_kernel(n, range(1, int(n.last) + 1)),
}
