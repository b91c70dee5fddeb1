"""Values of diagrams: vertices and propagators contracted over the layers of all inner fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import combinations_with_replacement, permutations, product
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory.theory.action import Action
from fieldtheory.theory.causality import fields_of
from fieldtheory.theory.enumeration import Graph, leg_orders, symmetry_factor

# The derivatives by n conjugates and m kernels, shape (F,) * (n + m) for F fields.
Vertex = Callable[[int, int], np.ndarray]
Indices = tuple[int, ...]


def vertex_tensor(action: Action, conjugates: int, kernels: int) -> np.ndarray:
    """All derivatives of an action of one order at C̃ = 0, SymPy expressions in the kernels.

    Parameters
    ----------
    action : Action
    conjugates, kernels : int
        n and m.

    Returns
    -------
    ndarray of object, shape (F,) * (n + m)
        Symmetric in the first n and in the last m indices.

    Examples
    --------
    >>> from fieldtheory.networks.family import Coefficients
    >>> from fieldtheory.theory.action import chain_action
    >>> linear = chain_action(1, 1, lambda h: (h,), lambda l: Coefficients(1, 0, 1))
    >>> vertex_tensor(linear, 2, 0)[1, 2].doit().expand().as_poly().coeffs()
    [2]
    """
    fields = range(len(action.kernels))

    def entry(outer: Indices, inner: Indices) -> sp.Expr:
        return action.derivative(outer, inner)

    return symmetric_tensor(len(fields), conjugates, kernels, entry, object)


def symmetric_tensor(
    size: int, outer: int, inner: int, entry: Callable[[Indices, Indices], Any], kind: type
) -> np.ndarray:
    """A tensor symmetric in its first and in its last indices from entries with sorted ones.

    Examples
    --------
    >>> symmetric_tensor(2, 1, 2, lambda n, m: 4 * n[0] + m[0] + m[1], float)[1]
    array([[4., 5.],
           [5., 6.]])
    """
    tensor: np.ndarray = np.zeros((size,) * (outer + inner), dtype=kind)
    if kind is object:
        tensor.fill(sp.S.Zero)
    sets = [list(combinations_with_replacement(range(size), n)) for n in (outer, inner)]
    for first, second in product(*sets):
        value = entry(first, second)
        if value != 0:
            for one, other in product(set(permutations(first)), set(permutations(second))):
                tensor[(*one, *other)] = value
    return tensor


def contracted(graph: Graph, vertex: Vertex, lines: Mapping[str, np.ndarray]) -> np.ndarray:
    """The value of a diagram and of those with its legs in other orders.

    Parameters
    ----------
    graph : Graph
    vertex : callable
        (n, m) to the tensor of the derivatives by n conjugates and m kernels.
    lines : mapping
        "G12" and "G11" to arrays of shape (F, F).

    Returns
    -------
    ndarray, shape (F,) * E
    """
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


def summed(
    graphs: Iterable[Graph], legs: int, vertex: Vertex, lines: Mapping[str, np.ndarray]
) -> np.ndarray:
    """The sum of diagrams, shape (F,) * E."""
    size = len(lines["G12"])
    total = np.zeros((size,) * legs, dtype=lines["G12"].dtype)
    for graph in graphs:
        total = total + contracted(graph, vertex, lines)
    return total
