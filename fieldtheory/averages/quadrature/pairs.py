"""Averages of two variables (x, y) ~ N(0, [[a, t], [t, b]]), with their derivatives and errors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.quadrature.functions import Function
from fieldtheory.averages.quadrature.mehler import Series, natural_size
from fieldtheory.averages.quadrature.nested import Strong

# Orders of Mehler's series that are tried.
ORDERS = (40, 128, 512)
TOLERANCE = 1e-12


class Pairs(NamedTuple):
    """⟨φ(x)ψ(y)⟩ and its derivatives by t, ⟨φ'ψ'⟩, by a, ⟨φ''ψ⟩/2, and by b, ⟨φψ''⟩/2."""

    value: np.ndarray
    by_t: np.ndarray
    by_a: np.ndarray
    by_b: np.ndarray


class PairAverages:
    """⟨φ(x)ψ(y)⟩ or ⟨φ(x);ψ(y)⟩ = ⟨φψ⟩ − ⟨φ⟩⟨ψ⟩ with derivatives, for arrays (a, b, t)."""

    def __init__(
        self,
        first: Function,
        second: Function | None = None,
        connected: bool = False,
        slopes: bool = True,
    ) -> None:
        self.first, self.second = first, second or first
        self.connected, self.slopes = connected, slopes
        self.series = [Series(self.first, self.second, order) for order in ORDERS]
        limits = self.first.value(np.array([1e3, -1e3, 1e6, -1e6])) if connected else np.zeros(4)
        self._centred = None
        if second is None and limits[0] and np.ptp(limits) < 1e-2 * abs(limits[0]):
            self._plain = PairAverages(first, first, connected, slopes)
            shifted = first.shifted(limits[2])
            self._centred = PairAverages(shifted, shifted, connected, slopes)

    def __call__(
        self, a: np.ndarray, b: np.ndarray, t: np.ndarray, rtol: float = TOLERANCE
    ) -> tuple[Pairs, Pairs]:
        """The averages of pairs (m,), and their errors.

        Errors are relative to √(⟨φ²⟩⟨ψ²⟩), for derivatives over √(ab), a and b, or to the integral
        of what is averaged without its sign.

        Raises
        ------
        QuadratureError
            If one misses the tolerance.
        """
        a, b, t = (np.array(v, dtype=float).ravel() for v in np.broadcast_arrays(a, b, t))
        root = np.sqrt(a * b)
        apart = determinant(a, b, t) / (root * (root + np.abs(t)))
        c = np.where(apart < 0.5, np.sign(t) * (1 - apart), t / root)
        found, errors = self._of(a, b, c, apart, rtol)
        return Pairs(*found), Pairs(*errors)

    def at_angles(
        self, a: np.ndarray, b: np.ndarray, angles: np.ndarray, rtol: float = TOLERANCE
    ) -> np.ndarray:
        """The averages themselves of pairs (m,) whose correlations are cosines of angles."""
        apart = 2 * np.minimum(np.sin(angles / 2), np.cos(angles / 2)) ** 2
        return self._of(a, b, np.cos(angles), apart, rtol)[0][0]

    def _of(
        self, a: np.ndarray, b: np.ndarray, c: np.ndarray, apart: np.ndarray, rtol: float
    ) -> np.ndarray:
        if self._centred is not None:
            # Without the constant that a wide signal sees nearly everywhere, which cancels.
            sizes = [
                of.series[0].first(K)[0][:, -1] for of in (self, self._centred) for K in (a, b)
            ]
            far = (sizes[2] < sizes[0] / 4) & (sizes[3] < sizes[1] / 4)
            found = np.empty((2, 4, len(a)))
            for of, some in ((self._centred, far), (self._plain, ~far)):
                if some.any():
                    found[:, :, some] = of._of(a[some], b[some], c[some], apart[some], rtol)
            return found
        t = c * np.sqrt(a * b)
        values, errors, sizes = np.zeros((3, 4, len(a)))
        kinds = 4 if self.slopes else 1
        left, reached = np.arange(len(a)), np.zeros(len(a))
        for series in self.series:
            some = left[self._may_converge(series, apart[left], reached[left])]
            if len(some):
                found = series(a[some], b[some], c[some], self.connected)
                with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                    share = (found[1] / found[2])[:kinds].max(axis=0)
                good = share <= 0.5 * rtol
                values[:, some[good]], errors[:, some[good]], sizes[:, some[good]] = (
                    each[:, good] for each in found
                )
                reached[some] = share
                left = np.setdiff1d(left, some[good])
        for sign in (1, -1):
            some = left[np.where(t[left] < 0, -1, 1) == sign]
            if len(some):
                found = self._strong(a[some], b[some], t[some], apart[some], sign, rtol)
                values[:, some], errors[:, some], sizes[:, some] = found
        missed = (errors > rtol * sizes) | np.isnan(values)
        missed = missed[:kinds]
        if missed.any():
            worst = np.argmax((errors / sizes).max(axis=0))
            raise QuadratureError(
                f"an average at variances {a[worst]:.6g} and {b[worst]:.6g} and 1 - |c| = "
                f"{apart[worst]:.3g} did not reach the relative tolerance {rtol:g}"
            )
        return np.stack([values, errors])

    def _may_converge(self, series: Series, apart: np.ndarray, reached: np.ndarray) -> np.ndarray:
        """Whether a series is worth trying: |c|^N is small, or one of smooth φ nearly did."""
        smooth = not (len(self.first.kinks) or len(self.second.kinks))
        with np.errstate(divide="ignore"):
            small = series.order * np.log1p(-np.minimum(apart, 1.0)) < np.log(1e-14)
        return small | (series.order == ORDERS[0]) | (smooth & (reached < 1e-4))

    def _strong(
        self,
        a: np.ndarray,
        b: np.ndarray,
        t: np.ndarray,
        apart: np.ndarray,
        sign: int,
        rtol: float,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Averages of strongly correlated pairs, with derivatives at fixed covariances."""
        second = self.second if sign > 0 else self.second.reflected
        values, errors, sizes = Strong(self.first, second, rtol, self.slopes)(a, b, apart)
        values[1] *= sign
        with np.errstate(invalid="ignore"):
            for row, K in ((2, a), (3, b)):
                # At a fixed correlation variances are scales.
                values[row] = (values[row] - t * values[1]) / (2 * K)
                errors[row] = (errors[row] + np.abs(t) * errors[1]) / (2 * K)
                sizes[row] = (sizes[row] + np.abs(t) * sizes[1]) / (2 * K)
        f, g = self.series[0].first(a)[0], self.series[0].second(b)[0]
        if self.connected:
            values[0] -= f[:, 0] * g[:, 0]
            values[2] -= f[:, 2] * g[:, 0] / (np.sqrt(2) * a)
            values[3] -= f[:, 0] * g[:, 2] / (np.sqrt(2) * b)
        scales = np.stack([np.ones(len(a)), 1 / np.sqrt(a * b), 1 / a, 1 / b])
        natural = scales * np.sqrt(
            natural_size(f, self.connected) * natural_size(g, self.connected)
        )
        sizes = np.maximum(sizes, natural)
        if self.connected:
            sizes[0] = natural[0]
        return values, errors, sizes


def determinant(a: np.ndarray, b: np.ndarray, t: np.ndarray) -> np.ndarray:
    """ab − t² to all digits, though products are rounded (Dekker, Veltkamp)."""

    def product(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        (x1, y1), whole = (v * 134217729.0 - (v * 134217729.0 - v) for v in (x, y)), x * y
        x2, y2 = x - x1, y - y1
        return whole, ((x1 * y1 - whole) + x1 * y2 + x2 * y1) + x2 * y2

    (ab, ab_low), (tt, tt_low) = product(a, b), product(t, t)
    return np.maximum((ab - tt) + (ab_low - tt_low), 0.0)
