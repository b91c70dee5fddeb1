"""Mehler's series of averages of many pairs, from Hermite coefficients of their inputs.

With the coefficients f_n and g_n of two functions and the correlation c,

    ⟨f(x)g(y)⟩ = Σ_n f_n g_n cⁿ

and derivatives by c are those of the polynomial, summed together by Horner's rule or, of few pairs,
from a table of powers. Functions of one parity have every other term only.
"""

from __future__ import annotations

import numpy as np

# Pairs of a block and numbers of a group of its terms, which stay in the cache.
_PAIRS, _AT_ONCE = 1 << 12, 1 << 13
# The last coefficients that tell the rest, at least so many and such a share of all: those of kinks
# beside zero are slow waves in n.
_LAST, _SHARE = 8, 4
# Pairs up to which arrays of all terms cost less than a loop over them.
_FEW = 256


def polynomials(
    f: np.ndarray,
    g: np.ndarray,
    at: tuple[np.ndarray, np.ndarray],
    c: np.ndarray,
    derivatives: int,
    parity: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Σ_n f_n g_n cⁿ of many pairs and its derivatives by c, and about what the last one misses.

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
    order = f.shape[1]
    first, step = (0, 1) if parity is None else (parity, 2)
    f, g = (np.ascontiguousarray(table.T[first::step]) for table in (f, g))
    z, summed = c if parity is None else c * c, _by_powers if len(c) <= _FEW else _by_horner
    sums, last = summed(f, g, at, z, derivatives, max(_LAST // step, len(f) // _SHARE))
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
    with np.errstate(divide="ignore"):
        return sums, last * float(order) ** derivatives / (1 - np.abs(c))


def flow(
    f: np.ndarray,
    g: np.ndarray,
    at: tuple[np.ndarray, np.ndarray],
    c: np.ndarray,
    whole: bool,
    parity: int | None,
) -> tuple[np.ndarray, np.ndarray]:
    """⟨φφ⟩, its gradient and that of ⟨φ'φ'⟩ by (K_xx, K_yy, K_xy), (7, m), and about their rest.

    Without powers of the variances, which `scaled` puts in; if not the ``whole``, only ⟨φφ⟩ and
    ⟨φ'φ'⟩, (2, m). The parameters are those of `polynomials`.
    """
    by_c, rest = polynomials(f, g, at, c, 2 if whole else 1, parity)
    if not whole:
        return by_c, rest
    found = np.empty((7, len(c)))
    found[0], found[3], found[6] = by_c
    n = np.arange(f.shape[1] - 2.0)
    # Coefficients of half the second derivative.
    raised = np.sqrt((n + 1) * (n + 2)) / 2
    sides = (raised * f[:, 2:], g[:, :-2]), (f[:, :-2], raised * g[:, 2:])
    for rows, side in zip(([1, 4], [2, 5]), sides, strict=True):
        found[rows], _ = polynomials(*side, at, c, 1, parity)
    return found, rest


def scaled(sums: np.ndarray, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The sums of `flow` with the powers of the variances p and q, (m,), that belong to them."""
    root = np.sqrt(p * q)
    if len(sums) == 2:
        return np.stack([sums[0], sums[1] / root])
    return sums / np.stack([np.ones(len(p)), p, q, root, p * root, q * root, p * q])


def _by_powers(
    f: np.ndarray,
    g: np.ndarray,
    at: tuple[np.ndarray, np.ndarray],
    z: np.ndarray,
    derivatives: int,
    last: int,
) -> tuple[np.ndarray, np.ndarray]:
    """The value and Taylor coefficients at z, (derivatives + 1, m), and the largest last term.

    Tables (count, inputs) are those of the coefficients; of few pairs whole arrays cost less.
    """
    terms = np.take(f, at[0], axis=1)
    terms *= np.take(g, at[1], axis=1)
    powers = np.empty_like(terms)
    powers[0], powers[1:] = 1.0, z
    np.multiply.accumulate(powers, axis=0, out=powers)
    n, sums = np.arange(float(len(f))), np.zeros((derivatives + 1, len(z)))
    for k, binomial in enumerate((np.ones(len(n)), n, n * (n - 1) / 2)[: derivatives + 1]):
        kept = slice(None, len(n) - k)
        sums[k] = np.einsum("n,nm,nm->m", binomial[k:], terms[k:], powers[kept])
    return sums, np.abs(terms[-last:]).max(axis=0) * np.abs(powers[-1])


def _by_horner(
    f: np.ndarray,
    g: np.ndarray,
    at: tuple[np.ndarray, np.ndarray],
    z: np.ndarray,
    derivatives: int,
    last: int,
) -> tuple[np.ndarray, np.ndarray]:
    """As `_by_powers`, of many pairs."""
    (i, j), count = at, len(f)
    sums, most = np.zeros((derivatives + 1, len(z))), np.zeros(len(z))
    for start in range(0, len(z), _PAIRS):
        part = slice(start, start + _PAIRS)
        x, rows, largest = z[part], [row[part] for row in sums], most[part]
        size = max(1, _AT_ONCE // len(x))
        for stop in range(count, 0, -size):
            group = slice(max(0, stop - size), stop)
            terms = np.take(f[group], i[part], axis=1)
            terms *= np.take(g[group], j[part], axis=1)
            for n, term in zip(range(stop - 1, -1, -1), terms[::-1], strict=False):
                for k in range(min(derivatives, count - 1 - n), 0, -1):
                    rows[k] *= x
                    rows[k] += rows[k - 1]
                rows[0] *= x
                rows[0] += term
                if n >= count - last:
                    np.maximum(largest, np.abs(term), out=largest)
        largest *= np.abs(x) ** (count - 1)
    return sums, most
