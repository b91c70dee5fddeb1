"""Closed forms of connected correlators that keep their digits in float64, told by trying.

⟨F;G⟩ = ⟨FG⟩ − ⟨F⟩⟨G⟩ by closed forms is exact only where the difference has been taken
symbolically, or by functions made for it. Else it loses all digits at weak correlation and at
small variance.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import mpmath
import numpy as np
import sympy as sp

_VARIANCES = (1e-9, 1e-3, 0.6, 30.0, 1e3)
_RATIOS = (1.0, 1.7)
_CORRELATIONS = (1e-8, 1e-4, 0.1, 0.9, 1 - 1e-9)
_DIGITS = 400
_ALLOWED = 1e-12
# Numbers that float64 holds with all digits, and so does what they are made of.
_SMALLEST, _LARGEST = 1e-250, 1e250


def keeps_digits(form: sp.Expr, K: sp.ImmutableMatrix, compiled: Callable) -> bool:
    """Whether a function in float64 is an expression to 1e-12 over all magnitudes.

    Parameters
    ----------
    form : sympy.Expr
        In the entries of K.
    K : ImmutableMatrix
        The covariance of one or two variables, symbols.
    compiled : callable
        The function of K, or of (K_xx, K_yy, K_xy).

    Returns
    -------
    bool

    Examples
    --------
    >>> K = sp.Symbol("K", positive=True)
    >>> keeps_digits(2 * K**2, sp.ImmutableMatrix([[K]]), lambda k: 2 * k**2)
    True
    >>> form = sp.cosh(K) - 1
    >>> keeps_digits(form, sp.ImmutableMatrix([[K]]), lambda k: np.cosh(k) - 1)
    False
    """
    pair = K.shape == (2, 2)
    entries = [K[0, 0], K[1, 1], K[0, 1]] if pair else [K[0, 0]]
    points = _pairs() if pair else [(k,) for k in _VARIANCES]
    precise = sp.lambdify(entries, form, modules="mpmath", cse=True)
    with np.errstate(all="ignore"):
        found = [
            float(value) for value in np.broadcast_to(compiled(*np.array(points).T), len(points))
        ]
    with mpmath.workdps(_DIGITS):
        for value, point in zip(found, points, strict=True):
            exact = precise(*map(mpmath.mpf, point))
            if not _SMALLEST < abs(exact) < _LARGEST:
                continue
            if not abs(value - exact) <= _ALLOWED * abs(exact):
                return False
    return True


def _pairs() -> list[tuple[float, ...]]:
    grid = product(_VARIANCES, _RATIOS, _CORRELATIONS, (1, -1))
    return [(k, s * k, sign * r * float(np.sqrt(s)) * k) for k, s, r, sign in grid]
