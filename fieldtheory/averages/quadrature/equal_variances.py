"""⟨φ(x)φ(y)⟩ and ⟨φ'(x)φ'(y)⟩ of many pairs of one variance K, from tables in ln K and artanh c.

Both are analytic in ln K in the strip |Im| < π/2, and in v = artanh c in one of π/2, with kinks of
φ away from zero of π/4. A cell is a factor of two of K times an interval of 1/2 of v, on which few
Chebyshev nodes give them to rounding. Cells are made where many pairs are asked for, by Mehler's
series or nested panels, and kept.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.polynomial import chebyshev

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.quadrature.panelled_functions import Function
from fieldtheory.averages.quadrature.two_variables import PairAverages

# Nodes of a cell in ln K and in v, for φ without and with kinks; cells per unit of v, and of how
# many pairs one is made.
_SMOOTH, _KINKED, _PER_UNIT, _MANY = (13, 15), (16, 20), 2, 100
# Last coefficients, relative to the largest value, with which a cell is resolved.
_RESOLVED = 2e-13
# Cells cover variances between these and |v| up to this: 1 − |c| > 2e-7.
_LEAST, _LARGEST, _FARTHEST = 1e-8, 1e6, 8


class EqualVariances:
    """⟨φφ⟩ and ⟨φ'φ'⟩ as functions of one variance and the correlation.

    Parameters
    ----------
    function : Function

    Examples
    --------
    >>> table = EqualVariances(Function(np.square, lambda h: 2 * h))
    >>> K, c = np.full(200, 2.0), np.linspace(0.1, 0.2, 200)
    >>> bool(np.allclose(table(K, c), [4 * (1 + 2 * c**2), 8 * c], rtol=1e-12))
    True
    """

    def __init__(self, function: Function) -> None:
        self.pairs = PairAverages(function, many=True)
        self.sizes = _KINKED if len(function.kinks) else _SMOOTH
        self._cells: dict[tuple[int, int], np.ndarray | None] = {}
        self._asked: Counter[tuple[int, int]] = Counter()

    def __call__(self, K: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Both averages of pairs (m,), shape (2, m); NaN of those that are in no cell."""
        found = np.full((2, len(K)), np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            x, v = np.log2(K), _PER_UNIT * np.arctanh(c)
            (some,) = np.nonzero(
                (K >= _LEAST) & (K <= _LARGEST) & (np.abs(v) < _FARTHEST * _PER_UNIT)
            )
        rows, columns = np.floor(x[some]), np.floor(v[some])
        numbers, places, counts = np.unique(
            1024 * rows + columns, return_inverse=True, return_counts=True
        )
        members = np.split(some[np.argsort(places, kind="stable")], np.cumsum(counts)[:-1])
        for chosen in members if len(numbers) else []:
            row, column = int(np.floor(x[chosen[0]])), int(np.floor(v[chosen[0]]))
            cell = self._cell(row, column, len(chosen))
            if cell is not None:
                first = chebyshev.chebvander(2 * (x[chosen] - row) - 1, self.sizes[0] - 1)
                second = chebyshev.chebvander(2 * (v[chosen] - column) - 1, self.sizes[1] - 1)
                found[:, chosen] = ((first @ cell) * second).sum(axis=2)
        found[1] /= K
        return found

    def _cell(self, row: int, column: int, count: int) -> np.ndarray | None:
        """Chebyshev coefficients (2, ln K, v) of ⟨φφ⟩ and K⟨φ'φ'⟩; None if there are none yet."""
        key = row, column
        if key not in self._cells:
            self._asked[key] += count
            if self._asked[key] < _MANY:
                return None
            self._cells[key] = self._made(row, column)
        return self._cells[key]

    def _made(self, row: int, column: int) -> np.ndarray | None:
        nodes = [chebyshev.chebpts1(n) for n in self.sizes]
        K = np.repeat(2 ** (row + (nodes[0] + 1) / 2), self.sizes[1])
        c = np.tile(np.tanh((column + (nodes[1] + 1) / 2) / _PER_UNIT), self.sizes[0])
        try:
            values, _ = self.pairs(K, K, c * K)
        except QuadratureError:
            return None
        table = np.stack([values.value, values.by_t * K]).reshape(2, *self.sizes)
        sizes = np.abs(table).max(axis=(1, 2))[:, None]
        for axis, x in enumerate(nodes, 1):
            matrix = chebyshev.chebvander(x, len(x) - 1).T * (2 / len(x))
            matrix[0] /= 2
            table = np.moveaxis(np.tensordot(matrix, table, (1, axis)), 0, axis)
        tails = np.concatenate(
            [np.abs(table[:, -2:]).max(axis=1), np.abs(table[:, :, -2:]).max(axis=2)], axis=1
        )
        return table if (tails <= _RESOLVED * sizes).all() else None
