"""The formulas of the theory by quantity, for symbolic layers or at the number of each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import sympy as sp

from fieldtheory.averages import GaussianAverage
from fieldtheory.theory import generic
from fieldtheory.theory import notation as sym
from fieldtheory.theory.definitions import (
    DATA,
    DATA_PAIR,
    PAIR,
    Notation,
    free_covariance,
    k,
    l,
    m,
    of_pair,
    of_pairs,
    pair_signals,
)
from fieldtheory.theory.linearised import SLOPE, saturation_formula
from fieldtheory.theory.quantities import G21_ROW, block_name, table, zero
from fieldtheory.theory.typesetting.latex import latex
from fieldtheory.theory.typesetting.layer_quantities import (
    G12,
    G21,
    Bias,
    C,
    Growth,
    JointAverage,
    Own,
    PairSum,
    RelativeWidth,
    ResidualResponse,
    Response,
    SkipScale,
    SlopeSquare,
    Tangent,
    Weight,
    layer_indices,
)
from fieldtheory.theory.typesetting.layout import Array, Equation

ACTION = r"S(C, \tilde{C})"


def _action(n: Notation) -> list[Equation]:
    action = generic.action(n.last, n.layers.family, readout_apart=not n.abbreviate)
    if n.matrices:
        action = _of_all_pairs(action, n)
    return [Equation(ACTION, n.written(action))]


def _of_all_pairs(action: sp.Expr, n: Notation) -> sp.Expr:
    """The action of several inputs from that of one."""
    before = (*(layer - 1 for layer in n.hidden), n.last)
    squares = {layer: generic.observable(layer, n.layers.family) for layer in before}
    products = {squares[layer]: of_pairs(n.layers, layer) for layer in squares}
    data = {DATA: DATA_PAIR}

    def of_all(sources: sp.Expr) -> sp.Expr:
        return PairSum(of_pair(sources.xreplace(products | data)))

    constraints, entropy = sorted(action.args, key=lambda term: term.has(sp.log))
    (average,) = entropy.atoms(JointAverage)
    sources = average.args[0].args[0]
    averages = entropy.xreplace({average: JointAverage(sp.exp(of_all(sources)))})
    return averages - sym.WIDTH * of_all(-constraints / sym.WIDTH)


def _saddle_point(n: Notation) -> list[Equation]:
    pair = r"_{\alpha \beta, *}" if n.matrices else "_{*}"

    def residual_kernel(layer: sp.Expr) -> sp.Expr:
        if not n.matrices:
            return generic.residual_kernel(layer, n.layers.family)
        observable, signals = of_pairs(n.layers, layer - 1), pair_signals(layer - 1)
        average = GaussianAverage(observable, signals, free_covariance(2))
        return Weight(layer) * average + Bias(layer)

    return [
        Equation(f"C^{{(0)}}{pair}", DATA_PAIR if n.matrices else DATA),
        *n.rows(
            lambda layer: f"C^{{({latex(layer)})}}{pair}",
            residual_kernel,
            l,
            rf"1 \leq l \leq {latex(n.last + 1)}",
        ),
        Equation(rf"\tilde{{C}}^{{(l)}}{pair}", sp.S.Zero, rf"0 \leq l \leq {latex(n.last + 1)}"),
    ]


def _kernels(n: Notation) -> list[Equation]:
    pair = r"_{\alpha \beta}" if n.matrices else ""

    def row(layer: Any, note: str = "") -> Equation:
        kernel = n.settled(generic.kernel(layer))
        expression = n.written(of_pair(kernel) if n.matrices else kernel)
        return Equation(f"K^{{({layer})}}{pair}", expression, note)

    if n.numbered:
        return [row(layer) for layer in (sp.S.Zero, *n.hidden)]
    return [row(l, rf"l \leq {latex(n.last)}")]


def _saturation(large_depth: bool) -> Callable[[Notation], list[Equation]]:
    def equations(n: Notation) -> list[Equation]:
        formula = saturation_formula(large_depth)
        right = formula.rhs.subs(sym.DEPTH, n.last)
        if n.column < 300:  # F25 (67)
            gain = sp.Symbol("g", positive=True)
            short = right.subs(SLOPE, sp.sqrt(gain) / sym.WEIGHT)
            rows = [Equation(r"\rho^{*}", short), Equation("g", (sym.WEIGHT * SLOPE) ** 2)]
        else:
            rows = [Equation(r"\rho^{*}", right)]
        if n.activation is not None:
            rows.append(Equation(latex(SLOPE), n.activation.slope_at_zero))
        return rows

    return equations


def _mixed(n: Notation) -> list[Any]:
    entry = partial(generic.mixed_block, family=n.layers.family)
    if n.numbered:
        return [_array("S21", n, entry, sym.WIDTH)]
    return n.rows(
        lambda layer: f"S_{{21}}^{{{_indices(layer, l)}}}", lambda layer: entry(layer, l), k
    )


def _source(n: Notation) -> list[Any]:
    entry = partial(generic.source_block, family=n.layers.family)

    def of_layers(row: int, column: int) -> sp.Expr:
        if row * column == 0 or (row != column and n.layers.skip == 0):
            return sp.S.Zero
        return entry(min(row, column), max(row, column))

    def row(row: sp.Expr, column: sp.Expr, note: str = "") -> Equation:
        left = f"S_{{22}}^{{{_indices(row, column)}}}"
        return Equation(left, n.written(entry(row, column)), note)

    if n.numbered:
        return [_array("S22", n, of_layers, sym.WIDTH, symmetric=not n.matrices)]
    if n.abbreviate:
        return [row(k, l, r"k, l \geq 1")]
    last, out = latex(n.last), n.last + 1
    return [
        row(k, l, rf"1 \leq k, l \leq {last}"),
        row(out, l, rf"1 \leq l \leq {last}"),
        row(out, out),
    ]


def _array(
    name: str,
    n: Notation,
    entry: Callable[[int, int], sp.Expr],
    factor: sp.Expr,
    symmetric: bool = False,
) -> Array:
    """A block as a matrix over layers that are numbers."""
    size = int(n.last) + 2
    matrix = sp.ImmutableMatrix(size, size, lambda i, j: n.written(entry(int(i), int(j))))
    layers = list(map(str, range(size)))
    return Array(block_name(name), matrix, factor, layers, symmetric)


def _response_propagator(n: Notation) -> list[Any]:
    def left(layer: sp.Expr) -> str:
        return latex(G12(layer, m))

    def product(layer: Any, first: Any = m) -> sp.Expr:
        return generic.response_product(layer, first, n.layers.family)

    def entry(layer: int, first: int) -> sp.Expr:
        if layer <= first:
            return sp.KroneckerDelta(layer, first) / (sym.WIDTH * RelativeWidth(sp.Integer(first)))
        grown = {i: generic.growth(i, n.layers.family) for i in range(first + 1, layer)}
        sums = {growth: Growth(i) for i, growth in grown.items() if n.short(growth).is_Add}
        return product(layer, first).xreplace(sums)

    if n.numbered:
        return [_array("G12", n, entry, 1 / sym.WIDTH)]
    family = n.layers.family
    rows = n.rows(left, lambda layer: generic.response_recursion(layer, m, family), l)
    return rows if n.matrices else rows + n.rows(left, product, l, "l > m")


def _covariance(n: Notation) -> Equation:
    if n.numbered:
        return Equation("G_{11}", "G_{12} S_{22} G_{21}")
    product = generic.kernel_propagator(l, m)
    second = G12(m, generic.n)
    return Equation("G_{11}^{l m}", product.xreplace({second: G21(generic.n, m)}))


def _residual_response(n: Notation) -> list[Equation]:
    eta = ResidualResponse(l)
    return [
        Equation(latex(eta), sym.WIDTH * sym.INPUT_WIDTH * G12(l, sp.S.Zero)),
        *n.rows(
            lambda layer: latex(ResidualResponse(layer)),
            lambda layer: generic.residual_response(layer, n.layers.family),
            l,
            r"l \geq 1",
        ),
        Equation(latex(ResidualResponse(sp.S.Zero)), sp.S.One),
    ]


def _response(n: Notation) -> list[Equation]:
    def row(layer: sp.Expr) -> Equation:
        growth = n.written(generic.growth(layer, n.layers.family))
        return Equation(latex(Response(layer)), growth * Response(layer - 1))

    total = generic.kernel(l).replace(C, ResidualResponse)
    return [
        Equation(latex(Response(l)), n.settled(total)),
        *map(row, n.hidden),
        Equation(latex(Response(sp.S.Zero)), sp.S.One),
    ]


def _output_response(n: Notation) -> list[Equation]:
    family = n.layers.family
    gain = Weight(n.last + 1) * generic.susceptibility(n.last, family)
    out = Equation(r"\chi^{\mathrm{out}}", n.written(gain) * Response(n.last))
    return [out, *_response(n)[1:]]


def _tangent_kernel(n: Notation) -> list[Equation]:
    """Θ from its definition on."""
    pair = (PAIR,) if n.matrices else ()

    def row(layer: Any, note: str = "") -> Equation:
        growth = generic.tangent_growth(layer, n.layers.family, SlopeSquare(layer - 1, *pair))
        if layer == n.last + 1:
            growth = growth.xreplace({SkipScale(layer): sp.S.Zero})
        total = n.written(growth) * Tangent(layer - 1, *pair) + Own(layer, *pair)
        return Equation(latex(Tangent(layer, *pair)), total, note)

    return [
        *_gradients(n),
        Equation(latex(Tangent(0, *pair)), Own(sp.S.Zero, *pair)),
        *[row(i, rf"1 \leq l \leq {latex(n.last)}" if i == l else "") for i in n.hidden],
        row(n.last + 1),
        *_saddle_point(n)[:-1],
    ]


def _gradients(n: Notation) -> list[Equation]:
    """The definition of Θ, and of the weights and biases θ."""
    pair = (PAIR,) if n.matrices else ()
    first, second = (r" \alpha", r" \beta") if n.matrices else ("", "")

    def slope(sample: str) -> str:
        return rf"\frac{{\partial h^{{(l)}}_{{i{sample}}}}}{{\partial \theta}}"

    products = f"{slope(first)} {slope(second)}"
    square = rf"\left({slope('')}\right)^{{2}}"
    before = sp.Symbol(f"h^{{(l - 1)}}_{{j{first}}}", real=True)
    psi = [latex(x) for x in n.layers.features(before)]
    indices = [""] if len(psi) == 1 else [f"{k} " for k in range(1, len(psi) + 1)]
    terms = [rf"w^{{(l)}}_{{{k}i j}} {x}" for k, x in zip(indices, psi, strict=True)]
    inside = terms[0] if len(terms) == 1 else rf"\left({' + '.join(terms)}\right)"
    weights = ", ".join(rf"w^{{(m)}}_{{{k}i j}}" for k in indices) + r", b^{(m)}_{i}"
    weight, bias = (latex(n.written(kind(l))) for kind in (Weight, Bias))
    branch = rf"\sqrt{{{weight} / N}} \, \sum_{{j}} {inside}"
    if bias != "0":
        branch += rf" + \sqrt{{{bias}}} \, b^{{(l)}}_{{i}}"
    skip = SkipScale(l) if n.layers.skip is None else n.layers.skip
    carried = f"h^{{(l - 1)}}_{{i{first}}} + " if skip != 0 else ""
    front = f"{latex(skip)} " if skip not in (0, 1) else ""
    return [
        Equation(latex(Tangent(l, *pair)), rf"\sum_{{\theta}} {products if pair else square}"),
        Equation(f"h^{{(l)}}_{{i{first}}}", f"{front}{carried}{branch}"),
        Equation(
            f"h^{{({latex(n.last + 1)})}}_{{i{first}}}",
            rf"y_{{i{first}}}, \quad \text{{without }} h^{{({latex(n.last)})}}_{{i{first}}}"
            if carried
            else f"y_{{i{first}}}",
        ),
        Equation(r"\theta", rf"{weights} \sim \mathcal{{N}}(0, 1)", r"m \leq l"),
    ]


def _indices(row: sp.Expr, column: sp.Expr) -> str:
    return layer_indices(latex(row), latex(column))


FORMULAS = table(
    action=_action,
    saddle_point=_saddle_point,
    kernels=_kernels,
    propagator=lambda n: [
        *(*_response_propagator(n), G21_ROW, _covariance(n), *zero("G22")(n), *_source(n))
    ],
    S21=_mixed,
    S22=_source,
    G11=lambda n: [_covariance(n), *_response_propagator(n), *_source(n)],
    G12=_response_propagator,
    residual_response=_residual_response,
    response=_response,
    output_response=_output_response,
    tangent_kernel=_tangent_kernel,
    saturation=_saturation(large_depth=False),
    large_depth=_saturation(large_depth=True),
)
SATURATION = ("saturation", "large_depth")
