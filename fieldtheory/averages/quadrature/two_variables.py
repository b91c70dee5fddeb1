"""Averages of two variables (x, y) ~ N(0, [[a, t], [t, b]]), with their derivatives and errors.

Mehler's series where its remainder is below the tolerance, else nested panels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fieldtheory.averages import routes
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrands.exact_differences import not_vanishing, one_minus_correlation
from fieldtheory.averages.quadrature.mehler import Series, derivative_scales, natural_size
from fieldtheory.averages.quadrature.nested import NestedPanels
from fieldtheory.averages.quadrature.one_variable import coefficients_of
from fieldtheory.averages.quadrature.pair_tables import PairTables
from fieldtheory.averages.quadrature.panelled_functions import Function
from fieldtheory.averages.routes import SETTINGS

TOLERANCE = 1e-12
# A series of this share of the tolerance is taken.
_SHARE = 0.5
# The remainder of a smooth function's series, relative, from which the next order may converge.
_NEARLY = 1e-4
# Relative error that rounding of φ leaves of an average, and that of its mean of a connected one:
# on many nodes it averages out.
_ROUNDING, _MEAN = 5e-15, 2e-17
# Tolerances from which on tables of few digits are enough.
ROUGH = 1e-4


class Pairs(NamedTuple):
    """⟨φ(x)ψ(y)⟩ and its derivatives by t, ⟨φ'ψ'⟩, by a, ⟨φ''ψ⟩/2, and by b, ⟨φψ''⟩/2."""

    value: np.ndarray
    by_t: np.ndarray
    by_a: np.ndarray
    by_b: np.ndarray


class PairAverages:
    """⟨φ(x)ψ(y)⟩, or ⟨φ(x);ψ(y)⟩ = ⟨φψ⟩ − ⟨φ⟩⟨ψ⟩, with derivatives, for arrays (a, b, t).

    Examples
    --------
    >>> pairs = PairAverages(Function(np.square, lambda h: 2 * h), connected=True)
    >>> values, errors = pairs(1.0, 2.0, 0.5)
    >>> [float(each[0].round(9)) for each in values]
    [0.5, 2.0, 0.0, 0.0]
    """

    def __init__(
        self, first: Function, second: Function | None = None, connected: bool = False
    ) -> None:
        self.first, self.second = first, second or first
        self.connected = connected
        self.series = [Series(self.first, self.second, order) for order in SETTINGS.series_orders]
        self._tables: dict[bool, PairTables] = {}
        self._asked_long = 0

    def __call__(
        self,
        a: np.ndarray,
        b: np.ndarray,
        t: np.ndarray,
        rtol: float = TOLERANCE,
        kinds: int = 4,
        many: bool = False,
    ) -> tuple[Pairs, Pairs]:
        """The averages of pairs (m,), and their errors."""
        a, b, t = (np.array(v, dtype=float).ravel() for v in np.broadcast_arrays(a, b, t))
        a, b, t = not_vanishing(a, b, t)
        values = np.full((2, 4, len(a)), np.nan)
        left = np.arange(len(a))
        tables = self._tables_for(rtol) if kinds < 3 else None
        if tables is not None:
            # New cells of one variance cost little.
            left = _by_tables(tables, values[0], left, a, b, t, SETTINGS.table_pairs, True)
            if many:
                left = _by_tables(tables, values[0], left, a, b, t, np.inf, False)
        gap = one_minus_correlation(a[left], b[left], t[left])
        root = np.sqrt(a[left]) * np.sqrt(b[left])
        c = np.where(gap < 0.5, np.sign(t[left]) * (1 - gap), t[left] / root)
        others = tables if many else None
        values[:, :kinds, left] = self._of(a[left], b[left], c, gap, rtol, kinds, others)
        return Pairs(*values[0]), Pairs(*values[1])

    def at_angles(self, a: np.ndarray, b: np.ndarray, angles: np.ndarray) -> Pairs:
        """The averages of pairs (m,) whose correlations are cosines of angles, all small ones."""
        gap = 2 * np.minimum(np.sin(angles / 2), np.cos(angles / 2)) ** 2
        return Pairs(*self._of(a, b, np.cos(angles), gap, TOLERANCE, 4)[0])

    def _tables_for(self, rtol: float) -> PairTables | None:
        if self.connected or self.first is not self.second:
            return None
        rough = rtol >= ROUGH
        if rough not in self._tables:
            self._tables[rough] = PairTables(self.first, rough)
        return self._tables[rough]

    def _of(
        self,
        a: np.ndarray,
        b: np.ndarray,
        c: np.ndarray,
        gap: np.ndarray,
        rtol: float,
        kinds: int,
        tables: PairTables | None = None,
    ) -> np.ndarray:
        values, errors, sizes = np.zeros((3, kinds, len(a)))
        left, reached = np.arange(len(a)), np.zeros(len(a))
        K, places = np.unique(np.concatenate([a, b]), return_inverse=True)
        p, q = np.split(places, 2)
        # Few digits start with few orders.
        for attempt, series in enumerate(self.series[rtol < ROUGH :]):
            if not len(left):
                break
            smooth = series.smooth(a[left], b[left])
            # A series is worth trying where |c|^N is small, or that of a smooth φ nearly converged.
            with np.errstate(divide="ignore"):
                log_c = np.log1p(-np.minimum(gap[left], 1.0))
            tried = (series.order * log_c < np.log(1e-14)) | (smooth & (reached[left] < _NEARLY))
            tried |= series.order <= SETTINGS.series_orders[1]
            if series.order == SETTINGS.series_orders[-1]:
                self._asked_long += int(np.count_nonzero(tried))
                tried &= self._asked_long >= SETTINGS.long_series_pairs
            if tried.any():
                some = left[tried]
                estimates = series(K, p[some], q[some], c[some], self.connected, kinds)
                with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                    share = np.nan_to_num(estimates[1] / estimates[2], nan=0.0).max(axis=0)
                good = share <= _SHARE * rtol
                routes.record(routes.SERIES, np.count_nonzero(good))
                for row, new in zip((values, errors, sizes), estimates, strict=True):
                    row[:, some[good]] = new[:, good]
                reached[some] = share
                tried[tried] = good
                left = left[~tried]
            if tables is not None and attempt == 1:
                t = c * np.sqrt(a) * np.sqrt(b)
                left = _by_tables(tables, values, left, a, b, t, 1, False)
        for sign in (1, -1):
            some = left[np.where(c[left] < 0, -1, 1) == sign]
            if len(some):
                routes.record(routes.NESTED, len(some))
                # Lines of panels are shared by equal pairs.
                different, place = np.unique(
                    [a[some], b[some], gap[some]], axis=1, return_inverse=True
                )
                estimates = self._nested(different, sign, rtol, kinds)
                values[:, some], errors[:, some], sizes[:, some] = (
                    each[:, place] for each in estimates
                )
        errors += _ROUNDING * sizes
        missed = (errors > rtol * sizes) | np.isnan(values)
        if missed.any():
            with np.errstate(divide="ignore", invalid="ignore"):
                relative = (errors / sizes).max(axis=0)
                worst = int(np.argmax(np.where(np.isnan(relative), np.inf, relative)))
            raise QuadratureError(
                f"an average at variances {a[worst]:.6g} and {b[worst]:.6g} and 1 - |c| = "
                f"{gap[worst]:.3g} did not reach the relative tolerance {rtol:g}; ask for a "
                "larger one (rtol=)"
            )
        return np.stack([values, errors])

    def _nested(
        self, pairs: np.ndarray, sign: int, rtol: float, kinds: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Averages by nested panels of x and sign · y, with derivatives at fixed covariances."""
        a, b, gap = pairs
        second = self.second if sign > 0 else self.second.reflected
        f, g = (
            coefficients_of(function, SETTINGS.series_orders[0])(K)[0]
            for function, K in ((self.first, a), (self.second, b))
        )
        means = np.stack([f[:, 0], g[:, 0]]) if self.connected else None
        values, errors, sizes = NestedPanels(self.first, second, rtol, kinds)(a, b, gap, means)
        if kinds > 1:
            values[1] *= sign
        t = sign * (1 - gap) * np.sqrt(a) * np.sqrt(b)
        with np.errstate(invalid="ignore"):
            for row, K in ((2, a), (3, b))[: kinds - 2 if kinds > 2 else 0]:
                # At a fixed correlation variances are scales: K ∂/∂K = ⟨xφ'ψ⟩/2 − t/2 ∂/∂t.
                values[row] = (values[row] - t * values[1]) / (2 * K)
                errors[row] = (errors[row] + np.abs(t) * errors[1]) / (2 * K)
                sizes[row] = (sizes[row] + np.abs(t) * sizes[1]) / (2 * K)
        spread = [np.sqrt(natural_size(each, self.connected)) for each in (f, g)]
        natural = derivative_scales(a, b, kinds) * spread[0] * spread[1]
        sizes = np.maximum(sizes, natural)
        if self.connected:
            errors[0] += _MEAN * (np.abs(f[:, 0]) * spread[1] + np.abs(g[:, 0]) * spread[0])
        return values, errors, sizes


def _by_tables(
    tables: PairTables,
    values: np.ndarray,
    left: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    t: np.ndarray,
    count: float,
    equal: bool,
) -> np.ndarray:
    """Fill in what cells have of the pairs ``left``, or of the equal variances; returns the others.

    Cells are made of which so many pairs have been asked for.
    """
    chosen = a[left] == b[left] if equal else np.ones(len(left), dtype=bool)
    some = left[chosen]
    if len(some) < 2:
        return left
    averages = tables(a[some], b[some], t[some], count)
    values[:2, some] = averages[: len(values)]
    chosen[chosen] = ~np.isnan(averages[0])
    return left[~chosen]
