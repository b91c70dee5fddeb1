"""Mehler's series ⟨φ(x)ψ(y)⟩ = Σ f_n(a) g_n(b) cⁿ, its derivatives, and a bound of its remainder.

c is the correlation of x and y, a and b are their variances. By Price's theorem

    ∂/∂t = ⟨φ'ψ'⟩ = Σ n f_n g_n c^(n−1) / √(ab),
    ∂/∂a = ⟨φ''ψ⟩/2 = Σ √((n+1)(n+2)) f_{n+2} g_n cⁿ / (2a),

with coefficients of φ and ψ themselves. By Parseval the terms beyond the order N sum up to at most
|c|^(N+1) √(r_a r_b) with r_a = ⟨φ²⟩ − Σ_{n≤N} f_n².
"""

from __future__ import annotations

import numpy as np

from fieldtheory.averages.quadrature.one_variable import Coefficients
from fieldtheory.averages.quadrature.panelled_functions import Function
from fieldtheory.averages.quadrature.panels import END

# Pairs times orders that are summed at once.
_TOGETHER = 1 << 20
# Coefficients that bound those beyond them where Parseval's sum is rounding.
_LAST = 8


class Series:
    """Mehler's series of two functions up to an order."""

    def __init__(self, first: Function, second: Function, order: int) -> None:
        self.order = order
        self.first = Coefficients(first, order)
        self.second = self.first if second is first else Coefficients(second, order)

    def __call__(
        self, a: np.ndarray, b: np.ndarray, c: np.ndarray, connected: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The average of pairs (m,) and its derivatives by t, a and b.

        Returns
        -------
        values, errors, sizes : ndarray, shape (4, m)
            The sizes are √(⟨φ²⟩⟨ψ²⟩), or √(Var φ Var ψ) of connected averages, in which the order
            n = 0 is left out; of derivatives over √(ab), a and b.
        """
        step = max(1, _TOGETHER // (self.order + 1))
        parts = [
            self._summed(a[i : i + step], b[i : i + step], c[i : i + step], int(connected))
            for i in range(0, len(c), step)
        ]
        values, errors, sizes = (np.concatenate(each, axis=1) for each in zip(*parts, strict=True))
        return values, errors, sizes

    def smooth(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Whether no breakpoint is within reach of variables with these variances."""
        reach = END * np.sqrt(a), END * np.sqrt(b)
        return (reach[0] < self.first.function.nearest) & (reach[1] < self.second.function.nearest)

    def _summed(
        self, a: np.ndarray, b: np.ndarray, c: np.ndarray, start: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        f, f_noise, f_square = _of_pairs(self.first, a)
        g, g_noise, g_square = _of_pairs(self.second, b)
        n = np.arange(self.order + 1.0)
        power = np.ones_like(f)
        np.cumprod(np.broadcast_to(c[:, None], (len(c), self.order)), axis=1, out=power[:, 1:])
        below = np.zeros_like(power)
        below[:, 1:] = n[1:] * power[:, :-1]
        power[:, :start] = 0.0
        above = np.sqrt((n[:-2] + 1) * (n[:-2] + 2)) / 2
        terms = [
            (f, g, power),
            (f, g, below),
            (above * f[:, 2:], g[:, :-2], power[:, :-2]),
            (f[:, :-2], above * g[:, 2:], power[:, :-2]),
        ]
        scales = derivative_scales(a, b)
        values = np.stack([np.einsum("mn,mn,mn->m", *three) for three in terms])
        wrong = np.abs(f) * g_noise + np.abs(g) * f_noise
        noise = np.stack([np.einsum("mn,mn->m", wrong, np.abs(p)) for p in (power, below)])
        f_rest, g_rest = _tail(f, f_square), _tail(g, g_square)
        remainder = np.sqrt(f_rest) * np.sqrt(g_rest)
        smooth = self.smooth(a, b)
        left = np.where(remainder > 0, largest_powers(self.order, c, smooth), 0.0) * remainder
        smooth &= falls_off(f, f_square) & falls_off(g, g_square)
        last = np.abs(f[:, -_LAST:]).max(axis=1) * np.abs(g[:, -_LAST:]).max(axis=1)
        left = np.where(smooth, np.minimum(left, left_out(self.order, c) * last), left)
        errors = left + noise[[0, 1, 1, 1]] + 4e-16 * np.abs(values)
        sizes = np.sqrt(natural_size(f, start, f_square))
        sizes = sizes * np.sqrt(natural_size(g, start, g_square))
        return values * scales, errors * scales, sizes * scales


def derivative_scales(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The units of an average and of its derivatives by t, a and b, shape (4, m)."""
    return np.stack([np.ones(len(a)), 1 / (np.sqrt(a) * np.sqrt(b)), 1 / a, 1 / b])


def natural_size(f: np.ndarray, connected: int, square: np.ndarray | None = None) -> np.ndarray:
    """⟨φ²⟩, or the variance of φ, from coefficients (m, orders).

    Without ``square`` their last column is ⟨φ²⟩.
    """
    if square is None:
        f, square = f[:, :-1], f[:, -1]
    if not connected:
        return square
    return (f[:, 1:] ** 2).sum(axis=1) + _parseval(f, square)


def _of_pairs(of: Coefficients, K: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coefficients of each pair's variance, their errors, and ⟨φ²⟩."""
    variances, places = np.unique(K, return_inverse=True)
    values, errors = of(variances)
    return values[places, :-1], errors[places, :-1], values[places, -1]


def _parseval(f: np.ndarray, square: np.ndarray) -> np.ndarray:
    """⟨φ²⟩ − Σ f_n² without its rounding."""
    return np.maximum(square - (f**2).sum(axis=1) - 1e-15 * square, 0.0)


def _tail(f: np.ndarray, square: np.ndarray) -> np.ndarray:
    """The sum of f_n² beyond the last order: Parseval's, and a multiple of the last ones."""
    order = f.shape[1] - 1
    return _parseval(f, square) + 4 * order * (f[:, -_LAST:] ** 2).max(axis=1)


def falls_off(f: np.ndarray, square: np.ndarray) -> np.ndarray:
    """Whether by Parseval's sum the coefficients beyond the last ones are no larger than these."""
    last = np.abs(f[:, -_LAST:]).max(axis=1)
    return _parseval(f, square) <= 4 * f.shape[1] * last**2


def left_out(order: int, c: np.ndarray) -> np.ndarray:
    """Σ |c|ⁿ and Σ n |c|^(n−1) over n > order, shape (4, m).

    Times the last coefficients they bound what is left out of series with decreasing ones.
    """
    beyond = 1 / np.maximum(1 - np.abs(c), 1e-17)
    power = np.abs(c) ** order * beyond
    slope = power * (order + beyond)
    return np.stack([np.abs(c) * power, slope, slope, slope])


def largest_powers(order: int, c: np.ndarray, smooth: np.ndarray) -> np.ndarray:
    """The largest |c|ⁿ and three times the largest n |c|^(n−1) of n > order, shape (4, m).

    Coefficients of smooth functions fall off so fast that no n much larger than the order matters.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_c = np.log(np.abs(c))
        at = np.maximum(order + 1.0, -1 / np.minimum(log_c, -1e-300))
        slope = np.where(at < 1e15, at * np.exp((at - 1) * log_c), np.inf)
    slope = np.where(smooth, np.minimum(slope, 8 * order), slope)
    return np.stack([np.exp((order + 1) * log_c), slope, slope, slope])
