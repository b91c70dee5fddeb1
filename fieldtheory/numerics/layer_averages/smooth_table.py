"""An average as a function of the variance, for layers that ask for one after the other.

Averages of squares are positive and smooth in ln K. Where many layers ask within a range of K, a
Chebyshev interpolant of their logarithm to rounding saves the integrals.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.numerics.interpolation import nodes, transform

# A range of K by 4; how often it is asked for before an interpolant pays.
_RANGE, _OFTEN = 4.0, 4
# More inputs than these are faster together.
_FEW = 8
_SIZES = (20, 28, 40)
# Last coefficients of ln f, and its differences from values between the nodes.
_TAIL, _CHECKED = 2e-15, 4e-15
_BETWEEN = np.array([-0.987, -0.642, -0.117, 0.371, 0.93])


@dataclass(frozen=True, eq=False)
class SmoothTable:
    """f(K) of few variances at a time, from interpolants where they are resolved to rounding.

    Parameters
    ----------
    f : callable
        Vectorised, of variances.

    Examples
    --------
    >>> table = SmoothTable(np.sqrt)
    >>> [float(table(np.array(K)).round(12)) for K in (2.1, 2.2, 2.3, 2.4, 2.25)]
    [1.449137674619, 1.483239697419, 1.516575088811, 1.549193338483, 1.5]
    """

    f: Callable[[np.ndarray], np.ndarray]
    _asked: dict[int, int] = field(default_factory=dict)
    _pieces: dict[int, _Piece | None] = field(default_factory=dict)

    def __call__(self, K: np.ndarray) -> np.ndarray:
        """f of an array of variances; those of many inputs at once are left to f itself."""
        if K.size > _FEW:
            return self.f(K)
        variances = [float(each) for each in K.ravel()]
        # Counted before, so that equal variances have equal averages.
        for number in {_range_of(each) for each in variances if 0 < each < math.inf}:
            self._asked[number] = self._asked.get(number, 0) + 1
        return np.array([self._of_one(each) for each in variances]).reshape(K.shape)

    def _of_one(self, K: float) -> float:
        number = _range_of(K) if 0 < K < math.inf else None
        if number is None or self._asked[number] <= _OFTEN:
            return float(self.f(np.array(K)))
        if number not in self._pieces:
            self._pieces[number] = _fitted(self.f, number)
        piece = self._pieces[number]
        if piece is None:
            return float(self.f(np.array(K)))
        x = 2 * math.log(math.ldexp(K, -2 * number)) / math.log(_RANGE) - 1
        terms = np.cos(math.acos(min(max(x, -1.0), 1.0)) * _orders(len(piece.coefficients)))
        return piece.middle * math.exp(terms @ piece.coefficients)


def _range_of(K: float) -> int:
    """n of 4^n <= K < 4^(n + 1)."""
    return (math.frexp(K)[1] - 1) // 2


class _Piece(NamedTuple):
    """f in the middle, and Chebyshev coefficients of ln(f/middle) in ln K."""

    middle: float
    coefficients: np.ndarray


def _fitted(f: Callable[[np.ndarray], np.ndarray], number: int) -> _Piece | None:
    """f on 4^number, ..., 4^(number + 1); None if it is not resolved there."""

    def values(x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return f(_RANGE ** (number + (x + 1) / 2))

    try:
        middle = float(values(np.zeros(1))[0])
        if not 0 < middle < math.inf:
            return None
        for size in _SIZES:
            with np.errstate(all="ignore"):
                coefficients = transform(size) @ np.log(values(nodes(size)) / middle)
            last, largest = np.abs(coefficients[-3:]).max(), np.abs(coefficients).max()
            if last <= _TAIL * max(1.0, largest):
                found = np.exp(chebyshev.chebval(_BETWEEN, coefficients))
                if np.abs(middle * found / values(_BETWEEN) - 1).max() <= _CHECKED:
                    return _Piece(middle, coefficients)
    except QuadratureError:
        pass
    return None


@lru_cache(maxsize=4)
def _orders(count: int) -> np.ndarray:
    return np.arange(count)
