"""Mehler's series ⟨φ(x)ψ(y)⟩ = Σ f_n(a) g_n(b) cⁿ, its derivatives, and a bound of its remainder.

c is the correlation of x and y, a and b are their variances. By Price's theorem

    ∂/∂t = ⟨φ'ψ'⟩ = Σ n f_n g_n c^(n−1) / √(ab),
    ∂/∂a = ⟨φ''ψ⟩/2 = Σ √((n+1)(n+2)) f_{n+2} g_n cⁿ / (2a),

with coefficients of φ and ψ themselves. By Parseval the terms beyond the order N sum up to at most
|c|^(N+1) √(r_a r_b) with r_a = ⟨φ²⟩ − Σ_{n≤N} f_n².
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fieldtheory.averages.quadrature.one_variable import coefficients_of
from fieldtheory.averages.quadrature.panelled_functions import Function
from fieldtheory.averages.quadrature.panels import END

# Pairs times orders that are summed at once.
_TOGETHER = 1 << 20
# Coefficients that bound those beyond them where Parseval's sum is rounding.
LAST = 8
# Smaller correlations lose digits in cⁿ/c, whose first term is all that is left then.
_FIRST_ALONE = 1e-150


class Series:
    """Mehler's series of two functions up to an order."""

    def __init__(self, first: Function, second: Function, order: int) -> None:
        self.order, self.functions = order, (first, second)

    def __call__(
        self,
        K: np.ndarray,
        p: np.ndarray,
        q: np.ndarray,
        c: np.ndarray,
        connected: bool,
        kinds: int = 4,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The average of pairs (m,) and its derivatives by t, a and b, the first ``kinds`` of them.

        p and q (m,) are the places of the variances a and b among K (n,), c the correlations.
        Returns values, errors and sizes, (kinds, m): √(⟨φ²⟩⟨ψ²⟩), or √(Var φ Var ψ) of connected
        averages, in which the order n = 0 is left out; of derivatives over √(ab), a and b, and that
        by t is √(Σ n f_n² Σ n g_n²) where that is larger.
        """
        used = np.zeros(len(K), dtype=bool)
        used[p] = used[q] = True
        K, places = K[used], np.cumsum(used) - 1
        p, q = places[p], places[q]
        a, b = K[p], K[q]
        first, second = self.functions
        f = _Side.of(first, K, self.order, connected)
        g = f if first is second else _Side.of(second, K, self.order, connected)
        # Of functions of one parity every other order.
        parity = first.parity if first.parity == second.parity else 0
        n = np.arange(int(parity == -1), self.order + 1, 2 if parity else 1)
        values, step = np.empty((kinds, len(c))), max(1, _TOGETHER // len(n))
        for i in range(0, len(c), step):
            some = slice(i, i + step)
            values[:, some] = self._summed(f, g, n, p[some], q[some], c[some], connected, kinds)
        scales = derivative_scales(a, b, kinds)
        left = self._left_out(f, g, p, q, c, a, b)
        errors = left[[0, 1, 1, 1][:kinds]] + 4e-16 * np.abs(values)
        sizes = f.size[p] * g.size[q] * scales
        if kinds > 1:
            sizes[1] = np.maximum(sizes[1], f.norms[1, p] * g.norms[1, q] * scales[1])
        return values * scales, errors * scales, sizes

    def smooth(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Whether no breakpoint is within reach of variables with these variances."""
        first, second = (function.nearest for function in self.functions)
        return (END * np.sqrt(a) < first) & (END * np.sqrt(b) < second)

    def _summed(
        self,
        f: _Side,
        g: _Side,
        n: np.ndarray,
        p: np.ndarray,
        q: np.ndarray,
        c: np.ndarray,
        connected: bool,
        kinds: int,
    ) -> np.ndarray:
        powers = np.empty((len(n), len(c)))
        powers[0], ratio = (c if n[0] else 1.0), (c * c if n[1] - n[0] == 2 else c)
        for k in range(1, len(n)):
            np.multiply(powers[k - 1], ratio, out=powers[k])
        f_n, g_n = f.coefficients[n].take(p, axis=1), g.coefficients[n].take(q, axis=1)
        rows: list[np.ndarray] = []
        if kinds > 2:
            inside = n[n <= self.order - 2]
            raised = np.sqrt((inside + 1.0) * (inside + 2)) * (inside >= int(connected)) / 2
            for one, other, of in ((f, g_n, p), (g, f_n, q)):
                above = (raised[:, None] * one.coefficients[inside + 2]).take(of, axis=1)
                above *= other[: len(inside)]
                above *= powers[: len(inside)]
                rows.append(above.sum(axis=0))
        powers *= f_n
        powers *= g_n
        factors = np.stack([n >= int(connected), n])[: min(kinds, 2)].astype(float)
        rows[:0] = factors @ powers
        if kinds > 1:
            with np.errstate(divide="ignore", invalid="ignore"):
                first = f.coefficients[1][p] * g.coefficients[1][q]
                rows[1] = np.where(np.abs(c) < _FIRST_ALONE, first, rows[1] / c)
        return np.stack(rows)

    def _left_out(
        self,
        f: _Side,
        g: _Side,
        p: np.ndarray,
        q: np.ndarray,
        c: np.ndarray,
        a: np.ndarray,
        b: np.ndarray,
    ) -> np.ndarray:
        """What is beyond the order, and the noise of coefficients, of sums and slopes (2, m)."""
        remainder, smooth = f.tail[p] * g.tail[q], self.smooth(a, b)
        left = np.where(remainder > 0, largest_powers(self.order, c, smooth), 0.0) * remainder
        smooth &= f.falls_off[p] & g.falls_off[q]
        beyond = left_out(self.order, c) * (f.last[p] * g.last[q])
        left = np.where(smooth, np.minimum(left, beyond), left)
        # By Cauchy and Schwarz Σ |f_n| |c|ⁿ <= |f| √Σ c²ⁿ, and Σ n |f_n| |c|^(n−1) likewise.
        norm = 1 / np.maximum((1 - np.abs(c)) * (1 + np.abs(c)), 1e-300)
        norms = np.stack([np.sqrt(norm), norm])
        for one, other, i, j in ((f, g, p, q), (g, f, q, p)):
            left += other.noise[j] * np.minimum(one.sums[:, i], one.norms[:, i] * norms)
        return left


class _Side(NamedTuple):
    """Hermite coefficients (orders, variances) of one function and what follows from them.

    ``sums`` and ``norms`` (2, variances) are Σ |f_n| and Σ n |f_n|, and √Σ f_n² and √Σ n f_n².
    """

    coefficients: np.ndarray
    noise: np.ndarray
    tail: np.ndarray
    last: np.ndarray
    falls_off: np.ndarray
    size: np.ndarray
    sums: np.ndarray
    norms: np.ndarray

    @classmethod
    def of(cls, function: Function, K: np.ndarray, order: int, connected: bool) -> _Side:
        f, errors = coefficients_of(function, order)(K)
        f, square = f[:, :-1], f[:, -1]
        last, parseval = np.abs(f[:, -LAST:]).max(axis=1), _parseval(f, square)
        start = int(connected)
        weights = np.stack([np.ones(order + 1), np.arange(order + 1.0)])[:, start:]
        return cls(
            np.ascontiguousarray(f.T),
            errors[:, start:-1].max(axis=1),
            # Parseval's sum, and a multiple of the last coefficients.
            np.sqrt(parseval + 4 * order * last**2),
            last,
            parseval <= 4 * f.shape[1] * last**2,
            np.sqrt(natural_size(f, connected, square)),
            weights @ np.abs(f[:, start:]).T,
            np.sqrt(weights @ (f[:, start:] ** 2).T),
        )


def derivative_scales(a: np.ndarray, b: np.ndarray, kinds: int) -> np.ndarray:
    """The units of an average and of its derivatives by t, a and b, shape (kinds, m)."""
    scales = np.ones((kinds, len(a)))
    if kinds > 1:
        scales[1] /= np.sqrt(a) * np.sqrt(b)
    if kinds > 2:
        scales[2:] /= a, b
    return scales


def natural_size(f: np.ndarray, connected: int, square: np.ndarray | None = None) -> np.ndarray:
    """⟨φ²⟩, or the variance of φ, from coefficients (m, orders)."""
    if square is None:
        f, square = f[:, :-1], f[:, -1]
    if not connected:
        return square
    return (f[:, 1:] ** 2).sum(axis=1) + _parseval(f, square)


def _parseval(f: np.ndarray, square: np.ndarray) -> np.ndarray:
    """⟨φ²⟩ − Σ f_n² without its rounding."""
    return np.maximum(square - (f**2).sum(axis=1) - 1e-15 * square, 0.0)


def left_out(order: int, c: np.ndarray) -> np.ndarray:
    """Σ |c|ⁿ and Σ n |c|^(n−1) over n > order, shape (2, m)."""
    beyond = 1 / np.maximum(1 - np.abs(c), 1e-17)
    power = np.abs(c) ** order * beyond
    return np.stack([np.abs(c) * power, power * (order + beyond)])


def largest_powers(order: int, c: np.ndarray, smooth: np.ndarray) -> np.ndarray:
    """The largest |c|ⁿ and n |c|^(n−1) of n > order, shape (2, m)."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_c = np.log(np.abs(c))
        at = np.maximum(order + 1.0, -1 / np.minimum(log_c, -1e-300))
        slope = np.where(at < 1e15, at * np.exp((at - 1) * log_c), np.inf)
    slope = np.where(smooth, np.minimum(slope, 8 * order), slope)
    return np.stack([np.exp((order + 1) * log_c), slope])
