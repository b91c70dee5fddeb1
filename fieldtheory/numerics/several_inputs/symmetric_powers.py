"""Mehler's formula for functions of two signals each: symmetric powers of a 2 × 2 matrix.

For functions f(z) and g(w) of two pairs of standard normal variables with the correlations
X = ⟨z wᵀ⟩,

    ⟨f(z) ; g(w)⟩ = Σ_{n>=1} f_nᵀ Sⁿ(X) g_n,    f_n = (⟨f h_i(z_1) h_{n-i}(z_2)⟩)_i,

where Sⁿ(X) is the n-th symmetric power of X. With the singular values s_1, s_2 of X = U S Vᵀ,
Sⁿ(X)ᵀ = exp(vG) D exp(−uG): rotations by the angles of U and V and D_i = s_1^i s_2^(n−i).
Coefficients of orders 0, ..., count − 1 are packed in one axis, by n and in it by i.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

# Matrices that are applied at once.
_TOGETHER = 1024


def packed_size(count: Any) -> Any:
    """The number of coefficients of orders below ``count``.

    Examples
    --------
    >>> packed_size(3)
    6
    """
    return count * (count + 1) // 2


def block(n: int) -> slice:
    """Slice of the coefficients of order n."""
    return slice(n * (n + 1) // 2, (n + 1) * (n + 2) // 2)


def packed_places(count: int) -> tuple[np.ndarray, np.ndarray]:
    """n and i of all coefficients of orders below ``count``."""
    n = np.repeat(np.arange(count), np.arange(1, count + 1))
    return n, np.concatenate([np.arange(k + 1) for k in range(count)])


def singular_values(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Angles u and v and the values s_1 >= |s_2| of X = R(u) diag(s_1, s_2) R(v)ᵀ, each (m,)."""
    (a, b), (c, d) = X
    plus, minus = np.hypot(a + d, c - b) / 2, np.hypot(a - d, c + b) / 2
    total, difference = np.arctan2(c - b, a + d), np.arctan2(c + b, a - d)
    return (difference + total) / 2, (difference - total) / 2, plus + minus, plus - minus


def applied(X: np.ndarray, f: np.ndarray, count: int, negligible: float) -> np.ndarray:
    """Sⁿ(X)ᵀ f_n of all orders n > 0; zero for n = 0.

    f and the result have the shape (packed_size(count), m); terms |s|ⁿ that are ``negligible`` are
    left out.

    Examples
    --------
    >>> X = np.array([[0.3, 0.1], [0.0, 0.5]])[:, :, None]
    >>> applied(X, np.eye(6)[:, 4:5], 3, 1e-12)[4, 0].round(12)  # of z_1 z_2
    np.float64(0.15)
    """
    mapped = np.zeros_like(f)
    for start in range(0, X.shape[-1], _TOGETHER):
        some = slice(start, start + _TOGETHER)
        mapped[:, some] = _applied(X[..., some], f[:, some], count, negligible)
    return mapped


def _applied(X: np.ndarray, f: np.ndarray, count: int, negligible: float) -> np.ndarray:
    u, v, large, small = singular_values(X)
    with np.errstate(divide="ignore"):
        needed = np.log(negligible) / np.minimum(np.log(large), -1e-300)
    order = np.argsort(-needed)
    orders = np.arange(count)[:, None]
    used = np.count_nonzero(needed > orders, axis=1)
    before, after = np.exp(-1j * orders * u[order]), np.exp(1j * orders * v[order])
    large, small = large[order] ** orders, small[order] ** orders
    # Coefficients of one order are contiguous.
    own, mapped = np.ascontiguousarray(f[:, order]), np.zeros(f.shape)
    for n in range(1, count):
        kept = int(used[n])
        if not kept:
            break
        part = _rotated(n, before[:, :kept], own[block(n), :kept])
        part *= large[: n + 1, :kept] * small[n::-1, :kept]
        mapped[block(n), :kept] = _rotated(n, after[:, :kept], part)
    result = np.empty_like(mapped)
    result[:, order] = mapped
    return result


def _rotated(n: int, phases: np.ndarray, f: np.ndarray) -> np.ndarray:
    """exp(θ G) f with ``phases`` exp(imθ), m = 0, 1, ...; f of shape (n + 1, m)."""
    even, odd = _generator(n)
    a, b = even.T @ f[::2], odd.T @ f[1::2]
    # Even and odd i share the frequencies n, n − 2, ...; one that is 0 stays.
    turns = phases[np.arange(n, 0, -2)]
    shared = len(b)
    rotated = np.empty_like(f)
    c, s = turns.real, turns.imag
    a[:shared], b = c * a[:shared] + s * b, c * b - s * a[:shared]
    rotated[::2], rotated[1::2] = even @ a, odd @ b
    return rotated


@lru_cache(maxsize=1024)
def _generator(n: int) -> tuple[np.ndarray, np.ndarray]:
    """G of order n, which joins even and odd i, by its singular vectors among either."""
    i = np.arange(n)
    steps = np.sqrt((n - i) * (i + 1.0))
    G = np.diag(steps, 1) - np.diag(steps, -1)
    even, _, odd = np.linalg.svd(G[::2, 1::2])
    return even, odd.T
