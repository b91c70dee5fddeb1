"""Functions of two signals by their coefficients in Hermite polynomials, and their correlations.

Two signals h = R z are made of independent z, R lower triangular, and a function f(h) has the
coefficients ⟨f h_i(z_1) h_j(z_2)⟩ of order n = i + j. For functions of the signals of two pairs,
z and w with the correlations X = ⟨z wᵀ⟩, a 2 × 2 matrix,

    ⟨f(z) ; g(w)⟩ = Σ_{n>=1} f_nᵀ Sⁿ(X) g_n,

where Sⁿ(X) is the n-th symmetric power of X (Mehler's formula for matrices). Averages over four
signals are sums over coefficients that belong to two.

The coefficients of orders 0, ..., N − 1 are packed in one axis, by n and in it by i.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fieldtheory.numerics.hermite_modes import Modes


def packed_size(count: int) -> int:
    """The number of coefficients of orders below ``count``.

    Examples
    --------
    >>> packed_size(3)
    6
    """
    return count * (count + 1) // 2


def block(n: int) -> slice:
    """Where the coefficients of order n are."""
    return slice(packed_size(n), packed_size(n + 1))


def triangle(variances: np.ndarray, covariances: np.ndarray) -> np.ndarray:
    """R of pairs of signals, h = R z, shape (2, 2, ...).

    Parameters
    ----------
    variances : ndarray, shape (2, ...)
    covariances : ndarray, shape (...)

    Examples
    --------
    >>> triangle(np.array([4.0, 1.0]), np.array(1.0)).round(3).tolist()
    [[2.0, 0.0], [0.5, 0.866]]
    """
    first, second = np.sqrt(np.maximum(variances, 0.0))
    along = np.divide(covariances, first, out=np.zeros_like(first), where=first > 0)
    across = np.sqrt(np.maximum((second - along) * (second + along), 0.0))
    # Identical signals: what is left of the second one is rounding.
    across = np.where(across > _ROUNDING * second, across, 0.0)
    return np.array([[first, np.zeros_like(first)], [along, across]])


# Below this share of its deviation the second signal is a multiple of the first.
_ROUNDING = 3e-8


def correlations(R: np.ndarray, covariance: np.ndarray, other: np.ndarray) -> np.ndarray:
    """X = R⁻¹ Cov R'⁻ᵀ of two pairs of signals, shape (2, 2, ...).

    Parameters
    ----------
    R, other : ndarray, shape (2, 2, ...)
        Of `triangle`.
    covariance : ndarray, shape (2, 2, ...)
        Of the signals of one pair with those of the other.
    """
    half = _solved(R, covariance)
    return np.swapaxes(_solved(other, np.swapaxes(half, 0, 1)), 0, 1)


def _solved(R: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """R⁻¹ rows, zero for directions that R has not."""
    first = _over(rows[0], R[0, 0])
    return np.stack([first, _over(rows[1] - R[1, 0] * first, R[1, 1])])


def _over(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    shape = np.broadcast_shapes(x.shape, y.shape)
    return np.divide(x, y, out=np.zeros(shape), where=np.broadcast_to(y > 0, shape))


def coefficients(
    first: Callable[..., np.ndarray],
    second: Callable[..., np.ndarray],
    R: np.ndarray,
    modes: Modes,
    count: int,
) -> np.ndarray:
    """The coefficients of f(x) g(y), packed; of order zero the average.

    Parameters
    ----------
    first, second : callable
        f and g.
    R : ndarray, shape (2, 2)
    modes : Modes
        At least ``count`` orders, without parity, for either of z_1 and z_2.
    count : int

    Returns
    -------
    ndarray, shape (packed_size(count),)
    """
    z, basis = modes.nodes, modes.basis[:count]
    inner = second(R[1, 0] * z[:, None] + R[1, 1] * z) @ (basis * modes.roots).T
    outer = (basis * modes.roots * first(R[0, 0] * z)) @ inner
    found = np.empty(packed_size(count))
    for n in range(count):
        i = np.arange(n + 1)
        found[block(n)] = outer[i, n - i]
    return found


def correlated(X: np.ndarray, f: np.ndarray, count: int, parity: int | None = None) -> np.ndarray:
    """Σ_i f_ni Sⁿ(X)_ij for all orders n, so that ⟨f;g⟩ is its product with the coefficients g.

        n Sⁿ_ij = √i (x_11 √j Sⁿ⁻¹_{i-1,j-1} + x_12 √(n−j) Sⁿ⁻¹_{i-1,j})
                  + √(n−i) (x_21 √j Sⁿ⁻¹_{i,j-1} + x_22 √(n−j) Sⁿ⁻¹_{i,j})

    Parameters
    ----------
    X : ndarray, shape (2, 2, m)
    f : ndarray, shape (packed_size(count), m)
    count : int
    parity : {0, 1}, optional
        Of the orders that f has, if not of both.

    Returns
    -------
    ndarray, shape (packed_size(count), m)
        Zero for the order zero.
    """
    found = np.zeros(np.broadcast_shapes(f.shape, X.shape[2:]))
    power = np.ones((1, 1, X.shape[-1]))
    for n in range(1, count):
        power = _next_power(X, power, n)
        if parity is None or n % 2 == parity:
            found[block(n)] = np.einsum("im,ijm->jm", f[block(n)], power)
    return found


def _next_power(X: np.ndarray, power: np.ndarray, n: int) -> np.ndarray:
    """Sⁿ(X) from Sⁿ⁻¹(X)."""
    root = np.sqrt(np.arange(n + 1) / n)[:, None]
    fewer = root[::-1]
    size = (n + 1, n + 1, power.shape[-1])
    following = np.zeros(size)
    # Columns: w_1 or w_2 is added; rows: z_1 or z_2.
    for row in (0, 1):
        columns = np.zeros((n, n + 1, power.shape[-1]))
        columns[:, 1:] += X[row, 0] * root[1:] * power
        columns[:, :-1] += X[row, 1] * fewer[:-1] * power
        if row == 0:
            following[1:] += root[1:, None] * columns
        else:
            following[:-1] += fewer[:-1, None] * columns
    return following
