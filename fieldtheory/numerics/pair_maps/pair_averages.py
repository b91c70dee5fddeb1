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
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory.averages.high_precision.precise_grid import separated
from fieldtheory.averages.integrals import spectral
from fieldtheory.averages.integrals.vectorising import kinks_of, vectorised
from fieldtheory.averages.integrands.steps import has_steps
from fieldtheory.averages.polynomial_pieces import ramps
from fieldtheory.compiling.translation import is_closed
from fieldtheory.numerics.hermite_coefficients import (
    HermiteCoefficients,
    Signals,
    coefficients_of,
    has_coefficients,
)
from fieldtheory.numerics.layer_averages.entries import Entries
from fieldtheory.numerics.layer_averages.known_range import as_far_as_known
from fieldtheory.numerics.pair_maps import kinked_pairs, mehler_sums
from fieldtheory.numerics.pair_maps.pair_boxes import Boxes
from fieldtheory.numerics.pair_maps.strong_pairs import StrongPairs
from fieldtheory.numerics.pair_maps.wanted_pairs import WantedPairs
from fieldtheory.theory.elementary_averages import LayerAverages, X, Y

# Coefficients kept, tried one after the other, the last for kinks alone; and to find where a
# maximum is, where so many more do not pay.
_ORDERS = (64, 96, 224, 512, 1024, 1536, 3072)
_SOME_ORDERS = _ORDERS[:-1]
# To find where a maximum is, so many are tried before.
_ROUGH_ORDER = 16
# From this order on, for smooth φ and with kinks, boxes are tried before, with so many transforms
# for a pair, with so many where it takes integrals, and with so many series.
_STRONG, _PER_SERIES, _PER_INTEGRAL, _PER_PAIR = (224, 96), 0.1, 1.0, 1.0
# With a closed form no more than these.
_FEW = 96
# Kinks have coefficients that fall off as powers, so that of so many powers of the correlation
# less than the rest is left.
_SHARE = 0.8
# Where ⟨φ'φ'⟩ is in the whole flow and in a part of it.
_SLOPE = {True: 3, False: 1}
# Averages at larger K are NaN.
_FARTHEST = 1e13
# A rough search does without variances beyond this one where they are not resolved: integrals of
# functions that oscillate take seconds there, and are far beyond a largest response.
ROUGH_FARTHEST = 64.0
# Nor does it transform φ of pairs beyond this one, which takes a hundred thousand nodes for each.
_ROUGH_WIDEST = 1e5
# What the series of ⟨φ'φ'⟩ may leave out, relative to it.
REST = 1e-12
# Coefficients of φ² for M, M' and M'', and the least 2 K M' relative to those.
_OF_SQUARE, _LEAST = 5, 1e-5
# Most that the terms of ⟨φ'φ'⟩ may cancel.
_LOST = 1e3
# Correlations nearer to ±1, where the inputs' distance counts, are left to the averages.
_APART = 3e-3


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
        return coefficients_of(self.averages.square, X)

    @cached_property
    def _smooth(self) -> bool:
        return not has_steps(self.averages.square)

    def moments(self, K: Any, order: int = 2) -> list[Any]:
        """M(K) = ⟨φ²⟩ and its derivatives up to the order, from three coefficients of φ²."""
        K = np.asarray(K, dtype=float)
        if order < 2 and self.closed_moment:
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
        return ROUGH_FARTHEST if self.rest > REST and self.searching else _FARTHEST

    def _exact(self, function: Callable[..., Any], count: int, *K: np.ndarray) -> np.ndarray:
        if self.searching:
            return as_far_as_known(function, count, *K)
        return np.array(function(*K))

    def _of_square(self, K: np.ndarray, order: int = 2) -> np.ndarray:
        """M, M' and M'' of variances (m,) from coefficients of φ², NaN where not resolved."""
        values = np.full((3, K.size), np.nan)
        (usual,) = np.nonzero(has_coefficients(K))
        if len(usual):
            chosen = K[usual]
            f, resolved = self._square(chosen, _OF_SQUARE)
            terms = f[:, ::2].T * np.array([[1], [2**0.5 / 2], [24**0.5 / 4]])
            # M' and M'' are small differences where φ² hardly depends on the variance.
            known = _told_apart(terms[1], f)
            far = known & ((order < 2) | _told_apart(terms[2], f))
            terms[1:] /= np.stack([chosen, chosen**2])
            (flat,) = np.nonzero(resolved & ~far)
            if len(flat) and order and self._smooth:
                derivatives = [_derivative(self.averages.square, n) for n in range(1, order + 1)]
                found = [of(chosen[flat], _OF_SQUARE) for of in derivatives]
                fine = np.all([good & _told_apart(g[:, 0], g) for g, good in found], axis=0)
                for n, (g, _) in enumerate(found, 1):
                    terms[n, flat[fine]] = g[fine, 0]
                known[flat[fine]] = True
            resolved &= known | (order == 0)
            values[:, usual[resolved]] = terms[:, resolved]
        return values

    def resolved_moments(self, K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """M(K) and M'(K) of variances (m,), NaN where they would take integrals."""
        if self.closed_moment:
            return self.entries.second_moment(K), self.entries.susceptibility(K)
        M, slope, _ = self._of_square(K, 1)
        return M, slope

    def moment_and_about_slope(self, K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """M(K) and about M'(K), 0 where it would take an integral, for iterations."""
        if self.closed_moment:
            return self.entries.second_moment(K), self.entries.susceptibility(K)
        M, slope, _ = self._of_square(K)
        (left,) = np.nonzero(np.isnan(M) & (K <= self._farthest))
        if len(left):
            (M[left],) = self._exact(lambda K: [self.entries.second_moment(K)], 1, K[left])
        return M, np.nan_to_num(slope, nan=0.0)

    def moments_and_slopes(self, K: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """M(K) of variances (..., P), and M'(K) of the first so many, 0 for the others."""
        M, slopes = np.empty(K.shape), np.zeros(K.shape)
        if count:
            M[..., :count], slopes[..., :count] = self.moments(K[..., :count], 1)
        if count < K.shape[-1]:
            M[..., count:] = self.second_moment(K[..., count:])
        return M, slopes

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
    def closed_moment(self) -> bool:
        """Whether M has a closed form, but for φ with kinks, where it costs more than it saves."""
        kinks = any(kinks_of(self.averages.square, X))
        return not kinks and is_closed(self.averages.moment)

    @cached_property
    def closed(self) -> bool:
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
            (float(weight), coefficients_of(f, X), coefficients_of(g.xreplace({Y: X}), X))
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
            # Their own first rule for such pairs, without the derivation of the others.
            values, good = spectral.averages([(of_f, of_f), (slope, slope)], K[0], K[1], K[2])
            if not good.all():
                left = [k[~good] for k in K]
                values[:, ~good] = np.array(self.entries.covariance_gain(*left)) / float(weight)
            return values

        return float(weight), StrongPairs(of_f, slope, exact, self.rest)

    @cached_property
    def _long_series(self) -> Boxes:
        """Averages of φ with kinks and pairs of one variance, on boxes."""

        def series(K: np.ndarray, c: np.ndarray) -> np.ndarray:
            at = np.repeat(np.arange(len(K)), len(c))
            return summed(K, (at, at), np.outer(K, c).ravel()).reshape(2, len(K), len(c))

        def exact(p: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
            at = np.arange(2 * len(p)).reshape(2, -1)
            return summed(np.concatenate([p, q]), tuple(at), r)

        def summed(own: np.ndarray, at: tuple[np.ndarray, ...], r: np.ndarray) -> np.ndarray:
            wanted = WantedPairs.of(own, at, r, 2)
            self._by_series(wanted, _SOME_ORDERS, boxes=False)
            return wanted.values

        return kinked_pairs.boxes(series, exact, self.rest, _SOME_ORDERS[-1])

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
        if self.closed:
            first, second = (own.take(one, axis=-1) for one in pairs)
            return self.entries.covariance_gain(first, second, r)
        return list(self._of_pairs(own, pairs, r, whole=False))

    def _of_pairs(self, own: np.ndarray, pairs: Any, r: np.ndarray, whole: bool) -> np.ndarray:
        """The flow of all pairs, (7, ...), or only ⟨φφ⟩ and ⟨φ'φ'⟩, (2, ...)."""
        wanted = WantedPairs.of(own, pairs, r, 7 if whole else 2)
        if self.rest > REST:
            self._by_series(wanted, (_ROUGH_ORDER,))
        if not whole:
            self._by_ramps(wanted)
            self._from_boxes(wanted, ~wanted.known, 0.0)
        self._by_series(wanted, _SOME_ORDERS if self.rest > REST else _ORDERS)
        # What is beyond the range of numbers stays unknown.
        inside = np.isfinite(wanted.c) & self._near(wanted)
        if not whole:
            wide = inside & wanted.wide_and_strong
            self._from_boxes(wanted, ~wanted.known & wide, _PER_INTEGRAL)
            self._by_transforms(wanted, ~wanted.known & wide)
        (left,) = np.nonzero(~wanted.known & inside)
        if len(left):
            exact = self.entries.covariance_flow if whole else self.entries.covariance_gain
            chosen = (k[left] for k in (wanted.p, wanted.q, wanted.r))
            wanted.values[:, left] = self._exact(exact, len(wanted.values), *chosen)
        return wanted.values.reshape(-1, *r.shape)

    def _near(self, wanted: WantedPairs) -> np.ndarray:
        """Which pairs are not too wide to be averaged without series."""
        farthest = _ROUGH_WIDEST if self.rest > REST and self.searching else _FARTHEST
        return np.maximum(wanted.p, wanted.q) <= farthest

    def _by_ramps(self, wanted: WantedPairs) -> None:
        """Fill in the averages of piecewise linear functions."""
        if self._ramps is None:
            return
        weight, f, g = self._ramps
        allowed, at = wanted.allowed, wanted.at
        inside = allowed[at[0]] & allowed[at[1]] & np.isfinite(wanted.c) & ~wanted.known
        (inside,) = np.nonzero(inside)
        # Pairs share the means of their inputs.
        variances = np.where(allowed, wanted.signals.own, 1.0)
        of_f = np.array(ramps.means(f, variances))
        of_g = of_f if f == g else np.array(ramps.means(g, variances))
        of_each = of_f[:, at[0][inside]], of_g[:, at[1][inside]]
        p, q, r = (k[inside] for k in (wanted.p, wanted.q, wanted.r))
        found, good = ramps.average(f, g, p, q, r, of_each, self.rest > REST)
        wanted.values[:, inside] = weight * found
        wanted.known[inside] = good.all(axis=0)

    def _from_boxes(self, wanted: WantedPairs, which: np.ndarray, most: float) -> None:
        """Fill in what boxes of strong pairs have of those that are marked."""
        if self.closed or not which.any():
            return
        (index,) = np.nonzero(which)
        K = wanted.p[index], wanted.q[index], wanted.r[index]
        if self._strong is not None:
            weight, of_pairs = self._strong
            found, good = of_pairs(*K, most)
        elif self._kinked and self._ramps is None:
            weight, found, good = 1.0, np.full((2, len(index)), np.nan), np.isnan(K[0])
            self._long_series.fill(found, good, K, most)
        else:
            return
        wanted.values[:, index[good]] = weight * found[:, good]
        wanted.known[index[good]] = True

    def _by_transforms(self, wanted: WantedPairs, which: np.ndarray) -> None:
        """Fill in what Fourier transforms resolve of those that are marked."""
        if self.closed or self._strong is None or not which.any():
            return
        (weight, of_pairs), (index,) = self._strong, np.nonzero(which)
        found, good = of_pairs.transformed(wanted.p[index], wanted.q[index], wanted.r[index])
        wanted.values[:, index[good]] = weight * found[:, good]
        wanted.known[index[good]] = True

    def _by_series(self, wanted: WantedPairs, orders: tuple[int, ...], boxes: bool = True) -> None:
        """Fill in what series of these orders resolve, one after the other, and boxes before."""
        whole, usual = len(wanted.values) > 2, np.abs(wanted.c) <= 1 - _APART
        for one in wanted.at:
            usual &= wanted.allowed[one]
        if self._products is None or not usual.any():
            return
        first = self._first_orders(wanted.c)
        for order in orders:
            hopeless = order >= _SOME_ORDERS[-1] and not self._kinked
            if hopeless or (order > _FEW and not whole and self.closed):
                return
            if order == _STRONG[self._kinked] and boxes and not whole:
                most = _PER_PAIR if self._kinked else _PER_SERIES
                self._from_boxes(wanted, usual & ~wanted.known & self._near(wanted), most)
            left = usual & ~wanted.known
            if order > _FEW and not whole and not self._kinked:
                left &= ~wanted.wide_and_strong
            if not left.any():
                return
            (tried,) = np.nonzero(left & (first <= order))
            if len(tried):
                wanted.known[tried] = self._summed(wanted, tried, order)

    @cached_property
    def _kinked(self) -> bool:
        return any(f.kinks or g.kinks for _, f, g in self._products or [])

    def _first_orders(self, c: np.ndarray) -> np.ndarray:
        """About how many coefficients are needed at least, at correlations."""
        if not self._kinked:
            return np.zeros(c.shape)
        with np.errstate(all="ignore"):
            return _SHARE * np.log(self.rest) / np.log(np.abs(c))

    def _summed(self, wanted: WantedPairs, index: np.ndarray, order: int) -> np.ndarray:
        """Fill in the values at the index by series of an order; returns which are resolved."""
        whole, signals = len(wanted.values) > 2, wanted.signals
        at_p, at_q = (one[index] for one in wanted.at)
        if order > _FEW:
            # Long tables of those only that need them.
            used, row = np.unique(np.concatenate([at_p, at_q]), return_inverse=True)
            signals, (at_p, at_q) = Signals(signals.own[used]), row.reshape(2, -1)
        own, c = signals.own, wanted.c[index]
        known = np.ones(len(index), dtype=bool)
        sums, left, size = np.zeros((len(wanted.values), len(index))), np.zeros(1), np.zeros(1)
        near, n = np.abs(c), np.arange(float(order))
        for weight, f, g in self._products or []:
            first, good = signals.coefficients(f, order)
            other, fine = (first, good) if f is g else signals.coefficients(g, order)
            good = good & fine
            known &= good[at_p] & good[at_q]
            of_f = np.sqrt(np.einsum("in,in,n->i", first, first, n))
            of_g = of_f if f is g else np.sqrt(np.einsum("in,in,n->i", other, other, n))
            # Without first coefficients all terms fall with the correlation.
            most = np.abs(first[at_p, 1]) * of_g[at_q] + np.abs(other[at_q, 1]) * of_f[at_p]
            size = size + abs(weight) * (most + near * of_f[at_p] * of_g[at_q])
            parity = f.parity if f.parity == g.parity else None
            found, rest = mehler_sums.flow(first, other, (at_p, at_q), c, whole, parity)
            sums += weight * found
            left = left + abs(weight) * rest
        known &= np.maximum(left, size * REST / _LOST) <= self.rest * np.abs(sums[_SLOPE[whole]])
        wanted.values[:, index] = mehler_sums.scaled(sums, own[at_p], own[at_q])
        return known


@lru_cache(maxsize=64)
def _derivative(square: sp.Expr, n: int) -> HermiteCoefficients:
    """Half of (φ²)'' or a quarter of (φ²)'''', whose averages are M' and M''."""
    return coefficients_of(sp.diff(square, X, 2 * n) / 2**n, X)


def _told_apart(average: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """Whether averages (m,) are more than rounding of the coefficients (m, order)."""
    return np.abs(average) >= _LEAST * np.sqrt((coefficients**2).sum(axis=1))


@lru_cache(maxsize=64)
def interpolated(
    entries: Entries, rest: float = REST, searching: bool = False
) -> InterpolatedEntries:
    """The interpolated averages of a layer, shared by all networks that use them."""
    return InterpolatedEntries(entries, rest, searching)
