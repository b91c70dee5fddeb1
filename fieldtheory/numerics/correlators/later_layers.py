"""What one layer shares with many later ones, from few of these.

The later signal is a part of the earlier one and noise of the variance q, and averages of both are
analytic in √q, also of φ with kinks, if what the layers add changes slowly. A polynomial in √q
through the layers nearest to Chebyshev's points is then known to rounding. Others tell whether it
is: a step anywhere would show everywhere.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# Layers tried, times which there have to be more than these, and the allowed relative difference.
_COUNTS, _MORE, _ALLOWED = (16, 20, 28), 1.5, 2e-12
# Layers that are compared.
_CHECKS = 3


def asked(count: int) -> int:
    """About how many of so many layers are asked for if layers are alike."""
    return min(count, _COUNTS[0] + _CHECKS)


def from_few(f: Callable[[int], np.ndarray], widths: np.ndarray) -> np.ndarray:
    """f(0), f(1), ... of all widths, along a new last axis.

    Parameters
    ----------
    f : callable
        An array for each number.
    widths : ndarray, shape (n,)
        √q.

    Examples
    --------
    >>> numbers, u = [], np.sqrt(np.arange(1.0, 200.0))
    >>> values = from_few(lambda n: numbers.append(n) or np.exp(-u[n] / 5), u)
    >>> len(numbers), bool(np.allclose(values, np.exp(-u / 5), rtol=1e-13, atol=0))
    (18, True)
    """
    known: dict[int, np.ndarray] = {}

    def value(number: int) -> np.ndarray:
        if number not in known:
            known[number] = f(number)
        return known[number]

    numbers = range(len(widths))
    for count in _COUNTS if (np.diff(widths) > 0).all() else ():
        if len(widths) < _MORE * count:
            break
        chosen = _spread(widths, count)
        sizes = _sizes(widths[chosen], widths)
        # Where errors of the polynomial are largest, in every part.
        checked = [int(part[np.argmax(sizes[part])]) for part in np.array_split(numbers, _CHECKS)]
        at_nodes = np.stack([value(number) for number in chosen.tolist()], axis=-1)
        found = at_nodes @ _cardinal(widths[chosen], widths).T
        direct = np.stack([value(number) for number in checked], axis=-1)
        if (np.abs(found[..., checked] - direct) <= _ALLOWED * np.abs(direct)).all():
            found[..., chosen], found[..., checked] = at_nodes, direct
            return found
    return np.stack([value(number) for number in numbers], axis=-1)


def _spread(widths: np.ndarray, count: int) -> np.ndarray:
    """Those that are nearest to the extrema of a Chebyshev polynomial, in ascending order."""
    low, high = widths[0], widths[-1]
    points = (low + high) / 2 - (high - low) / 2 * np.cos(np.pi * np.arange(count) / (count - 1))
    return np.unique(np.abs(widths[:, None] - points).argmin(axis=0))


def _sizes(nodes: np.ndarray, places: np.ndarray) -> np.ndarray:
    """|Π (x − x_i)| in units in which it is about one."""
    return np.abs(np.prod((places[:, None] - nodes) * (4 / (nodes[-1] - nodes[0])), axis=1))


def _cardinal(nodes: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The polynomials that are one at a node and zero at the others, shape (places, nodes)."""
    apart = (nodes[:, None] - nodes) * (4 / (nodes[-1] - nodes[0]))
    np.fill_diagonal(apart, 1.0)
    distance = places[:, None] - nodes
    at_node = distance == 0
    terms = 1 / np.where(at_node, 1.0, distance) / np.prod(apart, axis=1)
    found = terms / terms.sum(axis=1, keepdims=True)
    return np.where(at_node.any(axis=1, keepdims=True), at_node, found)
