"""Mehler's series of averages of many pairs, from Hermite coefficients of their inputs.

With the coefficients f_n and g_n of two functions and the correlation c,

    ⟨f(x)g(y)⟩ = Σ_n f_n g_n cⁿ

and derivatives by c are those of the polynomial, summed together by Horner's rule. Functions of
one parity have every other term only.
"""

from __future__ import annotations

import numpy as np

# Pairs summed at once, which stay in the cache, and the last coefficients that tell the rest.
_AT_ONCE = 4096
_LAST = 8


def polynomials(
    f: np.ndarray,
    g: np.ndarray,
    at: tuple[np.ndarray, np.ndarray],
    c: np.ndarray,
    derivatives: int,
    parity: int | None = None,
) -> np.ndarray:
    """Σ_n f_n g_n cⁿ of many pairs and its derivatives by c.

    Parameters
    ----------
    f, g : ndarray, shape (order, inputs)
    at : pair of integer ndarrays, shape (m,)
        The input of f and that of g in each pair.
    c : ndarray, shape (m,)
    derivatives : {0, 1, 2}
        The highest one.
    parity : {0, 1}, optional
        Of n where coefficients do not vanish.

    Returns
    -------
    ndarray, shape (derivatives + 1, m)

    Examples
    --------
    >>> f, at, c = np.ones((3, 1)), (np.zeros(1, int), np.zeros(1, int)), np.array([2.0])
    >>> polynomials(f, f, at, c, 2).ravel()
    array([7., 5., 2.])
    """
    found = np.empty((derivatives + 1, len(c)))
    for start in range(0, len(c), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        found[:, part] = _by_horner(f, g, (at[0][part], at[1][part]), c[part], derivatives, parity)
    return found


def rest(
    f: np.ndarray, g: np.ndarray, at: tuple[np.ndarray, np.ndarray], c: np.ndarray
) -> np.ndarray:
    """About what the first derivative of `polynomials` misses, from its last coefficients."""
    last = np.zeros(len(c))
    for one, other in zip(f[-_LAST:], g[-_LAST:], strict=True):
        np.maximum(last, np.abs(one[at[0]] * other[at[1]]), out=last)
    near = np.abs(c)
    return last * len(f) ** 2.0 * near ** (len(f) - 2) / (1 - near)


def _by_horner(
    f: np.ndarray,
    g: np.ndarray,
    at: tuple[np.ndarray, np.ndarray],
    c: np.ndarray,
    derivatives: int,
    parity: int | None,
) -> np.ndarray:
    x, y = at
    first, step = (0, 1) if parity is None else (parity, 2)
    z = c if parity is None else c * c
    # Derivatives by z, divided by factorials.
    sums = np.zeros((derivatives + 1, len(c)))
    for n in range(len(f) - 1 - (len(f) - 1 - first) % step, -1, -step):
        for k in range(derivatives, 0, -1):
            sums[k] *= z
            sums[k] += sums[k - 1]
        sums[0] *= z
        sums[0] += f[n][x] * g[n][y]
    if derivatives == 2:
        sums[2] *= 2
    if parity is not None:
        # Of c^parity P(c²).
        value, *slopes = sums
        if derivatives == 2:
            curvature = (4 * parity + 2) * slopes[0] + 4 * z * slopes[1]
            sums[2] = c**parity * curvature
        if derivatives:
            sums[1] = value + 2 * z * slopes[0] if parity else 2 * c * slopes[0]
        sums[0] = c**parity * value
    return sums
