"""The averages of a layer for very many pairs of inputs, for searches over networks.

Closed forms if there are any; of pairs of one variance Chebyshev tables (`pair_tables`); else
Mehler's series with the Hermite coefficients f_n of φ in tables over ln K, shared by all pairs of
an input,

    ⟨φφ⟩ = Σ_n f_n(K_xx) f_n(K_yy) cⁿ,   √(K_xx K_yy) ⟨φ'φ'⟩ = Σ_n n f_n(K_xx) f_n(K_yy) c^(n−1);

pairs whose series do not converge are in tables too, and else go to the averages of the layer
themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from fieldtheory.averages import routes
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.quadrature.mehler import falls_off, largest_powers, left_out
from fieldtheory.averages.quadrature.one_variable import Coefficients
from fieldtheory.averages.quadrature.panelled_functions import Function
from fieldtheory.averages.tolerance import relative_tolerance
from fieldtheory.compiling.translation import is_closed
from fieldtheory.numerics.infinite_width.layer_functions import LayerFunctions
from fieldtheory.theory.elementary_averages import LayerAverages

# Orders of series that are tried one after the other, of few digits and of all: before tables, and
# of pairs in no table, the last when it is asked for so many.
_MANY, _LONG = 100, 2048
_ROUGH_ORDERS, _ORDERS, _LONG_ORDERS = (16, 40), (64, 128), (512, _LONG)
# Relative errors of ⟨φφ⟩ and ⟨φ'φ'⟩.
REST, _FEW_DIGITS = 1e-12, 1e-6
# Coefficients that tell how much those beyond them are.
_LAST = 8
# Pairs at once, times orders; averages at larger variances are NaN.
_TOGETHER, _FARTHEST = 1 << 20, 1e13


@dataclass(frozen=True, eq=False)
class PairFunctions:
    """`LayerFunctions` of arrays of inputs and of pairs of them.

    Parameters
    ----------
    entries : LayerFunctions
        Of NumPy.
    allowed : float
        The relative error that is asked for.
    searching : bool
        Whether an average whose integral does not converge is NaN, with all at larger variances,
        instead of an error.
    """

    entries: LayerFunctions
    allowed: float = REST
    searching: bool = False
    _left: list[int] = field(default_factory=list)

    @property
    def averages(self) -> LayerAverages:
        """The averages in symbols."""
        return self.entries.averages

    @cached_property
    def closed_moment(self) -> bool:
        """Whether M has a closed form."""
        return is_closed(self.entries.averages.moment)

    @cached_property
    def closed(self) -> bool:
        """Whether ⟨φφ⟩ has a closed form."""
        return is_closed(self.entries.averages.covariance)

    def moments(self, K: Any, order: int = 2) -> list[np.ndarray]:
        """M(K) = ⟨φ²⟩ and its derivatives up to the order."""
        entries = self.entries
        if self.closed:
            names = ("second_moment", "susceptibility", "curvature")[: order + 1]
            return [getattr(entries, name)(K) for name in names]
        K = np.asarray(K, dtype=float)
        near = K.ravel() <= _FARTHEST
        values = np.full((order + 1, K.size), np.nan)
        values[:, near] = self._exact(
            lambda k: entries.moments(k)[: order + 1], order + 1, K.ravel()[near]
        )
        return list(values.reshape(order + 1, *K.shape))

    def second_moment(self, K: Any) -> np.ndarray:
        """M(K) = ⟨φ²⟩."""
        return self.moments(K, 0)[0]

    def susceptibility(self, K: Any) -> np.ndarray:
        """M'(K)."""
        return self.moments(K, 1)[1]

    def moments_and_slopes(self, K: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """M(K) of variances (..., P), and M'(K) of the first so many, 0 for the others."""
        M, slopes = self.moments(K, 1)
        slopes = np.array(slopes)
        slopes[..., count:] = 0.0
        return M, slopes

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
        K = np.broadcast_arrays(*(own.take(one, axis=-1) for one in pairs), r)
        flow = self.entries.covariance_flow
        if self.closed:
            return list(flow(*K))
        flat = [k.ravel() for k in K]
        averages = np.full((7, r.size), np.nan)
        inside = _are_near(*flat)
        averages[:, inside] = self._exact(flow, 7, *(k[inside] for k in flat))
        return list(averages.reshape(7, *r.shape))

    def covariance_gain(self, own: np.ndarray, pairs: Any, r: np.ndarray) -> list[Any]:
        """⟨φφ⟩ and its derivative by K_xy, ⟨φ'φ'⟩; the parameters are those of the flow."""
        if self.closed:
            first, second = (own.take(one, axis=-1) for one in pairs)
            return list(self.entries.covariance_gain(first, second, r))
        rows = np.arange(own.size // own.shape[-1])[:, None] * own.shape[-1]
        at = [(rows + one).ravel() for one in pairs]
        K, flat = own.ravel(), np.broadcast_to(r, (*own.shape[:-1], len(pairs[0]))).ravel()
        averages = np.full((2, flat.size), np.nan)
        (left,) = np.nonzero(_are_near(K[at[0]], K[at[1]], flat))
        equal = K[at[0][left]] == K[at[1][left]]
        orders = _ORDERS if self.allowed == REST else _ROUGH_ORDERS
        # Cells that there are cost less than a series, and new ones of one variance little.
        left = np.concatenate(
            [
                self._by_tables(averages, left[equal], K, at, flat, 1),
                self._by_tables(averages, left[~equal], K, at, flat, np.inf),
            ]
        )
        left = self._by_series(averages, left, K, at, flat, orders)
        left = self._by_tables(averages, left, K, at, flat, 1)
        left = self._by_series(averages, left, K, at, flat, _LONG_ORDERS)
        if len(left):
            exact = K[at[0][left]], K[at[1][left]], flat[left]
            averages[:, left] = self._exact(self.entries.covariance_gain, 2, *exact)
        return list(averages.reshape(2, *r.shape))

    def _exact(self, function: Callable[..., Any], count: int, *K: np.ndarray) -> np.ndarray:
        with relative_tolerance(REST if self.allowed == REST else _FEW_DIGITS):
            if self.searching:
                return as_far_as_known(function, count, *K)
            return np.array(function(*K))

    def _by_tables(
        self,
        averages: np.ndarray,
        left: np.ndarray,
        own: np.ndarray,
        at: Sequence[np.ndarray],
        r: np.ndarray,
        many: float,
    ) -> np.ndarray:
        """Fill in what tables have of the pairs ``left``; returns those that they do not."""
        if not len(left):
            return left
        a, b = (own[one[left]] for one in at)
        averages[:, left] = self.entries.in_tables(a, b, r[left], self.allowed != REST, many)
        return left[np.isnan(averages[0, left])]

    def _by_series(
        self,
        averages: np.ndarray,
        left: np.ndarray,
        own: np.ndarray,
        at: Sequence[np.ndarray],
        r: np.ndarray,
        orders: Sequence[int],
    ) -> np.ndarray:
        """Fill in what series resolve of the pairs ``left``; returns those that they do not."""
        for order in orders:
            if not len(left):
                break
            if order >= _LONG:
                self._left.append(len(left))
                if sum(self._left) < _MANY:
                    break
            p, q = (one[left] for one in at)
            asked = np.zeros(len(own), dtype=bool)
            asked[p] = asked[q] = True
            used, places = own[asked], np.cumsum(asked) - 1
            p, q = places[p], places[q]
            c = r[left] / np.sqrt(used[p] * used[q])
            total, good = np.zeros((2, len(left))), np.ones(len(left), dtype=bool)
            for phi in self.entries.functions:
                f, _ = _coefficients(phi, order)(used)
                values, converged = self._summed(order, phi, f, used, (p, q, c))
                total += values
                good &= converged
            averages[:, left[good]] = total[:, good]
            routes.record(routes.SERIES, np.count_nonzero(good))
            left = left[~good]
        return left

    def _summed(
        self, order: int, phi: Function, f: np.ndarray, K: np.ndarray, pairs: tuple[np.ndarray, ...]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Both series, and which have converged, each relative to its natural size."""
        square, f = f[:, -1], f[:, :-1]
        n = np.arange(order + 1.0)
        last = np.abs(f[:, -_LAST:]).max(axis=1)
        slope = np.sqrt((n * f**2).sum(axis=1))
        smooth, regular = 9.5 * np.sqrt(K) < phi.nearest, falls_off(f, square)
        orders = n[phi.parity == -1 :: 2] if phi.parity else n
        at_zero, f = f[:, 1], f.T[orders.astype(int)]
        factors = np.stack([np.ones(len(orders)), orders])
        values, converged = [], []
        step = max(1, _TOGETHER // len(orders))
        for start in range(0, len(pairs[0]), step):
            p, q, c = (each[start : start + step] for each in pairs)
            powers = np.empty((len(orders), len(c)))
            powers[0], ratio = (c if phi.parity == -1 else 1.0), (c * c if phi.parity else c)
            for k in range(1, len(orders)):
                np.multiply(powers[k - 1], ratio, out=powers[k])
            powers *= f.take(p, axis=1)
            powers *= f.take(q, axis=1)
            first, second = factors @ powers
            with np.errstate(divide="ignore", invalid="ignore"):
                second = np.where(c == 0, at_zero[p] * at_zero[q], second / c)
            analytic = smooth[p] & smooth[q]
            left = largest_powers(order, c, analytic)[:2] * (4 * order)
            analytic &= regular[p] & regular[q]
            left = np.where(analytic, np.minimum(left, left_out(order, c)[:2]), left)
            left *= last[p] * last[q]
            fine = left[0] <= self.allowed * np.sqrt(square[p] * square[q])
            converged.append(fine & (left[1] <= self.allowed * slope[p] * slope[q]))
            values.append(np.stack([first, second / np.sqrt(K[p] * K[q])]))
        return np.concatenate(values, axis=1), np.concatenate(converged)


@lru_cache(maxsize=256)
def _coefficients(function: Function, order: int) -> Coefficients:
    return Coefficients(function, order)


def _are_near(p: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Mask of the pairs in the range of numbers, without signals that vanish."""
    with np.errstate(invalid="ignore", over="ignore"):
        inside = (p <= _FARTHEST) & (q <= _FARTHEST) & np.isfinite(r)
        return inside & (p * q > 0) & (r * r <= p * q * (1 + 1e-12))


def as_far_as_known(
    function: Callable[..., Sequence[np.ndarray]], count: int, *covariances: np.ndarray
) -> np.ndarray:
    """Averages as functions of variances, or of covariances of pairs, NaN from where one is lost.

    Those of functions that oscillate are lost at large variances, where a search needs none.

    Parameters
    ----------
    function : callable
        Vectorised, of all covariances; raises QuadratureError where an integral does not converge.
    count : int
        How many averages it returns.
    covariances : ndarray, shape (n,)
        Its arguments.

    Returns
    -------
    ndarray, shape (count, n)

    Examples
    --------
    >>> def root(K):
    ...     if (K > 3).any():
    ...         raise QuadratureError("too large")
    ...     return [np.sqrt(K)]
    >>> as_far_as_known(root, 1, np.array([1.0, 9.0, 2.25, 4.0]))
    array([[1. , nan, 1.5, nan]])
    """
    try:
        return np.array(function(*covariances))
    except QuadratureError:
        values = np.full((count, len(covariances[0])), np.nan)
    for i in np.argsort(np.maximum.reduce(covariances), kind="stable"):
        try:
            values[:, [i]] = function(*(K[[i]] for K in covariances))
        except QuadratureError:
            break
    return values


@lru_cache(maxsize=64)
def pair_functions(
    entries: LayerFunctions, allowed: float = REST, searching: bool = False
) -> PairFunctions:
    """The averages of a layer for many pairs, shared by all networks that use them."""
    return PairFunctions(entries, allowed, searching)
