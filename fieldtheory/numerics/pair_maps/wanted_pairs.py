"""Pairs of inputs whose averages are asked for, and what is known of them so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fieldtheory.numerics.hermite_coefficients import Signals, has_coefficients

# Correlations and variances from which on series are long, while Fourier transforms are short.
_STRONGLY, _WIDE = 0.5, 1.0


@dataclass(frozen=True, eq=False)
class WantedPairs:
    """What is asked of pairs (m,), and what is known of it so far.

    Parameters
    ----------
    signals : Signals
        Their variances, and ``at`` which two each pair has.
    p, q, r, c : ndarray, shape (m,)
        K_xx, K_yy, K_xy and the correlation.
    values : ndarray, shape (wanted, m)
        NaN where not known.
    known : ndarray of bool, shape (m,)
    allowed : ndarray of bool, shape (signals,)
        Of the signals, whether they have coefficients.
    """

    signals: Signals
    at: list[np.ndarray]
    p: np.ndarray
    q: np.ndarray
    r: np.ndarray
    c: np.ndarray
    values: np.ndarray
    known: np.ndarray
    allowed: np.ndarray

    @classmethod
    def of(cls, own: np.ndarray, pairs: Any, r: np.ndarray, count: int) -> WantedPairs:
        """Of variances (..., P), the inputs of pairs (n,) and covariances (..., n).

        Examples
        --------
        >>> pairs = np.array([0]), np.array([1])
        >>> wanted = WantedPairs.of(np.array([[1.0, 4.0]]), pairs, np.array([[1.0]]), 2)
        >>> wanted.c.tolist(), wanted.known.tolist(), wanted.wide_and_strong.tolist()
        ([0.5], [False], [True])
        """
        rows = np.arange(own.size // own.shape[-1])[:, None] * own.shape[-1]
        own, at, r = own.ravel(), [(rows + one).ravel() for one in pairs], r.ravel()
        p, q = own[at[0]], own[at[1]]
        with np.errstate(all="ignore"):
            c = r / np.sqrt(p * q)
        values, known = np.full((count, r.size), np.nan), np.zeros(r.size, dtype=bool)
        return cls(Signals(own), at, p, q, r, c, values, known, has_coefficients(own))

    @property
    def wide_and_strong(self) -> np.ndarray:
        """Which pairs have long series and short Fourier transforms."""
        return (self.c >= _STRONGLY) & (np.minimum(self.p, self.q) >= _WIDE)
