"""The formulas of the theory layer by layer, at a given depth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy as sp

from fieldtheory.theory import notation as sym
from fieldtheory.theory.action import family_action
from fieldtheory.theory.definitions import Notation
from fieldtheory.theory.formulas import GENERIC, tangent_kernel, with_definitions
from fieldtheory.theory.hessian import Hessian, hessian
from fieldtheory.theory.latex import latex
from fieldtheory.theory.layer_quantities import ResidualResponse, Response, SkipScale
from fieldtheory.theory.layout import Array, Equation
from fieldtheory.theory.saddle_point import saddle_point
from fieldtheory.theory.shorthand import Shorthand, skips_gathered

Blocks = list[Any]
# Beyond this number of layers, read-in and readout among them, G11 is the product of its factors.
_WRITTEN_OUT = 5


def explicit_latex(quantity: str, notation: Notation, short: Shorthand) -> str:
    """LaTeX of a quantity layer by layer, with the definitions of what stands in it.

    Parameters
    ----------
    quantity : str
    notation : Notation
    short : Shorthand
    """
    return with_definitions(quantity, notation, EXPLICIT[quantity](notation, short))


def _written(n: Notation, short: Shorthand, expr: Any) -> Any:
    """An expression or matrix in short symbols as it is printed."""
    if isinstance(expr, sp.MatrixBase):
        return expr.applyfunc(lambda entry: _written(n, short, entry))
    if not n.abbreviate:
        return n.chosen(short.written_out(expr))
    terms = sp.Add.make_args(expr)
    if expr.has(SkipScale) and isinstance(expr, sp.Mul):
        terms = (expr,)
    return n.chosen(sp.Add(*map(skips_gathered, terms)))


def _action(n: Notation, short: Shorthand) -> Blocks:
    action = short.action_of(n.inputs).expression
    return [[Equation(r"S(C, \tilde{C})", _written(n, short, action))]]


def _saddle_point(n: Notation, short: Shorthand) -> Blocks:
    found = saddle_point(short.action_of(n.inputs))
    rows = [
        Equation(_starred(field), _written(n, short, value))
        for field, value in (*found.kernels.items(), *found.conjugates.items())
    ]
    return [rows]


def _kernels(n: Notation, short: Shorthand) -> Blocks:
    covariance = sp.expand(short.action.covariance)
    rows = [
        Equation(f"K^{{({l})}}", _written(n, short, covariance[l, l]))
        for l in range(short.depth + 1)
    ]
    return [rows]


def _zero(name: str) -> Callable[[Notation, Shorthand], Blocks]:
    return lambda n, short: [[Equation(_block(name), sp.S.Zero)]]


def _mixed(n: Notation, short: Shorthand) -> Blocks:
    if n.matrices and not n.abbreviate:
        return [_pair_array("S21", n, short, _pair_hessian(n, short).S21)]
    return [_layer_array("S21", n, short, short.hessian.S21, sym.WIDTH)]


def _source(n: Notation, short: Shorthand) -> Blocks:
    if n.matrices and not n.abbreviate:
        return [_pair_array("S22", n, short, _pair_hessian(n, short).S22, symmetric=True)]
    symmetric = not n.matrices
    return [_layer_array("S22", n, short, short.hessian.S22, sym.WIDTH, symmetric)]


def _transposed(name: str, of: str, rows: Any) -> Callable[[Notation, Shorthand], Blocks]:
    equation = Equation(_block(name), rf"{_block(of)}^{{\mathsf{{T}}}}")
    return lambda n, short: [[equation], *rows(n, short)]


def _hessian(n: Notation, short: Shorthand) -> Blocks:
    transposed = Equation("S_{12}", r"S_{21}^{\mathsf{T}}")
    return [
        [Equation("S_{11}", sp.S.Zero), transposed],
        *_mixed(n, short),
        *_source(n, short),
    ]


def _response(n: Notation, short: Shorthand) -> Blocks:
    if n.matrices and not n.abbreviate:
        return [GENERIC["G12"](n)]
    return [_layer_array("G12", n, short, short.G12, 1 / sym.WIDTH)]


def _fluctuations(n: Notation, short: Shorthand) -> Blocks:
    if n.matrices or short.depth + 2 > _WRITTEN_OUT:
        return [GENERIC["G11"](n)]
    return [_layer_array("G11", n, short, short.G11, 1 / sym.WIDTH, symmetric=True)]


def _propagator(n: Notation, short: Shorthand) -> Blocks:
    others = [
        Equation("G_{21}", r"G_{12}^{\mathsf{T}}"),
        Equation("G_{11}", "G_{12} S_{22} G_{21}"),
        Equation("G_{22}", sp.S.Zero),
    ]
    return [*_response(n, short), others, *_source(n, short)]


def _residual_responses(n: Notation, short: Shorthand) -> Blocks:
    if n.matrices and not n.abbreviate:
        return [GENERIC["residual_response"](n)]
    return [
        [
            Equation(latex(ResidualResponse(l)), _written(n, short, value))
            for l, value in enumerate(_input_column(short))
        ]
    ]


def _responses(n: Notation, short: Shorthand) -> Blocks:
    if n.matrices and not n.abbreviate:
        return [GENERIC["response"](n)]
    column = _input_column(short)
    rows = [Equation(latex(Response(sp.S.Zero)), sp.S.One)]
    for l in range(1, short.depth + 1):
        # What the next layer multiplies: η^(l+1) = a_{l+1} M'_l χ^(l).
        value = column[l + 1] / (short.hessian.S21[l + 1, l] / sym.WIDTH)
        rows.append(Equation(latex(Response(l)), _written(n, short, value)))
    return [rows]


def _output_response(n: Notation, short: Shorthand) -> Blocks:
    if n.matrices and not n.abbreviate:
        return [GENERIC["output_response"](n)]
    value = _written(n, short, _input_column(short)[-1])
    return [[Equation(r"\chi^{\mathrm{out}}", value)]]


def _input_column(short: Shorthand) -> list[sp.Expr]:
    """η^(l) = N ν_0 G12[l,0]."""
    return [sym.WIDTH * sym.INPUT_WIDTH * entry for entry in short.G12[:, 0]]


def _layer_array(
    name: str,
    n: Notation,
    short: Shorthand,
    matrix: sp.ImmutableMatrix,
    factor: sp.Expr,
    symmetric: bool = False,
) -> Array:
    layers = [str(l) for l in range(short.depth + 2)]
    return Array(_block(name), _written(n, short, matrix), factor, layers, symmetric)


def _pair_array(
    name: str,
    n: Notation,
    short: Shorthand,
    matrix: sp.ImmutableMatrix,
    symmetric: bool = False,
) -> Array:
    names = [
        f"({l}; {a + 1} {b + 1})" for l in range(short.depth + 2) for a, b in sym.pairs(n.inputs)
    ]
    return Array(_block(name), matrix.applyfunc(n.chosen), sym.WIDTH, names, symmetric)


def _pair_hessian(n: Notation, short: Shorthand) -> Hessian:
    """The Hessian of several inputs, entry by entry."""
    layers = short.layers
    return hessian(family_action(layers.family, short.depth, n.inputs, None, dict(layers.fixed)))


def _block(name: str) -> str:
    return f"{name[0]}_{{{name[1:]}}}"


def _starred(symbol: sp.Symbol) -> str:
    name = latex(symbol)
    return f"{name[:-1]}, *}}" if "_{" in name else f"{name}_{{*}}"


EXPLICIT: dict[str, Callable[[Notation, Shorthand], Blocks]] = {
    "action": _action,
    "saddle_point": _saddle_point,
    "kernels": _kernels,
    "hessian": _hessian,
    "propagator": _propagator,
    "S11": _zero("S11"),
    "S12": _transposed("S12", "S21", _mixed),
    "S21": _mixed,
    "S22": _source,
    "G11": _fluctuations,
    "G12": _response,
    "G21": _transposed("G21", "G12", _response),
    "G22": _zero("G22"),
    "residual_response": _residual_responses,
    "response": _responses,
    "output_response": _output_response,
    "tangent_kernel": lambda n, short: [tangent_kernel(n, range(1, int(n.last) + 1))],
    "saturation": lambda n, short: [GENERIC["saturation"](n)],
    "large_depth": lambda n, short: [GENERIC["large_depth"](n)],
}
