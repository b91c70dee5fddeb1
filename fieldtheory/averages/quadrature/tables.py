"""Averages of many pairs: interpolants in the angle and in the logarithms of variances.

⟨φ(x)φ(y)⟩ / √(M(a) M(b)) is analytic in the logarithms of the variances, and in the angle
θ = arccos c up to 0 and π where kinks of x and y meet at no or at every angle. Boxes are halved
where Chebyshev coefficients do not fall off, and checked against the averages themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.polynomial import chebyshev

from fieldtheory.averages.quadrature.functions import Function
from fieldtheory.averages.quadrature.pairs import PairAverages, determinant
from fieldtheory.averages.quadrature.single import Moments, interpolation, last_terms

# A box is built for at least so many pairs per node of it, and checked at so many places.
_WORTH, _CHECKS, _DEPTH = 0.5, 12, 24
# The largest angle at which kinks that meet matter.
_SMALL = 0.6


class Box:
    """A Chebyshev interpolant in several variables, or two boxes."""

    def __init__(
        self, function: Callable, low: np.ndarray, high: np.ndarray, depth: int = 0
    ) -> None:
        self.function, self.depth = function, depth
        self.low, self.high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
        self.halves: tuple[int, float, Box, Box] | None = None
        self.values: np.ndarray | None = None
        self.error = np.nan

    def __call__(self, places: np.ndarray, counts: tuple[int, ...], allowed: float) -> np.ndarray:
        """Values at places (n, d), by interpolation where so many are worth it."""
        if self.halves is None and self.values is None:
            if len(places) < _WORTH * np.prod(counts) or self.depth > _DEPTH:
                return self.function(places)
            self._build(counts, allowed)
        if self.halves is None:
            return self._interpolated(places, counts)
        axis, middle, *halves = self.halves
        above = places[:, axis] > middle
        found = np.empty(len(places))
        for side, half in zip((~above, above), halves, strict=True):
            if side.any():
                found[side] = half(places[side], counts, allowed)
        return found

    def _build(self, counts: tuple[int, ...], allowed: float) -> None:
        axes = [
            (lo + hi) / 2 + (hi - lo) / 2 * chebyshev.chebpts1(n)
            for lo, hi, n in zip(self.low, self.high, counts, strict=True)
        ]
        grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
        values = self.function(grid.reshape(-1, len(counts))).reshape(counts)
        tails = [
            last_terms(np.moveaxis(values, i, 0), chebyshev.chebpts1(n)).max()
            for i, n in enumerate(counts)
        ]
        if max(tails) <= allowed:
            self.values = values
            places = np.random.default_rng(0).uniform(self.low, self.high, (_CHECKS, len(counts)))
            self.error = np.abs(self._interpolated(places, counts) - self.function(places)).max()
            if self.error <= 10 * allowed:
                return
            self.values = None
        axis = int(np.argmax(tails))
        middle = (self.low[axis] + self.high[axis]) / 2
        ends = self.high.copy(), self.low.copy()
        ends[0][axis] = ends[1][axis] = middle
        first = Box(self.function, self.low, ends[0], self.depth + 1)
        second = Box(self.function, ends[1], self.high, self.depth + 1)
        self.halves = axis, middle, first, second

    def _interpolated(self, places: np.ndarray, counts: tuple[int, ...]) -> np.ndarray:
        x = 2 * (places - self.low) / (self.high - self.low) - 1
        values = self.values
        # What all places share is contracted once.
        while values.ndim > 1 and (x[:, 0] == x[0, 0]).all():
            row = interpolation(x[:1, 0], chebyshev.chebpts1(len(values)))[0]
            values, x = np.tensordot(row, values, 1), x[:, 1:]
        if values.ndim == 1:
            return chebyshev.chebval(x[:, 0], _terms(values))
        found = interpolation(x[:, 0], chebyshev.chebpts1(len(values))) @ values.reshape(
            len(values), -1
        )
        for i in range(1, values.ndim):
            found = found.reshape(len(x), values.shape[i], -1)
            rows = interpolation(x[:, i], chebyshev.chebpts1(values.shape[i]))
            found = np.einsum("ni,nij->nj", rows, found)
        return found[:, 0]

    def leaves(self) -> list[Box]:
        """The boxes that are built."""
        if self.halves is None:
            return [self] if self.values is not None else []
        return self.halves[2].leaves() + self.halves[3].leaves()


def _terms(values: np.ndarray) -> np.ndarray:
    """Chebyshev coefficients of values at the nodes."""
    n = len(values)
    terms = chebyshev.chebvander(chebyshev.chebpts1(n), n - 1).T @ values * (2 / n)
    terms[0] /= 2
    return terms


class PairTable:
    """⟨φ(x)φ(y)⟩ of very many pairs, of one variance or of two.

    Kinks of x and y away from zero meet at equal variances and θ = 0, where the average is no
    analytic function of the variances and θ. It is one of ln ab, θ and ln(a/b)/θ, and one of ln ab,
    ln(a/b) and θ/ln(a/b), so that small angles have boxes in these.

    Parameters
    ----------
    function : Function
    low, high : float
        The variances.
    one : bool
        Whether both variances of every pair are the same.
    """

    def __init__(self, function: Function, low: float, high: float, one: bool = True) -> None:
        self.averages, self.moments = PairAverages(function, slopes=False), Moments(function)
        self.one, self.places = one, 0
        logs = np.log([low, high])
        # The strip in which averages are analytic in ln K is π wide.
        wide = np.pi / (logs[1] - logs[0])
        number = min(int(36 / np.log(wide + np.hypot(wide, 1))) + 3, 24)
        self.counts = (number, 18) if one else (min(number, 12), min(number, 12), 16)
        away = np.abs(function.kinks[function.kinks != 0])
        self.small, self.split = 0.0, 0.0
        if one:
            self.regions = [(self._by_angle, [logs[0], 0.0], [logs[1], np.pi])]
        elif not len(away):
            self.regions = [(self._by_angle, [logs[0]] * 2 + [0.0], [logs[1]] * 2 + [np.pi])]
        else:
            self.small, self.split = _SMALL, 18 * np.sqrt(high) / away.min()
            most, sums = logs[1] - logs[0], 2 * logs
            wide = [logs[0]] * 2 + [self.small], [logs[1]] * 2 + [np.pi - self.small]
            near = [sums[0], 0.0, 0.0], [sums[1], self.small, self.split]
            far = [sums[0], 0.0, 0.0], [sums[1], most, 1 / self.split]
            self.regions = [(self._by_angle, *wide)]
            for sign in (1, -1):
                self.regions.append((partial(self._by_share, sign), *near))
                self.regions.append((partial(self._by_ratio, sign), *far))
        self.boxes = [Box(*region) for region in self.regions]

    def _averages(self, a: np.ndarray, b: np.ndarray, angle: np.ndarray) -> np.ndarray:
        self.places += len(a)
        M = [self.moments(K)[0][0] for K in (a, b)]
        return self.averages.at_angles(a, b, angle) / np.sqrt(M[0] * M[1])

    def _by_angle(self, at: np.ndarray) -> np.ndarray:
        return self._averages(np.exp(at[:, 0]), np.exp(at[:, -2]), at[:, -1])

    def _by_share(self, sign: int, at: np.ndarray) -> np.ndarray:
        total, angle, share = at.T
        return self._of(sign, total, share * angle, angle)

    def _by_ratio(self, sign: int, at: np.ndarray) -> np.ndarray:
        total, apart, share = at.T
        return self._of(sign, total, apart, share * apart)

    def _of(self, sign: int, total: np.ndarray, apart: np.ndarray, angle: np.ndarray) -> np.ndarray:
        a, b = np.exp((total + apart) / 2), np.exp((total - apart) / 2)
        return self._averages(a, b, angle if sign > 0 else np.pi - angle)

    def __call__(
        self, a: np.ndarray, b: np.ndarray, t: np.ndarray, allowed: float = 1e-13
    ) -> np.ndarray:
        """⟨φφ⟩ of pairs (n,)."""
        root = np.sqrt(a * b)
        apart = determinant(a, b, t) / (root * (root + np.abs(t)))
        small = 2 * np.arcsin(np.sqrt(np.minimum(apart / 2, 1.0)))
        x, y = np.log(a), np.log(b)
        if self.one:
            places = [np.stack([x, np.where(t < 0, np.pi - small, small)], axis=1)]
            region = np.zeros(len(a), dtype=int)
        else:
            total, ratio = x + y, np.abs(x - y)
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.nan_to_num(ratio / small, nan=0.0)
            region = np.where(small < self.small, 1 + (share > self.split) + 2 * (t < 0), 0)
            with np.errstate(divide="ignore", invalid="ignore"):
                near = np.stack([total, small, share], axis=1)
                far = np.stack([total, ratio, small / ratio], axis=1)
            wide = np.stack([x, y, np.where(t < 0, np.pi - small, small)], axis=1)
            places = [wide, near, far, near, far]
        ratio = np.empty(len(a))
        for i, box in enumerate(self.boxes):
            some = region == i
            if some.any():
                ratio[some] = box(places[i][some], self.counts, allowed)
        if self.one and (a == a[0]).all():
            return ratio * self.moments(a[:1])[0][0]
        return ratio * np.sqrt(self.moments(a)[0][0] * self.moments(b)[0][0])
