"""Averages of functions that are a polynomial on either side of zero: ReLU, |h| and their like.

On each orthant such an integrand is a polynomial, and its moments follow by Stein's lemma,

    ⟨h_i Π_j h_j^p_j θ(h_j)⟩ = Σ_j K_ij [ p_j ⟨... h_j^(p_j−1) ...⟩ + 1_{p_j=0} ⟨... δ(h_j) ...⟩ ]

(R. Kan and C. Robotti 2017), where δ conditions the others on h_j = 0. The recursion ends at the
probability of an orthant, in closed form up to three variables. That of four is Price's theorem
(R. Plackett 1954) along the path that switches the coupling of two pairs on,

    dP/dt = Σ_ij K_ij ⟨δ(h_i) δ(h_j) θ(h_k) θ(h_l)⟩_t,   i, k in one pair, j, l in the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import sympy as sp

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.exact_differences import determinant
from fieldtheory.averages.quadrature import composite
from fieldtheory.averages.steps import branch, break_points, has_steps

MOST_VARIABLES = 4
_ORDERS = (12, 18, 27, 40)
# Difference of two orders that is aimed at, and that is allowed.
_TOLERANCE, _ALLOWED = 1e-13, 1e-10
# Variables with a smaller relative determinant are equal, which changes a probability by its root.
_EQUAL = 1e-24
# Panels halve towards the full coupling, where nearly equal variables make the integrand steep.
_HALVINGS = 27
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
    for signs in product((1, -1), repeat=len(variables)):
        smooth = F
        for v, sign in zip(variables, signs, strict=True):
            smooth = branch(smooth, v, sp.Integer(sign))
        if not smooth.is_polynomial(*variables):
            return None
        terms = sp.Poly(smooth, *variables).terms()
        if any(not c.is_number for _, c in terms):
            return None
        if found := tuple((powers, float(c)) for powers, c in terms if c != 0):
            pieces.append((signs, found))
    return tuple(pieces)


def averaged(pieces: Pieces) -> Callable:
    """⟨F⟩ as a function of covariances (m, d, d), positive semidefinite; shape (m,).

    Raises
    ------
    QuadratureError
        If the probability of four signs does not reach 1e-10.
    """

    def compute(K: np.ndarray) -> np.ndarray:
        total = np.zeros(len(K))
        for signs, terms in pieces:
            mirrored = K * np.multiply.outer(signs, signs)
            for powers, coefficient in terms:
                total += coefficient * np.prod(np.power(signs, powers)) * moment(powers, mirrored)
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
    if size < 2:
        return np.full(len(K), 0.5**size)
    pairs = [(i, j) for i in range(size) for j in range(i)]
    if size < 4:
        angles = sum(_angle(K, i, j) for i, j in pairs)
        return 0.5**size + angles / (2**size * np.pi / 2)
    return np.array([_four(covariance) for covariance in K])


def _angle(K: np.ndarray, i: int, j: int) -> np.ndarray:
    """The arcsine of a correlation."""
    return np.arctan2(K[:, i, j], np.sqrt(determinant(K[:, i, i], K[:, j, j], K[:, i, j])))


def _four(K: np.ndarray) -> float:
    """The probability of four signs; equal variables are one, opposite ones cannot both be."""
    for j in range(1, 4):
        for i in range(j):
            limit = K[i, i] * K[j, j]
            if determinant(K[i, i], K[j, j], K[i, j]) <= _EQUAL * limit:
                rest = [k for k in range(4) if k != j]
                return float(probability(K[None][:, rest][:, :, rest])[0]) if K[i, j] > 0 else 0.0
    # What pairs are coupled last decides over the rounding where some variables are nearly equal.
    found = []
    for order in ([0, 1, 2, 3], [0, 2, 1, 3], [0, 3, 1, 2]):
        value, error = _coupled(K[np.ix_(order, order)])
        if error <= _TOLERANCE:
            return value
        found.append((error, value))
    error, value = min(found)
    if error <= _ALLOWED:
        return value
    raise QuadratureError(
        f"the probability of four signs at the covariance {K.tolist()} did not converge: "
        f"two orders differ by {error:.1e}"
    )


def _coupled(K: np.ndarray) -> tuple[float, float]:
    """The probability of four signs from those of the pairs (0, 1) and (2, 3), and its error."""
    halves = (0, 1), (2, 3)
    start = [float(probability(K[np.ix_(half, half)][None])[0]) for half in halves]
    apart = K.copy()
    apart[:2, 2:] = apart[2:, :2] = 0.0
    if not (K - apart).any():
        return start[0] * start[1], 0.0

    def slope(angle: np.ndarray) -> np.ndarray:
        # t = sin(angle) takes away the root where two variables become equal.
        t = np.sin(angle)[:, None, None]
        moving = apart + t * (K - apart)
        total = np.zeros(len(angle))
        for i, k in ((0, 1), (1, 0)):
            for j, l in ((2, 3), (3, 2)):
                pair = _pair(K, i, j, angle)
                given = _given_two(moving, i, j, k, l, pair)
                total += K[i, j] * np.cos(angle) * _over(probability(given), 2 * np.pi * pair)
        return total

    quarter = np.pi / 2
    cuts = quarter * np.concatenate([[0.0], 1 - 0.5 ** np.arange(1, _HALVINGS), [1.0]])
    previous, error = np.nan, np.nan
    for order in _ORDERS:
        nodes, weights = composite(cuts, order)
        value = float(weights @ slope(nodes))
        error = abs(value - previous)
        if error <= _TOLERANCE:
            break
        previous = value
    return start[0] * start[1] + value, error


def _pair(K: np.ndarray, i: int, j: int, angle: np.ndarray) -> np.ndarray:
    """√(K_ii K_jj − t² K_ij²) with 1 − t² = cos² of the angle."""
    rest = float(determinant(K[i, i], K[j, j], K[i, j]))
    return np.sqrt(rest + (K[i, j] * np.cos(angle)) ** 2)


def _given_two(K: np.ndarray, i: int, j: int, k: int, l: int, root: np.ndarray) -> np.ndarray:
    """The covariance of h_k and h_l given h_i = h_j = 0, up to rounding not negative."""
    minor = root**2
    a, b, c = K[:, i, i], K[:, j, j], K[:, i, j]

    def entry(p: int, q: int) -> np.ndarray:
        u, v, x, y = K[:, p, i], K[:, p, j], K[:, q, i], K[:, q, j]
        return K[:, p, q] - _over(u * x * b + v * y * a - (u * y + v * x) * c, minor)

    given = np.empty((len(K), 2, 2))
    given[:, 0, 0], given[:, 1, 1] = np.maximum(entry(k, k), 0), np.maximum(entry(l, l), 0)
    given[:, 0, 1] = given[:, 1, 0] = entry(k, l)
    return given


def _over(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """The quotient, zero where the denominator vanishes."""
    numerator, denominator = np.broadcast_arrays(numerator, denominator)
    vanishes = denominator <= _TINY
    return np.where(vanishes, 0.0, numerator / np.where(vanishes, 1.0, denominator))
