"""Partitions of functions into blocks, which relate cumulants to averages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import sympy as sp
from sympy.utilities.iterables import multiset_partitions


def partitions(functions: Sequence[Any]) -> Iterator[tuple[sp.Integer, list[tuple]]]:
    """The partitions of some functions into blocks, each with its weight in the cumulant.

    Examples
    --------
    >>> for weight, blocks in partitions("FG"):
    ...     print(weight, blocks)
    1 [('F', 'G')]
    -1 [('F',), ('G',)]
    """
    for blocks in multiset_partitions(list(range(len(functions)))):
        size = len(blocks)
        weight = sp.Integer((-1) ** (size - 1)) * sp.factorial(size - 1)
        yield weight, [tuple(functions[k] for k in block) for block in blocks]
