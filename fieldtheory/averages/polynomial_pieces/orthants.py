"""Averages of functions that are a polynomial on either side of zero: ReLU, |h| and their like.

On each orthant such an integrand is a polynomial, and its moments follow by Stein's lemma,

    ⟨h_i Π_j h_j^p_j θ(h_j)⟩ = Σ_j K_ij [ p_j ⟨... h_j^(p_j−1) ...⟩ + 1_{p_j=0} ⟨... δ(h_j) ...⟩ ]

(R. Kan and C. Robotti 2017), where δ conditions the others on h_j = 0. The recursion ends at the
probability of an orthant, a sum of averages of signs (see `signs`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, product

import numpy as np
import sympy as sp

from fieldtheory.averages.integrands.exact_differences import determinant
from fieldtheory.averages.integrands.steps import branch, break_points, has_steps
from fieldtheory.averages.polynomial_pieces import signs

MOST_VARIABLES = 4
# Sums of signs below which nothing is left of them.
_ROUNDING = 1e-15
_TINY = float(np.finfo(float).tiny)

# The polynomial on each orthant: its signs, and the coefficient of each tuple of powers.
Pieces = tuple[tuple[tuple[int, ...], tuple[tuple[tuple[int, ...], float], ...]], ...]


def pieces_of(F: sp.Expr, variables: Sequence[sp.Expr]) -> Pieces | None:
    """The polynomials of F on the orthants where it is not zero; None if it is not of that kind.

    Examples
    --------
    >>> x, y = sp.symbols("x y", real=True)
    >>> pieces_of(sp.Max(0, x) * sp.Abs(y), (x, y))
    (((1, 1), (((1, 1), 1.0),)), ((1, -1), (((1, 1), -1.0),)))
    >>> pieces_of(sp.Max(0, x - 1), (x,)) is None
    True
    """
    if len(variables) > MOST_VARIABLES:
        return None
    for v in variables:
        try:
            if has_steps(F) and any(point != 0 for point in break_points(F, v)):
                return None
        except ValueError:
            return None
    pieces = []
    for orthant in product((1, -1), repeat=len(variables)):
        smooth = F
        for v, sign in zip(variables, orthant, strict=True):
            smooth = branch(smooth, v, sp.Integer(sign))
        if not smooth.is_polynomial(*variables):
            return None
        terms = sp.Poly(smooth, *variables).terms()
        if any(not c.is_number for _, c in terms):
            return None
        if found := tuple((powers, float(c)) for powers, c in terms if c != 0):
            pieces.append((orthant, found))
    return tuple(pieces)


def averaged(pieces: Pieces) -> Callable:
    """⟨F⟩ as a function of covariances (m, d, d), positive semidefinite; shape (m,)."""

    def compute(K: np.ndarray) -> np.ndarray:
        total = np.zeros(len(K))
        for orthant, terms in pieces:
            mirrored = K * np.multiply.outer(orthant, orthant)
            for powers, coefficient in terms:
                total += coefficient * np.prod(np.power(orthant, powers)) * moment(powers, mirrored)
        return total

    return compute


def moment(powers: tuple[int, ...], K: np.ndarray) -> np.ndarray:
    """⟨Π h_i^p_i θ(h_i)⟩ for covariances (m, d, d); shape (m,).

    Examples
    --------
    >>> moment((2,), np.array([[[3.0]]]))
    array([1.5])
    """
    i = int(np.argmax(powers)) if powers else 0
    if not powers or powers[i] == 0:
        return probability(K)
    lower = (*powers[:i], powers[i] - 1, *powers[i + 1 :])
    total = np.zeros(len(K))
    for j, power in enumerate(lower):
        if power:
            less = (*lower[:j], power - 1, *lower[j + 1 :])
            total += K[:, i, j] * power * moment(less, K)
        else:
            density = _over(K[:, i, j], np.sqrt(2 * np.pi * K[:, j, j]))
            total += density * moment((*lower[:j], *lower[j + 1 :]), _conditioned(K, j))
    return total


def _conditioned(K: np.ndarray, j: int) -> np.ndarray:
    """The covariance of the other variables given h_j = 0."""
    others = [k for k in range(K.shape[1]) if k != j]
    across, own = K[:, others, j], K[:, j, j]
    rest = K[:, others][:, :, others]
    given = rest - _over(across[:, :, None] * across[:, None, :], own[:, None, None])
    for r, k in enumerate(others):
        # Variances of nearly equal variables are small differences.
        given[:, r, r] = _over(determinant(K[:, k, k], own, across[:, r]), own)
    return given


def probability(K: np.ndarray) -> np.ndarray:
    """The probability that all of up to four variables are positive; shape (m,)."""
    size = K.shape[1]
    covariances = np.moveaxis(K, 0, -1)
    total = np.ones(len(K))
    for count in range(2, size + 1, 2):
        for chosen in combinations(range(size), count):
            total += signs.product(covariances[np.ix_(chosen, chosen)])
    return np.where(total < _ROUNDING, 0.0, total) / 2**size


def _over(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """The quotient, zero where the denominator vanishes."""
    numerator, denominator = np.broadcast_arrays(numerator, denominator)
    vanishes = denominator <= _TINY
    return np.where(vanishes, 0.0, numerator / np.where(vanishes, 1.0, denominator))
