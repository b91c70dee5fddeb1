"""Curvatures of ⟨φ(x) φ(y)⟩ of φ with kinks, from what y is given x.

With the density p of x and F(x) = ⟨φ^(j)(y)⟩ given x, a function that is smooth on the scale of
what x leaves of y,

    ⟨φ^(i)(x) φ^(j)(y)⟩ = (−1)^i ⟨φ''(x) (p F)^(i−2)(x)/p(x)⟩,   i >= 2,

where φ'' has δ at the kinks and δ' at the jumps. Nothing cancels, as closed forms do for nearly
parallel signals, and for wide ones of φ with exponentials.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import numpy as np
import sympy as sp

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrals.quadrature import composite
from fieldtheory.averages.integrands.exact_differences import determinant
from fieldtheory.numerics.kinks.jump_slopes import PANEL, edges_given
from fieldtheory.numerics.kinks.kinked_features import Curvature, curvature, feature
from fieldtheory.numerics.kinks.kinked_planes import ORDER
from fieldtheory.numerics.kinks.smoothed_features import averages

# 1 − c² of signals that are nearly parallel.
_NEAR = 1e-2
# i, j and factors of ∂²⟨g⟩ by K_xx twice, by K_xx and K_yy, by K_xx and K_xy, and by K_xy twice.
Derivatives = Sequence[tuple[int, int, float]]
_DERIVATIVES = ((4, 0, 0.25), (2, 2, 0.25), (3, 1, 0.5), (2, 2, 1.0))


def are_near(x: np.ndarray, y: np.ndarray, xy: np.ndarray) -> np.ndarray:
    """Whether signals of these kernels, (m,), are nearly parallel, but not one up to a factor."""
    left = determinant(x, y, xy)
    return (left > 0) & (left <= _NEAR * x * y)


def are_finite(psi: Sequence[sp.Expr]) -> bool:
    """Whether the ψ have finite values and slopes beside their kinks."""
    return all(curvature(one) is not None for one in psi)


def covariance_curvature(
    psi: Sequence[sp.Expr], x: np.ndarray, y: np.ndarray, xy: np.ndarray
) -> np.ndarray:
    """`Entries.covariance_curvature` of ψ that `are_finite`, by kernels (m,), shape (4, m)."""
    return _derivatives(psi, x, y, xy, _DERIVATIVES)


def cross_susceptibility(
    psi: Sequence[sp.Expr], x: np.ndarray, y: np.ndarray, xy: np.ndarray
) -> np.ndarray:
    """⟨φ''(x) φ(y)⟩/2 of the same, shape (m,)."""
    return _derivatives(psi, x, y, xy, ((2, 0, 0.5),))[0]


def _derivatives(
    psi: Sequence[sp.Expr], x: np.ndarray, y: np.ndarray, xy: np.ndarray, asked: Derivatives
) -> np.ndarray:
    left, found = determinant(x, y, xy), np.zeros((len(asked), len(x)))
    if not left.all():
        raise QuadratureError(
            "derivatives of averages of signals that are parallel diverge for φ with kinks: "
            "leave one of these inputs out"
        )
    for one in psi:
        bent = curvature(one)
        if bent is not None:
            for n in range(len(x)):
                kernel = float(x[n]), float(xy[n]), float(left[n])
                found[:, n] += _of_one(one, bent, kernel, asked)
    return found


def _of_one(
    psi: sp.Expr, bent: Curvature, kernel: tuple[float, float, float], asked: Derivatives
) -> list[float]:
    """Those of ψ(x) ψ(y), of K_xx, K_xy and K_xx K_yy − K_xy²."""
    K, covariance, left = kernel
    at = np.array([jump.place for jump in bent.jumps])
    jumps, slopes = np.array([jump.sizes for jump in bent.jumps]).T
    share, noise = covariance / K, float(np.sqrt(left / K))
    kinks, function = tuple(at.tolist()), feature(psi).function
    jumping = bool(np.any(jumps))
    most = max(i + j for i, j, _ in asked) - 2 + jumping

    def given(x: np.ndarray) -> np.ndarray:
        """⟨ψ^(j)(y)⟩ given x that ascend, (orders, n)."""
        order, orders = slice(None, None, -1 if share < 0 else 1), range(most + 1)
        F = averages(lambda h: function(h)[None], kinks, noise, share * x[order], PANEL, orders)
        return F[0][:, order] / noise ** np.arange(len(orders))[:, None]

    def density(x: np.ndarray) -> np.ndarray:
        """p and its derivatives, (4, n)."""
        z = x / np.sqrt(K)
        hermite = np.polynomial.hermite_e.hermevander(z, 3).T
        bell = np.exp(-z * z / 2) / np.sqrt(2 * np.pi * K)
        return bell * hermite * (-1 / np.sqrt(K)) ** np.arange(4)[:, None]

    def bent_by(n: int, j: int, p: np.ndarray, F: np.ndarray) -> np.ndarray:
        """The n-th derivative of p ⟨ψ^(j)(y)⟩."""
        return sum(comb(n, k) * p[n - k] * share**k * F[j + k] for k in range(n + 1))

    x, weights = composite(edges_given(kinks, share, noise, float(np.sqrt(K))), ORDER)
    curved = weights * bent.between(x)
    kinked, smooth = (density(at), given(at)), (density(x), given(x)) if curved.any() else None
    found = []
    for i, j, factor in asked:
        value = float(np.sum(slopes * bent_by(i - 2, j, *kinked)))
        if jumping:
            value -= float(np.sum(jumps * bent_by(i - 1, j, *kinked)))
        if smooth:
            value += float(np.sum(curved * bent_by(i - 2, j, *smooth)))
        found.append((-1) ** i * factor * value)
    return found
