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

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.interpolation import nodes, transform
from fieldtheory.numerics.pair_recursions import PairRecursion

# Nodes in v, most nodes in a norm, and the last coefficients that show the decay.
_ANGLES = 20
_NORMS = 40
_TAIL = 3
# Minus the logarithm of what the coefficients in a norm are to fall by.
_NEEDED = 26.0
# Allowed last coefficients, and differences from the recursion, relative to the largest value.
_DECAY = 1e-13
_ERROR = 5e-13
# Coefficients below, relative to the largest, are rounding, and left out.
_SMALL = 1e-16
# Norms are equal if ln K spreads less.
_EQUAL = 1e-14
# Pieces beyond plus or minus this are left to the recursion: 1 − |c| < 2e-14.
_FARTHEST = 15
# Short pieces of a piece, and the degree there: (1/(4 · 256))⁵ is small enough.
_SHORT, _DEGREE = 256, 4
# Pieces with fewer pairs are left to the recursion; so many pairs of the others are compared.
_FEWEST = 128
_COMPARED = 8
# With batch axes, fewer pairs go through the recursion, for all of the batch at once.
_FEWEST_OF_BATCH = 2000
# Of so many pairs it is counted in which pieces they lie.
_COUNTED = 1 << 15
# Pairs evaluated at a time, which stay in the cache, in so many columns; and by the recursion.
_STRIP, _WIDTH, _LEFT = 32768, 1024, 1 << 20
# A piece is evaluated for a whole strip if this part of the pairs lies in it, else for those.
_DENSE = 0.1
# A map is used for ranges of ln K that it covers unless it is wider by more than this factor.
_WIDER, _MARGIN = 2.0, 1.1
# Maps of different ranges that are kept.
_KEPT = 8


def output_matrices(
    recursion: Callable[[LayeredNetwork], PairRecursion],
    network: LayeredNetwork,
    own: np.ndarray,
    K0: np.ndarray,
) -> np.ndarray:
    """The quantities of all pairs of inputs, (quantities, ..., P, P), but for the diagonals.

    They agree with the recursion over the layers to 1e-12 of the largest value at similar angles,
    where that has as many digits itself.

    Parameters
    ----------
    recursion : callable
        Of a network without batch axes.
    network : LayeredNetwork
    own : ndarray, shape (n, ..., P)
        What single inputs bring along, batch axes in the middle.
    K0 : ndarray, shape (..., P, P)
        Kernel of the inputs.
    """
    batch, size = own.shape[1:-1], own.shape[-1]
    whole = recursion(network)
    values = np.empty((len(whole.odd), *batch, size, size))
    if batch and size * (size - 1) // 2 < _FEWEST_OF_BATCH:
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
    """The maps of a recursion for ranges of norms, made when they are needed, and then kept.

    Parameters
    ----------
    recursion : PairRecursion
    """

    recursion: PairRecursion
    _maps: list[PairMap] = field(default_factory=list)

    def fill(
        self,
        values: np.ndarray,
        K0: np.ndarray,
        rows: np.ndarray,
        columns: np.ndarray | None = None,
    ) -> None:
        """Write the quantities of pairs of inputs into ``values``.

        Parameters
        ----------
        values : ndarray, shape (number of quantities, P, Q)
            Of one quantity it may share its memory with ``K0``.
        K0 : ndarray, shape (P, Q)
            Covariances of the inputs.
        rows, columns : ndarray, shape (..., P) and (..., Q)
            What single inputs bring along. Without ``columns`` they are the rows, the entries
            α < β of ``K0`` are taken, and ``values`` are symmetric, but for the diagonal.
        """
        upper = columns is None
        columns = rows if columns is None else columns
        found = self._covering(np.concatenate([variances_of(rows), variances_of(columns)]))
        _Block(found, rows, columns, K0, upper).fill(values)
        if upper:
            for matrix in values:
                _mirror(matrix)

    def _covering(self, K: np.ndarray) -> PairMap:
        """A map for inputs of variances K, one that there is if it is not much too wide."""
        logs = np.log(K[K > 0]) if K.any() else np.zeros(1)
        low, high = float(logs.min()), float(logs.max())
        half = (high - low) / 2 if high - low > 2 * _EQUAL else 0.0
        for known in self._maps:
            covered = known.center - known.half <= low and high <= known.center + known.half
            if covered and known.half <= _WIDER * _MARGIN * half:
                return known
            if not half and not known.half and abs(known.center - low) <= _EQUAL:
                return known
        # A little wider, for blocks to come.
        new = PairMap(self.recursion, (low + high) / 2, _MARGIN * half)
        self._maps[:] = [*self._maps[1 - _KEPT :], new]
        return new


@dataclass(frozen=True, eq=False)
class PairMap:
    """The map for inputs with ln K between ``center`` ± ``half``; its pieces are made by `prepare`.

    Piece p, from −15 to 15, is p − 1/2 <= v <= p + 1/2.
    """

    recursion: PairRecursion
    center: float
    half: float
    _pieces: dict[int, _Piece | None] = field(default_factory=dict)
    _tables: list[np.ndarray] = field(default_factory=list)
    _norms: list[int] = field(default_factory=list)

    def places(self, K: np.ndarray) -> np.ndarray:
        """ln K from -1 to 1; 0 for inputs that vanish, which are in no piece."""
        logs = np.log(K, where=K > 0, out=np.full(K.shape, self.center))
        return (logs - self.center) / self.half if self.half else np.zeros(K.shape)

    @property
    def pieces(self) -> dict[int, _Piece]:
        """The pieces that are resolved."""
        return {number: piece for number, piece in self._pieces.items() if piece is not None}

    @property
    def tables(self) -> np.ndarray:
        """For one norm, powers in the short pieces, shape (number of quantities, powers, pieces).

        NaN where there is no piece.
        """
        return self._tables[-1]

    def prepare(self, v: np.ndarray, pairs: tuple, own: np.ndarray, of: float) -> None:
        """Make the pieces in which many pairs lie, judging by a part of them.

        Parameters
        ----------
        v : ndarray, shape (n,)
        pairs : pair of ndarray
        own : ndarray, shape (..., P)
        of : float
            The number of pairs relative to those given.
        """
        number = np.append(_numbers(v), np.nan)
        counts = {int(p): of * int((number == p).sum()) for p in np.unique(number)[:-1]}
        if not self.half:
            # Nodes of one norm are so few that it pays to have every piece, and those beside.
            counts |= {p: 0.0 for q in tuple(counts) for p in (q - 1, q + 1) if p not in counts}
        new = [p for p in counts if p not in self._pieces and abs(p) <= _FARTHEST]
        new.sort(key=lambda p: -counts[p])

        def fit(left: list[int]) -> None:
            for size in self._norm_counts():
                fewest = _ANGLES * size * (size + 1) if self.half else 0
                left = [p for p in left if counts[p] >= fewest]
                if not left:
                    break
                inside = (np.flatnonzero(number == p) for p in left)
                samples = [one[:: max(1, -(-len(one) // _COMPARED))] for one in inside]
                left = self._make(left, size, v, pairs, own, samples)
            self._pieces.update(dict.fromkeys(left))

        # The piece of most pairs tells how many norms the others need, and itself if far fewer.
        if self.half and not self._norms:
            fit(new[:1])
        fit([p for p in new if p not in self._pieces])
        if not self.half and (new or not self._tables):
            self._tables[:] = [self._tabulated()]

    def _norm_counts(self) -> Iterator[int]:
        """Nodes in a norm, tried one after the other; f is analytic for |Im ln K| < π or about."""
        if not self.half:
            yield 1
            return
        guess = 1 + math.ceil(_NEEDED / np.arcsinh(np.pi / self.half))
        size = self._norms[0] if self._norms else guess
        while size < _NORMS:
            yield size
            size = math.ceil(1.5 * size)
        yield _NORMS

    def _own_at(self, norms: np.ndarray) -> np.ndarray:
        return self.recursion.own(np.exp(self.center + self.half * norms))

    def _sampled(self, own: np.ndarray, alpha: Any, beta: Any, v: Any) -> np.ndarray:
        """f of the inputs α and β whose correlation is tanh v, for odd quantities times that."""
        K, s = variances_of(own), self.recursion.factors(own)
        shape, pairs = alpha.shape, (alpha.ravel(), beta.ravel())
        root = np.sqrt(K[pairs[0]] * K[pairs[1]])
        values = self.recursion.pairs(own, np.tanh(v.ravel()) * root, pairs)
        scales = s[:, pairs[0]] * s[:, pairs[1]]
        scales[list(self.recursion.odd)] *= root
        return (values / scales).reshape(-1, *shape)

    def _make(
        self,
        numbers: list[int],
        size: int,
        v: np.ndarray,
        pairs: tuple,
        own: np.ndarray,
        samples: list[np.ndarray],
    ) -> list[int]:
        """Fit the pieces, and compare them with the recursion at samples of pairs.

        None are pieces whose coefficients in v do not decay, or that differ. Pieces with too few
        nodes in the norms are left out, and returned; the first with far too many is left out too.
        """
        lower, upper = np.triu_indices(size)
        inside = np.array(numbers)[:, None, None] + nodes(_ANGLES) / 2
        grid = np.broadcast_arrays(lower[:, None], upper[:, None], inside)
        joined = np.concatenate(samples)
        sampled = pairs[0][joined], pairs[1][joined]
        # Nodes and samples go through the layers together; one norm has been there already.
        nonzero = np.flatnonzero(variances_of(own))[:1]
        at_nodes = own[..., nonzero] if not self.half else self._own_at(nodes(size))
        first, second = (np.append(a, size + b) for a, b in zip(grid[:2], sampled, strict=True))
        both = np.concatenate([at_nodes, own], axis=-1)
        found = self._sampled(both, first, second, np.append(grid[2], v[joined]))
        half, exact = np.split(found, [grid[2].size], axis=1)
        half = half.reshape(-1, *grid[2].shape)
        half[list(self.recursion.odd)] /= np.tanh(inside)
        U = chebyshev.chebvander(self.places(variances_of(own)), size - 1).T
        norm, angle = transform(size), transform(_ANGLES)
        start, unresolved = 0, []
        for index, (number, sample) in enumerate(zip(numbers, samples, strict=True)):
            f = np.empty((len(half), size, size, _ANGLES))
            f[:, lower, upper] = f[:, upper, lower] = half[:, index]
            d = np.einsum("ai,bj,fijk,ck->fabc", norm, norm, f, angle, optimize=True)
            part = slice(start, start := start + len(sample))
            limit = _DECAY * np.abs(f).max(axis=(1, 2, 3))
            decays, in_norms = (
                (np.abs(tail).max(axis=(1, 2, 3)) <= limit).all()
                for tail in (d[..., -_TAIL:], d[:, -1:])
            )
            if size > 1 and not in_norms:
                unresolved.append(number)
                continue
            if not self._norms:
                large = (np.abs(d) > limit[:, None, None, None]).any(axis=(0, 2, 3))
                self._norms.append(min(size, 2 + int(np.flatnonzero(large).max(initial=0))))
                if self._norms[0] < size / 2:
                    continue
            piece = _Piece.of(number, d)
            here = piece.of_pairs(v[sample], *(U[:, one[part]] for one in sampled))
            here[list(self.recursion.odd)] *= np.tanh(v[sample])
            errors = np.abs(here - exact[:, part]).max(axis=1, initial=0.0)
            agrees = (errors <= _ERROR * np.abs(exact[:, part]).max(axis=1, initial=0.0)).all()
            self._pieces[number] = piece if decays and agrees else None
        return unresolved

    def _tabulated(self) -> np.ndarray:
        quantities = len(self.recursion.odd)
        # What lies beyond all pieces is clipped to the first or the last, which stay NaN.
        tables = np.full((quantities, _DEGREE + 1, (2 * _FARTHEST + 1) * _SHORT + 2), np.nan)
        inside = (np.arange(_SHORT)[:, None] + (nodes(_DEGREE + 1) + 1) / 2) / _SHORT
        # From values to powers of what a short piece measures from 0 to 1.
        powers = np.linalg.inv(np.vander((nodes(_DEGREE + 1) + 1) / 2, increasing=True))
        for number, piece in self.pieces.items():
            f = piece.along(2 * inside.ravel() - 1).reshape(quantities, _SHORT, -1)
            # Powers of differences lose no digits.
            first = f[:, :, :1]
            start = 1 + (number + _FARTHEST) * _SHORT
            part = slice(start, start + _SHORT)
            tables[:, :, part] = np.einsum("pk,fsk->fps", powers, f - first)
            tables[:, 0, part] += first[:, :, 0]
        return tables


@dataclass(frozen=True, eq=False)
class _Piece:
    """f around v = ``number``.

    Parameters
    ----------
    number : int
    powers : ndarray, shape (quantities, powers, norms, norms)
        Of x = 2 (v − number), and Chebyshev polynomials in the norms. Coefficients d decay faster
        than those of T_k grow, so that powers lose no digits.
    sizes : ndarray, shape (powers,)
        How many norms count for a power.
    """

    number: int
    powers: np.ndarray
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, number: int, d: np.ndarray) -> _Piece:
        """From Chebyshev coefficients (quantities, norms, norms, v)."""
        # What rounding leaves would grow in powers, and count as norms of all of them.
        d = np.where(np.abs(d) > _SMALL * np.abs(d).max(axis=(1, 2, 3), keepdims=True), d, 0.0)
        _, row, column, angle = (1 + int(axis.max(initial=0)) for axis in np.nonzero(d))
        d = d[:, : max(row, column), : max(row, column), :angle]
        powers = np.einsum("kc,fabc->fkab", _to_powers(d.shape[-1]), d)
        large = powers.any(axis=(0, 2))
        sizes = tuple(1 + int(np.nonzero(row)[0].max(initial=0)) for row in large)
        return cls(number, powers, sizes)

    def along(self, x: np.ndarray) -> np.ndarray:
        """f of one norm, shape (quantities, len(x))."""
        return self.powers[:, :, 0, 0] @ np.vander(x, self.powers.shape[1], increasing=True).T

    def of_pairs(self, v: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """f of pairs (n,), with the polynomials in their norms (at least as many, n)."""
        x, (quantities, count, size, _) = 2 * (v - self.number), self.powers.shape
        if size == 1:
            return self.along(x)
        X = np.vander(x, count, increasing=True)
        joint = (X[:, :, None] * first[:size].T[:, None]).reshape(len(x), -1)
        sums = joint @ self.powers.reshape(quantities, -1, size)
        return np.einsum("fmb,bm->fm", sums, second[:size])

    def of_all(self, v: np.ndarray, rows: _Single, columns: _Single) -> np.ndarray:
        """f of all pairs of inputs (P, Q), whether they are in the piece or not."""
        quantities, count, size, _ = self.powers.shape
        by_row = rows.polynomials[:size].T @ self.powers.transpose(2, 0, 1, 3).reshape(size, -1)
        by_row = by_row.reshape(-1, quantities, count, size)
        values, term = np.zeros((quantities, *v.shape)), np.empty(v.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            x = 2 * (v - self.number)
            for index, f in enumerate(values):
                for k in range(count - 1, -1, -1):
                    counted = self.sizes[k]
                    f *= x
                    np.matmul(
                        by_row[:, index, k, :counted], columns.polynomials[:counted], out=term
                    )
                    f += term
        return values


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
        if self.K0.size >= (2 * _FEWEST if self.upper else _FEWEST):
            self._prepare()
        usable, odd = bool(self.map.pieces), self.map.recursion.odd
        evaluate = _by_products if self.map.half else _by_table
        rows, columns = (_Single.of(self.map, own) for own in (self.rows, self.columns))
        left: list[tuple[np.ndarray, ...]] = []
        waiting = 0
        for a, b in self._strips():
            K0 = self.K0[a, b]
            part = rows.part(a), columns.part(b)
            if usable:
                v = _artanh_correlations(K0, *part)
                if self.upper and a.start == b.start:
                    np.fill_diagonal(v, 0.0)
                found = evaluate(self.map, v, *part)
                _scale(found, K0, *part, odd)
            else:
                found = np.full((len(values), *K0.shape), np.nan)
            # NaN if one of them is.
            if np.isnan(found[0].max()):
                i, j = np.nonzero(np.isnan(found[0]))
                i, j = i + a.start, j + b.start
                chosen = (i[i < j], j[i < j]) if self.upper else (i, j)
                left.append((*chosen, self.K0[chosen]))
                waiting += len(chosen[0])
            values[:, a, b] = found
            if waiting > _LEFT:
                self._through_layers(values, left)
                left, waiting = [], 0
        if waiting:
            self._through_layers(values, left)

    def _through_layers(self, values: np.ndarray, left: list) -> None:
        i, j, K0 = (np.concatenate(one) for one in zip(*left, strict=True))
        values[:, i, j] = self.map.recursion.pairs(*self._joined(i, j, K0))

    def _joined(self, i: np.ndarray, j: np.ndarray, K0: np.ndarray) -> tuple:
        """What the inputs of pairs bring along, their covariances, and who they are there."""
        if self.rows is self.columns:
            return self.rows, K0, (i, j)
        (first, row), (second, column) = (np.unique(one, return_inverse=True) for one in (i, j))
        own = np.concatenate([self.rows[..., first], self.columns[..., second]], axis=-1)
        return own, K0, (row, len(first) + column)

    def _prepare(self) -> None:
        """Make the pieces of the map in which the pairs lie, seen from a grid of them."""
        height, width = self.K0.shape
        step = max(1, int(np.sqrt(self.K0.size / _COUNTED)))
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
        wide = min(width, _WIDTH)
        tall = max(1, _STRIP // wide)
        for top in range(0, height, tall):
            for start in range(top if self.upper else 0, width, wide):
                yield slice(top, min(top + tall, height)), slice(start, min(start + wide, width))


class _Single(NamedTuple):
    """What the pairs of a strip need of its rows, or of its columns.

    Parameters
    ----------
    inverse : ndarray, shape (P,)
        1/√K, NaN for those that vanish.
    factors : ndarray, shape (number of quantities, P)
    polynomials : ndarray, shape (norms, P)
        T_i(u).
    """

    inverse: np.ndarray
    factors: np.ndarray
    polynomials: np.ndarray

    @classmethod
    def of(cls, map: PairMap, own: np.ndarray) -> _Single:
        K = variances_of(own)
        size = max((piece.powers.shape[-1] for piece in map.pieces.values()), default=1)
        inverse = np.divide(1, np.sqrt(K), out=np.full(K.shape, np.nan), where=K > 0)
        polynomials = chebyshev.chebvander(map.places(K), size - 1).T
        return cls(inverse, map.recursion.factors(own), np.ascontiguousarray(polynomials))

    def part(self, inputs: slice) -> _Single:
        return _Single(*(one[..., inputs] for one in self))


def variances_of(own: np.ndarray) -> np.ndarray:
    """K^(0) of single inputs, the first that they bring along."""
    return own[(0,) * (own.ndim - 1)]


def _artanh_correlations(K0: np.ndarray, rows: _Single, columns: _Single) -> np.ndarray:
    v = K0 * rows.inverse[:, None]
    v *= columns.inverse
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.arctanh(v, out=v)


def _scale(
    f: np.ndarray, K0: np.ndarray, rows: _Single, columns: _Single, odd: tuple[bool, ...]
) -> None:
    for values, first, second, vanishes in zip(f, rows.factors, columns.factors, odd, strict=True):
        values *= first[:, None]
        values *= second
        if vanishes:
            values *= K0


def _by_table(map: PairMap, v: np.ndarray, rows: _Single, columns: _Single) -> np.ndarray:
    """f of pairs of inputs of one norm, shape (number of quantities, rows, columns)."""
    v *= _SHORT
    v += 1 + (_FARTHEST + 0.5) * _SHORT
    with np.errstate(invalid="ignore"):
        short = v.astype(np.intp)
    v -= short
    values, term = np.empty((len(map.tables), *v.shape)), np.empty(v.shape)
    for f, table in zip(values, map.tables, strict=True):
        # Infinity and NaN are the smallest integer.
        np.take(table[-1], short, out=f, mode="clip")
        for coefficients in table[-2::-1]:
            f *= v
            np.take(coefficients, short, out=term, mode="clip")
            f += term
    return values


def _by_products(map: PairMap, v: np.ndarray, rows: _Single, columns: _Single) -> np.ndarray:
    """f of pairs of inputs of different norms, shape (number of quantities, rows, columns)."""
    number = _numbers(v)
    values = np.full((len(map.recursion.odd), *v.shape), np.nan)
    for p, piece in map.pieces.items():
        inside = number == p
        count = np.count_nonzero(inside)
        if count == v.size:
            return piece.of_all(v, rows, columns)
        if count > _DENSE * v.size:
            np.copyto(values, piece.of_all(v, rows, columns), where=inside)
        elif count:
            i, j = np.nonzero(inside)
            U = rows.polynomials[:, i], columns.polynomials[:, j]
            values[:, i, j] = piece.of_pairs(v[i, j], *U)
    return values


@lru_cache(maxsize=_ANGLES)
def _to_powers(count: int) -> np.ndarray:
    """The matrix from Chebyshev coefficients to those of powers."""
    matrix = np.zeros((count, count))
    for k in range(count):
        matrix[: k + 1, k] = chebyshev.cheb2poly(np.eye(count)[k])[: k + 1]
    return matrix


def _numbers(v: np.ndarray) -> np.ndarray:
    """The pieces, as floats; NaN for none."""
    number = np.rint(v)
    return np.where(np.abs(number) <= _FARTHEST, number, np.nan)


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
