"""ρ* of many pairs of inputs, by interpolation in their variances and their correlation.

Where one maximum of the response stays the highest, ρ* is an analytic function of

    ln K_xx,  ln K_yy  and  ξ = artanh c,  c the correlation,

symmetric in the first two, with singularities off the real axis such as those of the logarithms
at iπ and of c = ±1 at iπ/2. Chebyshev interpolants on boxes around the pairs take a number of nodes
that does not grow with that of the pairs: 30 for inputs of one norm, a few thousand for others.
A box is used where its coefficients have decayed and it agrees with ρ* itself at some of the pairs.
It is divided where it is not, at the jump of inputs of one norm where another maximum becomes the
highest or ρ* vanishes, and where it would take too many nodes. Pairs that are too few for a box are
computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from fieldtheory.averages.quadrature.chebyshev_series import nodes, polynomials, transform

# Nodes of a box for each of its pairs, at most; and how many pairs take as long as it takes to ask
# once more, which counts where a box was in vain.
_PAYS, _ASKING = 0.5, 64
# How far from the real axis singularities are taken to be.
_REACHES = np.array([2.0, 2.0, np.pi / 2])
# Nodes beyond those at which coefficients fall to what may be left of them, relative to the
# smallest value: at first, and for every time that it was not reached. So often it is tried.
_MORE, _EACH_TIME, _TRIES = 5, 4, 3
_REST, _ERROR = 3e-11, 5e-10
# The last coefficients along the edges of a box from which on there is a jump.
_ABOUT = 1e-6
# The least change from one node to the next, of the larger value, that is taken for a jump.
_JUMP = 0.3
# Ranges that are rounding, pairs that are compared, and interpolated at once.
_SAME, _COMPARED, _AT_ONCE = 1e-12, 5, 4096

Optima = Callable[..., np.ndarray]


def in_blocks(
    optima: Optima, p: np.ndarray, q: np.ndarray, r: np.ndarray, size: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """ρ* of pairs, one block of them after the other.

    Parameters
    ----------
    optima : callable
        ρ* (n, m) of n networks from the variances and covariances of m pairs.
    p, q, r : ndarray, shape (m,)
        K_xx, K_yy and K_xy.
    size : int
        Pairs that ``optima`` is asked for at once.

    Yields
    ------
    index : ndarray of int, shape (k,)
        The numbers of the pairs of the block.
    values : ndarray, shape (n, k)

    Examples
    --------
    >>> c, asked = np.linspace(-0.5, 0.9, 1000), []
    >>> def optima(p, q, r):
    ...     asked.append(len(p))
    ...     return np.sqrt(2 - r / np.sqrt(p * q))[None]
    >>> ((index, values),) = in_blocks(optima, np.ones(1000), np.ones(1000), c, 1024)
    >>> bool(np.allclose(values[0], np.sqrt(2 - c[index]), rtol=1e-9)), sum(asked) < 50
    (True, True)
    """
    places = _places(p, q, r)
    finite = np.isfinite(places).all(axis=0)
    few, waiting = [np.arange(len(p))], []
    if _PAYS * np.count_nonzero(finite) >= _MORE:
        few, waiting = [np.flatnonzero(~finite)], [(np.flatnonzero(finite), 0, 0)]
    while waiting:
        index, failures, finer = waiting.pop()
        spent = _ASKING * (failures > 0)
        if failures == _TRIES or _PAYS * len(index) < _MORE + spent:
            few.append(index)
            continue
        box, jump = _Box.around(places[:, index], _MORE + _EACH_TIME * finer), None
        if box.count + spent <= _PAYS * len(index):
            values, jump = _in_box(optima, box, places[:, index], size)
            if values is not None:
                yield index, values
                continue
            failures += 1
            finer += jump is None
        parts = _halves(places, index)
        if jump is not None:
            below, above = (places[2, index] <= jump[0]), (places[2, index] >= jump[1])
            few.append(index[~below & ~above])
            parts = [index[below], index[above]]
        waiting += [(part, failures, finer) for part in parts]
    # Those that are computed share the averages of their variances.
    yield from _computed(optima, np.sort(np.concatenate(few)), p, q, r, size)


def _computed(
    optima: Optima, index: np.ndarray, p: np.ndarray, q: np.ndarray, r: np.ndarray, size: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for start in range(0, len(index), size):
        block = index[start : start + size]
        yield block, optima(p[block], q[block], r[block])


@dataclass(frozen=True, eq=False)
class _Box:
    """Bounds (3,) in ln K_xx, ln K_yy and ξ, the first two alike, and how many nodes each takes."""

    low: np.ndarray
    high: np.ndarray
    sizes: tuple[int, int, int]

    @classmethod
    def around(cls, places: np.ndarray, more: int) -> _Box:
        low, high = places.min(axis=1), places.max(axis=1)
        low[:2], high[:2] = low[:2].min(), high[:2].max()
        of_variances, _, of_xi = (
            more + math.ceil(-np.log(_REST) / np.arcsinh(2 * reach / width)) if width > _SAME else 1
            for reach, width in zip(_REACHES, high - low, strict=True)
        )
        return cls(low, high, (of_variances, of_variances, of_xi))

    @property
    def count(self) -> int:
        """Of nodes, those of (x, y) and (y, x) counted once."""
        return self.sizes[0] * (self.sizes[0] + 1) // 2 * self.sizes[2]

    def grid(self) -> np.ndarray:
        """The nodes with K_xx <= K_yy, (3, count), in the order of `full`."""
        axes = [
            a + (b - a) * (nodes(n) + 1) / 2
            for a, b, n in zip(self.low, self.high, self.sizes, strict=True)
        ]
        first, second = np.triu_indices(self.sizes[0])
        variances = np.repeat([axes[0][first], axes[1][second]], self.sizes[2], axis=1)
        return np.concatenate([variances, np.tile(axes[2], len(first))[None]])

    def full(self, values: np.ndarray) -> np.ndarray:
        """Values (n, *sizes) at all nodes from those on the grid (n, count)."""
        result = np.empty((len(values), *self.sizes))
        first, second = np.triu_indices(self.sizes[0])
        result[:, first, second] = values.reshape(len(values), -1, self.sizes[2])
        result[:, second, first] = result[:, first, second]
        return result

    def interpolated(self, coefficients: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Values (n, k) of the series (n, *sizes) at points (3, k)."""
        width = np.where(self.high > self.low, self.high - self.low, 1.0)
        x = 2 * (places - self.low[:, None]) / width[:, None] - 1
        values = np.empty((len(coefficients), places.shape[1]))
        for start in range(0, places.shape[1], _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            first, second, third = map(polynomials, x[:, part], self.sizes)
            rows = np.tensordot(coefficients, third, (3, 0))
            values[:, part] = np.einsum("nijk,ik,jk->nk", rows, first, second)
        return values


def _in_box(
    optima: Optima, box: _Box, places: np.ndarray, size: int
) -> tuple[np.ndarray | None, tuple[float, float] | None]:
    """ρ* (n, k) at points (3, k) from the nodes of a box, None where they do not resolve it.

    Then the two ξ between which it jumps, if it does and the variances are all alike.
    """
    if min(box.sizes) > 1 and not _smooth_along_edges(optima, box, size):
        return None, None
    some = np.unique(np.linspace(0, places.shape[1] - 1, _COMPARED).astype(int))
    optima_of_points = _optima_at(
        optima, np.concatenate([box.grid(), places[:, some]], axis=1), size
    )
    if optima_of_points is None:
        return None, None
    at_nodes, exact = optima_of_points[:, : box.count], optima_of_points[:, box.count :]
    coefficients = box.full(at_nodes)
    for axis, n in enumerate(box.sizes, 1):
        transformed = np.tensordot(transform(n), coefficients, (1, axis))
        coefficients = np.moveaxis(transformed, 0, axis)
    sizes, least = np.abs(coefficients), at_nodes.min(axis=1)[:, None, None, None]
    ends = sizes[:, -2:], sizes[:, :, :, -2:]
    resolved = not any((end > _REST * least).any() for end in ends if end.shape != sizes.shape)
    values = box.interpolated(coefficients, places)
    if resolved and (np.abs(values[:, some] - exact) <= _ERROR * exact).all():
        return values, None
    return None, _jump(at_nodes, box.grid()[2]) if box.count == box.sizes[2] else None


def _jump(values: np.ndarray, xi: np.ndarray) -> tuple[float, float] | None:
    """The two of ascending ξ (m,) between which ρ* (n, m) changes by far more than elsewhere."""
    larger = np.maximum(values[:, 1:], values[:, :-1])
    steps = (np.abs(np.diff(values)) / np.where(larger > 0, larger, 1.0)).max(axis=0)
    place = int(steps.argmax())
    return (xi[place], xi[place + 1]) if steps[place] >= _JUMP else None


def _smooth_along_edges(optima: Optima, box: _Box, size: int) -> bool:
    """Whether ρ* has no jumps along the edges in ξ of a box, before all its nodes are paid for."""
    first, second = np.array([[0, 0, 1], [0, 1, 1]])
    ends, grid = np.stack([box.low, box.high]), box.grid()[2, : box.sizes[2]]
    edges = np.repeat([ends[first, 0], ends[second, 1]], len(grid), axis=1)
    along_edges = _optima_at(optima, np.concatenate([edges, np.tile(grid, len(first))[None]]), size)
    if along_edges is None:
        return False
    values = along_edges.reshape(-1, len(grid))
    last = np.abs(values @ transform(len(grid))[-2:].T).max(axis=1)
    return bool((last <= _ABOUT * values.min(axis=1)).all())


def _optima_at(optima: Optima, places: np.ndarray, size: int) -> np.ndarray | None:
    """ρ* (n, m) at points (3, m); None where one of them, which need not be pairs, has none."""
    parts = np.array_split(places, math.ceil(places.shape[1] / size), axis=1)
    try:
        values = np.concatenate([optima(*_kernels(part)) for part in parts], axis=1)
    except (ValueError, ArithmeticError):
        return None
    return None if np.isnan(values).any() else values


def _places(p: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
    """ln K_xx and ln K_yy, the smaller one first, and ξ, (3, m); not finite where there is none."""
    with np.errstate(all="ignore"):
        both = np.log([np.minimum(p, q), np.maximum(p, q)])
        return np.concatenate([both, np.arctanh(r / np.sqrt(p * q))[None]])


def _kernels(places: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """K_xx, K_yy and K_xy."""
    p, q = np.exp(places[:2])
    return p, q, np.tanh(places[2]) * np.sqrt(p * q)


def _halves(places: np.ndarray, index: np.ndarray) -> list[np.ndarray]:
    """The pairs on both sides of the middle of the longest axis."""
    axis = np.argmax(np.ptp(places[:, index], axis=1) / _REACHES)
    own = places[axis, index]
    lower = own <= (own.min() + own.max()) / 2
    return [index[lower], index[~lower]]
