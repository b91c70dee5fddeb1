"""All connected diagrams of a given number of loops, up to isomorphism.

A diagram is a graph of points: legs, which are external fields C, and vertices, which are
derivatives of the action by n >= 1 conjugates and m kernels. Lines join the fields of the points:
G12 a kernel to a conjugate, G11 two kernels. G22 = 0 joins nothing, and vertices without a
conjugate vanish, since averages are normalised.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import chain, combinations_with_replacement, permutations, product
from math import factorial
from typing import NamedTuple

import sympy as sp
from sympy.utilities.iterables import partitions


class Line(NamedTuple):
    """A propagator "G12" or "G11" between two points; G12 has the kernel first, then the conjugate.

    Points are the legs 0, ..., E − 1, then the vertices.
    """

    kind: str
    first: int
    second: int


class Graph(NamedTuple):
    """A diagram without its meaning: E legs, the sorted lines, and its vertices.

    A vertex is its numbers of conjugates and kernels.
    """

    legs: int
    vertices: tuple[tuple[int, int], ...]
    lines: tuple[Line, ...]


def graphs(legs: int, loops: int) -> Iterator[Graph]:
    """The connected graphs, one of each class under permutations of vertices and of legs.

    Examples
    --------
    >>> [graph.vertices for graph in graphs(legs=1, loops=1)]
    [((1, 2),), ((1, 2),), ((2, 1),)]
    """
    # Each vertex has its number of lines less two, and together they have this.
    excess = 2 * (loops - 1) + legs
    for degrees in partitions(excess):
        kinds = [
            combinations_with_replacement([(n, d + 2 - n) for n in range(1, d + 3)], count)
            for d, count in degrees.items()
        ]
        for vertices in sorted({tuple(sorted(chain(*choice))) for choice in product(*kinds)}):
            relabelled: set[tuple[Line, ...]] = set()
            for lines in _joined(legs, vertices):
                if _is_connected(legs + len(vertices), lines):
                    relabelled.add(min(_relabelled(legs, vertices, lines, permuted=True)))
            for lines in sorted(relabelled):
                yield Graph(legs, vertices, lines)


def symmetry_factor(graph: Graph) -> sp.Rational:
    """One over the number of permutations of fields that leave the graph and its legs as they are.

    Examples
    --------
    >>> [symmetry_factor(graph) for graph in graphs(legs=1, loops=1)]
    [1, 1/2, 1]
    """
    size = sum(lines == graph.lines for lines in _relabelled(*graph, permuted=False))
    for line in set(graph.lines):
        count = graph.lines.count(line)
        size *= factorial(count)
        if line.kind == "G11" and line.first == line.second:
            size *= 2**count
    return sp.Rational(1, size)


def leg_orders(graph: Graph) -> list[tuple[int, ...]]:
    """The orders of the legs that give different diagrams.

    >>> [leg_orders(graph) for graph in graphs(legs=3, loops=0)]
    [[(0, 1, 2), (0, 2, 1), (1, 2, 0)], [(0, 1, 2), (1, 0, 2), (2, 0, 1)], [(0, 1, 2)]]
    """
    orders: dict[tuple[Line, ...], tuple[int, ...]] = {}
    for order in permutations(range(graph.legs)):
        lines = _with_places(
            graph.lines, [*order, *range(graph.legs, graph.legs + len(graph.vertices))]
        )
        orders.setdefault(min(_relabelled(graph.legs, graph.vertices, lines, False)), order)
    return list(orders.values())


def _joined(legs: int, vertices: Sequence[tuple[int, int]]) -> Iterator[tuple[Line, ...]]:
    """All ways to join conjugates with kernels, and the kernels that are left with each other."""
    room = [1] * legs + [m for _, m in vertices]
    if sum(room) < sum(n for n, _ in vertices):
        return

    def responses(vertex: int, room: list[int]) -> Iterator[tuple[Line, ...]]:
        if vertex == len(vertices):
            yield from pairs(room)
            return
        points = range(len(room))
        for ends in combinations_with_replacement(points, vertices[vertex][0]):
            left = [free - ends.count(point) for point, free in enumerate(room)]
            if min(left) >= 0:
                own = tuple(Line("G12", end, legs + vertex) for end in ends)
                for others in responses(vertex + 1, left):
                    yield own + others

    def pairs(room: list[int]) -> Iterator[tuple[Line, ...]]:
        first = next((point for point, free in enumerate(room) if free), None)
        if first is None:
            yield ()
            return
        for second in range(first, len(room)):
            left = list(room)
            left[first] -= 1
            left[second] -= 1
            if left[second] >= 0:
                for others in pairs(left):
                    yield (Line("G11", first, second), *others)

    yield from responses(0, room)


def _is_connected(points: int, lines: Sequence[Line]) -> bool:
    reached, waiting = {0}, [0]
    while waiting:
        point = waiting.pop()
        for _, *ends in lines:
            if point in ends:
                new = set(ends) - reached
                reached |= new
                waiting += new
    return len(reached) == points


def _relabelled(
    legs: int, vertices: Sequence[tuple[int, int]], lines: Sequence[Line], permuted: bool
) -> Iterator[tuple[Line, ...]]:
    """The lines under all permutations of vertices of one kind, and of legs if ``permuted``."""
    outside = permutations(range(legs)) if permuted else [tuple(range(legs))]
    inside = [
        [legs + v for v in order]
        for order in permutations(range(len(vertices)))
        if all(vertices[v] == vertices[w] for v, w in enumerate(order))
    ]
    for outer in outside:
        for inner in inside:
            yield _with_places(lines, [*outer, *inner])


def _with_places(lines: Sequence[Line], places: Sequence[int]) -> tuple[Line, ...]:
    """The lines with points renamed, sorted."""
    renamed = []
    for kind, first, second in lines:
        ends = places[first], places[second]
        renamed.append(Line(kind, *(ends if kind == "G12" else sorted(ends))))
    return tuple(sorted(renamed))


# A field is the end of a line: the number of the line, and 0 or 1 for its first or second point.
Field = tuple[int, int]


def fields_of(graph: Graph, point: int) -> tuple[list[Field], list[Field]]:
    """The conjugates and the kernels of a leg or a vertex, as ends of lines in order."""
    conjugates: list[Field] = []
    kernels: list[Field] = []
    for number, line in enumerate(graph.lines):
        for end, at in enumerate(line[1:]):
            if at == point:
                conjugate = line.kind == "G12" and end == 1
                (conjugates if conjugate else kernels).append((number, end))
    return conjugates, kernels


def vanishing(graph: Graph) -> str:
    """Why a diagram is zero, an empty text if it is not.

    Examples
    --------
    >>> [bool(vanishing(graph)) for graph in graphs(legs=1, loops=1)]
    [True, False, False]
    """
    loops = [_loop(graph, latest) for latest in _latest_conjugates(graph)]
    if not all(loops):
        return ""
    points = min(loops, key=len)
    names = ", ".join(str(point - graph.legs + 1) for point in points)
    through = f"vertex {names}" if len(points) == 1 else f"vertices {names}"
    return f"causality: layers would have to increase around a loop of responses through {through}"


def _latest_conjugates(graph: Graph) -> Iterator[dict[int, Field]]:
    """Choices of the latest conjugate of each vertex with kernels, in all ways."""
    first = graph.legs
    own = {v: fields_of(graph, v) for v in range(first, first + len(graph.vertices))}
    vertices = {v: conjugates for v, (conjugates, kernels) in own.items() if kernels}
    for choice in product(*vertices.values()):
        yield dict(zip(vertices, choice, strict=True))


def _loop(graph: Graph, latest: dict[int, Field]) -> list[int]:
    """The vertices of a loop around which layers would increase; nothing if there is none."""
    earlier: dict[Field, set[Field]] = {}
    for number, line in enumerate(graph.lines):
        if line.kind == "G12":
            earlier.setdefault((number, 0), set()).add((number, 1))
    for vertex, conjugate in latest.items():
        earlier.setdefault(conjugate, set()).update(fields_of(graph, vertex)[1])
    try:
        TopologicalSorter(earlier).prepare()
    except CycleError as error:
        ends = [1 + end for _, end in error.args[1]]
        around = zip(error.args[1], ends, strict=True)
        return sorted({graph.lines[number][end] for (number, _), end in around})
    return []
