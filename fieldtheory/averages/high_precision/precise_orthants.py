"""Moments of orthants with mpmath; `averages.polynomial_pieces.orthants` has the formulas."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import mpmath

from fieldtheory.averages.errors import PrecisionError
from fieldtheory.averages.high_precision.mp_rules import legendre
from fieldtheory.averages.polynomial_pieces.orthants import Pieces

# Panels halve towards the full coupling, where nearly equal variables make the integrand steep.
_HALVINGS = 12
_LEVELS = 4

Matrix = list[list[Any]]


def averaged(pieces: Pieces, K: Matrix, digits: int) -> Any:
    """⟨F⟩ for the polynomials of F on the orthants.

    Raises
    ------
    PrecisionError
        If the probability of four signs does not reach the digits.
    """
    size = len(K)
    total = mpmath.mpf(0)
    for signs, terms in pieces:
        mirrored = [[signs[i] * signs[j] * K[i][j] for j in range(size)] for i in range(size)]
        for powers, coefficient in terms:
            sign = 1
            for s, power in zip(signs, powers, strict=True):
                sign *= s**power
            total += sign * mpmath.mpf(coefficient) * moment(powers, mirrored, digits)
    return total


def moment(powers: tuple[int, ...], K: Matrix, digits: int) -> Any:
    """⟨Π h_i^p_i θ(h_i)⟩.

    Examples
    --------
    >>> print(moment((2,), [[mpmath.mpf(3)]], 15))
    1.5
    """
    raised = [i for i, power in enumerate(powers) if power]
    if not raised:
        return probability(K, digits)
    i = raised[0]
    lower = (*powers[:i], powers[i] - 1, *powers[i + 1 :])
    total = mpmath.mpf(0)
    for j, power in enumerate(lower):
        if K[i][j] == 0:
            continue
        if power:
            less = (*lower[:j], power - 1, *lower[j + 1 :])
            total += K[i][j] * power * moment(less, K, digits)
        else:
            rest = moment((*lower[:j], *lower[j + 1 :]), _given(K, j), digits)
            total += K[i][j] / mpmath.sqrt(2 * mpmath.pi * K[j][j]) * rest
    return total


def _given(K: Matrix, j: int) -> Matrix:
    others = [k for k in range(len(K)) if k != j]
    return [[K[k][l] - K[k][j] * K[l][j] / K[j][j] for l in others] for k in others]


def probability(K: Matrix, digits: int) -> Any:
    """The probability that all of up to four variables are positive."""
    size = len(K)
    if size < 2:
        return mpmath.mpf(1) / 2**size
    if size == 4:
        return _four(K, digits)
    pairs = [(i, j) for i in range(size) for j in range(i)]
    angles = sum(_angle(K[i][i], K[j][j], K[i][j]) for i, j in pairs)
    return mpmath.mpf(1) / 2**size + angles / (2 ** (size - 1) * mpmath.pi)


def _angle(a: Any, b: Any, c: Any) -> Any:
    return mpmath.atan2(c, mpmath.sqrt(max(a * b - c * c, mpmath.mpf(0))))


def _four(K: Matrix, digits: int) -> Any:
    start = [
        probability([[K[i][j] for j in half] for i in half], digits) for half in ((0, 1), (2, 3))
    ]
    cross = [(0, 2), (0, 3), (1, 2), (1, 3)]
    if not any(K[i][j] for i, j in cross):
        return start[0] * start[1]

    def slope(angle: Any) -> Any:
        # t = sin(angle) takes away the root where two variables become equal.
        t, cosine = mpmath.sin(angle), mpmath.cos(angle)
        moving = [
            [K[i][j] if (i < 2) == (j < 2) else t * K[i][j] for j in range(4)] for i in range(4)
        ]
        total = mpmath.mpf(0)
        for i, j in cross:
            minor = K[i][i] * K[j][j] - (t * K[i][j]) ** 2
            if K[i][j] == 0 or minor <= 0:
                continue
            k, l = 1 - i, 5 - j
            given = _given(
                _given([[moving[p][q] for q in (i, j, k, l)] for p in (i, j, k, l)], 0), 0
            )
            density = K[i][j] * cosine / (2 * mpmath.pi * mpmath.sqrt(minor))
            total += density * probability(given, digits)
        return total

    return start[0] * start[1] + integrated(
        slope, mpmath.pi / 2, _HALVINGS, digits, "the probability of four signs"
    )


def integrated(f: Callable, end: Any, halvings: int, digits: int, what: str) -> Any:
    """∫_0^end f by Gauss-Legendre panels that halve towards the end.

    Raises
    ------
    PrecisionError
        If two successive rules differ by more than the digits allow.
    """
    half = mpmath.mpf(1) / 2
    cuts = [mpmath.mpf(0), *(end * (1 - half**k) for k in range(1, halvings)), end]
    previous = None
    for level in range(_LEVELS):
        rule = legendre(int((0.6 * digits + 6) * 1.4**level), mpmath.mp.prec)
        value = size = mpmath.mpf(0)
        for left, right in pairwise(cuts):
            middle, width = (left + right) / 2, (right - left) / 2
            terms = [w * width * f(middle + width * x) for x, w in rule]
            value += mpmath.fsum(terms)
            size += mpmath.fsum(map(abs, terms))
        if previous is not None and abs(value - previous) <= size * mpmath.mpf(10) ** -digits:
            return value
        previous = value
    raise PrecisionError(f"{what} did not reach {digits} digits")
