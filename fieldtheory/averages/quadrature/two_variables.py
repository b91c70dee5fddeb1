"""Averages of two variables (x, y) ~ N(0, [[a, t], [t, b]]), with their derivatives and errors.

Mehler's series where its remainder is below the tolerance, else nested panels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fieldtheory.averages import routes
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrands.exact_differences import determinant
from fieldtheory.averages.quadrature.mehler import Series, derivative_scales, natural_size
from fieldtheory.averages.quadrature.nested import NestedPanels
from fieldtheory.averages.quadrature.panelled_functions import Function
from fieldtheory.averages.settings import SETTINGS

TOLERANCE = 1e-12
# A series of this share of the tolerance is taken.
_SHARE = 0.5
# The remainder of a smooth function's series, relative, from which the next order may converge.
_NEARLY = 1e-4
# Relative error that rounding of φ leaves of an average, and that of its mean of a connected one:
# on many nodes it averages out.
_ROUNDING, _MEAN = 5e-15, 2e-17
# A variance of zero is the limit of small ones.
_VANISHING = 1e-100


class Pairs(NamedTuple):
    """⟨φ(x)ψ(y)⟩ and its derivatives by t, ⟨φ'ψ'⟩, by a, ⟨φ''ψ⟩/2, and by b, ⟨φψ''⟩/2."""

    value: np.ndarray
    by_t: np.ndarray
    by_a: np.ndarray
    by_b: np.ndarray


class PairAverages:
    """⟨φ(x)ψ(y)⟩, or ⟨φ(x);ψ(y)⟩ = ⟨φψ⟩ − ⟨φ⟩⟨ψ⟩, with derivatives, for arrays (a, b, t).

    Parameters
    ----------
    first, second : Function
        φ and ψ, by default the same.
    connected : bool
    slopes : bool
        Whether derivatives are computed; where φ' and ψ' have δ-functions at the same place that of
        t is infinite at t = √(ab).
    many : bool
        Whether it will be asked for so many pairs that long series pay.

    Examples
    --------
    >>> pairs = PairAverages(Function(np.square, lambda h: 2 * h), connected=True)
    >>> values, errors = pairs(1.0, 2.0, 0.5)
    >>> [float(each[0].round(9)) for each in values]
    [0.5, 2.0, 0.0, 0.0]
    """

    def __init__(
        self,
        first: Function,
        second: Function | None = None,
        connected: bool = False,
        slopes: bool = True,
        many: bool = False,
    ) -> None:
        self.first, self.second = first, second or first
        self.connected, self.slopes = connected, slopes
        self.series = [Series(self.first, self.second, order) for order in SETTINGS.series_orders]
        self._left = SETTINGS.long_series_pairs if many else 0

    def __call__(
        self, a: np.ndarray, b: np.ndarray, t: np.ndarray, rtol: float = TOLERANCE
    ) -> tuple[Pairs, Pairs]:
        """The averages of pairs (m,), and their errors.

        Errors are relative to √(⟨φ²⟩⟨ψ²⟩), or √(Var φ Var ψ), for derivatives over √(ab), a and b;
        derivatives by nested panels to the integral of the modulus where that is larger. Two
        variables without variance count as one.

        Raises
        ------
        QuadratureError
            If one misses the tolerance.
        """
        a, b, t = (np.array(v, dtype=float).ravel() for v in np.broadcast_arrays(a, b, t))
        t = np.where((a == 0) & (b == 0), _VANISHING, t)
        a, b = (np.where(K == 0, _VANISHING, K) for K in (a, b))
        gap = one_minus_correlation(a, b, t)
        c = np.where(gap < 0.5, np.sign(t) * (1 - gap), t / (np.sqrt(a) * np.sqrt(b)))
        values, errors = self._of(a, b, c, gap, rtol)
        return Pairs(*values), Pairs(*errors)

    def at_angles(
        self, a: np.ndarray, b: np.ndarray, angles: np.ndarray, rtol: float = TOLERANCE
    ) -> Pairs:
        """The averages of pairs (m,) whose correlations are cosines of angles, all small ones."""
        gap = 2 * np.minimum(np.sin(angles / 2), np.cos(angles / 2)) ** 2
        return Pairs(*self._of(a, b, np.cos(angles), gap, rtol)[0])

    def _of(
        self, a: np.ndarray, b: np.ndarray, c: np.ndarray, gap: np.ndarray, rtol: float
    ) -> np.ndarray:
        values, errors, sizes = np.zeros((3, 4, len(a)))
        kinds = 4 if self.slopes else 1
        left, reached = np.arange(len(a)), np.zeros(len(a))
        for series in self.series:
            smooth = series.smooth(a[left], b[left])
            some = left[_may_converge(series.order, gap[left], smooth & (reached[left] < _NEARLY))]
            if series.order == SETTINGS.series_orders[-1]:
                self._left += len(some)
                some = some[: len(some) * (self._left >= SETTINGS.long_series_pairs)]
            if len(some):
                estimates = series(a[some], b[some], c[some], self.connected)
                with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                    share = np.nan_to_num((estimates[1] / estimates[2])[:kinds], nan=0.0).max(
                        axis=0
                    )
                good = share <= _SHARE * rtol
                routes.record(routes.SERIES, np.count_nonzero(good))
                for row, new in zip((values, errors, sizes), estimates, strict=True):
                    row[:, some[good]] = new[:, good]
                reached[some] = share
                left = np.setdiff1d(left, some[good])
        for sign in (1, -1):
            some = left[np.where(c[left] < 0, -1, 1) == sign]
            if len(some):
                routes.record(routes.NESTED, len(some))
                estimates = self._nested(a[some], b[some], gap[some], sign, rtol)
                values[:, some], errors[:, some], sizes[:, some] = estimates
        errors += _ROUNDING * sizes
        missed = (errors > rtol * sizes) | np.isnan(values)
        if missed[:kinds].any():
            with np.errstate(divide="ignore", invalid="ignore"):
                relative = (errors / sizes)[:kinds].max(axis=0)
                worst = int(np.argmax(np.where(np.isnan(relative), np.inf, relative)))
            raise QuadratureError(
                f"an average at variances {a[worst]:.6g} and {b[worst]:.6g} and 1 - |c| = "
                f"{gap[worst]:.3g} did not reach the relative tolerance {rtol:g}; ask for a "
                "larger one (rtol=)"
            )
        return np.stack([values, errors])

    def _nested(
        self, a: np.ndarray, b: np.ndarray, gap: np.ndarray, sign: int, rtol: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Averages by nested panels of x and sign · y, with derivatives at fixed covariances."""
        second = self.second if sign > 0 else self.second.reflected
        f, g = self.series[0].first(a)[0], self.series[0].second(b)[0]
        means = np.stack([f[:, 0], g[:, 0]]) if self.connected else None
        panels = NestedPanels(self.first, second, rtol, self.slopes)
        values, errors, sizes = panels(a, b, gap, means)
        values[1] *= sign
        t = sign * (1 - gap) * np.sqrt(a) * np.sqrt(b)
        with np.errstate(invalid="ignore"):
            for row, K in ((2, a), (3, b)):
                # At a fixed correlation variances are scales: K ∂/∂K = ⟨xφ'ψ⟩/2 − t/2 ∂/∂t.
                values[row] = (values[row] - t * values[1]) / (2 * K)
                errors[row] = (errors[row] + np.abs(t) * errors[1]) / (2 * K)
                sizes[row] = (sizes[row] + np.abs(t) * sizes[1]) / (2 * K)
        spread = [np.sqrt(natural_size(each, self.connected)) for each in (f, g)]
        natural = derivative_scales(a, b) * spread[0] * spread[1]
        sizes = np.maximum(sizes, natural)
        if self.connected:
            errors[0] += _MEAN * (np.abs(f[:, 0]) * spread[1] + np.abs(g[:, 0]) * spread[0])
        return values, errors, sizes


def _may_converge(order: int, gap: np.ndarray, nearly: np.ndarray) -> np.ndarray:
    """Whether a series is worth trying: |c|^N is small, or that of a smooth φ nearly converged."""
    with np.errstate(divide="ignore"):
        small = order * np.log1p(-np.minimum(gap, 1.0)) < np.log(1e-14)
    return small | nearly | (order == SETTINGS.series_orders[0])


def one_minus_correlation(a: np.ndarray, b: np.ndarray, t: np.ndarray) -> np.ndarray:
    """1 − |c| with c = t/√(ab), to all digits.

    Examples
    --------
    >>> float(one_minus_correlation(*np.array([1.0, 1.0, 1.0 - 2**-40])) * 2**40)
    1.0
    """
    root = np.sqrt(a) * np.sqrt(b)
    return determinant(a, b, t) / (root * (root + np.abs(t)))
