"""The map from the correlation of two inputs to that of their outputs, piece by piece.

See `pair_map` for what it is used for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev
from scipy.linalg.blas import dgemm

from fieldtheory.averages.quadrature.one_variable import interpolation
from fieldtheory.averages.quadrature.panels import nodes, transform
from fieldtheory.numerics.pair_maps.pair_recursions import PairRecursion


@dataclass(frozen=True)
class MapSettings:
    """Numbers that decide how a map is made and where it is used.

    Parameters
    ----------
    angles, norms, single : int
        Nodes of a piece in v, and in a norm at most, and in ln K of single inputs.
    last : int
        Coefficients in v that show the decay.
    decades : float
        Minus the logarithm of what the coefficients in a norm are to fall by.
    decay, error : float
        Allowed last coefficients, and differences from the recursion, of the largest value.
    rounding : float
        Coefficients below, relative to the largest, are left out.
    farthest : int
        Pieces beyond plus or minus this are left to the recursion: 1 − |c| < 2e-14.
    short, degree : int
        Short pieces of a piece, and the degree there: (1/(4 · 256))⁵ is small enough.
    compared : int
        Pairs that are compared with the recursion in each piece.
    dense : float
        A piece is evaluated for a whole block if this part of the pairs lies in it, else for those.
    alike : float
        Norms are equal if ln K spreads less.
    counted : int
        Of so many pairs it is counted in which pieces they lie.
    strip, width, block : int
        Pairs evaluated at a time, which stay in the cache, in so many columns; by the recursion.
    wider, margin : float
        A map is made for a range of ln K that is wider by the margin, and used for ranges that it
        covers unless it is wider by more than the first factor.
    kept : int
        Maps of different ranges that are kept.
    """

    angles: int = 20
    norms: int = 40
    single: int = 48
    last: int = 3
    decades: float = 26.0
    decay: float = 1e-13
    error: float = 5e-13
    rounding: float = 1e-16
    farthest: int = 15
    short: int = 256
    degree: int = 4
    compared: int = 8
    dense: float = 0.1
    alike: float = 1e-14
    counted: int = 1 << 15
    strip: int = 1 << 15
    width: int = 1024
    block: int = 1 << 20
    wider: float = 2.0
    margin: float = 1.1
    kept: int = 8


MAPS = MapSettings()


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

    def single(self, K: np.ndarray) -> np.ndarray | None:
        """What inputs bring along and their own quantities, None if nodes in ln K are too few."""
        if self._at_nodes is None:
            return None
        if self.half:
            values = self._at_nodes @ interpolation(self.places(K), nodes(MAPS.single)).T
        else:
            values = np.repeat(self._at_nodes, len(K), axis=-1)
        values[0] = K
        return np.asarray(values)

    @cached_property
    def _at_nodes(self) -> np.ndarray | None:
        """That of nodes in ln K, held against inputs between them."""
        recursion, at = self.recursion, nodes(MAPS.single)
        if not self.half:
            return single(recursion, np.exp([self.center]))
        between = (at[1:] + at[:-1])[:: MAPS.single // MAPS.compared] / 2
        K = np.exp(self.center + self.half * np.append(at, between))
        values, exact = np.split(single(recursion, K), [MAPS.single], axis=-1)
        error = np.abs(values @ interpolation(between, at).T - exact)
        return values if (error <= MAPS.error * np.abs(exact)).all() else None

    def along(self, v: np.ndarray) -> np.ndarray:
        """f of pairs of inputs of one norm, shape (quantities, *v.shape); ``v`` is overwritten."""
        tables = self._tables[-1]
        v *= MAPS.short
        v += 1 + (MAPS.farthest + 0.5) * MAPS.short
        with np.errstate(invalid="ignore"):
            short = v.astype(np.intp)
        v -= short
        values, term = np.empty((len(tables), *v.shape)), np.empty(v.shape)
        for f, table in zip(values, tables, strict=True):
            # Infinity and NaN are the smallest integer.
            np.take(table[-1], short, out=f, mode="clip")
            for coefficients in table[-2::-1]:
                f *= v
                np.take(coefficients, short, out=term, mode="clip")
                f += term
        return values

    def across(self, v: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """f of all pairs of some inputs with others, with the polynomials in their norms."""
        number = _numbers(v)
        values = np.full((len(self.recursion.odd), *v.shape), np.nan)
        for p, piece in self.pieces.items():
            inside = number == p
            count = np.count_nonzero(inside)
            if count == v.size:
                return piece.of_all(v, first, second)
            if count > MAPS.dense * v.size:
                np.copyto(values, piece.of_all(v, first, second), where=inside)
            elif count:
                i, j = np.nonzero(inside)
                values[:, i, j] = piece.of_pairs(v[i, j], first[:, i], second[:, j])
        return values

    def polynomials(self, K: np.ndarray) -> np.ndarray:
        """T_i(u) of inputs of variances K, as many as the pieces need, shape (norms, P)."""
        size = max((piece.powers.shape[-1] for piece in self.pieces.values()), default=1)
        return np.ascontiguousarray(chebyshev.chebvander(self.places(K), size - 1).T)

    def prepare(self, v: np.ndarray, pairs: tuple, own: np.ndarray, of: float) -> None:
        """Make the pieces in which many pairs lie, judging by a part of them."""
        number = np.append(_numbers(v), np.nan)
        counts = {int(p): of * int((number == p).sum()) for p in np.unique(number)[:-1]}
        if not self.half:
            # Nodes of one norm are so few that it pays to have every piece and its neighbours.
            counts |= {p: 0.0 for q in tuple(counts) for p in (q - 1, q + 1) if p not in counts}
        new = [p for p in counts if p not in self._pieces and abs(p) <= MAPS.farthest]
        new.sort(key=lambda p: -counts[p])

        def fit(left: list[int]) -> None:
            for size in self._norm_counts():
                fewest = MAPS.angles * size * (size + 1) if self.half else 0
                left = [p for p in left if counts[p] >= fewest]
                if not left:
                    break
                inside = (np.flatnonzero(number == p) for p in left)
                samples = [one[:: max(1, -(-len(one) // MAPS.compared))] for one in inside]
                left = self._make(left, size, v, pairs, own, samples)
            self._pieces.update(dict.fromkeys(left))

        # The piece of most pairs shows how many norms the others need, and itself if far fewer.
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
        guess = 1 + math.ceil(MAPS.decades / np.arcsinh(np.pi / self.half))
        size = self._norms[0] if self._norms else guess
        while size < MAPS.norms:
            yield size
            size = math.ceil(1.5 * size)
        yield MAPS.norms

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
        """Fit the pieces, and compare them with the recursion at samples of pairs."""
        lower, upper = np.triu_indices(size)
        inside = np.array(numbers)[:, None, None] + nodes(MAPS.angles) / 2
        grid = np.broadcast_arrays(lower[:, None], upper[:, None], inside)
        joined = np.concatenate(samples)
        sampled = pairs[0][joined], pairs[1][joined]
        # Nodes and samples go through the layers together; one norm has been there already.
        nonzero = np.flatnonzero(variances_of(own))[:1]
        at_nodes = own[..., nonzero]
        if self.half:
            at_nodes = self.recursion.own(np.exp(self.center + self.half * nodes(size)))
        first, second = (np.append(a, size + b) for a, b in zip(grid[:2], sampled, strict=True))
        both = np.concatenate([at_nodes, own], axis=-1)
        values = self._sampled(both, first, second, np.append(grid[2], v[joined]))
        half, exact = np.split(values, [grid[2].size], axis=1)
        half = half.reshape(-1, *grid[2].shape)
        half[list(self.recursion.odd)] /= np.tanh(inside)
        U = chebyshev.chebvander(self.places(variances_of(own)), size - 1).T
        norm, angle = transform(size), transform(MAPS.angles)
        start, unresolved = 0, []
        for index, (number, sample) in enumerate(zip(numbers, samples, strict=True)):
            f = np.empty((len(half), size, size, MAPS.angles))
            f[:, lower, upper] = f[:, upper, lower] = half[:, index]
            d = np.einsum("ai,bj,fijk,ck->fabc", norm, norm, f, angle, optimize=True)
            part = slice(start, start := start + len(sample))
            limit = MAPS.decay * np.abs(f).max(axis=(1, 2, 3))
            decays, in_norms = (
                (np.abs(tail).max(axis=(1, 2, 3)) <= limit).all()
                for tail in (d[..., -MAPS.last :], d[:, -1:])
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
            agrees = (errors <= MAPS.error * np.abs(exact[:, part]).max(axis=1, initial=0.0)).all()
            self._pieces[number] = piece if decays and agrees else None
        return unresolved

    def _tabulated(self) -> np.ndarray:
        """For one norm, powers in the short pieces, shape (quantities, powers, pieces)."""
        quantities = len(self.recursion.odd)
        # What lies beyond all pieces is clipped to the first or the last, which stay NaN.
        tables = np.full(
            (quantities, MAPS.degree + 1, (2 * MAPS.farthest + 1) * MAPS.short + 2), np.nan
        )
        inside = (np.arange(MAPS.short)[:, None] + (nodes(MAPS.degree + 1) + 1) / 2) / MAPS.short
        # From values to powers of what a short piece measures from 0 to 1.
        powers = np.linalg.inv(np.vander((nodes(MAPS.degree + 1) + 1) / 2, increasing=True))
        for number, piece in self.pieces.items():
            f = piece.along(2 * inside.ravel() - 1).reshape(quantities, MAPS.short, -1)
            # Powers of differences lose no digits.
            first = f[:, :, :1]
            start = 1 + (number + MAPS.farthest) * MAPS.short
            part = slice(start, start + MAPS.short)
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
        d = np.where(
            np.abs(d) > MAPS.rounding * np.abs(d).max(axis=(1, 2, 3), keepdims=True), d, 0.0
        )
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

    def of_all(self, v: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """f of all pairs of inputs (P, Q), whether they are in the piece or not."""
        quantities, count, size, _ = self.powers.shape
        by_row = first[:size].T @ self.powers.transpose(2, 0, 1, 3).reshape(size, -1)
        by_row = by_row.reshape(-1, quantities, count, size)
        values = np.zeros((quantities, *v.shape))
        with np.errstate(over="ignore", invalid="ignore"):
            x = 2 * (v - self.number)
            for index, f in enumerate(values):
                for k in range(count - 1, -1, -1):
                    counted = self.sizes[k]
                    f *= x
                    norms = second[:counted].T, by_row[:, index, k, :counted].T
                    # f += products, in place.
                    dgemm(1.0, *norms, beta=1.0, c=f.T, overwrite_c=1)
        return values


def single(recursion: PairRecursion, K: np.ndarray) -> np.ndarray:
    """What inputs (P,) bring along, and below it their own quantities."""
    own = recursion.own(K)
    return np.concatenate([own, recursion.diagonal(own)])


def variances_of(own: np.ndarray) -> np.ndarray:
    """K^(0) of single inputs, the first that they bring along."""
    return own[(0,) * (own.ndim - 1)]


@lru_cache(maxsize=MAPS.angles)
def _to_powers(count: int) -> np.ndarray:
    """The matrix from Chebyshev coefficients to those of powers."""
    matrix = np.zeros((count, count))
    for k in range(count):
        matrix[: k + 1, k] = chebyshev.cheb2poly(np.eye(count)[k])[: k + 1]
    return matrix


def _numbers(v: np.ndarray) -> np.ndarray:
    """The pieces, as floats; NaN for none."""
    number = np.rint(v)
    return np.where(np.abs(number) <= MAPS.farthest, number, np.nan)
