"""Zeros of many Chebyshev series at once."""

from __future__ import annotations

import numpy as np
from numpy.polynomial import chebyshev

from fieldtheory.averages.quadrature.chebyshev_series import polynomials

# Bisections at most, and the change of a root that is rounding.
_STEPS, _SETTLED = 60, 4e-16


def roots(coefficients: np.ndarray) -> np.ndarray:
    """Roots of Chebyshev series in (-1, 1), each with values of both signs at the ends.

    Bisection and steps of Newton's method that stay within the bracket.

    Parameters
    ----------
    coefficients : ndarray, shape (count, m)
        Of m series.

    Returns
    -------
    ndarray, shape (m,)
        NaN for a series whose values at −1 and 1 have one sign.

    Examples
    --------
    >>> roots(np.array([[0.5, 0.0], [1.0, 1.0]])).round(12) + 0.0
    array([-0.5,  0. ])
    """
    both = np.zeros((2, *coefficients.shape))
    both[0], both[1, :-1] = coefficients, chebyshev.chebder(coefficients)
    low, high = (np.full(coefficients.shape[1], end) for end in (-1.0, 1.0))
    signs = (-1.0) ** np.arange(len(coefficients))
    at_low, at_high = signs @ coefficients, coefficients.sum(axis=0)
    x = np.zeros(len(low))
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(_STEPS):
            value, slope = (both * polynomials(x, len(coefficients))).sum(axis=1)
            left = np.sign(value) == np.sign(at_low)
            low, high = np.where(left, x, low), np.where(left, high, x)
            step = x - value / slope
            inside = (low <= step) & (step <= high)
            last, x = x, np.where(inside, step, (low + high) / 2)
            # A series of values of one sign has no root to be settled on.
            if ((np.abs(x - last) <= _SETTLED) | (at_low * at_high >= 0)).all():
                break
    return np.where(np.sign(at_low) * np.sign(at_high) < 0, x, np.nan)
