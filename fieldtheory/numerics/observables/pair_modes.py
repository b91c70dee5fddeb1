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
from math import isqrt

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from fieldtheory.numerics.observables.product_rules import ProductRule, even_rule


def packed_size(count: int) -> int:
    """The number of coefficients of orders below ``count``.

    Examples
    --------
    >>> packed_size(3)
    6
    """
    return count * (count + 1) // 2


def order_count(size: int) -> int:
    """Of how many orders there are ``size`` coefficients, the inverse of `packed_size`.

    Examples
    --------
    >>> order_count(packed_size(448))
    448
    """
    return (isqrt(8 * size + 1) - 1) // 2


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


def unit_row(R: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """c and s of the second signals σ' (c z_1 + s z_2), 1 and 0 of those that vanish."""
    along, across = R[1]
    deviation = np.hypot(along, across)
    vanishes = deviation == 0
    deviation = np.where(vanishes, 1.0, deviation)
    return np.where(vanishes, 1.0, along / deviation), across / deviation


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
    deviations: np.ndarray,
    along: np.ndarray,
    across: np.ndarray,
    count: int,
    rule: ProductRule | None = None,
) -> np.ndarray:
    """The coefficients of f(x) g(y) of pairs of signals, packed; of order zero the average.

    With x = σ z_1 and y = σ' (c z_1 + s z_2), those of g alone are those of one signal,

        ⟨g(y) h_i(z_1) h_j(z_2)⟩ = √((i+j)!/(i! j!)) c^i s^j ⟨g(σ' z) h_{i+j}(z)⟩,

    and f multiplies by the matrix ⟨h_k(z_1) f(σ z_1) h_i(z_1)⟩.

    Parameters
    ----------
    first, second : callable
        f and g.
    deviations : ndarray, shape (2, m)
        σ and σ' of every pair.
    along, across : ndarray, shape (m,)
        c and s.
    count : int
    rule : ProductRule, optional
        For functions that are not smooth or of wide signals, whose orders fall off slowly.

    Returns
    -------
    ndarray, shape (m, packed_size(count))

    Examples
    --------
    >>> def square(x):
    ...     return x**2
    >>> one = np.ones(1)
    >>> found = coefficients(square, np.ones_like, np.ones((2, 1)), 0.6 * one, 0.8 * one, 3)
    >>> np.abs(found).round(12).tolist()
    [[1.0, 0.0, 0.0, 0.0, 0.0, 1.414213562373]]
    """
    rule = even_rule(count, 2 * count + _BEYOND) if rule is None else rule
    widths, places = np.unique(deviations[1], return_inverse=True)
    single = rule.single(second, widths)
    sizes = np.abs(single)
    relevant = (sizes > _NEGLIGIBLE_ORDER * sizes.max(axis=1, keepdims=True)).any(axis=0)
    most = 1 + int(np.flatnonzero(relevant).max(initial=0))
    # By i and j, of the different widths.
    padded = np.concatenate([single[:, :most], np.zeros((len(single), count))], axis=1).T
    shifted = sliding_window_view(padded, count, axis=0)
    found = np.empty((deviations.shape[1], packed_size(count)))
    n, i = packed_places(count)
    for width in np.unique(deviations[0]):
        (chosen,) = np.nonzero(deviations[0] == width)
        matrix = rule.matrix(first, width, most)
        powers = along[chosen] ** np.arange(most)[:, None]
        others = across[chosen, None] ** np.arange(count)
        product = np.zeros((count, len(chosen), count))
        for start in range(0, min(count, most), _COLUMNS):
            j, rows, orders = slice(start, start + _COLUMNS), count - start, most - start
            turned = shifted[:orders, places[chosen], j] * rule.factors[:orders, None, j]
            turned *= powers[:orders, :, None] * others[:, j]
            met = matrix[:rows, :orders] @ turned.reshape(orders, -1)
            product[:rows, :, j] = met.reshape(rows, len(chosen), -1)
        found[chosen] = product[i, :, n - i].T
    return found


def coefficients_alone(
    function: Callable[..., np.ndarray],
    deviations: np.ndarray,
    along: np.ndarray,
    across: np.ndarray,
    count: int,
) -> np.ndarray:
    """The coefficients of g(y), y = σ' (c z_1 + s z_2), by those of one signal, packed.

    Where y is z_1 or hardly depends on it, those that vanish or are small are not rounding.

    Parameters
    ----------
    function : callable
        g.
    deviations, along, across : ndarray, shape (m,)
        σ', c and s.
    count : int

    Returns
    -------
    ndarray, shape (m, packed_size(count))

    Examples
    --------
    >>> found = coefficients_alone(np.square, np.ones(1), np.full(1, 1e-9), np.ones(1), 3)
    >>> (found[0, 5:] * 1e18).round(6)
    array([1.414214])
    """
    rule = even_rule(count, 2 * count + _BEYOND)
    single, factors = rule.single(function, deviations), rule.factors
    n, i = packed_places(count)
    powers, others = (x[:, None] ** np.arange(count) for x in (along, across))
    return single[:, n] * factors[i, n - i] * powers[:, i] * others[:, n - i]


def packed_places(count: int) -> tuple[np.ndarray, np.ndarray]:
    """n and i of all coefficients."""
    n = np.repeat(np.arange(count), np.arange(1, count + 1))
    return n, np.concatenate([np.arange(k + 1) for k in range(count)])


# Orders of the function of one signal beyond twice those kept, those that count, columns at once.
_BEYOND, _NEGLIGIBLE_ORDER, _COLUMNS = 64, 1e-17, 16
