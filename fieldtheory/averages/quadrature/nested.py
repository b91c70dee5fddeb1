"""Averages of pairs with correlations of nearly or exactly one, on nested panels.

x = √a (αu + βv) and y = √b (αu − βv) with independent u and v, α² + β² = 1. The integral over u,
on panels between the kinks of both factors, which move with v, is analytic in v but where two kinks
meet: panels of v end there. At a correlation of one there is no v.
"""

from __future__ import annotations

import numpy as np

from fieldtheory.averages.quadrature.functions import ORDER, Function
from fieldtheory.averages.quadrature.panels import error_of, nodes_of, summed

# Where panels end and how wide they are at most, in deviations.
_END, _WIDEST = 9.5, 1.9
# Places where panels of v end at first, how often they are halved, and lines integrated at once.
_FIRST, _ROUNDS, _TOGETHER = (-9.5, -4.5, -2.0, 0.0, 2.0, 4.5, 9.5), 14, 100
# Share of last coefficients that may hide others which fall off more slowly.
_HIDDEN = 1e-3
_DENSITY = 1 / np.sqrt(2 * np.pi)


class Strong:
    """⟨φ(x)ψ(y)⟩ and what makes its derivatives, for arrays of pairs."""

    def __init__(self, first: Function, second: Function, rtol: float, slopes: bool = True) -> None:
        self.first, self.second, self.rtol, self.slopes = first, second, rtol, slopes

    def __call__(
        self, a: np.ndarray, b: np.ndarray, apart: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """⟨φψ⟩, ⟨φ'ψ'⟩, ⟨xφ'ψ⟩, ⟨φyψ'⟩ (4, m) for 1 − c = apart, their errors, and sizes."""
        roots = np.sqrt(np.array([a, b]))
        alpha, beta = np.sqrt(1 - apart / 2), np.sqrt(apart / 2)
        lines = np.stack([roots[0] * alpha, roots[0] * beta, roots[1] * alpha, -roots[1] * beta])
        found = np.full((3, 4, len(a)), np.nan)
        rows = slice(None if self.slopes else 1)
        # Pairs of about one width share the edges that they see.
        power = np.ceil(np.log2(roots.max(axis=0)))
        for each in np.unique(power):
            some = power == each
            found[:, rows, some] = self._nested(lines[:, some], _END * 2.0**each)
        if self.slopes and (len(self.first.jumping) or len(self.second.jumping)):
            found[0, 1:] += self._of_jumps(a, b, apart)
        return found[0], found[1], found[2]

    def _nested(self, lines: np.ndarray, reach: float) -> np.ndarray:
        edges = [_with_widths(function, reach) for function in (self.first, self.second)]
        count, kinds = lines.shape[1], 4 if self.slopes else 1
        total = np.zeros((3, kinds, count))
        single = np.nonzero(lines[1] == 0)[0]
        if len(single):
            total[:, :, single] = self._lines(lines[:, single], np.zeros(len(single)), edges)
        even = self._is_even(lines)
        which, low, high = self._first_panels(lines, even, edges)
        for left in reversed(range(_ROUNDS)):
            if not len(low):
                break
            v, half = nodes_of(low, high)
            inner = self._lines(lines[:, np.repeat(which, ORDER)], v.ravel(), edges)
            weight = np.exp(-(v**2) / 2) * (_DENSITY * np.where(even[which], 2, 1))[:, None]
            inner = inner.reshape(3, kinds, len(low), ORDER) * weight
            (found, missed, size), tails = summed(inner, half, _HIDDEN)
            error = error_of(tails[0][..., None], size)
            scale = np.maximum(total[2], _sums(which, size, count))
            done = (error <= 0.02 * self.rtol * scale[:, which]).all(axis=0) | (left == 0)
            for row, values in enumerate((found, error + missed, size)):
                total[row] += _sums(which[done], values[:, done], count)
            low, high, which = low[~done], high[~done], np.tile(which[~done], 2)
            middle = (low + high) / 2
            low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
        if self.slopes:
            # Of equal variances −v exchanges x and y.
            equal = even & (lines[0] == lines[2])
            total[:, 2:, equal] = total[:, 2:, equal].mean(axis=1, keepdims=True)
        return total

    def _is_even(self, lines: np.ndarray) -> np.ndarray:
        """Whether integrals over u are even in v: exchanged inputs, or functions with parity."""
        both = bool(self.first.parity and self.second.parity)
        return both | ((lines[0] == lines[2]) & (self.first is self.second))

    def _first_panels(
        self, lines: np.ndarray, even: np.ndarray, edges: list
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pairs, and ends of panels of v: where kinks of both factors meet, and beside."""
        one, two = (_features(*each) for each in edges)
        with np.errstate(divide="ignore", invalid="ignore"):
            x, y = one[:, :, None, None] / lines[0], two[:, None, :, None] / lines[2]
            apart = lines[1] / lines[0] - lines[3] / lines[2]
            meeting = ((x[0] - y[0]) / apart).reshape(-1, lines.shape[1])
            beside = (np.minimum(x[1], y[1]) / apart).reshape(-1, lines.shape[1])
            ends = np.concatenate([meeting, meeting - beside, meeting + beside])
        ends = np.nan_to_num(np.clip(ends, -_END, _END), nan=0.0)
        fixed = np.repeat(np.array(_FIRST)[:, None], lines.shape[1], axis=1)
        ends = np.maximum(np.concatenate([fixed, ends]), np.where(even, 0.0, -np.inf))
        ends = np.sort(ends, axis=0)
        wide = (np.diff(ends, axis=0) > 1e-14) & (lines[1] != 0)
        return np.nonzero(wide)[1], ends[:-1][wide], ends[1:][wide]

    def _lines(self, lines: np.ndarray, v: np.ndarray, edges: list) -> np.ndarray:
        """Integrals over u at given v, their errors, and those of sizes, shape (3, kinds, m)."""
        parts = [slice(start, start + _TOGETHER) for start in range(0, len(v), _TOGETHER)]
        return np.concatenate([self._some(lines[:, i], v[i], edges) for i in parts], axis=2)

    def _some(self, lines: np.ndarray, v: np.ndarray, edges: list) -> np.ndarray:
        steps, shifts = lines[::2, :, None], (lines[1::2] * v)[..., None]
        ends = [(e - at) / step for (e, _), step, at in zip(edges, steps, shifts, strict=True)]
        widths = [w / step for (_, w), step in zip(edges, steps, strict=True)]
        line, u, half = _panels(np.concatenate(ends, axis=1), np.concatenate(widths, axis=1))
        x, y = (step[line] * u + at[line] for step, at in zip(steps, shifts, strict=True))
        weight = np.exp(-0.5 * u**2) * _DENSITY
        f, g = self.first(x), self.second(y)
        rows = [f * g]
        if self.slopes:
            df, dg = self.first.slope(x), self.second.slope(y)
            rows += [df * dg, x * df * g, f * y * dg]
        sums = np.stack([summed(row * weight, half) for row in rows])
        starts = np.searchsorted(line, np.arange(len(v)))
        found, tails = (np.add.reduceat(sums[:, i], starts, axis=1) for i in (0, 1))
        size = np.add.reduceat(np.abs(sums[:, 0]), starts, axis=1)
        return np.stack([found, error_of(tails[..., None], size), size])

    def _of_jumps(self, a: np.ndarray, b: np.ndarray, apart: np.ndarray) -> np.ndarray:
        """What δ-functions of φ' and ψ' add to ⟨φ'ψ'⟩, ⟨xφ'ψ⟩ and ⟨φyψ'⟩, shape (3, m)."""
        found, c = np.zeros((3, len(a))), 1 - apart
        deviation = np.sqrt(apart * (1 + c))
        sides = (self.first, self.second, a, b, 1), (self.second, self.first, b, a, 2)
        for one, other, K, L, row in sides:
            for place, jump in zip(one.kinks, one.jumps, strict=True):
                if jump:
                    density = jump * np.exp(-(place**2) / (2 * K)) * _DENSITY / np.sqrt(K)
                    mean = c * np.sqrt(L / K) * place
                    both = [other, other.slope]
                    values, slopes = conditional(both, mean, np.sqrt(L) * deviation)[0]
                    found[0] += density * slopes
                    found[row] += density * place * values
        for p, one in zip(self.first.kinks, self.first.jumps, strict=True):
            for q, two in zip(self.second.kinks, self.second.jumps, strict=True):
                if one * two:
                    x, y = p / np.sqrt(a), q / np.sqrt(b)
                    with np.errstate(divide="ignore", invalid="ignore"):
                        power = x * y / (1 + c) + (x - y) ** 2 / (2 * deviation**2)
                        power = np.where((x == y) & (deviation == 0), x * y / 2, power)
                        both = np.exp(-power) / (2 * np.pi * np.sqrt(a * b) * deviation)
                    found[0] += one * two * np.where((deviation == 0) & (x != y), 0.0, both)
        return found


def _with_widths(function: Function, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Edges of panels and the width of the narrower panel at each, negative at kinks."""
    edges = function.edges(reach)
    sides = np.diff(edges)
    widths = np.minimum(np.append(np.inf, sides), np.append(sides, np.inf))
    return edges, np.where(np.isin(edges, function.kinks), -widths, widths)


def _features(edges: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Kinks, and where panels are narrowest, and widths of panels there, shape (2, n)."""
    kept = widths < 0
    kept[np.argmin(np.abs(widths))] = True
    return np.stack([edges[kept], np.abs(widths[kept])])


def _panels(
    ends: np.ndarray, widths: np.ndarray, end: float = _END, widest: float = _WIDEST
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lines, nodes and half widths of panels between the edges (m, n) of m lines.

    Edges that are no kinks are left out where panels stay as narrow as all that they join.
    """
    grid = np.linspace(-end, end, int(2 * end / widest) + 2)
    shape = len(ends), len(grid)
    ends = np.clip(np.concatenate([ends, np.broadcast_to(grid, shape)], axis=1), -end, end)
    widths = np.concatenate([widths, np.full(shape, widest)], axis=1)
    order = np.argsort(ends, axis=1)
    ends, widths = (np.take_along_axis(each, order, axis=1) for each in (ends, widths))
    kink, widths = widths < 0, np.minimum(np.abs(widths), 1e3)
    for start in (0, 1, 0):
        left, middle, right = (slice(start + i, ends.shape[1] - 2 + i, 2) for i in range(3))
        least = np.minimum(np.minimum(widths[:, left], widths[:, right]), widths[:, middle])
        drop = ~kink[:, middle] & (ends[:, right] - ends[:, left] <= 1.05 * least)
        # One that is left out is where the next one is.
        ends[:, middle] = np.where(drop, ends[:, right], ends[:, middle])
        for side in (left, right):
            widths[:, side] = np.where(drop, least, widths[:, side])
    wide = np.diff(ends, axis=1) > 1e-13
    u, half = nodes_of(ends[:, :-1][wide], ends[:, 1:][wide])
    return np.nonzero(wide)[0], u, half


def conditional(
    functions: list[Function], mean: np.ndarray, deviation: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """⟨ψ⟩ of variables with means and deviations (m,) for functions with the same breakpoints.

    With errors and ⟨|ψ|⟩, each (functions, m).
    """
    reach = float((np.abs(mean) + _END * deviation).max(initial=0.0)) + 1
    edges, widths = _with_widths(functions[0], reach)
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.nan_to_num((edges - mean[:, None]) / deviation[:, None], nan=0.0)
        widths = np.nan_to_num(widths / deviation[:, None], nan=np.inf)
    line, z, half = _panels(ends, widths)
    h = deviation[line, None] * z + mean[line, None]
    rows = np.stack([function(h) for function in functions]) * np.exp(-(z**2) / 2) * _DENSITY
    starts = np.searchsorted(line, np.arange(len(mean)))
    found, tails = (np.add.reduceat(each, starts, axis=1) for each in summed(rows, half))
    sizes = np.add.reduceat(summed(np.abs(rows), half)[0], starts, axis=1)
    return found, tails + 1e-15 * sizes, sizes


def _sums(which: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    return np.array([np.bincount(which, row, count) for row in values])
