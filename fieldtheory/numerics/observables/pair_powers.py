"""Symmetric powers of the correlations of two pairs of signals, applied to Hermite coefficients.

Coefficients of order n are those of a homogeneous polynomial of two variables, and Sⁿ(X) is what
z = X w makes of it. Correlators of inputs that hardly correlate come from small entries of X beside
large ones, so that entries of Sⁿ(X) must have their digits one by one, not relative to the largest.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np

from fieldtheory.averages.polynomial_pieces.signs import rotations

# Powers of correlations that are left out, beside the lowest order that observables begin with,
# (h³ − 3h)(h'³ − 3h') of independent signals.
_NEGLIGIBLE, _LOWEST = 1e-16, 6
# Distances from one of the largest correlation that are rounding.
_ROUNDING = 1e-16
# Entries that are small beside the largest, and what scaling makes of a row or a column of them: so
# little that high powers of the norm do not grow.
_SMALL, _MADE = 3e-3, 0.05
# Last terms of the exponential of a shear.
_LAST = 1e-18


def block(n: int) -> slice:
    """Where the coefficients of order n are, packed by n and in it by i."""
    return slice(n * (n + 1) // 2, (n + 1) * (n + 2) // 2)


def correlated(X: np.ndarray, f: np.ndarray, count: int) -> np.ndarray:
    """Σ_i f_ni Sⁿ(X)_ij for all orders n, so that ⟨f;g⟩ is its product with the coefficients g.

    Parameters
    ----------
    X : ndarray, shape (2, 2, m)
    f : ndarray, shape (packed_size(count), m)
    count : int

    Returns
    -------
    ndarray, shape (packed_size(count), m)
        Zero for the order zero.

    Examples
    --------
    >>> X = np.array([[1e-9, 1e-20], [0.0, 1e-15]])[:, :, None]
    >>> product = correlated(X, np.eye(6)[:, 4:5], 3)[4]  # of z_1 z_2
    >>> (product / X[0, 0] / X[1, 1]).round(12)
    array([1.])
    """
    needed = orders_needed(X, count)
    # Those of which few orders matter come last.
    order = np.argsort(-needed)
    used = np.count_nonzero(needed[order] > np.arange(count)[:, None], axis=1)
    one_to_one = _one_to_one(X[..., order])
    found = np.zeros(f.shape)
    for chosen, kind in ((one_to_one, _Sheared), (~one_to_one, _Turned)):
        (places,) = np.nonzero(chosen)
        if not len(places):
            continue
        power: _Power = kind.of(X[..., order[places]], count)
        own, seen = f[:, order[places]], np.zeros((len(f), len(places)))
        for n, kept in enumerate(np.searchsorted(places, used[1:]).tolist(), start=1):
            if not kept:
                break
            seen[block(n), :kept] = power.applied(n, own[block(n), :kept])
        found[:, order[places]] = seen
    return found


def orders_needed(X: np.ndarray, count: int) -> np.ndarray:
    """How many of the orders 0, ..., count − 1 are more than rounding, for X (2, 2, m).

    Examples
    --------
    >>> X = np.zeros((2, 2, 3))
    >>> X[0, 0] = 1.0, 0.2, 0.0
    >>> orders_needed(X, 80).tolist()
    [80, 29, 0]
    """
    *_, large, _ = rotations(X)
    with np.errstate(divide="ignore"):
        falls = np.log(_NEGLIGIBLE) / np.minimum(np.log(large), -_ROUNDING)
    return np.where(large > 0, np.minimum(np.ceil(_LOWEST + falls), count), 0).astype(int)


class _Power(Protocol):
    """The powers of matrices X (2, 2, m)."""

    def applied(self, n: int, f: np.ndarray) -> np.ndarray:
        """Sⁿ(X)ᵀ f of the first of them, f of shape (n + 1, ...)."""


def _monomials(n: int, first: np.ndarray, second: np.ndarray, count: int) -> np.ndarray:
    """x^i y^(n−i) from tables of powers, of the first ``count`` of them."""
    return first[: n + 1, :count] * second[n::-1, :count]


def _powers(x: np.ndarray, count: int) -> np.ndarray:
    """x^i, i < count, along a new first axis."""
    return np.cumprod(np.concatenate([np.ones((1, *x.shape)), np.tile(x, (count - 1, 1))]), axis=0)


def _pivots(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whether the largest entry is in the second row and in the second column, and X from it on."""
    largest = np.abs(X.reshape(4, -1)).argmax(axis=0)
    low, right = largest >= 2, largest % 2 == 1
    X = np.where(low, X[::-1], X)
    return low, right, np.where(right, X[:, ::-1], X)


def _one_to_one(X: np.ndarray) -> np.ndarray:
    """Whether each signal of one pair depends on one of the other, nearly."""
    _, _, ((pivot, along), (below, _)) = _pivots(X)
    return np.maximum(np.abs(along), np.abs(below)) <= _SMALL * np.abs(pivot)


class _Sheared(NamedTuple):
    """X = L diag(d_1, d_2) U with L and U of ones on the diagonal and small t and s beside.

    Sⁿ(L) = exp(t N) with the constant nilpotent N that replaces z_2 by z_1, of positive entries.
    """

    low: np.ndarray
    right: np.ndarray
    t: np.ndarray
    s: np.ndarray
    first: np.ndarray
    second: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, count: int) -> _Sheared:
        low, right, ((pivot, along), (below, other)) = _pivots(X)
        pivot = np.where(pivot == 0, 1.0, pivot)
        t = below / pivot
        second = _powers(other - t * along, count)
        return cls(low, right, t, along / pivot, _powers(pivot, count), second)

    def applied(self, n: int, f: np.ndarray) -> np.ndarray:
        count = f.shape[1]
        found = np.where(self.low[:count], f[::-1], f) if self.low.any() else f
        # From z_2 to z_1, and back from w_1 to w_2.
        found = _shear(n, self.t[:count], found[::-1])[::-1]
        found = found * _monomials(n, self.first, self.second, count)
        found = _shear(n, self.s[:count], found)
        return np.where(self.right[:count], found[::-1], found) if self.right.any() else found


def _shear(n: int, t: np.ndarray, f: np.ndarray) -> np.ndarray:
    """exp(t N) f, N from i to i − 1, as many terms as the lowest orders have at least."""
    if not t.any():
        return f
    largest = float(np.abs(t).max())
    i = np.arange(1.0, n + 1)
    steps, term, found, size = np.sqrt(i * (n - i + 1))[:, None] * t, f, f.copy(), 1.0
    for k in range(1, n + 1):
        size *= largest * (n + 1) / 2 / k
        if k > _LOWEST and size < _LAST:
            break
        term = steps[: n + 1 - k] * term[1:] / k
        found[: n + 1 - k] += term
    return found


class _Turned(NamedTuple):
    """X = diag(rows) R(u) diag(s_1, s_2) R(v)ᵀ diag(columns), with rotations R by u and v.

    Without the outer factors

        Sⁿ(X)ᵀ = exp(v G) D exp(−u G),   D_i = s_1^i s_2^(n−i),

    with the constant antisymmetric G that generates the rotations of order n. Phases are exp(−imu)
    and exp(imv), and s_1 and s_2 and the outer factors, None if they are 1, are tables of powers.
    """

    before: np.ndarray
    after: np.ndarray
    large: np.ndarray
    small: np.ndarray
    rows: tuple[np.ndarray, np.ndarray] | None
    columns: tuple[np.ndarray, np.ndarray] | None

    @classmethod
    def of(cls, X: np.ndarray, count: int) -> _Turned:
        rows, columns = _scales(X)
        u, v, large, small = rotations(X / rows[:, None] / columns)
        before, after = (np.exp(1j * np.outer(np.arange(count), angle)) for angle in (-u, v))
        scales = (
            None if (x == 1).all() else (_powers(x[0], count), _powers(x[1], count))
            for x in (rows, columns)
        )
        return cls(before, after, _powers(large, count), _powers(small, count), *scales)

    def applied(self, n: int, f: np.ndarray) -> np.ndarray:
        count = f.shape[1]
        if self.rows is not None:
            f = f * _monomials(n, *self.rows, count)
        found = _rotated(n, self.before[:, :count], f)
        found *= _monomials(n, self.large, self.small, count)
        found = _rotated(n, self.after[:, :count], found)
        if self.columns is not None:
            found *= _monomials(n, *self.columns, count)
        return found


def _scales(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Factors of rows and columns, each (2, m), of which one is small beside the other."""
    size = np.abs(X)
    found = []
    for lines in (size.max(axis=1), size.max(axis=0)):
        largest = lines.max(axis=0)
        small = (lines <= _SMALL * largest) & (lines > 0)
        found.append(np.where(small, lines / np.where(largest > 0, _MADE * largest, 1.0), 1.0))
    return found[0], found[1]


def _rotated(n: int, phases: np.ndarray, f: np.ndarray) -> np.ndarray:
    """exp(θ G) f with ``phases`` exp(imθ), m = 0, 1, ...; f of shape (n + 1, m)."""
    even, odd = _generator(n)
    a, b = even.T @ f[::2], odd.T @ f[1::2]
    # What even and odd i share turns by the frequencies n, n − 2, ...; one that is 0 stays.
    turns = phases[np.arange(n, 0, -2)]
    shared = len(b)
    found = np.empty_like(f)
    c, s = turns.real, turns.imag
    a[:shared], b = c * a[:shared] + s * b, c * b - s * a[:shared]
    found[::2], found[1::2] = even @ a, odd @ b
    return found


@lru_cache(maxsize=1024)
def _generator(n: int) -> tuple[np.ndarray, np.ndarray]:
    """G of order n, which joins even and odd i, by its singular vectors among either."""
    i = np.arange(n)
    steps = np.sqrt((n - i) * (i + 1.0))
    G = np.diag(steps, 1) - np.diag(steps, -1)
    even, _, odd = np.linalg.svd(G[::2, 1::2])
    return even, odd.T
