"""⟨φ(x)ψ(y)⟩ = Σ f_n(a) g_n(b) cⁿ and its derivatives, with a bound of what is left out."""

from __future__ import annotations

import numpy as np

from fieldtheory.averages.quadrature.functions import Function
from fieldtheory.averages.quadrature.single import Coefficients

# Pairs at once, times orders.
_TOGETHER = 1 << 20
# Coefficients that tell how much those beyond them are.
_LAST = 8


class Series:
    """Mehler's series of two functions up to an order.

    By Parseval, what is left out is at most |c|^(N+1) √(rest rest), rest = ⟨φ²⟩ − Σ_{n≤N} f_n².
    """

    def __init__(self, first: Function, second: Function, order: int) -> None:
        self.order, self.smooth = order, not (len(first.kinks) or len(second.kinks))
        self.first = Coefficients(first, order)
        self.second = self.first if second is first else Coefficients(second, order)

    def __call__(
        self, a: np.ndarray, b: np.ndarray, c: np.ndarray, connected: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """⟨φψ⟩, its derivatives by t, a and b (4, m), their errors and natural sizes.

        Without the term n = 0 of connected averages.
        """
        step = max(1, _TOGETHER // (self.order + 1))
        parts = [
            self._of_some(a[i : i + step], b[i : i + step], c[i : i + step], int(connected))
            for i in range(0, len(c), step)
        ]
        return tuple(np.concatenate(each, axis=1) for each in zip(*parts, strict=True))

    def _of_some(
        self, a: np.ndarray, b: np.ndarray, c: np.ndarray, start: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        f, f_noise, f_square = _each(self.first, a)
        g, g_noise, g_square = _each(self.second, b)
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
        scales = np.stack([np.ones(len(c)), 1 / np.sqrt(a * b), 1 / a, 1 / b])
        values = np.stack([np.einsum("mn,mn,mn->m", *three) for three in terms])
        wrong = np.abs(f) * g_noise + np.abs(g) * f_noise
        noise = np.stack([np.einsum("mn,mn->m", wrong, np.abs(p)) for p in (power, below)])
        rest = np.sqrt(_rest(f, f_square) * _rest(g, g_square))
        left = np.where(rest > 0, _left_out(self.order, c, self.smooth), 0.0) * rest
        errors = left + noise[[0, 1, 1, 1]] + 4e-16 * np.abs(values)
        sizes = np.sqrt(natural_size(f, start, f_square) * natural_size(g, start, g_square))
        return values * scales, errors * scales, sizes * scales


def natural_size(f: np.ndarray, connected: int, square: np.ndarray | None = None) -> np.ndarray:
    """⟨φ²⟩, or the variance of φ, from coefficients; without ``square`` their last column is it."""
    if square is None:
        f, square = f[:, :-1], f[:, -1]
    if not connected:
        return square
    return np.maximum(square - f[:, 0] ** 2, (f[:, 1:] ** 2).sum(axis=1))


def _each(of: Coefficients, K: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coefficients of each pair's variance, their errors, and ⟨φ²⟩."""
    variances, places = np.unique(K, return_inverse=True)
    values, errors = of(variances)
    return values[places, :-1], errors[places, :-1], values[places, -1]


def _rest(f: np.ndarray, square: np.ndarray) -> np.ndarray:
    """What is left of ⟨φ²⟩: by Parseval, and below its rounding by the last coefficients."""
    order = f.shape[1] - 1
    lost = np.maximum(square - (f**2).sum(axis=1) - 1e-15 * square, 0.0)
    return lost + 4 * order * (f[:, -_LAST:] ** 2).max(axis=1)


def _left_out(order: int, c: np.ndarray, smooth: bool) -> np.ndarray:
    """The largest |c|ⁿ, and thrice n |c|^(n−1), of n > order.

    Coefficients of smooth functions fall off so fast that no n much larger matters.
    """
    with np.errstate(divide="ignore"):
        log_c = np.log(np.abs(c))
    at = np.maximum(order + 1.0, -1 / np.minimum(log_c, -1e-300))
    with np.errstate(invalid="ignore", over="ignore"):
        slope = np.where(at < 1e15, at * np.exp((at - 1) * log_c), np.inf)
        slope = np.minimum(slope, 8 * order) if smooth else slope
    return np.stack([np.exp((order + 1) * log_c), slope, slope, slope])
