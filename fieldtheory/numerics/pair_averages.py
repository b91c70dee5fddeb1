"""The averages of a layer for many pairs of inputs, from Hermite coefficients of φ.

With f_n(K) = ⟨φ(√K z) h_n(z)⟩, h_n the orthonormal Hermite polynomials, and the correlation c,

    ⟨φ(x)φ(y)⟩ = Σ_n f_n(K_xx) f_n(K_yy) cⁿ,    f'_n = √((n+1)/K) f_{n+1}  for φ'

(Mehler's series; the coefficients of the derivatives of φ follow by parts). The coefficients are
functions of one variable, smooth in ln K, so that a Chebyshev interpolant of them serves every pair
of inputs in every layer, whatever φ is; averages of pairs and their derivatives are sums. They are
used where the interpolant, the integrals and the series are resolved, and the averages themselves,
by quadrature or in closed form, elsewhere.

Where resolved they agree with the averages themselves to 2e-11 of their size (smooth φ), ⟨φφ⟩ to
1e-11 also for φ with kinks, and the optimal scalings made from them to
1e-9, of nearly identical inputs (1 − 1e-5) to 2e-9.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import sympy as sp

from fieldtheory.averages import ramps
from fieldtheory.averages.hermite import basis, weighted_hermite
from fieldtheory.averages.narrow import cuts_of
from fieldtheory.averages.panels import breakpoints
from fieldtheory.averages.precise_grid import separated
from fieldtheory.averages.quadrature import composite
from fieldtheory.averages.steps import has_steps
from fieldtheory.averages.vectorising import kinks_of, vectorised
from fieldtheory.compiling.translation import is_closed
from fieldtheory.numerics import mehler_sums
from fieldtheory.numerics.entries import Entries
from fieldtheory.numerics.interpolation import nodes, polynomials, transform
from fieldtheory.numerics.known_range import as_far_as_known
from fieldtheory.numerics.strong_pairs import StrongPairs
from fieldtheory.theory.elementary_averages import LayerAverages, X, Y

# Coefficients kept, tried one after the other (the last for kinks alone), those that are fitted
# together, and the nodes in ln K of a piece.
_ORDERS = (64, 96, 224, 512, 1024, 1536)
_FITTED = (5, 32, 96, 320, 1024, 1536)
# To find where a maximum is, so many are tried before.
_ROUGH_ORDER = 16
# From this order on boxes of strong pairs are tried before, with so many transforms for a pair, and
# with so many where it takes integrals, which those of narrow signals and weak correlations do not.
_STRONG, _PER_SERIES, _PER_INTEGRAL, _STRONGLY, _WIDE = 224, 0.1, 0.5, 0.5, 1.0
# With a closed form no more than these.
_FEW = 96
# Kinks have coefficients that fall off as powers, so that of so many powers of the correlation
# less than the rest is left.
_SHARE = 0.8
_SIZES = (16, 24, 36, 54, 80)
# Where ⟨φ'φ'⟩ is in the whole flow and in a part of it.
_SLOPE = {True: 3, False: 1}
# A piece is a range of K by this power of two.
_OCTAVES = 2
# K beyond is left to the averages themselves, and NaN where it is larger still.
_SMALLEST, _LARGEST, _FARTHEST = 1e-12, 1e8, 1e13
# A rough search does without variances beyond this one where they are not resolved: integrals of
# functions that oscillate take seconds there, and are far beyond a largest response.
_ROUGH_FARTHEST = 64.0
# Radius of the integrals, nodes of a panel, of its check, and the phase of h_n on a panel.
_REACH, _NODES, _CHECK_NODES, _PHASE = 13.0, 20, 26, 8.0
# Halvings of panels towards zero go up by so many, so that pieces share them.
_LEVELS = 3
# Where in a piece it is compared with a finer integral.
_CHECKED = 0.371
# Allowed last coefficients and errors, relative to √⟨φ²⟩, and rest of the series of ⟨φ'φ'⟩.
_TAIL, _ERROR, REST = 2e-14, 5e-14, 1e-12
# Coefficients of φ² for M, M' and M'', and the least 2 K M' relative to those.
_OF_SQUARE, _LEAST = 5, 1e-5
# What φ e^(-z²/4) may be at the ends of the integrals, relative to √⟨φ²⟩.
_AT_ENDS = 1e-13
# Most that the terms of ⟨φ'φ'⟩ may cancel.
_LOST = 1e3
# Correlations nearer to ±1, where the inputs' distance counts, are left to the averages.
_APART = 3e-3


class _Piece(NamedTuple):
    """Chebyshev coefficients (order, nodes) in ln K on a piece, and whether they are resolved."""

    coefficients: np.ndarray
    resolved: bool


@dataclass(frozen=True, eq=False)
class HermiteCoefficients:
    """f_n(K) of a function of one variable, interpolated in ln K.

    Parameters
    ----------
    f : callable
        Vectorised, of one array.
    kinks : tuple of float
        Where it is not smooth.
    parity : {0, 1}, optional
        0 for an even, 1 for an odd function.

    Examples
    --------
    >>> found, resolved = HermiteCoefficients(np.tanh, ())(np.array([0.5]), 64)
    >>> float((found**2).sum().round(10)), bool(resolved[0])
    (0.2736763079, True)
    """

    f: Callable[..., Any]
    kinks: tuple[float, ...]
    parity: int | None = None
    _pieces: dict[tuple[int, int], _Piece] = field(default_factory=dict)

    def __call__(self, K: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray]:
        """The coefficients of variances (m,), shape (m, order), and which of them are resolved."""
        place = np.log2(K) / _OCTAVES
        number = np.floor(place).astype(int)
        fitted = _fitted_together(order)
        pieces = {each: self._piece(each, fitted) for each in set(number.tolist())}
        size = max(coefficients.shape[1] for coefficients, _ in pieces.values())
        T = polynomials(2 * (place - number) - 1, size)
        values, resolved = np.zeros((order, len(K))), np.empty(len(K), dtype=bool)
        some = slice(self.parity, order, 2 if self.parity is not None else 1)
        for each, (coefficients, good) in pieces.items():
            inside = number == each if len(pieces) > 1 else slice(None)
            values[some, inside] = coefficients[some] @ T[: coefficients.shape[1], inside]
            resolved[inside] = good
        return values.T, resolved

    def _piece(self, number: int, order: int) -> _Piece:
        if (number, order) not in self._pieces:
            self._pieces[number, order] = self._fitted(number, order)
        return self._pieces[number, order]

    def _fitted(self, number: int, order: int) -> _Piece:
        for size in _SIZES:
            K = 2.0 ** (_OCTAVES * (number + (nodes(size) + 1) / 2))
            values, square = self.integrated(K, order)
            if not (np.isfinite(values) & np.isfinite(square)[:, None]).all():
                break
            scale = np.sqrt(square.max())
            coefficients = transform(size) @ values
            if np.abs(coefficients[-2:]).max() <= _TAIL * scale:
                # Between the nodes, by a finer rule.
                between = 2.0 ** (_OCTAVES * (number + np.array([_CHECKED])))
                finer, _ = self.integrated(between, order, _CHECK_NODES)
                here = polynomials(np.array([2 * _CHECKED - 1]), size).T @ coefficients
                good = bool(np.abs(finer - here).max() <= _ERROR * scale)
                return _Piece(np.ascontiguousarray(coefficients.T), good)
        return _Piece(np.zeros((order, 1)), False)

    def integrated(
        self, K: np.ndarray, order: int, count: int = _NODES
    ) -> tuple[np.ndarray, np.ndarray]:
        """The coefficients (m, order) and ⟨f²⟩ (m,) by Gauss-Legendre panels that end at kinks."""
        dev = np.sqrt(K)[:, None]
        level = _LEVELS * int(np.ceil(np.log2(K.max()) / 2 / _LEVELS))
        cuts, z, table = _panels(order, count, max(0, level))
        with np.errstate(all="ignore"):
            values = np.broadcast_to(self.f(dev * z), (len(K), len(z)))
        ends = np.abs(values[:, [0, -1]]).max(axis=1) * np.exp(-(z[0] ** 2) / 4)
        kinks = np.array([kink for kink in self.kinks if kink]) / dev
        if kinks.size:
            split, *rule = _at_kinks(cuts, kinks, count)
            values = np.where(np.repeat(split, count, axis=1), 0.0, values)
        found, square = values @ table.T, values**2 @ table[0]
        if kinks.size:
            near, weights = rule
            with np.errstate(all="ignore"):
                values = self.f(dev * near)
            square += (values**2 * next(weighted_hermite(1, near, weights))).sum(axis=1)
            for n, h in enumerate(weighted_hermite(order, near, weights)):
                found[:, n] += np.einsum("ij,ij->i", values, h)
        # Beyond the ends is nothing that counts, or the integrals are not known.
        known = (ends <= _AT_ENDS * np.sqrt(square)) | (square == 0)
        return np.where(known[:, None], found, np.nan), square


@dataclass(frozen=True, eq=False)
class _Signals:
    """Variances (m,) and the coefficients of functions of them, for series of all orders."""

    own: np.ndarray
    _tables: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    def coefficients(self, f: HermiteCoefficients, order: int) -> tuple[np.ndarray, np.ndarray]:
        """f_n (m, order), and which are resolved; none where the variance is too small or large."""
        most = _fitted_together(order)
        if (id(f), most) not in self._tables:
            usual = _usual(self.own)
            table, resolved = f(np.where(usual, self.own, 1.0), most)
            self._tables[id(f), most] = table, resolved & usual
        table, resolved = self._tables[id(f), most]
        return table[:, :order], resolved


@lru_cache(maxsize=6)
def _panels(order: int, count: int, level: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cuts, nodes and h_n N(z; 0, 1) times weights of panels graded to zero down to 2^-level."""
    number = 2 + int(2 * _REACH * np.sqrt(max(order, _ORDERS[0])) / _PHASE)
    graded = np.array(breakpoints([0.0], 0.5**level, _REACH))
    even = np.linspace(-_REACH, _REACH, number)
    cuts = np.union1d(even, graded[np.abs(graded) < 1])
    z, weights = composite(cuts, count)
    return cuts, z, basis(order, z, weights)


def _at_kinks(
    cuts: np.ndarray, kinks: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which panels have kinks (m, kinks) inside, and a rule on their parts, each (m, ...)."""
    kinks = np.sort(np.clip(kinks, cuts[0], cuts[-1]), axis=1)
    panel = np.clip(np.searchsorted(cuts, kinks, side="right") - 1, 0, len(cuts) - 2)
    low, high = cuts[panel], cuts[panel + 1]
    # The part on the left of a kink starts at the kink before; the last one has a right part too.
    low[:, 1:] = np.maximum(low[:, 1:], kinks[:, :-1])
    high[:, :-1] = np.where(kinks[:, 1:] < high[:, :-1], kinks[:, :-1], high[:, :-1])
    split = np.zeros((len(kinks), len(cuts) - 1), dtype=bool)
    np.put_along_axis(split, panel, True, axis=1)
    rules = [composite(np.stack(part, axis=-1), count) for part in ((low, kinks), (kinks, high))]
    nodes, weights = (np.concatenate(both, axis=-1) for both in zip(*rules, strict=True))
    flat = len(kinks), -1
    return split, nodes.reshape(flat), weights.reshape(flat)


@dataclass(frozen=True, eq=False)
class InterpolatedEntries:
    """The averages of a layer by interpolation, with those of `Entries` where it is not resolved.

    The functions are those of `Entries` of the same names, and as these vectorised.

    Parameters
    ----------
    entries : Entries
        Of NumPy.
    rest : float
        Of the series of ⟨φ'φ'⟩ what may be left out, relative to it.
    searching : bool
        Whether an average whose integral does not converge is NaN, with all at larger variances,
        instead of an error.
    """

    entries: Entries
    rest: float = REST
    searching: bool = False

    @property
    def averages(self) -> LayerAverages:
        """The averages in symbols."""
        return self.entries.averages

    @cached_property
    def _square(self) -> HermiteCoefficients:
        return _coefficients(self.averages.square, X)

    @cached_property
    def _square_derivatives(self) -> list[HermiteCoefficients]:
        """(φ²)''/2 and (φ²)''''/4, whose averages are M' and M''; none of φ with kinks."""
        square = self.averages.square
        if has_steps(square):
            return []
        return [_coefficients(sp.diff(square, X, 2 * n) / 2**n, X) for n in (1, 2)]

    def moments(self, K: Any, order: int = 2) -> list[Any]:
        """M(K) = ⟨φ²⟩ and its derivatives up to the order, from three coefficients of φ²."""
        K = np.asarray(K, dtype=float)
        if order < 2 and self._closed_moment:
            names = ("second_moment", "susceptibility")[: order + 1]
            return [getattr(self.entries, name)(K) for name in names]
        flat = K.ravel()
        values = self._of_square(flat, order)
        (left,) = np.nonzero(np.isnan(values[0]) & (flat <= self._farthest))
        if len(left):
            names = ("second_moment", "susceptibility", "curvature")[: order + 1]
            functions = [getattr(self.entries, name) for name in names]
            values[: order + 1, left] = self._exact(
                lambda K: [f(K) for f in functions], order + 1, flat[left]
            )
        return list(values[: order + 1].reshape(order + 1, *K.shape))

    @property
    def _farthest(self) -> float:
        return _ROUGH_FARTHEST if self.rest > REST and self.searching else _FARTHEST

    def _exact(self, function: Callable[..., Any], count: int, *K: np.ndarray) -> np.ndarray:
        if self.searching:
            return as_far_as_known(function, count, *K)
        return np.array(function(*K))

    def _of_square(self, K: np.ndarray, order: int = 2) -> np.ndarray:
        """M, M' and M'' of variances (m,) from coefficients of φ², NaN where not resolved."""
        values = np.full((3, K.size), np.nan)
        (usual,) = np.nonzero(_usual(K))
        if len(usual):
            chosen = K[usual]
            f, resolved = self._square(chosen, _OF_SQUARE)
            terms = f[:, ::2].T * np.array([[1], [2**0.5 / 2], [24**0.5 / 4]])
            # M' and M'' are small differences where φ² hardly depends on the variance.
            known = _told_apart(terms[1], f)
            far = known & ((order < 2) | _told_apart(terms[2], f))
            terms[1:] /= np.stack([chosen, chosen**2])
            (flat,) = np.nonzero(resolved & ~far)
            if len(flat) and order and self._square_derivatives:
                found = [of(chosen[flat], _OF_SQUARE) for of in self._square_derivatives[:order]]
                fine = np.all([good & _told_apart(g[:, 0], g) for g, good in found], axis=0)
                for n, (g, _) in enumerate(found, 1):
                    terms[n, flat[fine]] = g[fine, 0]
                known[flat[fine]] = True
            resolved &= known | (order == 0)
            values[:, usual[resolved]] = terms[:, resolved]
        return values

    def moment_and_about_slope(self, K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """M(K) and about M'(K), 0 where it would take an integral, for iterations."""
        if self._closed_moment:
            return self.entries.second_moment(K), self.entries.susceptibility(K)
        M, slope, _ = self._of_square(K)
        (left,) = np.nonzero(np.isnan(M) & (K <= self._farthest))
        if len(left):
            (M[left],) = self._exact(lambda K: [self.entries.second_moment(K)], 1, K[left])
        return M, np.nan_to_num(slope, nan=0.0)

    def second_moment(self, K: Any) -> Any:
        """M(K) = ⟨φ²⟩."""
        return self.moments(K, 0)[0]

    def susceptibility(self, K: Any) -> Any:
        """M'(K)."""
        return self.moments(K, 1)[1]

    def curvature(self, K: Any) -> Any:
        """M''(K)."""
        return self.moments(K)[2]

    @cached_property
    def _closed_moment(self) -> bool:
        """Whether M has a closed form, but for φ with kinks, where it costs more than it saves."""
        kinks = any(kinks_of(self.averages.square, X))
        return not kinks and is_closed(self.averages.moment)

    @cached_property
    def _closed(self) -> bool:
        """Whether ⟨φφ⟩ has a closed form; steps away from zero have none for pairs."""
        kinks = any(kinks_of(self.averages.square, X))
        return not kinks and is_closed(self.averages.covariance)

    @cached_property
    def _products(self) -> list[tuple[float, HermiteCoefficients, HermiteCoefficients]] | None:
        """The observable as Σ w f(x) g(y)."""
        terms = separated(self.entries.averages.observable, (X, Y))
        if terms is None:
            return None
        return [
            (float(weight), _coefficients(f, X), _coefficients(g.xreplace({Y: X}), X))
            for weight, (f, g) in terms
        ]

    @cached_property
    def _ramps(self) -> tuple[float, ramps.Ramps, ramps.Ramps] | None:
        """The observable as w f(x) g(y) with piecewise linear functions."""
        terms = separated(self.entries.averages.observable, (X, Y)) or []
        if len(terms) != 1:
            return None
        weight, (f, g) = terms[0]
        one, other = ramps.ramps_of(f, X), ramps.ramps_of(g.xreplace({Y: X}), X)
        return (float(weight), one, other) if one and other else None

    @cached_property
    def _strong(self) -> tuple[float, StrongPairs] | None:
        """The observable as w f(x) f(y) with a smooth f, and its averages on boxes."""
        terms = separated(self.entries.averages.observable, (X, Y)) or []
        if len(terms) != 1:
            return None
        weight, (f, g) = terms[0]
        if has_steps(f) or g.xreplace({Y: X}) != f:
            return None
        of_f, slope = (vectorised([X], one) for one in (f, sp.diff(f, X)))

        def exact(*K: np.ndarray) -> np.ndarray:
            return np.array(self.entries.covariance_gain(*K)) / float(weight)

        return float(weight), StrongPairs(of_f, slope, exact, self.rest)

    def covariance_flow(self, own: np.ndarray, pairs: Any, r: np.ndarray) -> list[Any]:
        """⟨φφ⟩, its gradient by (K_xx, K_yy, K_xy), and the gradient of ⟨φ'φ'⟩.

        Parameters
        ----------
        own : ndarray, shape (..., P)
            Variances of inputs.
        pairs : pair of integer ndarrays, shape (n,)
            The inputs of each pair.
        r : ndarray, shape (..., n)
            Their covariances.
        """
        return list(self._of_pairs(own, pairs, r, whole=True))

    def covariance_gain(self, own: np.ndarray, pairs: Any, r: np.ndarray) -> list[Any]:
        """⟨φφ⟩ and its derivative by K_xy, ⟨φ'φ'⟩; the parameters are those of the flow."""
        if self._closed:
            return self.entries.covariance_gain(own[..., pairs[0]], own[..., pairs[1]], r)
        return list(self._of_pairs(own, pairs, r, whole=False))

    def _of_pairs(self, own: np.ndarray, pairs: Any, r: np.ndarray, whole: bool) -> np.ndarray:
        """The flow of all pairs, (7, ...), or only ⟨φφ⟩ and ⟨φ'φ'⟩, (2, ...)."""
        shape, r = r.shape, r.ravel()
        rows = np.arange(own.size // own.shape[-1])[:, None] * own.shape[-1]
        own, at = own.ravel(), [(rows + one).ravel() for one in pairs]
        p, q = own[at[0]], own[at[1]]
        values = np.full((7 if whole else 2, r.size), np.nan)
        with np.errstate(all="ignore"):
            c = r / np.sqrt(p * q)
        known = np.zeros(r.size, dtype=bool)
        allowed = _usual(own)
        usual = (np.abs(c) <= 1 - _APART) & allowed[at[0]] & allowed[at[1]]
        if self._ramps is not None and not whole:
            inside = np.flatnonzero(allowed[at[0]] & allowed[at[1]] & np.isfinite(c))
            weight, f, g = self._ramps
            # Pairs share the means of their inputs.
            variances = np.where(allowed, own, 1.0)
            of_f = np.array(ramps.means(f, variances))
            of_g = of_f if f == g else np.array(ramps.means(g, variances))
            of_each = of_f[:, at[0][inside]], of_g[:, at[1][inside]]
            some = p[inside], q[inside], r[inside]
            found, good = ramps.average(f, g, *some, of_each, self.rest > REST)
            values[:, inside] = weight * found
            known[inside] = good.all(axis=0)
        if not whole:
            self._from_boxes(values, known, np.flatnonzero(~known), (p, q, r), 0.0)
        left = np.flatnonzero(usual & ~known & (self._products is not None))
        first, signals = self._first_orders(c), _Signals(own)
        for order in _ORDERS if self.rest <= REST else (_ROUGH_ORDER, *_ORDERS):
            if not len(left) or (order > _FEW and not whole and self._closed):
                break
            if order == _ORDERS[-1] and not self._kinked:
                break
            if order == _STRONG and not whole:
                left = left[~self._from_boxes(values, known, left, (p, q, r), _PER_SERIES)]
            tried = left[first[left] <= order]
            if len(tried):
                known[tried] = self._summed(values, tried, signals, at, c, order, whole)
                left = left[~known[left]]
        if not whole:
            near = np.flatnonzero(~known & (c >= _STRONGLY) & (np.minimum(p, q) >= _WIDE))
            self._from_boxes(values, known, near, (p, q, r), _PER_INTEGRAL)
        # What is beyond the range of numbers stays unknown.
        (left,) = np.nonzero(~known & np.isfinite(c) & (np.maximum(p, q) <= _FARTHEST))
        if len(left):
            chosen = p[left], q[left], r[left]
            exact = self.entries.covariance_flow if whole else self.entries.covariance_gain
            values[:, left] = self._exact(exact, len(values), *chosen)
        return values.reshape(-1, *shape)

    def _from_boxes(
        self,
        values: np.ndarray,
        known: np.ndarray,
        index: np.ndarray,
        K: tuple[np.ndarray, ...],
        most: float,
    ) -> np.ndarray:
        """Fill in the values at the index that boxes of strong pairs have; returns which."""
        if self._closed or self._strong is None or not len(index):
            return np.zeros(len(index), dtype=bool)
        weight, of_pairs = self._strong
        p, q, r = (k[index] for k in K)
        found, good = of_pairs(p, q, r, most)
        values[:, index[good]], known[index[good]] = weight * found[:, good], True
        return good

    @cached_property
    def _kinked(self) -> bool:
        return any(f.kinks or g.kinks for _, f, g in self._products or [])

    def _first_orders(self, c: np.ndarray) -> np.ndarray:
        """About how many coefficients are needed at least, at correlations."""
        if not self._kinked:
            return np.zeros(c.shape)
        with np.errstate(all="ignore"):
            return _SHARE * np.log(self.rest) / np.log(np.abs(c))

    def _summed(
        self,
        values: np.ndarray,
        index: np.ndarray,
        signals: _Signals,
        at: list[np.ndarray],
        c: np.ndarray,
        order: int,
        whole: bool,
    ) -> np.ndarray:
        """Fill in the values at the index by series of an order; returns which are resolved."""
        at_p, at_q = (one[index] for one in at)
        if order > _FEW:
            # Long tables of those only that need them.
            used, row = np.unique(np.concatenate([at_p, at_q]), return_inverse=True)
            signals, (at_p, at_q) = _Signals(signals.own[used]), row.reshape(2, -1)
        own = signals.own
        known = np.ones(len(index), dtype=bool)
        sums, left, size = np.zeros((len(values), len(index))), np.zeros(1), np.zeros(1)
        near = np.abs(c[index])
        for weight, f, g in self._products or []:
            first, good = signals.coefficients(f, order)
            other, fine = (first, good) if f is g else signals.coefficients(g, order)
            good = good & fine
            known &= good[at_p] & good[at_q]
            of_f, of_g = (np.sqrt((table**2) @ np.arange(order)) for table in (first, other))
            # Without first coefficients all terms fall with the correlation.
            most = np.abs(first[at_p, 1]) * of_g[at_q] + np.abs(other[at_q, 1]) * of_f[at_p]
            size = size + abs(weight) * (most + near * of_f[at_p] * of_g[at_q])
            parity = f.parity if f.parity == g.parity else None
            found, rest = _sums(first, other, (at_p, at_q), c[index], whole, parity)
            sums += weight * found
            left = left + abs(weight) * rest
        known &= np.maximum(left, size * REST / _LOST) <= self.rest * np.abs(sums[_SLOPE[whole]])
        values[:, index] = _scaled(sums, own[at_p], own[at_q])
        return known


def _sums(
    f: np.ndarray,
    g: np.ndarray,
    at: tuple[np.ndarray, np.ndarray],
    c: np.ndarray,
    whole: bool,
    parity: int | None,
) -> tuple[np.ndarray, np.ndarray]:
    """The flow of pairs without powers of the variances, (7, m), and its rest.

    If not the ``whole``, only ⟨φφ⟩ and ⟨φ'φ'⟩, (2, m).
    """
    by_c, rest = mehler_sums.polynomials(f, g, at, c, 2 if whole else 1, parity)
    if not whole:
        return by_c, rest
    found = np.empty((7, len(c)))
    found[0], found[3], found[6] = by_c
    n = np.arange(f.shape[1] - 2.0)
    # Coefficients of half the second derivative.
    raised = np.sqrt((n + 1) * (n + 2)) / 2
    sides = (raised * f[:, 2:], g[:, :-2]), (f[:, :-2], raised * g[:, 2:])
    for rows, side in zip(([1, 4], [2, 5]), sides, strict=True):
        found[rows], _ = mehler_sums.polynomials(*side, at, c, 1, parity)
    return found, rest


def _fitted_together(order: int) -> int:
    """How many coefficients are fitted where so many are asked for."""
    return next((n for n in _FITTED if n >= order), order)


def _scaled(sums: np.ndarray, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    root = np.sqrt(p * q)
    if len(sums) == 2:
        return np.stack([sums[0], sums[1] / root])
    return sums / np.stack([np.ones(len(p)), p, q, root, p * root, q * root, p * q])


def _told_apart(average: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """Whether averages (m,) are more than rounding of the coefficients (m, order)."""
    return np.abs(average) >= _LEAST * np.sqrt((coefficients**2).sum(axis=1))


def _usual(K: np.ndarray) -> np.ndarray:
    return (K >= _SMALLEST) & (K <= _LARGEST)


@lru_cache(maxsize=64)
def _coefficients(f: sp.Expr, x: sp.Symbol) -> HermiteCoefficients:
    mirrored = f.subs(x, -x)
    parity = 0 if mirrored == f else 1 if mirrored == -f else None
    return HermiteCoefficients(vectorised([x], f), tuple(cuts_of(f, x)), parity)


@lru_cache(maxsize=64)
def interpolated(
    entries: Entries, rest: float = REST, searching: bool = False
) -> InterpolatedEntries:
    """The interpolated averages of a layer, shared by all networks that use them."""
    return InterpolatedEntries(entries, rest, searching)
