"""Order 1/N as diagrams: averages of words are vertices of the action."""

from __future__ import annotations

from functools import cache
from itertools import product
from math import factorial
from typing import Any

import sympy as sp

from neurons.cumulants import Cumulant, Seen
from neurons.recursion import Word, recursion

OUTSIDE = "h^{2}"


@cache
def vertex(conjugates: tuple[Any, ...], kernels: tuple[int, ...]) -> sp.Symbol:
    """∂^m ⟨g;...;g⟩ / ∂C^m, a derivative of S/N: a layer for each g, and one for each C."""
    kinds = " ".join("2" * len(conjugates) + "1" * len(kernels))
    layers = " ".join(map(str, (*conjugates, *kernels)))
    return sp.Symbol(rf"\bar{{S}}_{{{kinds}}}^{{{layers}}}")


def average(l: int, word: Word) -> sp.Expr:
    """⟨D_l P ... P D_m⟩ and ⟨P ... P D_m⟩; P_j into layer k is (1/j!) ∂^j/∂(C^(k))^j."""
    conjugates, layer, factor = [l + 1] * word.power, l, sp.S.One
    kernels: list[int] = []
    while word.factor and word.factor[0] == "P":
        _, j, inner = word.factor
        assert inner.power == 0 or inner.factor is None, "a product that order 1/N has not"
        layer += 1
        kernels += [layer] * j
        factor /= factorial(j)
        word = inner
        conjugates += [layer + 1] * word.power
    if word.factor:
        conjugates += [OUTSIDE]
    centred = len(conjugates) == 1 and not kernels
    return sp.S.Zero if centred else factor * vertex(tuple(conjugates), tuple(kernels))


def unrolled() -> Any:
    """The derived recursion with vertices for its averages."""
    return recursion(average, lambda q: q)


def difference(depth: int) -> list[sp.Expr]:
    """N(⟨C⟩ − C*), N Var C and V of all layers, less the sums over propagators and vertices."""
    value = unrolled()
    fields = range(1, depth + 2)
    response = sp.Matrix(depth + 1, depth + 1, lambda k, m: _response(k + 1, m + 1))
    step = sp.eye(depth + 1) - response
    delta = step.inv().applyfunc(sp.expand)
    noise = sp.Matrix(depth + 1, depth + 1, lambda k, m: vertex(_pair(k + 1, m + 1), ()))
    G11 = (delta * noise * delta.T).applyfunc(sp.expand)

    def loop(m: int) -> sp.Expr:
        earlier = range(1, m)
        bubbles = [
            vertex((m,), tuple(sorted((j, k)))) * G11[j - 1, k - 1] / 2
            for j, k in product(earlier, earlier)
        ]
        tadpoles = [
            vertex((k, m), (j,)) * delta[j - 1, k - 1]
            for j, k in product(earlier, earlier)
            if k <= j
        ]
        return sp.Add(*bubbles, *tadpoles)

    one_loop = delta * sp.Matrix([loop(m) for m in fields])
    found = []
    for l in range(depth + 1):
        found.append(value(l, Seen, (1, 1), ()) - one_loop[l])
        found.append(value(l, Seen, (1, 2), ()) - G11[l, l])
        outside = Word(0, (OUTSIDE,))
        V = value(l, Cumulant, (1,), (outside, outside))
        skips = [vertex((OUTSIDE,), (k,)) for k in range(1, l + 1)]
        sources = [vertex((m, OUTSIDE), ()) for m in range(1, l + 1)]
        for (i, left), (j, right) in product(enumerate(skips), repeat=2):
            V -= left * right * G11[i, j]
        for (i, left), (j, beta) in product(enumerate(skips), enumerate(sources)):
            V -= 2 * left * delta[i, j] * beta
        found.append(V)
    return [sp.expand(x) for x in found]


def _response(k: int, m: int) -> sp.Expr:
    return vertex((k,), (m,)) if m < k else sp.S.Zero


def _pair(k: int, m: int) -> tuple[int, int]:
    return min(k, m), max(k, m)
