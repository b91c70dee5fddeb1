"""⟨φ(x)φ(y)⟩ and ⟨φ'(x)φ'(y)⟩ of many pairs, from Chebyshev tables in three variables.

With m = (x + y)/2, of variance P/2, and e of variance E/2, independent of m,

    x = (1 + κ) m + e,   y = (1 − κ) m − e,
    P = (a + b)/2 + t,   κ = (a − b)/(2P),   E = (ab − t²)/P

for variances a and b and the covariance t. Averages are analytic in ln P and in ln E, in strips
|Im| < π/2, whatever breakpoints φ has, and in κ, in which they are even, on the scale √(E/P). A
cell of a table covers a factor of eight of P and of E, and κ up to a multiple of that scale; for
equal variances it is κ = 0. Its nodes share nested panels of e and m, and the values of φ there: P
and E are in the Gaussians alone.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fieldtheory.averages import routes
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrands.exact_differences import determinant
from fieldtheory.averages.quadrature.nested import NestedPanels
from fieldtheory.averages.quadrature.one_variable import VARIES, integrated_together
from fieldtheory.averages.quadrature.panelled_functions import ORDER, WEIGHTS, Function
from fieldtheory.averages.quadrature.panels import (
    END,
    edges_with_widths,
    nodes,
    nodes_of,
    panels_of_lines,
    polynomials,
    summed,
    transform,
)
from fieldtheory.averages.routes import SETTINGS


class Digits(NamedTuple):
    """Cells for all digits, or for few."""

    # Of a cell in ln P and ln E.
    nodes: int
    # Nodes in the ranges of κ.
    in_range: tuple[int, ...]
    # Relative errors of a cell.
    error: float


@dataclass(frozen=True)
class TableSettings:
    """Numbers that decide which pairs tables cover."""

    # All, and few.
    digits: tuple[Digits, Digits] = (
        Digits(28, (1, 5, 6, 9, 14, 18), 1e-12),
        Digits(9, (1, 3, 3, 4, 6, 9), 1e-4),
    )
    # By how many factors of two P and E vary in a cell.
    octaves: int = 3
    # Ends of ranges of cells in κ, relative to √(E/P).
    ranges: tuple[float, ...] = (0.0, 1 / 16, 1 / 4, 1.0, 4.0, 16.0)
    # κ at most.
    widest: float = 0.9
    # Variances covered, and 1 − |c| down to this.
    least: float = 1e-8
    largest: float = 1e6
    nearest: float = 2e-7
    # First edges of panels of e, in standard deviations.
    first: tuple[float, ...] = (0.0, 2.0, 4.5)
    # How often these are halved.
    bisections: int = 14


_TABLES = TableSettings()


class PairTables:
    """⟨φφ⟩ and ⟨φ'φ'⟩ as functions of two variances and the covariance.

    Examples
    --------
    >>> table = PairTables(Function(np.square, lambda h: 2 * h))
    >>> K, t = np.full(200, 2.0), np.linspace(0.2, 0.4, 200)
    >>> bool(np.allclose(table(K, K, t), [4 + 2 * t**2, 4 * t], rtol=1e-12))
    True
    """

    def __init__(self, function: Function, rough: bool = False) -> None:
        count, self._in_range, self.error = _TABLES.digits[rough]
        self.function, self.nodes = function, nodes(count)
        self._cells: dict[tuple[int, int, int], np.ndarray | None] = {}
        self._asked: Counter[tuple[int, int, int]] = Counter()

    def __call__(
        self, a: np.ndarray, b: np.ndarray, t: np.ndarray, many: float = SETTINGS.table_pairs
    ) -> np.ndarray:
        """Both averages of pairs (m,), shape (2, m); NaN of those in no cell."""
        averages, parity = np.full((2, len(a)), np.nan), self.function.parity
        if many == np.inf and not any(key[2] for key in self._cells) and (a != b).all():
            return averages
        P, E, kappa = _independent(a, b, np.abs(t) if parity else t)
        with np.errstate(all="ignore"):
            root = np.sqrt(a) * np.sqrt(b)
            inside = (np.minimum(a, b) >= _TABLES.least) & (np.maximum(a, b) <= _TABLES.largest)
            inside &= np.abs(t) <= (1 - _TABLES.nearest) * root
            logs = np.log2([P, E]) / _TABLES.octaves
            corner = np.floor(logs)
            ranges = np.searchsorted(_TABLES.ranges, kappa * _shrinking(*corner))
            inside &= (ranges == 0) | ((P > E) & (ranges < len(_TABLES.ranges)))
        (some,) = np.nonzero(inside)
        if not len(some):
            return averages
        keys = np.stack([*corner[:, some], ranges[some]]).astype(int)
        order = np.lexsort(keys)
        some, keys = some[order], keys[:, order]
        places, kappa = 2 * (logs[:, some] - corner[:, some]) - 1, kappa[some]
        x = [polynomials(each, len(self.nodes)) for each in places]
        first = np.flatnonzero(np.append(True, np.diff(keys).any(axis=0)))
        for start, end in zip(first, np.append(first[1:], len(some)), strict=True):
            key, part = tuple(keys[:, start].tolist()), slice(start, end)
            cell = self._cell(key, int(end - start), many)
            if cell is not None:
                share = kappa[part] / (_farthest(key) or 1.0)
                routes.record(routes.TABLES, end - start)
                averages[:, some[part]] = _series(cell, x[0][:, part], x[1][:, part], share)
        averages[1] *= 2 / (P + E)
        return averages * np.where(t < 0, [[parity], [-parity]], 1) if parity else averages

    def _cell(self, key: tuple[int, int, int], count: int, many: float) -> np.ndarray | None:
        """Chebyshev coefficients (2, κ², ln P, ln E) of ⟨φφ⟩ and (P + E)⟨φ'φ'⟩/2, or None."""
        if key not in self._cells:
            self._asked[key] += count
            if self._asked[key] < many:
                return None
            try:
                self._cells[key] = self._table(key)
            except QuadratureError:
                self._cells[key] = None
        return self._cells[key]

    def _table(self, key: tuple[int, int, int]) -> np.ndarray | None:
        P, E = (2.0 ** (_TABLES.octaves * (n + (self.nodes + 1) / 2)) for n in key[:2])
        farthest = _farthest(key)
        if farthest > _TABLES.widest:
            return None
        widest, narrowest = ((1 + farthest) ** 2 * P[-1] + E[-1]) / 2, (P[0] + E[0]) / 2
        sizes = integrated_together(self.function, np.array([narrowest, widest]), 0)[0][:, -1]
        if sizes.max() > VARIES * sizes.min():
            return None
        count = self._in_range[key[2]]
        kappas = farthest * np.sqrt((nodes(count) + 1) / 2)
        table = np.stack([self._at(P, E, kappa) for kappa in kappas], axis=1)
        sizes = np.abs(table).max(axis=(1, 2, 3), keepdims=True)
        for axis in (1, 2, 3):
            matrix = transform(table.shape[axis])
            table = np.moveaxis(np.tensordot(matrix, table, (1, axis)), 0, axis)
        tails = [np.abs(table[:, -1:])] * (count > 1)
        tails += [np.abs(table[:, :, -1:]), np.abs(table[..., -1:])]
        resolved = all((tail <= self.error / 5 * sizes).all() for tail in tails)
        return table if resolved else None

    def _at(self, P: np.ndarray, E: np.ndarray, kappa: float) -> np.ndarray:
        """⟨φφ⟩ and (P + E)⟨φ'φ'⟩/2 at all P and E and one κ, shape (2, P, E)."""
        averages = self._averages(P, E, kappa)
        P = P[:, None]
        if len(self.function.jumping):
            nested = NestedPanels(self.function, self.function, self.error, 2)
            a, b = (((1 + s * kappa) ** 2 * P + E) / 2 for s in (1, -1))
            root = np.sqrt(a * b)
            gap = P * E / (root * (root + ((1 - kappa**2) * P - E) / 2))
            of_jumps = nested.of_jumps(a.ravel(), b.ravel(), gap.ravel(), np.zeros((2, a.size)))
            averages[1] += of_jumps[0].reshape(a.shape)
        averages[1] *= (P + E) / 2
        return averages

    def _averages(self, P: np.ndarray, E: np.ndarray, kappa: float) -> np.ndarray:
        """⟨φφ⟩ and ⟨φ'φ'⟩ without δ-functions at all P and E, shape (2, P, E)."""
        widest = np.sqrt(E.max() / 2)
        sigma = np.sqrt([P.min() + E.min(), (1 + kappa) ** 2 * P.max() + E.max()]) / np.sqrt(2)
        end = self.function.extent(sigma).max(initial=END)
        reach = end * (widest + (1 + kappa) * np.sqrt(P.max() / 2))
        edges, widths, _ = panels = (*edges_with_widths(self.function, reach), end)
        kinks = self.function.kinks
        meeting = np.abs(np.subtract.outer((1 + kappa) * kinks, (1 - kappa) * kinks)).ravel() / 2
        # Down to the narrowest panel: what varies fastest there is near e = 0.
        narrow = np.abs(widths).min()
        finer = narrow * 8.0 ** np.arange(max(np.log(widest / narrow) / np.log(8), 0) + 1)
        ends = np.concatenate([widest * np.append(_TABLES.first, end), meeting, finer])
        ends = np.unique(np.minimum(ends, end * widest))
        low, high = ends[:-1], ends[1:]
        # Averages over m are even in e for equal variances and for φ of a parity.
        sides = [kappa] if kappa == 0 or self.function.parity else [kappa, -kappa]
        total = np.zeros((4, len(P), len(E)))
        for _ in range(_TABLES.bisections if len(edges) <= SETTINGS.nested_panels else 0):
            e, half = nodes_of(low, high)
            # Twice the density.
            gauss = np.exp(-(e**2) / E[:, None, None]) * (2 / np.sqrt(np.pi * E))[:, None, None]
            inner = np.mean([self._over_m(e.ravel(), P, k, panels) for k in sides], axis=0)
            inner = inner.reshape(4, len(P), len(low), ORDER)
            values = np.einsum("rpan,qan,n->rapq", inner, gauss, WEIGHTS, optimize=True)
            values *= half[:, None, None]
            # Errors at the ends of the cell.
            ends_of = inner[:2, [0, 0, -1, -1]] * gauss[[0, -1, 0, -1]]
            error = summed(ends_of, half, 1e-3)[1]
            size = (total[2:] + values[2:].sum(axis=1))[:, [0, 0, -1, -1], [0, -1, 0, -1]]
            done = (error <= 0.02 * self.error * size[..., None]).all(axis=(0, 1))
            total += values[:, done].sum(axis=1)
            if done.all():
                return total[:2]
            low, high = low[~done], high[~done]
            middle = (low + high) / 2
            low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
        raise QuadratureError("panels do not resolve the averages of a cell")

    def _over_m(self, e: np.ndarray, P: np.ndarray, kappa: float, panels: tuple) -> np.ndarray:
        """Averages over m of φφ, φ'φ' and their moduli at given e, shape (4, P, e)."""
        edges, widths, end = panels
        scale, above, below = np.sqrt(P.max() / 2), 1 + kappa, 1 - kappa
        zero, phi, slope = np.zeros((len(e), 1)), self.function, self.function.slope
        ends = [(edges - e[:, None]) / above, (edges + e[:, None]) / below, zero]
        both = np.concatenate([widths / above, widths / below, [-scale]]) / scale
        ends = np.concatenate(ends, axis=1) / scale
        line, u, half = panels_of_lines(ends, np.broadcast_to(both, ends.shape), end)
        if phi.parity and kappa == 0:
            # The products are even in m.
            positive = u[:, 0] > 0
            line, u, half = line[positive], u[positive], 2 * half[positive]
        m, at = u * scale, e[line][:, None]
        x, y = above * m + at, below * m - at
        rows = np.stack([phi(x) * phi(y), slope(x) * slope(y)])
        rows *= half[:, None] * WEIGHTS * (scale / np.sqrt(np.pi))
        rows = np.concatenate([rows, np.abs(rows)]).reshape(4, -1)
        averages, flat = np.empty((4, len(P), len(e))), -(m.ravel() ** 2)
        cuts = np.searchsorted(line, np.arange(len(e) + 1)) * ORDER
        for i in range(len(e)):
            part = slice(cuts[i], cuts[i + 1])
            gauss = np.exp(flat[part] / P[:, None]) / np.sqrt(P)[:, None]
            averages[:, :, i] = rows[:, part] @ gauss.T
        return averages


def _independent(
    a: np.ndarray, b: np.ndarray, t: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """P, E and |κ| of pairs."""
    P = (a + b) / 2 + t
    with np.errstate(all="ignore"):
        return P, determinant(a, b, t) / P, np.abs(a - b) / (2 * P)


def _shrinking(of_P: np.ndarray, of_E: np.ndarray) -> np.ndarray:
    """√(P/E) amid a cell."""
    return 2.0 ** (_TABLES.octaves * (of_P - of_E) / 2)


def _farthest(key: tuple[int, int, int]) -> float:
    """The largest κ of a cell."""
    return float(_TABLES.ranges[key[2]] / _shrinking(*np.array(key[:2])))


def _series(cell: np.ndarray, P: np.ndarray, E: np.ndarray, kappa: np.ndarray) -> np.ndarray:
    """Both averages (2, m) from polynomials (n, m) in ln P and ln E and from κ over its range."""
    if cell.shape[1] == 1:
        return ((cell[:, 0] @ E) * P).sum(axis=1)
    of_kappa = ((cell @ E) * P).sum(axis=2)
    return (of_kappa * polynomials(2 * kappa**2 - 1, cell.shape[1])).sum(axis=1)
