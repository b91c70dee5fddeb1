"""Diagrams as formulas for symbolic layers."""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.theory import generic
from fieldtheory.theory.diagrams.enumeration import Graph, fields_of, leg_orders, symmetry_factor
from fieldtheory.theory.typesetting.latex import AVERAGE, latex
from fieldtheory.theory.typesetting.layer_quantities import (
    G12,
    Bias,
    BlockEntry,
    LayerQuantity,
    PairSum,
    Weight,
)
from fieldtheory.theory.typesetting.layout import Equation, Setter, environment, page
from fieldtheory.theory.typesetting.widths import TEXT_WIDTH, width

_LEGS = (generic.l, generic.m, generic.n)
# What stands next to a line: a sign, an indent, and what the estimate of widths may miss.
_MARGIN = 45.0


class G11(BlockEntry, block="G_{11}", rank=AVERAGE + 0.2):
    """The covariance propagator."""


class VertexEntry(LayerQuantity):
    """A derivative of the action: the numbers of conjugates and kernels, then their layers."""

    def text(self, *indices: str) -> str:
        """S with 2 for every conjugate and 1 for every kernel, and the layers."""
        conjugates, kernels, *layers = indices
        below = " ".join(["2"] * int(conjugates) + ["1"] * int(kernels))
        return rf"S_{{{below}}}^{{{' '.join(layers)}}}"


class LayerSum(PairSum):
    """The sum of its first argument over layers, the others."""

    @property
    def sign(self) -> str:
        """The sign of the sum."""
        first, last = latex(self.args[1]), latex(self.args[-1])
        few = len(self.args) <= 4
        names = ", ".join(map(latex, self.args[1:])) if few else rf"{first}, \dots, {last}"
        return rf"\sum_{{{names}}}"


def diagram_value(graph: Graph) -> sp.Expr:
    """The value of a diagram as a sum over the layers of its inner fields."""
    factor = symmetry_factor(graph)
    return sp.Add(*[factor * _in_order(graph, order) for order in leg_orders(graph)])


def diagram_latex(graph: Graph) -> str:
    """LaTeX of `diagram_value`, in lines that fit a page.

    >>> from fieldtheory.theory.diagrams.enumeration import graphs
    >>> print(diagram_latex(next(graphs(legs=2, loops=0))))
    G_{11}^{l m}
    """
    lines = _lines(graph, TEXT_WIDTH)
    return lines[0] if len(lines) == 1 else _aligned("", [lines])


def correction_latex(graphs: Sequence[Graph], loops: int, family: type[LayeredNetwork]) -> str:
    """LaTeX of the sum of diagrams, each on lines of its own, and of what stands in it."""
    legs = graphs[0].legs
    cumulant = r" \,;\, ".join(f"C^{{({latex(leg_name(i))})}}" for i in range(legs))
    order = rf"{loops}\,\mathrm{{loop{'s' * (loops > 1)}}}" if loops else r"\mathrm{tree}"
    left = rf"\langle {cumulant} \rangle_{{{order}}}"
    room = TEXT_WIDTH - width(left) - _MARGIN
    total = _aligned(f"{left} =", [_lines(graph, room) for graph in graphs])
    if not any(graph.vertices for graph in graphs):
        return total
    return environment([f"&{total}", f"&{page([_definitions(family)])}"])


def _lines(graph: Graph, room: float) -> list[str]:
    return Setter({"order": None}).lines(diagram_value(graph), room - _MARGIN, room - _MARGIN)


def _aligned(left: str, terms: Sequence[Sequence[str]]) -> str:
    """Terms one below the other behind what they are equal to."""
    rows = []
    for number, lines in enumerate(terms):
        start = f"{left} &" if number == 0 else r"&\quad + "
        rows += [start + lines[0], *(rf"&\qquad {line}" for line in lines[1:])]
    if len(rows) == 1:
        return rows[0].replace("&", "")
    return environment(rows)


def leg_name(number: int) -> sp.Symbol:
    """The layer of a leg: l, m, n, then l_4, ..."""
    return _LEGS[number] if number < len(_LEGS) else sp.Symbol(f"l_{{{number + 1}}}")


def _in_order(graph: Graph, order: Sequence[int]) -> sp.Expr:
    """The value for legs in an order: the vertices one after the other name the inner layers."""
    names: dict[tuple[int, int], sp.Symbol] = {}
    for leg in range(graph.legs):
        (kernel,) = fields_of(graph, leg)[1]
        names[kernel] = leg_name(order[leg])
    inner: list[sp.Symbol] = []
    factors: list[sp.Expr] = []
    for v, (n, m) in enumerate(graph.vertices):
        conjugates, kernels = fields_of(graph, graph.legs + v)
        for end in (*conjugates, *kernels):
            inner.append(sp.Symbol(f"k_{{{len(inner) + 1}}}"))
            names[end] = inner[-1]
        factors.append(VertexEntry(n, m, *[names[end] for end in (*conjugates, *kernels)]))
    for number, line in enumerate(graph.lines):
        ends = names[number, 0], names[number, 1]
        factors.append(G12(*ends) if line.kind == "G12" else G11(*ends))
    product = sp.Mul(*factors)
    return LayerSum(product, *inner) if inner else product


def _definitions(family: type[LayeredNetwork]) -> list[Equation]:
    l = generic.l
    vertex = (
        r"N \frac{\partial^{m}}{\partial C^{(j_{1})} \cdots \partial C^{(j_{m})}} "
        r"\langle g_{k_{1}} \,;\, \cdots \,;\, g_{k_{n}} \rangle"
    )
    observable = Weight(l) * generic.observable(l - 1, family) + Bias(l)
    return [
        Equation(r"S_{2 \cdots 2 1 \cdots 1}^{k_{1} \cdots k_{n} j_{1} \cdots j_{m}}", vertex),
        Equation("g_{l}", observable, r"1 \leq l \leq L + 1"),
    ]
