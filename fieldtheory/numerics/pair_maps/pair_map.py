"""Output kernels and responses of many pairs of inputs, by interpolation.

All layers together map the covariance of two inputs to K_αβ^(L+1) and χ_αβ^out. For inputs of one
norm this is a function of one variable, the correlation c = K_αβ/√(K_αα K_ββ) of the inputs; else
of it and the two norms. Kernels of networks are analytic for |c| < 1, with singularities at ±1
alone, however deep the network; in v = artanh c, which moves these to infinity, they are analytic
in a strip, and change on a scale of one. Pieces of length one in v need 16 Chebyshev nodes each,

    f(K_αα, K_ββ, v) = Σ_ijk d_ijk T_i(u_α) T_j(u_β) T_k(x),    u linear in ln K, x linear in v

where f is the correlation of the outputs, or its derivative by the correlation of the inputs;
both change little with the norms. A piece is used where its coefficients have decayed and it agrees
with the recursion over the layers at some of the pairs asked for; all other pairs go through the
recursion.

A map is made once and evaluated for any block of pairs. For inputs of one norm its pieces are cut
into short ones, whose few coefficients are looked up; else matrix products over the norms give the
coefficients in v of every pair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from fieldtheory.averages import routes
from fieldtheory.averages.routes import SETTINGS
from fieldtheory.networks.family import DeepNetwork
from fieldtheory.numerics.pair_maps.pair_pieces import MAPS, PairMap, single, variances_of
from fieldtheory.numerics.pair_maps.pair_recursions import PairRecursion

# From so many times the nodes on, inputs are interpolated.
_FEW = 4


def output_matrices(
    recursion: Callable[[DeepNetwork], PairRecursion],
    network: DeepNetwork,
    own: np.ndarray,
    K0: np.ndarray,
) -> np.ndarray:
    """The quantities of all pairs of inputs, (quantities, ..., P, P), but for the diagonals."""
    batch, size = own.shape[1:-1], own.shape[-1]
    whole = recursion(network)
    values = np.empty((len(whole.odd), *batch, size, size))
    if batch and size * (size - 1) // 2 < SETTINGS.map_pairs_of_batch:
        pairs = np.triu_indices(size, 1)
        values[..., *pairs] = whole.pairs(own, K0[..., *pairs], pairs)
        values[..., *pairs[::-1]] = values[..., *pairs]
        return values
    K0 = np.broadcast_to(K0, (*batch, size, size))
    for index in np.ndindex(batch):
        every = (slice(None), *index)
        member = network.member(batch, index) if batch else network
        PairMaps(recursion(member)).fill(values[every], K0[index], own[every])
    return values


@dataclass(frozen=True, eq=False)
class PairMaps:
    """The maps of a recursion for ranges of norms, made when they are needed, and then kept."""

    recursion: PairRecursion
    _maps: list[PairMap] = field(default_factory=list)

    def single(self, K0: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What inputs (P,) bring along and their own quantities; of many by interpolation."""
        interpolated = None
        if len(K0) > _FEW * MAPS.single and (K0 > 0).all():
            interpolated = self._covering(K0).single(K0)
        if interpolated is None:
            interpolated = single(self.recursion, K0)
        own, quantities = np.split(interpolated, [-len(self.recursion.odd)])
        return own, quantities

    def fill(
        self,
        values: np.ndarray,
        K0: np.ndarray,
        rows: np.ndarray,
        columns: np.ndarray | None = None,
    ) -> None:
        """Write the quantities of pairs of inputs into ``values``."""
        upper = columns is None
        columns = rows if columns is None else columns
        covering_map = self._covering(np.concatenate([variances_of(rows), variances_of(columns)]))
        _Block(covering_map, rows, columns, K0, upper).fill(values)
        if upper:
            for matrix in values:
                _mirror(matrix)

    def _covering(self, K: np.ndarray) -> PairMap:
        """A map for inputs of variances K, one that there is if it is not much too wide."""
        logs = np.log(K[K > 0]) if K.any() else np.zeros(1)
        low, high = float(logs.min()), float(logs.max())
        half = (high - low) / 2 if high - low > 2 * MAPS.alike else 0.0
        for candidate in self._maps:
            covered = (
                candidate.center - candidate.half <= low
                and high <= candidate.center + candidate.half
            )
            if covered and candidate.half <= MAPS.wider * MAPS.margin * half:
                return candidate
            if not half and not candidate.half and abs(candidate.center - low) <= MAPS.alike:
                return candidate
        # A little wider, for blocks to come.
        new = PairMap(self.recursion, (low + high) / 2, MAPS.margin * half)
        self._maps[:] = [*self._maps[1 - MAPS.kept :], new]
        return new


@dataclass(frozen=True, eq=False)
class _Block:
    """The pairs of some inputs with others, or of inputs α < β with each other."""

    map: PairMap
    rows: np.ndarray
    columns: np.ndarray
    K0: np.ndarray
    upper: bool

    def fill(self, values: np.ndarray) -> None:
        """Evaluate strip by strip; what the map leaves out goes through the recursion."""
        if self.K0.size >= (2 * SETTINGS.map_pairs if self.upper else SETTINGS.map_pairs):
            self._prepare()
        usable, odd = bool(self.map.pieces), self.map.recursion.odd
        rows, columns = (_Single.of(self.map, own) for own in (self.rows, self.columns))
        left: list[tuple[np.ndarray, ...]] = []
        waiting = 0
        for a, b in self._strips():
            K0 = self.K0[a, b]
            part = rows.part(a), columns.part(b)
            if usable:
                v = K0 * part[0].inverse[:, None]
                v *= part[1].inverse
                with np.errstate(divide="ignore", invalid="ignore"):
                    np.arctanh(v, out=v)
                if self.upper and a.start == b.start:
                    np.fill_diagonal(v, 0.0)
                norms = (one.polynomials for one in part)
                quantities = self.map.across(v, *norms) if self.map.half else self.map.along(v)
                _scale(quantities, K0, *part, odd)
            else:
                quantities = np.full((len(values), *K0.shape), np.nan)
            # NaN if one of them is.
            if np.isnan(quantities[0].max()):
                i, j = np.nonzero(np.isnan(quantities[0]))
                i, j = i + a.start, j + b.start
                chosen = (i[i < j], j[i < j]) if self.upper else (i, j)
                left.append((*chosen, self.K0[chosen]))
                waiting += len(chosen[0])
            values[:, a, b] = quantities
            routes.record(routes.MAP, np.count_nonzero(~np.isnan(quantities[0])))
            if waiting > MAPS.block:
                self._through_layers(values, left)
                left, waiting = [], 0
        if waiting:
            self._through_layers(values, left)

    def _through_layers(self, values: np.ndarray, left: list) -> None:
        i, j, K0 = (np.concatenate(one) for one in zip(*left, strict=True))
        values[:, i, j] = self.map.recursion.pairs(*self._joined(i, j, K0))

    def _joined(self, i: np.ndarray, j: np.ndarray, K0: np.ndarray) -> tuple:
        """Quantities of the inputs of pairs, their covariances, and the places of both inputs."""
        if self.rows is self.columns:
            return self.rows, K0, (i, j)
        (first, row), (second, column) = (np.unique(one, return_inverse=True) for one in (i, j))
        own = np.concatenate([self.rows[..., first], self.columns[..., second]], axis=-1)
        return own, K0, (row, len(first) + column)

    def _prepare(self) -> None:
        """Make the pieces of the map in which the pairs lie, by a grid of them."""
        height, width = self.K0.shape
        step = max(1, int(np.sqrt(self.K0.size / MAPS.counted)))
        i, j = (one.ravel() for one in np.mgrid[0:height:step, 0:width:step])
        if self.upper:
            i, j = i[i < j], j[i < j]
        own, K0, pairs = self._joined(i, j, self.K0[i, j])
        K = variances_of(own)
        with np.errstate(divide="ignore", invalid="ignore"):
            v = np.arctanh(K0 / np.sqrt(K[pairs[0]] * K[pairs[1]]))
        self.map.prepare(v, pairs, own, step**2)

    def _strips(self) -> Iterator[tuple[slice, slice]]:
        height, width = self.K0.shape
        wide = min(width, MAPS.width)
        tall = max(1, MAPS.strip // wide)
        for top in range(0, height, tall):
            for start in range(top if self.upper else 0, width, wide):
                yield slice(top, min(top + tall, height)), slice(start, min(start + wide, width))


class _Single(NamedTuple):
    """Data of the rows, or of the columns, of a strip that its pairs use."""

    # (P,): 1/√K, NaN for those that vanish.
    inverse: np.ndarray
    # (quantities, P)
    factors: np.ndarray
    # (norms, P): T_i(u).
    polynomials: np.ndarray

    @classmethod
    def of(cls, map: PairMap, own: np.ndarray) -> _Single:
        K = variances_of(own)
        inverse = np.divide(1, np.sqrt(K), out=np.full(K.shape, np.nan), where=K > 0)
        return cls(inverse, map.recursion.factors(own), map.polynomials(K))

    def part(self, inputs: slice) -> _Single:
        return _Single(*(one[..., inputs] for one in self))


def _scale(
    f: np.ndarray, K0: np.ndarray, rows: _Single, columns: _Single, odd: tuple[bool, ...]
) -> None:
    for values, first, second, vanishes in zip(f, rows.factors, columns.factors, odd, strict=True):
        values *= first[:, None]
        values *= second
        if vanishes:
            values *= K0


def _mirror(matrix: np.ndarray, tile: int = 256) -> None:
    """Copy the entries above the diagonal below it, in place."""
    size = len(matrix)
    for top in range(0, size, tile):
        rows = slice(top, min(top + tile, size))
        block = matrix[rows, rows]
        lower = np.tril_indices(len(block), -1)
        block[lower] = block.T[lower]
        for left in range(rows.stop, size, tile):
            columns = slice(left, min(left + tile, size))
            matrix[columns, rows] = matrix[rows, columns].T
