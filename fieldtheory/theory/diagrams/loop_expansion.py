"""Diagrams of the loop expansion and their sums: what they are worth, how they are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache, partial
from itertools import combinations_with_replacement, permutations, product
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory import validation
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.plotting import feynman
from fieldtheory.theory.action import Action
from fieldtheory.theory.diagrams.diagram_formulas import correction_latex, diagram_latex
from fieldtheory.theory.diagrams.enumeration import (
    Graph,
    Line,
    fields_of,
    graphs,
    leg_orders,
    symmetry_factor,
    vanishing,
)
from fieldtheory.theory.propagator import Propagator


@dataclass(frozen=True)
class Diagram:
    r"""One diagram of ⟨C⟩, ⟨C;C⟩, ... about the saddle point, for networks of any depth.

    Its value is the symmetry factor times the vertices and propagators, summed over the layers of
    all inner fields, and over the orders of its legs that make a difference:

        vertex (n, m)   S_{2..21..1} = ∂^{n+m} S / ∂C̃^n ∂C^m = N ∂^m ⟨g;...;g⟩ / ∂C^m
        full line       G11, the covariance of two kernels
        half dashed     G12, the response of a kernel (full end) to a conjugate (dashed end)

    Examples
    --------
    >>> zero, one, other = diagrams(legs=1, loops=1)
    >>> one.vertices, one.symmetry_factor, [line.kind for line in one.propagators]
    (((1, 2),), 1/2, ['G11', 'G12'])
    >>> zero.vanishes, zero.reason
    (True, 'causality: layers would have to increase around a loop of responses through vertex 1')
    >>> print(other.latex())
    \sum_{k_{1}, k_{2}, k_{3}} S_{2 2 1}^{k_{1} k_{2} k_{3}} G_{12}^{k_{3}, k_{2}} G_{12}^{l, k_{1}}
    """

    graph: Graph

    @property
    def legs(self) -> int:
        """The number E of external fields C."""
        return self.graph.legs

    @property
    def loops(self) -> int:
        """The number of loops."""
        return len(self.graph.lines) - len(self.graph.vertices) - self.graph.legs + 1

    @property
    def vertices(self) -> tuple[tuple[int, int], ...]:
        """Numbers n of conjugates and m of kernels of every vertex."""
        return self.graph.vertices

    @property
    def propagators(self) -> tuple[Line, ...]:
        """The lines: "G11" or "G12" and the points that they join, legs first, then vertices."""
        return self.graph.lines

    @cached_property
    def symmetry_factor(self) -> sp.Rational:
        """One over the number of permutations of inner fields that change nothing."""
        return symmetry_factor(self.graph)

    @cached_property
    def leg_orders(self) -> list[tuple[int, ...]]:
        """The orders of the legs over which it is summed."""
        return leg_orders(self.graph)

    @cached_property
    def reason(self) -> str:
        """Why it vanishes for every network, empty if it does not."""
        return vanishing(self.graph)

    @property
    def vanishes(self) -> bool:
        """Whether it is zero by causality."""
        return bool(self.reason)

    def latex(self) -> str:
        """LaTeX of its value for symbolic layers, without delimiters; it fits 345 pt."""
        return diagram_latex(self.graph)

    def tikz(self) -> str:
        """A ``tikzpicture`` of it, for plain TikZ."""
        return feynman.tikz([self.graph], [""])

    def plot(self) -> Any:
        """A picture of it, with a legend, as a matplotlib figure."""
        return feynman.draw([self.graph], [""])

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"


def diagrams(legs: int = 1, loops: int = 1) -> tuple[Diagram, ...]:
    """All connected diagrams of ⟨C⟩, ⟨C;C⟩, ⟨C;C;C⟩, ... with a number of loops.

    Examples
    --------
    >>> [len(diagrams(legs, loops)) for legs, loops in ((1, 1), (2, 1), (3, 0), (1, 2))]
    [3, 22, 3, 93]
    >>> sum(not d.vanishes for d in diagrams(legs=1, loops=2))
    38
    """
    legs = validation.integer("legs", legs, 1)
    loops = validation.integer("loops", loops, 1 if legs == 1 else 0)
    return _diagrams(legs, loops)


@lru_cache(maxsize=32)
def _diagrams(legs: int, loops: int) -> tuple[Diagram, ...]:
    return tuple(map(Diagram, graphs(legs, loops)))


@dataclass(frozen=True, repr=False)
class Correction:
    """The sum of all diagrams of ⟨C⟩, ⟨C;C⟩, ... with a number of loops, of one network.

    Examples
    --------
    >>> from fieldtheory.theory.derivation import derive
    >>> mean = derive(depth=1, activation="linear").correction(legs=1, loops=1)
    >>> mean, mean.expression.shape
    (Correction(⟨C⟩, 1 loop, 3 diagrams), (3,))
    """

    action: Action
    propagator: Propagator = field(hash=False, compare=False)
    legs: int
    loops: int
    family: type[LayeredNetwork] = ResidualNetwork

    @property
    def diagrams(self) -> tuple[Diagram, ...]:
        """All of them, also those that vanish."""
        return diagrams(self.legs, self.loops)

    @cached_property
    def expression(self) -> sp.ImmutableDenseNDimArray:
        """The sum for the fields of the action, shape (F,) * E, its powers of 1/N included.

        As the blocks of the Hessian it is a function of the kernels, which take their values C*.
        For one input F = L + 2, one field a layer. It grows fast: at φ undetermined and L = 3 the
        mean takes a second at one loop and a minute at two.
        """
        shape = (len(self.action.kernels),) * self.legs
        values = (self._value(d) for d in self.diagrams if not d.vanishes)
        return _as_array(sum(values, np.full(shape, sp.S.Zero, dtype=object)))

    def of(self, diagram: Diagram) -> sp.ImmutableDenseNDimArray:
        """The part of one diagram."""
        return _as_array(self._value(diagram))

    def _value(self, diagram: Diagram) -> np.ndarray:
        return contracted(diagram.graph, self._vertex, self._lines)

    def latex(self) -> str:
        """LaTeX of the sum for symbolic layers with definitions, without delimiters.

        It fits a text width of 345 pt. Each of the diagrams that do not vanish is a term, in their
        order; a display of two loops, with 38 terms, is longer than a page.
        """
        graphs = [d.graph for d in self.diagrams if not d.vanishes]
        return correction_latex(graphs, self.loops, self.family)

    def tikz(self) -> str:
        """The diagrams that do not vanish, with their factors, as a plain ``tikzpicture``."""
        diagrams = [d for d in self.diagrams if not d.vanishes]
        factors = [_factor(d).replace("×", r"$\times$") for d in diagrams]
        return feynman.tikz([d.graph for d in diagrams], factors)

    def plot(self, vanishing: bool = True) -> Any:
        """The diagrams with their symmetry factors, those that vanish in grey or left out."""
        diagrams = [d for d in self.diagrams if vanishing or not d.vanishes]
        factors = [_factor(d) for d in diagrams]
        return feynman.draw([d.graph for d in diagrams], factors, [d.vanishes for d in diagrams])

    @cached_property
    def _vertex(self) -> Callable[[int, int], np.ndarray]:
        return cache(partial(vertex_tensor, self.action))

    @cached_property
    def _lines(self) -> dict[str, np.ndarray]:
        blocks = {"G12": self.propagator.G12, "G11": self.propagator.G11}
        return {name: np.array(block.tolist(), dtype=object) for name, block in blocks.items()}

    def __repr__(self) -> str:
        cumulant = "⟨" + ";".join("C" * self.legs) + "⟩"
        loops = "1 loop" if self.loops == 1 else f"{self.loops} loops"
        return f"Correction({cumulant}, {loops}, {len(self.diagrams)} diagrams)"

    def _repr_latex_(self) -> str:
        return f"$${self.latex()}$$"


def _as_array(values: np.ndarray) -> sp.ImmutableDenseNDimArray:
    return sp.ImmutableDenseNDimArray(values.ravel().tolist(), values.shape)


def _factor(diagram: Diagram) -> str:
    """The symmetry factor, and how many orders of the legs there are."""
    factor = diagram.symmetry_factor
    orders = len(diagram.leg_orders)
    text = "" if factor == 1 else str(factor)
    return f"{text} (× {orders})".strip() if orders > 1 else text


# The derivatives by n conjugates and m kernels, shape (F,) * (n + m) for F fields.
Vertex = Callable[[int, int], np.ndarray]


def vertex_tensor(action: Action, conjugates: int, kernels: int) -> np.ndarray:
    """All derivatives of an action by n conjugates and m kernels at C̃ = 0, (F,) * (n + m).

    >>> from fieldtheory.networks.family import Coefficients
    >>> from fieldtheory.theory.action import chain_action
    >>> linear = chain_action(1, 1, lambda h: (h,), lambda l: Coefficients(1, 0, 1))
    >>> vertex_tensor(linear, 2, 0)[1, 2].doit().expand().as_poly().coeffs()
    [2]
    """
    size = len(action.kernels)
    tensor: np.ndarray = np.full((size,) * (conjugates + kernels), sp.S.Zero, dtype=object)
    sets = [list(combinations_with_replacement(range(size), n)) for n in (conjugates, kernels)]
    for outer, inner in product(*sets):
        value = action.derivative(outer, inner)
        if value != 0:
            for one, other in product(set(permutations(outer)), set(permutations(inner))):
                tensor[(*one, *other)] = value
    return tensor


def contracted(graph: Graph, vertex: Vertex, lines: Mapping[str, np.ndarray]) -> np.ndarray:
    """The value (F, ..., F) of a diagram and of those with its E legs in other orders."""
    number: dict[tuple[int, int], int] = {}
    for place, _ in enumerate(graph.lines):
        number[place, 0], number[place, 1] = 2 * place, 2 * place + 1
    operands: list[Any] = []
    for place, line in enumerate(graph.lines):
        operands += [lines[line.kind], [number[place, 0], number[place, 1]]]
    for v, (n, m) in enumerate(graph.vertices):
        conjugates, kernels = fields_of(graph, graph.legs + v)
        operands += [vertex(n, m), [number[field] for field in (*conjugates, *kernels)]]
    outer = [number[fields_of(graph, leg)[1][0]] for leg in range(graph.legs)]
    single = np.einsum(*operands, outer, optimize="greedy")
    factor = symmetry_factor(graph)
    if single.dtype != object:
        factor = float(factor)
    return factor * sum(np.transpose(single, np.argsort(order)) for order in leg_orders(graph))
