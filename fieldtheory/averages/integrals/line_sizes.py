"""Averages over one signal in float64, as sums over equidistant logarithms of its size.

With h = ±√K e^s,

    ⟨f⟩ = Σ_± ∫ ds e^s f(±√K e^s) e^{−e^{2s}/2}/√(2π),

whose integrand is analytic in a strip along s if f is, but for zero, in the logarithm of its
argument: cusps and powers at zero, as those of √|h| and h log|h|, are nothing to it. Panels would
have to be halved towards them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# Spacings, and as which power of a change the error of the next one falls.
_SPACINGS, _FALLS = (0.19, 0.13, 0.09, 0.06, 0.04), 1.4
# Logarithms of the smallest and of the largest signals, and what terms at these may be.
_LEAST, _LARGEST, _ENDS = -90.0, 2.45, 1e-15
_NORM = np.sqrt(2 * np.pi)


@np.errstate(all="ignore")
def with_sizes(f: Callable, K: np.ndarray, allowed: float) -> np.ndarray:
    """⟨f⟩, ⟨|f|⟩ and relative errors of variances K > 0, refined while errors are not allowed.

    Parameters
    ----------
    f : callable
        Of signals (m, n) and their variances (m, 1), vectorised.
    K : ndarray, shape (m,)
    allowed : float

    Returns
    -------
    ndarray, shape (3, m)
        Errors are infinite where sums do not converge.

    Examples
    --------
    >>> f = lambda h, K: np.sqrt(np.abs(h))
    >>> value, _, error = with_sizes(f, np.array([1.0]), 1e-13)[:, 0]
    >>> float(value.round(12)), bool(error < 1e-13)
    (0.822178958662, True)
    """
    found = np.array([np.zeros(len(K)), np.zeros(len(K)), np.full(len(K), np.inf)])
    left, before = np.arange(len(K)), np.full(len(K), np.nan)
    for spacing in _SPACINGS:
        value, size, ends = _sums(f, K[left], spacing)
        error = (np.abs(value - before[left]) / size) ** _FALLS
        error = np.where(size == 0, 0.0, np.where(ends <= _ENDS, error, np.inf))
        found[:, left] = value, size, np.where(np.isnan(error), np.inf, error)
        before[left] = value
        left = left[~(found[2, left] <= allowed)]
        if not len(left):
            break
    return found


def _sums(f: Callable, K: np.ndarray, spacing: float) -> tuple[np.ndarray, ...]:
    """⟨f⟩, ⟨|f|⟩, and what is left at the ends over it."""
    z = np.exp(np.arange(_LARGEST, _LEAST, -spacing))
    weights = spacing * z * np.exp(-z * z / 2) / _NORM
    signals = np.sqrt(K)[:, None] * z
    sides = np.stack([f(sign * signals, K[:, None]) + 0 * signals for sign in (1, -1)])
    terms = sides * weights
    sizes = np.abs(terms).sum(axis=0)
    size = sizes.sum(axis=-1)
    ends = np.maximum(sizes[:, 0], sizes[:, -1]) / spacing / size
    return terms.sum(axis=0).sum(axis=-1), size, ends
