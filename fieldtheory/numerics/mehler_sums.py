"""Mehler's series of averages of many pairs, from Hermite coefficients of their inputs.

With the coefficients f_n and g_n of two functions and the correlation c,

    ⟨f(x)g(y)⟩ = Σ_n f_n g_n cⁿ

and derivatives by c are those of the polynomial, summed together by Horner's rule. Functions of
one parity have every other term only.
"""

from __future__ import annotations

import numpy as np

# Terms of a block, which stay in the cache, and the last coefficients that tell the rest.
_AT_ONCE = 1 << 13
_LAST = 8


def polynomials(
    f: np.ndarray,
    g: np.ndarray,
    at: tuple[np.ndarray, np.ndarray],
    c: np.ndarray,
    derivatives: int,
    parity: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Σ_n f_n g_n cⁿ of many pairs and its derivatives by c, and about what the first misses.

    Parameters
    ----------
    f, g : ndarray, shape (inputs, order)
    at : pair of integer ndarrays, shape (m,)
        The input of f and that of g in each pair.
    c : ndarray, shape (m,)
    derivatives : {0, 1, 2}
        The highest one.
    parity : {0, 1}, optional
        Of n where coefficients do not vanish.

    Returns
    -------
    sums : ndarray, shape (derivatives + 1, m)
    rest : ndarray, shape (m,)
        From the last coefficients.

    Examples
    --------
    >>> f, at, c = np.ones((1, 3)), (np.zeros(1, int), np.zeros(1, int)), np.array([2.0])
    >>> polynomials(f, f, at, c, 2)[0].ravel()
    array([7., 5., 2.])
    """
    order, own = f.shape[1], f is g
    first, step = (0, 1) if parity is None else (parity, 2)
    f = np.ascontiguousarray(f[:, first::step])
    g = f if own else np.ascontiguousarray(g[:, first::step])
    z = c if parity is None else c * c
    # Derivatives by z.
    sums, last = np.empty((derivatives + 1, len(c))), np.empty(len(c))
    count, size = f.shape[1], max(1, _AT_ONCE // f.shape[1])
    for start in range(0, len(c), size):
        part = slice(start, start + size)
        terms = f[at[0][part]]
        terms *= g[at[1][part]]
        powers = _powers(z[part], count)
        np.abs(terms[:, -_LAST // step :]).max(axis=1, out=last[part])
        last[part] *= np.abs(powers[:, -1])
        for k in range(derivatives + 1):
            sums[k, part] = np.einsum("ij,ij->i", terms[:, k:], powers[:, : count - k])
            if k < derivatives:
                terms[:, k:] *= np.arange(count - k)
    if parity is not None:
        # Of c^parity P(c²).
        value, *slopes = sums
        if derivatives == 2:
            curvature = (4 * parity + 2) * slopes[0] + 4 * z * slopes[1]
            sums[2] = c**parity * curvature
        if derivatives:
            sums[1] = value + 2 * z * slopes[0] if parity else 2 * c * slopes[0]
        sums[0] = c**parity * value
    with np.errstate(divide="ignore"):
        return sums, last * order**2.0 / (1 - np.abs(c))


def _powers(z: np.ndarray, count: int) -> np.ndarray:
    """1, z, z², ..., shape (len(z), count)."""
    powers = np.empty((len(z), count))
    powers[:, 0] = 1
    done = 1
    while done < count:
        more = min(done, count - done)
        factor = powers[:, done - 1] * z
        np.multiply(powers[:, :more], factor[:, None], out=powers[:, done : done + more])
        done += more
    return powers
