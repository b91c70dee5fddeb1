"""Which diagrams vanish by causality: no order of the layers of their fields is allowed."""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import product

from fieldtheory.theory.diagrams.enumeration import Graph

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

    The response G12 of a layer to a source in another one vanishes unless the source is the same
    layer or an earlier one. The signals that feed layer k hold residuals of layers before k only,
    so that a derivative of ⟨g_k1; ...; g_kn⟩ by C^(j) vanishes unless j < max k. A loop of
    responses through vertices of one conjugate each would have to go forward all the way round.

    Parameters
    ----------
    graph : Graph

    Examples
    --------
    >>> from fieldtheory.theory.diagrams.enumeration import graphs
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
