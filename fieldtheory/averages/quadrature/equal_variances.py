"""⟨φ(x)φ(y)⟩ and ⟨φ'(x)φ'(y)⟩ of many pairs of one variance K, from Chebyshev tables.

m = (x + y)/2 and d = (x − y)/2 are independent, with variances P/2 = K(1 + c)/2 and
Q/2 = K(1 − c)/2. So the averages of φ(m + d) φ(m − d) are analytic in ln P and in ln Q, in strips
|Im| < π/2, whatever breakpoints φ has. A cell of a table covers a factor of eight of P and of Q.
Its nodes share nested panels of d and m, and the values of φ there: P and Q are in the Gaussians
alone.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.quadrature.chebyshev_series import nodes, polynomials, transform
from fieldtheory.averages.quadrature.nested import NestedPanels
from fieldtheory.averages.quadrature.panelled_functions import ORDER, WEIGHTS, Function
from fieldtheory.averages.quadrature.panels import (
    END,
    edges_with_widths,
    nodes_of,
    panels_of_lines,
    summed,
)

# Nodes of a cell in ln P and ln Q and its relative errors, for all digits and for few, and by how
# many factors of two these vary in it.
_NODES, _ERRORS, _OCTAVES = (28, 9), (1e-12, 1e-4), 3
# Of how many pairs a cell is made.
MANY = 100
# Tables cover variances between these and 1 − |c| down to this.
_LEAST, _LARGEST, _NEAREST = 1e-8, 1e6, 2e-7
# First edges of panels of d, in standard deviations, how often these are halved, and edges of
# panels of φ at most.
_FIRST, _BISECTIONS, _MOST_EDGES = (0.0, 2.0, 4.5, END), 14, 1 << 10


class EqualVariances:
    """⟨φφ⟩ and ⟨φ'φ'⟩ as functions of one variance and the correlation.

    Parameters
    ----------
    function : Function
    rough : bool
        Whether few digits are enough.

    Examples
    --------
    >>> table = EqualVariances(Function(np.square, lambda h: 2 * h))
    >>> K, t = np.full(200, 2.0), np.linspace(0.2, 0.4, 200)
    >>> bool(np.allclose(table(K, t), [4 + 2 * t**2, 4 * t], rtol=1e-12))
    True
    """

    def __init__(self, function: Function, rough: bool = False) -> None:
        self.function, self.nodes = function, nodes(_NODES[rough])
        self.error = _ERRORS[rough]
        self._cells: dict[tuple[float, float], np.ndarray | None] = {}
        self._asked: Counter[tuple[float, float]] = Counter()

    def __call__(self, K: np.ndarray, t: np.ndarray, many: int = MANY) -> np.ndarray:
        """Both averages of pairs (m,) of covariances t, shape (2, m); NaN of those in no cell.

        Cells are made of which so ``many`` pairs have been asked for.
        """
        found = np.full((2, len(K)), np.nan)
        with np.errstate(invalid="ignore"):
            inside = (K >= _LEAST) & (K <= _LARGEST) & (np.abs(t) <= (1 - _NEAREST) * K)
        (some,) = np.nonzero(inside)
        if not len(some):
            return found
        logs = np.log2([K[some] + t[some], K[some] - t[some]]) / _OCTAVES
        corner = np.floor(logs)
        order = np.lexsort(corner)
        some, corner, x = some[order], corner[:, order], 2 * (logs - corner)[:, order] - 1
        first = np.flatnonzero(np.append(True, np.diff(corner).any(axis=0)))
        P, Q = (polynomials(each, len(self.nodes)) for each in x)
        for start, end in zip(first, np.append(first[1:], len(some)), strict=True):
            cell = self._cell(tuple(corner[:, start].tolist()), int(end - start), many)
            if cell is not None:
                part = slice(start, end)
                found[:, some[part]] = ((cell @ Q[:, part]) * P[:, part]).sum(axis=1)
        found[1] /= K
        return found

    def _cell(self, key: tuple[float, float], count: int, many: int) -> np.ndarray | None:
        """Chebyshev coefficients (2, ln P, ln Q) of ⟨φφ⟩ and K⟨φ'φ'⟩; None where there are none."""
        if key not in self._cells:
            self._asked[key] += count
            if self._asked[key] < many:
                return None
            try:
                self._cells[key] = self._made(
                    *(2 ** (_OCTAVES * (n + (self.nodes + 1) / 2)) for n in key)
                )
            except QuadratureError:
                self._cells[key] = None
        return self._cells[key]

    def _made(self, P: np.ndarray, Q: np.ndarray) -> np.ndarray | None:
        table = self._averages(P, Q)
        K, apart = (P[:, None] + Q) / 2, 2 * Q / (P[:, None] + Q)
        if len(self.function.jumping):
            nested, flat = NestedPanels(self.function, self.function, self.error), K.ravel()
            of_jumps = nested.of_jumps(flat, flat, apart.ravel(), np.zeros((2, K.size)))
            table[1] += of_jumps[0].reshape(K.shape)
        table[1] *= K
        sizes = np.abs(table).max(axis=(1, 2))[:, None]
        matrix = transform(len(self.nodes))
        table = matrix @ table @ matrix.T
        tails = np.concatenate([table[:, -1], table[:, :, -1]], axis=1)
        return table if (np.abs(tails) <= self.error / 5 * sizes).all() else None

    def _averages(self, P: np.ndarray, Q: np.ndarray) -> np.ndarray:
        """⟨φφ⟩ and ⟨φ'φ'⟩ without δ-functions at all P and Q, shape (2, P, Q)."""
        widest = np.sqrt(Q.max() / 2)
        edges, widths = edges_with_widths(self.function, END * (widest + np.sqrt(P.max() / 2)))
        kinks = np.abs(np.subtract.outer(self.function.kinks, self.function.kinks)).ravel() / 2
        # Down to the narrowest panel: what varies fastest there is near d = 0.
        narrow = np.abs(widths).min()
        finer = narrow * 8.0 ** np.arange(max(np.log(widest / narrow) / np.log(8), 0) + 1)
        ends = np.concatenate([widest * np.array(_FIRST), kinks, finer])
        ends = np.unique(np.minimum(ends, END * widest))
        low, high = ends[:-1], ends[1:]
        total = np.zeros((4, len(P), len(Q)))
        for _ in range(_BISECTIONS if len(edges) <= _MOST_EDGES else 0):
            d, half = nodes_of(low, high)
            # Twice the density: the averages are even in d.
            gauss = np.exp(-(d**2) / Q[:, None, None]) * (2 / np.sqrt(np.pi * Q))[:, None, None]
            inner = self._over_m(d.ravel(), P, edges, widths).reshape(4, len(P), len(low), ORDER)
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

    def _over_m(
        self, d: np.ndarray, P: np.ndarray, edges: np.ndarray, widths: np.ndarray
    ) -> np.ndarray:
        """Averages over m of φφ, φ'φ' and their moduli at given d, shape (4, P, d)."""
        scale = np.sqrt(P.max() / 2)
        zero, phi, slope = np.zeros((len(d), 1)), self.function, self.function.slope
        ends = np.concatenate([edges - d[:, None], edges + d[:, None], zero], axis=1) / scale
        both = np.concatenate([widths, widths, [-scale]]) / scale
        line, u, half = panels_of_lines(ends, np.broadcast_to(both, ends.shape))
        if phi.parity:
            # The products are even in m.
            above = u[:, 0] > 0
            line, u, half = line[above], u[above], 2 * half[above]
        m, at = u * scale, d[line][:, None]
        rows = np.stack([phi(m + at) * phi(m - at), slope(m + at) * slope(m - at)])
        rows *= half[:, None] * WEIGHTS * (scale / np.sqrt(np.pi))
        rows = np.concatenate([rows, np.abs(rows)]).reshape(4, -1)
        found, flat = np.empty((4, len(P), len(d))), -(m.ravel() ** 2)
        cuts = np.searchsorted(line, np.arange(len(d) + 1)) * ORDER
        for i in range(len(d)):
            part = slice(cuts[i], cuts[i + 1])
            gauss = np.exp(flat[part] / P[:, None]) / np.sqrt(P)[:, None]
            found[:, :, i] = rows[:, part] @ gauss.T
        return found
