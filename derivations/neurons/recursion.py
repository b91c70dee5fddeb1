"""The derived recursion, run: from Gaussian averages in every layer to the kernels.

A function of the neurons of layer l is a word: powers of D, and P_j of a word of layer l + 1. What
the recursion leaves are averages of words over Gaussian signals, which a model knows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import sympy as sp

from neurons.counting import next_cumulant, seen
from neurons.cumulants import Average, Cumulant, D, Moved, Seen, function


class Word(NamedTuple):
    """D^power, times a function given by its name or P_j of a word of the next layer."""

    power: int
    factor: tuple[Any, ...] | None = None

    def times(self, power: int) -> Word:
        """The product with a power of D."""
        return Word(self.power + power, self.factor)


ADDED = Word(1)


@cache
def terms(formula: sp.Expr) -> list[tuple[sp.Expr, list[tuple[sp.Expr, int]]]]:
    """A sum of products of cumulants as coefficients and powers."""
    found = []
    for term in sp.Add.make_args(formula):
        coefficient, product = term.as_coeff_Mul()
        if coefficient:
            found.append((coefficient, list(product.as_powers_dict().items())))
    return found


def recursion(average: Callable[[int, Word], Any], number: Callable[[sp.Rational], Any]) -> Any:
    """``value(l, cumulant, words)`` by the derived formulas, from averages ``average(l, word)``.

    A cumulant is an `Average`, `Cumulant` or `Seen` of χ_1, χ_2, ...; the words take their place.
    """

    @cache
    def value(l: int, kind: type, orders: tuple[int, ...], words: tuple[Word, ...]) -> Any:
        if kind is Average:
            return average(l, *words)
        if kind is Cumulant:
            return evaluated(l - 1, next_cumulant(len(words))[orders[0]], words) if l else zero
        order, count = orders
        named = tuple(function(a) for a in range(1, len(words) + 1))
        return evaluated(l, seen(count, named)[order], words)

    def evaluated(l: int, formula: sp.Expr, words: tuple[Word, ...]) -> Any:
        total = zero
        for coefficient, factors in terms(formula):
            product = number(coefficient)
            for cumulant, power in factors:
                product = product * of(l, cumulant, words) ** int(power)
            total = total + product
        return total

    def of(l: int, cumulant: sp.Expr, words: tuple[Word, ...]) -> Any:
        kept = {Average: 0, Cumulant: 1, Seen: 2}[cumulant.func]
        orders, functions = cumulant.args[:kept], cumulant.args[kept:]
        inside = sorted((word(f, words) for f in functions), key=repr)
        return value(l, cumulant.func, tuple(map(int, orders)), tuple(inside))

    zero = number(sp.S.Zero)
    return value


def word(f: sp.Expr, words: tuple[Word, ...]) -> Word:
    """D^power χ_a or D^power P_jψ_a with words for the functions."""
    power, found = 0, Word(0)
    for factor, exponent in f.as_powers_dict().items():
        if factor == D:
            power = int(exponent)
        elif isinstance(factor, Moved):
            j, a = map(int, factor.args)
            found = Word(0, ("P", j, words[a - 1]))
        else:
            found = words[_NAMES.index(factor)]
    return found.times(power)


_NAMES = [function(a) for a in range(1, 4)]


def kernels(value: Any, depth: int) -> list[tuple[Any, ...]]:
    """δ_1, q_1, δ_2, q_2 and t_2 of the layers 0, ..., depth: cumulants of C^(1), C^(2), ...."""
    wanted = [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3)]
    return [tuple(value(l, Seen, orders, ()) for orders in wanted) for l in range(depth + 1)]
