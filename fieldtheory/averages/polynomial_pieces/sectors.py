"""Averages of two signals of functions that are analytic on either side of zero.

Kinks at zero are the axes of the plane of both signals, in polar coordinates x = √K_xx r sin u and
y = √K_yy r sin(u + θ), between which the integrand is analytic: Gauss rules along the radius,
against r e^{-r²/2}, and along the angle of each sector converge exponentially at any correlation.
Two of them tell the error.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from fieldtheory.averages.integrals.quadrature import legendre
from fieldtheory.averages.integrands.exact_differences import determinant

# Nodes along radius and angle of the rules, how well two of them agree, and what rounding may be.
_RULES, _AGREE, _ROUNDING = ((26, 34), (38, 50), (54, 80)), 2e-13, 2e-16
# Where the weight of the radius is seen, and at how many points.
_LARGEST, _POINTS = 14.0, 600
# Up to this variance no rule misses what is not narrower than 1/32 in a function.
_WIDEST = 4096.0
# Numbers in an array at once.
_BLOCK = 1 << 16

Function = Callable[[np.ndarray], np.ndarray]


def average(
    f: Function, g: Function, K_xx: np.ndarray, K_yy: np.ndarray, K_xy: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """⟨f(x) g(y)⟩ of pairs (m,), and which are known; f and g are not narrow anywhere.

    Examples
    --------
    >>> K = np.array([1.0])
    >>> values, known = average(np.abs, np.abs, K, 4 * K, 0 * K)
    >>> values * np.pi / 4, known
    (array([1.]), array([ True]))
    """
    values, known = np.zeros(len(K_xx)), np.zeros(len(K_xx), dtype=bool)
    (positive,) = np.nonzero((np.minimum(K_xx, K_yy) > 0) & (np.maximum(K_xx, K_yy) <= _WIDEST))
    step = max(1, _BLOCK // (_RULES[-1][0] * _RULES[-1][1]))
    for start in range(0, len(positive), step):
        i = positive[start : start + step]
        with np.errstate(over="ignore", invalid="ignore"):
            values[i], known[i] = _checked(f, g, K_xx[i], K_yy[i], K_xy[i])
    return values, known


def _checked(
    f: Function, g: Function, K_xx: np.ndarray, K_yy: np.ndarray, K_xy: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    root = np.sqrt(K_xx) * np.sqrt(K_yy)
    away = np.maximum(determinant(K_xx, K_yy, K_xy), 0.0) / (root * (root + np.abs(K_xy)))
    # The angle between the signals, or from opposite ones.
    angle = 2 * np.arcsin(np.sqrt(np.minimum(away, 1.0) / 2))
    turned = np.where(K_xy < 0, -1.0, 1.0)
    given = np.stack([np.sqrt(K_xx), turned * np.sqrt(K_yy), angle])
    known, values = np.zeros(len(angle), dtype=bool), _sum(f, g, given, _RULES[0])[0]
    for rule in _RULES[1:]:
        left = np.flatnonzero(~known)
        found, of_moduli = _sum(f, g, given[:, left], rule)
        size = _AGREE * np.abs(found)
        known[left] = (np.abs(found - values[left]) <= size) & (_ROUNDING * of_moduli <= size)
        values[left] = found
        if known.all():
            break
    return values, known


def _sum(
    f: Function, g: Function, given: np.ndarray, rule: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """The average and that of the modulus, of the factors of both signals and their angle."""
    of_x, of_y, angle = given
    r, weights = _radii(rule[0])
    t, shares = legendre(rule[1])
    found, size = np.zeros(len(angle)), np.zeros(len(angle))
    for left, gap, sign in ((np.pi - angle, angle, 1), (angle, np.pi - angle, -1)):
        u = left[:, None] * (1 + t) / 2
        rest = left[:, None] - u
        # sin u, and sin(gap + u) of the other signal, by what has more digits.
        x, y = (_sine(one, two, left, gap) for one, two in ((u, rest), (rest, u)))
        x, y = (
            (factor[:, None] * part)[:, None, :] * r[:, None]
            for factor, part in ((of_x, x), (sign * of_y, y))
        )
        terms = f(x) * g(y), f(-x) * g(-y)
        along = left[:, None] / 2 * shares
        found += ((weights @ (terms[0] + terms[1])) * along).sum(axis=1)
        size += ((weights @ (np.abs(terms[0]) + np.abs(terms[1]))) * along).sum(axis=1)
    return found / (2 * np.pi), size / (2 * np.pi)


def _sine(u: np.ndarray, rest: np.ndarray, left: np.ndarray, gap: np.ndarray) -> np.ndarray:
    """sin u, from π − u = gap + rest where that has more digits."""
    left, gap = left[:, None], gap[:, None]
    return np.where((u < left / 2) | (gap > left), np.sin(u), np.sin(gap + rest))


@lru_cache(maxsize=4)
def _radii(count: int) -> tuple[np.ndarray, np.ndarray]:
    """The Gauss rule of ∫_0^∞ r e^{-r²/2} dr, from its recurrence by Stieltjes."""
    t, weights = legendre(_POINTS)
    r = _LARGEST * (1 + t) / 2
    weights = _LARGEST / 2 * weights * r * np.exp(-r * r / 2)
    diagonal, beside = np.zeros(count), np.zeros(count)
    before, now = np.zeros_like(r), np.ones_like(r) / np.sqrt(weights.sum())
    for n in range(count):
        diagonal[n] = weights @ (r * now**2)
        following = (r - diagonal[n]) * now - (beside[n - 1] if n else 0.0) * before
        beside[n] = np.sqrt(weights @ following**2)
        before, now = now, following / beside[n]
    jacobi = np.diag(diagonal) + np.diag(beside[:-1], 1) + np.diag(beside[:-1], -1)
    nodes, vectors = np.linalg.eigh(jacobi)
    return nodes, vectors[0] ** 2 / (vectors[0] ** 2).sum()
