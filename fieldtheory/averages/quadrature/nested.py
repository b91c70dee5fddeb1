"""Averages of two variables with correlations near or equal to one: nested panels.

x = √a (αu + βv) and y = √b (αu − βv) with independent standard Gaussian u and v, the sum and the
difference of x/√a and y/√b; α² = 1 − β² = (1 + c)/2. The integral over u, on panels between the
breakpoints of both functions, which move with v, is analytic in v except where two breakpoints
meet: there panels of v end. At c = 1 only the line v = 0 is left.
"""

from __future__ import annotations

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.quadrature.panelled_functions import ORDER, Function
from fieldtheory.averages.quadrature.panels import (
    DENSITY,
    END,
    averages_about,
    edges_with_widths,
    error_of,
    nodes_of,
    panels_of_lines,
    summed,
)
from fieldtheory.averages.routes import SETTINGS

# First edges of panels of v in units of the last, how often these are halved, and lines that are
# integrated at once.
_FIRST, _BISECTIONS, _TOGETHER = np.array([-9.5, -4.5, -2.0, 0.0, 2.0, 4.5, 9.5]) / END, 14, 100
# The least ratio of the error of a panel of v and its last coefficients: a small part of an
# integrand that falls off slowly is hidden by the others.
_HIDDEN = 1e-3
# The smallest tolerance that panels are halved for: rounding is below it.
_FINEST = 1e-13


class NestedPanels:
    """⟨φ(x)ψ(y)⟩, ⟨φ'ψ'⟩, ⟨xφ'ψ⟩ and ⟨φyψ'⟩ for arrays of pairs with c >= 0.

    Panels of v are halved until their errors are below ``rtol`` of the integrals of the moduli. The
    first ``kinds`` of the four are computed.
    """

    def __init__(self, first: Function, second: Function, rtol: float, kinds: int) -> None:
        self.first, self.second, self.kinds = first, second, kinds
        self.rtol = max(rtol, _FINEST)

    def __call__(
        self,
        a: np.ndarray,
        b: np.ndarray,
        gap: np.ndarray,
        means: np.ndarray | None = None,
        about: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The averages of pairs (m,) with 1 − c = ``gap``."""
        roots = np.sqrt(np.array([a, b]))
        alpha, beta = np.sqrt(1 - gap / 2), np.sqrt(gap / 2)
        means = np.zeros((2, len(a))) if means is None else np.array(means)
        means[[self.first.parity == -1, self.second.parity == -1]] = 0.0
        about = np.zeros((2, len(a))) if about is None else about
        lines = np.stack(
            [roots * alpha, [roots[0] * beta, -roots[1] * beta], means, about], axis=1
        ).reshape(8, -1)
        averages = np.empty((3, self.kinds, len(a)))
        # Averages are relative to √(⟨φ²⟩⟨ψ²⟩), and so is what lies beyond the end of the panels.
        sides = zip((self.first, self.second), roots, about, strict=True)
        extents = sum(function.extent(root, mean) ** 2 for function, root, mean in sides)
        ends = np.maximum(END, np.sqrt(extents / 2))
        # Pairs of about one size share the panels of φ and ψ.
        power = np.ceil(np.log2(roots.max(axis=0)))
        for each in np.unique(power):
            some = power == each
            end = float(ends[some].max())
            reach = end * 2.0**each + np.abs(about[:, some]).max()
            averages[..., some] = self._over_v(lines[:, some], reach, end)
        if self.kinds > 1 and (len(self.first.jumping) or len(self.second.jumping)):
            averages[0, 1:] += self.of_jumps(a, b, gap, means)[: self.kinds - 1]
        return averages[0], averages[1], averages[2]

    def _over_v(self, lines: np.ndarray, reach: float, end: float) -> np.ndarray:
        """Values, errors and sizes, shape (3, kinds, m), of u and v up to an end."""
        edges = [edges_with_widths(function, reach) for function in (self.first, self.second)]
        if max(len(each) for each, _ in edges) > SETTINGS.nested_panels:
            raise QuadratureError(
                "an average of two strongly correlated signals did not reach the tolerance: more "
                f"than {SETTINGS.nested_panels} panels are needed to resolve a function up to "
                f"{reach:.3g}"
            )
        count, kinds = lines.shape[1], self.kinds
        total = np.zeros((3, kinds, count))
        single = np.nonzero(lines[1] == 0)[0]
        if len(single):
            total[:, :, single] = self._over_u(lines[:, single], np.zeros(len(single)), edges, end)
        # Integrals over u are even in v of exchanged inputs, and of functions with parity.
        both = bool(self.first.parity and self.second.parity)
        exchanged = (lines[0] == lines[4]) & (lines[3] == lines[7]) & (self.first is self.second)
        even = exchanged | (both & (lines[3::4] == 0).all(axis=0))
        which, low, high = self._first_panels(lines, even, edges, end)
        for left in reversed(range(_BISECTIONS)):
            if not len(low):
                break
            v, half = nodes_of(low, high)
            inner = self._over_u(lines[:, np.repeat(which, ORDER)], v.ravel(), edges, end)
            weight = np.exp(-(v**2) / 2) * (DENSITY * np.where(even[which], 2, 1))[:, None]
            inner = inner.reshape(3, kinds, len(low), ORDER) * weight
            (value, missed, size), tails = summed(inner, half, _HIDDEN)
            error = error_of(tails[0][..., None], size)
            scale = np.maximum(total[2], _sums(which, size, count))
            done = (error <= 0.02 * self.rtol * scale[:, which]).all(axis=0) | (left == 0)
            for row, values in enumerate((value, error + missed, size)):
                total[row] += _sums(which[done], values[:, done], count)
            low, high, which = low[~done], high[~done], np.tile(which[~done], 2)
            middle = (low + high) / 2
            low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
        if kinds > 2 and self.first is self.second:
            # Of equal variances −v exchanges x and y, so that half of the v-axis gives their mean.
            equal = even & (lines[0] == lines[4])
            total[:, 2:, equal] = total[:, 2:, equal].mean(axis=1, keepdims=True)
        return total

    def _first_panels(
        self, lines: np.ndarray, even: np.ndarray, edges: list, end: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pairs and edges of panels of v: where breakpoints of both functions meet, and near it."""
        (x, x_near), (y, y_near) = (_breakpoints(*each) for each in edges)
        with np.errstate(divide="ignore", invalid="ignore"):
            x, x_near = (x[:, None, None] - lines[3]) / lines[0], x_near[:, None, None] / lines[0]
            y, y_near = (y[:, None] - lines[7]) / lines[4], y_near[:, None] / lines[4]
            difference = lines[1] / lines[0] - lines[5] / lines[4]
            meeting = ((x - y) / difference).reshape(-1, lines.shape[1])
            near = (np.minimum(x_near, y_near) / difference).reshape(-1, lines.shape[1])
            ends = np.concatenate([meeting, meeting - near, meeting + near])
        ends = np.nan_to_num(np.clip(ends, -end, end), nan=0.0)
        fixed = np.repeat(end * _FIRST[:, None], lines.shape[1], axis=1)
        ends = np.maximum(np.concatenate([fixed, ends]), np.where(even, 0.0, -np.inf))
        ends = np.sort(ends, axis=0)
        wide = (np.diff(ends, axis=0) > 1e-14) & (lines[1] != 0)
        return np.nonzero(wide)[1], ends[:-1][wide], ends[1:][wide]

    def _over_u(self, lines: np.ndarray, v: np.ndarray, edges: list, end: float) -> np.ndarray:
        """Integrals over u at given v, their errors, and those of moduli, shape (3, kinds, m)."""
        parts = [slice(start, start + _TOGETHER) for start in range(0, len(v), _TOGETHER)]
        return np.concatenate([self._lines(lines[:, i], v[i], edges, end) for i in parts], axis=2)

    def _lines(self, lines: np.ndarray, v: np.ndarray, edges: list, end: float) -> np.ndarray:
        steps, shifts = lines[::4, :, None], (lines[1::4] * v + lines[3::4])[..., None]
        means = lines[2::4]
        ends = [(e - at) / step for (e, _), step, at in zip(edges, steps, shifts, strict=True)]
        widths = [w / step for (_, w), step in zip(edges, steps, strict=True)]
        line, u, half = panels_of_lines(
            np.concatenate(ends, axis=1), np.concatenate(widths, axis=1), end
        )
        x, y = (step[line] * u + at[line] for step, at in zip(steps, shifts, strict=True))
        weight = np.exp(-0.5 * u**2) * DENSITY
        f, g = self.first(x) - means[0][line, None], self.second(y) - means[1][line, None]
        rows = [f * g]
        if self.kinds > 1:
            df, dg = self.first.slope(x), self.second.slope(y)
            rows += [df * dg, *((x * df * g, f * y * dg) if self.kinds > 2 else ())]
        sums = np.stack([summed(row * weight, half) for row in rows])
        starts = np.searchsorted(line, np.arange(len(v)))
        values, tails = (np.add.reduceat(sums[:, i], starts, axis=1) for i in (0, 1))
        size = np.add.reduceat(np.abs(sums[:, 0]), starts, axis=1)
        return np.stack([values, error_of(tails[..., None], size), size])

    def of_jumps(
        self, a: np.ndarray, b: np.ndarray, gap: np.ndarray, means: np.ndarray
    ) -> np.ndarray:
        """Contributions of δ-functions of φ' and ψ' to ⟨φ'ψ'⟩, ⟨xφ'ψ⟩ and ⟨φyψ'⟩, shape (3, m)."""
        contributions, c = np.zeros((3, len(a))), 1 - gap
        deviation = np.sqrt(gap * (1 + c))
        sides = (
            (self.first, self.second, a, b, means[1], 1),
            (self.second, self.first, b, a, means[0], 2),
        )
        for one, other, K, L, mean, row in sides:
            for place, jump in zip(one.kinks, one.jumps, strict=True):
                if jump:
                    density = jump * np.exp(-(place**2) / (2 * K)) * DENSITY / np.sqrt(K)
                    about, spread = c * np.sqrt(L / K) * place, np.sqrt(L) * deviation
                    values, slopes = averages_about([other, other.slope], about, spread)[0]
                    contributions[0] += density * slopes
                    contributions[row] += density * place * (values - mean)
        for p, one in zip(self.first.kinks, self.first.jumps, strict=True):
            for q, two in zip(self.second.kinks, self.second.jumps, strict=True):
                if one * two:
                    x, y = p / np.sqrt(a), q / np.sqrt(b)
                    with np.errstate(divide="ignore", invalid="ignore"):
                        power = x * y / (1 + c) + (x - y) ** 2 / (2 * deviation**2)
                        power = np.where((x == y) & (deviation == 0), x * y / 2, power)
                        both = np.exp(-power) / (2 * np.pi * np.sqrt(a) * np.sqrt(b) * deviation)
                    contributions[0] += one * two * np.where((deviation == 0) & (x != y), 0.0, both)
        return contributions


def _breakpoints(edges: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Breakpoints, and where panels are narrowest, and widths of panels there, shape (2, n)."""
    kept = widths < 0
    kept[np.argmin(np.abs(widths))] = True
    return np.stack([edges[kept], np.abs(widths[kept])])


def _sums(which: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    return np.array([np.bincount(which, row, count) for row in values])
