"""Partitions of functions into blocks, which relate cumulants to averages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import sympy as sp


def partitions(functions: Sequence[Any]) -> Iterator[tuple[sp.Integer, list[tuple]]]:
    """The partitions of some functions into blocks, each with its weight in the cumulant.

    Examples
    --------
    >>> for weight, blocks in partitions("FG"):
    ...     print(weight, blocks)
    1 [('F', 'G')]
    -1 [('F',), ('G',)]
    """
    for blocks in _set_partitions(len(functions)):
        size = len(blocks)
        weight = sp.Integer((-1) ** (size - 1)) * sp.factorial(size - 1)
        yield weight, [tuple(functions[k] for k in block) for block in blocks]


@lru_cache(maxsize=16)
def _set_partitions(count: int) -> list[tuple[tuple[int, ...], ...]]:
    if count == 0:
        return [()]
    last, found = count - 1, []
    for blocks in _set_partitions(last):
        for k, block in enumerate(blocks):
            found.append((*blocks[:k], (*block, last), *blocks[k + 1 :]))
        found.append((*blocks, (last,)))
    return found
