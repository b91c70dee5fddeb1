"""Orders of 1/N: which neurons are the same, and which products of cumulants are connected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product

import sympy as sp

from fieldtheory.averages.precise import partitions
from neurons.cumulants import HIGHEST, Average, Cumulant, D, Moved, Seen, plus, times

# A factor d is as large as N^{-1/2}: no product at 1/N² has more than four.
MOST_FACTORS = 2 * HIGHEST
SMALL = sp.Symbol("epsilon")


Series = tuple[sp.Expr, ...]


def different(functions: Sequence[sp.Expr]) -> Series:
    """The joint cumulant of functions of n different neurons, of order N^{1−n}."""
    lowest = len(functions) - 1
    found = [Cumulant(k, *functions) if k >= max(lowest, 1) else 0 for k in range(HIGHEST + 1)]
    return (Average(*functions) if lowest == 0 else sp.S.Zero, *found[1:])


@cache
def moment(functions: tuple[sp.Expr, ...]) -> Series:
    """The average of a product of functions of different neurons."""
    return plus(times(*map(different, blocks)) for _, blocks in partitions(functions))


def assignments(count: int, named: int) -> Iterator[tuple[int, ...]]:
    """The neurons of ``count`` sums: one of those named, or others, numbered as they appear."""

    def extended(chosen: tuple[int, ...], first_new: int) -> Iterator[tuple[int, ...]]:
        if len(chosen) == count:
            yield chosen
            return
        for neuron in range(first_new + 1):
            yield from extended((*chosen, neuron), max(first_new, neuron + 1))

    yield from extended((), named)


@cache
def seen(count: int, functions: tuple[sp.Expr, ...] = ()) -> Series:
    """κ(d, ..., d, χ_1, ..., χ_p) for d = (1/N) Σ_k D(h_k), in powers of ε = 1/N.

    The sums contain the neurons of the functions, and each other's.
    """
    named, total = len(functions), []
    for neurons in assignments(count, named):
        others = max([*neurons, named - 1]) + 1 - named
        items = (*zip(neurons, [D] * count, strict=True), *enumerate(functions))
        total.append(times(choices(count, named, others), joint(items)))
    return plus(total)


def choices(count: int, named: int, others: int) -> Series:
    """In how many ways the other neurons can be chosen, over N^count."""
    ways = sp.Poly(sp.Mul(*[1 - (named + i) * SMALL for i in range(others)]), SMALL)
    lowest = count - others
    return tuple(
        ways.coeff_monomial(SMALL ** (k - lowest)) if k >= lowest else sp.S.Zero
        for k in range(HIGHEST + 1)
    )


def joint(items: tuple[tuple[int, sp.Expr], ...]) -> Series:
    """The cumulant of functions of neurons some of which are the same.

    Moments of one neuron are averages of products.
    """
    return plus(
        times((weight, sp.S.Zero, sp.S.Zero), *[moment(by_neuron(block)) for block in blocks])
        for weight, blocks in partitions(items)
    )


def by_neuron(block: Sequence[tuple[int, sp.Expr]]) -> tuple[sp.Expr, ...]:
    """The functions of a block multiplied neuron by neuron."""
    neurons = sorted({neuron for neuron, _ in block})
    return tuple(sp.Mul(*[f for neuron, f in block if neuron == n]) for n in neurons)


def block_cumulant(block: Sequence[sp.Expr]) -> Series:
    """The cumulant of some d and of functions of different neurons, by its coefficients."""
    count = sum(item == D for item in block)
    functions = [item for item in block if item != D]
    if not count:
        return different(functions)
    lowest = least_order(block)
    return tuple(
        Seen(k, count, *functions) if k >= lowest else sp.S.Zero for k in range(HIGHEST + 1)
    )


def least_order(block: Sequence[sp.Expr]) -> int:
    """Of n quantities n − 1; the mean of d is of order 1/N itself."""
    return max(len(block) - 1, 1 if block[0] == D else 0)


def connected(groups: Sequence[int], blocks: Sequence[Sequence[tuple[int, sp.Expr]]]) -> bool:
    """Whether the blocks join all groups."""
    joined = {groups[0]}
    for _ in groups:
        for block in blocks:
            members = {group for group, _ in block}
            if members & joined:
                joined |= members
    return joined == set(groups)


@cache
def next_cumulant(count: int) -> Series:
    """κ(ψ_1(h'_1), ..., ψ_n(h'_n)) of n different neurons of the next layer, in powers of ε.

    It is κ(y_1, ..., y_n), y_a = Σ_j d^j P_jψ_a(h_a): the sum over the partitions of all factors
    that join the y.
    """
    groups, found = range(1, count + 1), Counter()
    for powers in product(range(MOST_FACTORS + 1), repeat=count):
        if sum(powers) > MOST_FACTORS:
            continue
        items = [(a, D) for a, j in zip(groups, powers, strict=True) for _ in range(j)]
        items += [(a, Moved(j, a)) for a, j in zip(groups, powers, strict=True)]
        for _, blocks in partitions(items):
            factors = [tuple(item for _, item in block) for block in blocks]
            if sum(map(least_order, factors)) <= HIGHEST and connected(groups, blocks):
                found[tuple(sorted(factors, key=str))] += 1
    return plus(
        times((sp.Integer(number), sp.S.Zero, sp.S.Zero), *map(block_cumulant, factors))
        for factors, number in found.items()
    )
