"""⟨φ''''(x) φ(y)⟩ of nearly parallel signals of φ with kinks, from what y is given x.

With the density p of x and F(x) = ⟨φ(y)⟩ given x, a function that is smooth on the scale of what x
leaves of y,

    ⟨φ''''(x) φ(y)⟩ = ⟨φ''(x) (p F)''(x)/p(x)⟩,

where φ'' has δ at the kinks. Other entries of curvatures cancel it nearly, by the angle.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import sympy as sp

from fieldtheory.averages.exact_differences import determinant
from fieldtheory.averages.quadrature import composite
from fieldtheory.numerics.jump_slopes import PANEL, edges_given
from fieldtheory.numerics.kinked_features import Curvature, curvature, feature
from fieldtheory.numerics.kinked_planes import ORDER
from fieldtheory.numerics.smoothed_features import averages

# 1 − c² of signals that are nearly parallel.
_NEAR = 1e-2


def replace(
    psi: Sequence[sp.Expr], found: np.ndarray, x: np.ndarray, y: np.ndarray, xy: np.ndarray
) -> None:
    """∂²⟨g(x, y)⟩/∂K_xx² = ⟨φ''''(x) φ(y)⟩/4 where signals are nearly parallel, in place.

    Parameters
    ----------
    psi : sequence of sympy.Expr
        Of g = Σ ψ(x) ψ(y), with kinks; nothing is replaced if any of them jumps.
    found : ndarray, shape (m,)
    x, y, xy : ndarray, shape (m,)
        K_xx, K_yy and K_xy.
    """
    bent = [curvature(one) for one in psi]
    if any(one is None or any(jump.sizes[0] for jump in one.jumps) for one in bent):
        return
    left = determinant(x, y, xy)
    for n in np.flatnonzero((left > 0) & (left <= _NEAR * x * y)).tolist():
        entries = float(x[n]), float(xy[n]), float(left[n])
        found[n] = sum(
            _fourth(one, of_one, *entries) / 4
            for one, of_one in zip(psi, bent, strict=True)
            if of_one is not None
        )


def _fourth(psi: sp.Expr, bent: Curvature, K: float, covariance: float, left: float) -> float:
    """⟨ψ''''(x) ψ(y)⟩, with K_xx K_yy − K_xy² ``left``."""
    kinks = tuple(jump.place for jump in bent.jumps)
    share, noise = covariance / K, float(np.sqrt(left / K))
    function = feature(psi).function

    def bent_twice(x: np.ndarray) -> np.ndarray:
        """(p F)'' at x that ascend."""
        order = slice(None, None, -1 if share < 0 else 1)
        F = averages(lambda h: function(h)[None], kinks, noise, share * x[order], PANEL, (0, 1, 2))[
            0
        ][:, order]
        F *= (share / noise) ** np.arange(3)[:, None]
        density = np.exp(-x * x / (2 * K)) / np.sqrt(2 * np.pi * K)
        return density * ((x * x / K - 1) / K * F[0] - 2 * x / K * F[1] + F[2])

    at, slopes = np.array(kinks), np.array([jump.sizes[1] for jump in bent.jumps])
    found = float(np.sum(slopes * bent_twice(at)))
    x, weights = composite(edges_given(kinks, share, noise, float(np.sqrt(K))), ORDER)
    curved = bent.between(x)
    if np.any(curved):
        found += float(np.sum(weights * curved * bent_twice(x)))
    return found
