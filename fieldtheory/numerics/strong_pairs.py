"""Averages of many strongly correlated pairs of smooth φ, by interpolation.

With x the narrower of two signals y = s x + w, where w of variance D is independent of x,

    ⟨φ(x)φ(y)⟩ = Σ_ijk a_ijk T_i T_j T_k   of ln K_xx, s and ln D, each mapped to [-1, 1],

on boxes around the pairs that are asked for, and likewise ⟨φ'φ'⟩. These are smooth functions of D
also where a Mehler series in the correlation takes thousands of terms, for wide signals that are
close to each other. Nodes with one K_xx and one s share two Fourier transforms, so that a box of a
thousand nodes takes a twentieth of a second. A box is used where its coefficients have decayed and
it agrees with the averages themselves at some of the pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from fieldtheory.averages import spectral
from fieldtheory.averages.exact_differences import determinant
from fieldtheory.numerics.interpolation import nodes, polynomials, transform

# How far a box reaches beyond its pairs, downwards and upwards: in the layers to come variances
# grow. Further pairs than so much are left to another box.
_MARGINS = ((0.2, 1.5), (0.01, 0.01), (0.7, 0.7))
_RANGES = (3.0, 0.5, 4.0)
# Nodes beyond those at which coefficients fall to what is asked for, and of the distance
# to s = 0 what functions of φ leave.
_MORE, _INSIDE = 3, 0.7
# Coefficients that are left out, of the digits, and allowed differences.
_SMALL, _ERROR = 1e-3, 10.0
# Where no more is asked for, rough transforms do.
_ROUGH = 1e-4
# Pairs that are compared, boxes in vain after which no more are tried, and pairs at a time.
_COMPARED, _IN_VAIN, _AT_ONCE = 6, 3, 2048


@dataclass(eq=False)
class StrongPairs:
    """⟨f(x)f(y)⟩ and ⟨f'(x)f'(y)⟩ of positively correlated pairs, where a box has them.

    Parameters
    ----------
    f, slope : callable
        Smooth, vectorised; f and f'.
    exact : callable
        Both averages of arrays (K_xx, K_yy, K_xy).
    rest : float
        Allowed last coefficients, of the largest; the averages are right to ten times that.
    """

    f: Callable[..., Any]
    slope: Callable[..., Any]
    exact: Callable[..., Any]
    rest: float = 1e-12
    _boxes: list[_Box] = field(default_factory=list)
    _in_vain: int = 0
    _waiting: float = 0.0

    def __call__(
        self, p: np.ndarray, q: np.ndarray, r: np.ndarray, most: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """The averages (2, m), NaN where no box has them, and where one does.

        Parameters
        ----------
        p, q, r : ndarray, shape (m,)
            K_xx, K_yy and K_xy.
        most : float
            Transforms that a new box may take for every pair; none is made for 0.

        Examples
        --------
        >>> def slope(x):
        ...     return 1 / np.cosh(x) ** 2
        >>> def exact(*K):
        ...     return [spectral.average(f, f, *K)[0] for f in (np.tanh, slope)]
        >>> p = np.linspace(90.0, 110.0, 400)
        >>> values, known = StrongPairs(np.tanh, slope, exact)(p, p, 0.9 * p, 1.0)
        >>> bool(known.all()), bool(np.abs(values / exact(p, p, 0.9 * p) - 1).max() < 1e-12)
        (True, True)
        """
        values, known = np.full((2, len(p)), np.nan), np.zeros(len(p), dtype=bool)
        if not self._boxes and not most:
            return values, known
        places = _places(p, q, r)
        for box in self._boxes:
            self._fill(values, known, places, box)
        (left,) = np.nonzero(~known & np.isfinite(places).all(axis=0))
        while most and len(left) and self._in_vain < _IN_VAIN:
            low, high = _around(places[:, left])
            inside = left[_within(places[:, left], low, high)]
            sizes = _sizes(low, high, self.rest)
            # Pairs of many calls pay for a box together.
            self._waiting += most * len(inside)
            if sizes[0] * sizes[1] > self._waiting:
                break
            self._waiting = 0.0
            new = self._fitted(low, high, sizes, inside, places, (p, q, r))
            if new is None:
                self._in_vain += 1
                break
            self._boxes.append(new)
            self._fill(values, known, places, new)
            left = left[~known[left]]
        return values, known

    def transformed(
        self, p: np.ndarray, q: np.ndarray, r: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The averages (2, m) without boxes, and where they are resolved."""
        products = [(one, one) for one in (self.f, self.slope)]
        return spectral.averages(products, p, q, r, self._digits)

    def _compared(self, *K: np.ndarray) -> np.ndarray:
        """The averages (2, m) of pairs (m,) themselves; by rough transforms if those will do."""
        if self.rest >= _ROUGH:
            values, known = self.transformed(*K)
            if known.all():
                return values
        return np.array(self.exact(*K))

    @cached_property
    def _digits(self) -> spectral.Digits:
        digits = spectral.ROUGH if self.rest >= _ROUGH else spectral.EXACT
        return spectral.coarsest((self.f, self.slope), digits)

    def _fill(self, values: np.ndarray, known: np.ndarray, places: np.ndarray, box: _Box) -> None:
        (inside,) = np.nonzero(~known & _within(places, box.low, box.high))
        if len(inside):
            values[:, inside] = box(places[:, inside])
            known[inside] = True

    def _fitted(
        self,
        low: np.ndarray,
        high: np.ndarray,
        sizes: list[int],
        inside: np.ndarray,
        places: np.ndarray,
        K: tuple[np.ndarray, ...],
    ) -> _Box | None:
        """The box between bounds, None if it is not resolved."""
        logs, slopes, rests = (
            a + (b - a) * (nodes(n) + 1) / 2 for a, b, n in zip(low, high, sizes, strict=True)
        )
        functions = self.f, self.slope
        values = spectral.on_tensor(functions, np.exp(logs), slopes, np.exp(rests), self._digits)
        if values is None:
            return None
        for axis, n in enumerate(sizes, 1):
            values = np.moveaxis(np.tensordot(transform(n), values, (1, axis)), 0, axis)
        size = np.abs(values)
        largest = size.max(axis=(1, 2, 3))
        ends = size[:, -2:], size[:, :, -2:], size[..., -2:]
        last = np.max([end.max(axis=(1, 2, 3)) for end in ends], axis=0)
        if not (last <= self.rest * largest).all():
            return None
        box = _Box.of(low, high, values, _SMALL * self.rest)
        some = inside[:: max(1, len(inside) // _COMPARED)]
        exact = self._compared(*(k[some] for k in K))
        agrees = np.abs(box(places[:, some]) - exact) <= _ERROR * self.rest * np.abs(exact)
        return box if agrees.all() else None


@dataclass(frozen=True, eq=False)
class _Box:
    """The coefficients of both averages between bounds (3,).

    Parameters
    ----------
    low, high : ndarray, shape (3,)
    first, second : ndarray, shape (n,)
        The orders i and j of the coefficients that are not rounding.
    coefficients : ndarray, shape (2 · orders k, n)
    """

    low: np.ndarray
    high: np.ndarray
    first: np.ndarray
    second: np.ndarray
    coefficients: np.ndarray

    @classmethod
    def of(cls, low: np.ndarray, high: np.ndarray, a: np.ndarray, small: float) -> _Box:
        """Of coefficients a (2, i, j, k), without those that are small."""
        large = np.abs(a) > small * np.abs(a).max(axis=(1, 2, 3), keepdims=True)
        first, second = np.nonzero(large.any(axis=(0, 3)))
        chosen = np.moveaxis(a[:, first, second], 1, 2)
        return cls(low, high, first, second, np.ascontiguousarray(chosen.reshape(-1, len(first))))

    def __call__(self, places: np.ndarray) -> np.ndarray:
        values = np.empty((2, places.shape[1]))
        sizes = *(1 + int(one.max()) for one in (self.first, self.second)), len(self.coefficients)
        for start in range(0, places.shape[1], _AT_ONCE):
            part = places[:, start : start + _AT_ONCE].T
            x = (2 * (part - self.low) / (self.high - self.low) - 1).T
            u, t, v = map(polynomials, x, (*sizes[:2], sizes[2] // 2))
            joint = u[self.first]
            joint *= t[self.second]
            of_k = (self.coefficients @ joint).reshape(2, *v.shape)
            values[:, start : start + _AT_ONCE] = np.einsum("fkm,km->fm", of_k, v)
        return values


def _places(p: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
    """ln K_xx, s and ln D of pairs, (3, m), x the narrower signal; NaN for those without."""
    narrow = np.minimum(p, q)
    with np.errstate(all="ignore"):
        places = np.stack([np.log(narrow), r / narrow, np.log(determinant(p, q, r) / narrow)])
    places[:, ~((r > 0) & np.isfinite(places).all(axis=0))] = np.nan
    return places


def _around(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of a box around places (3, m), or around the middle of those that lie far apart."""
    low, high = places.min(axis=1), places.max(axis=1)
    for axis in range(3):
        if high[axis] - low[axis] > _RANGES[axis]:
            middle = np.median(places[axis])
            low[axis] = max(low[axis], middle - _RANGES[axis] / 2)
            high[axis] = min(high[axis], middle + _RANGES[axis] / 2)
    below, above = np.transpose(_MARGINS)
    return low - below, high + above


def _within(places: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    inside = (places.T >= low) & (places.T <= high)
    return np.asarray(inside.all(axis=1))


def _sizes(low: np.ndarray, high: np.ndarray, rest: float) -> list[int]:
    """Nodes on each axis: the angle of a pair is analytic up to |s| = 0 and logarithms ± iπ."""
    reaches = (high - low) / 2 / np.array([np.pi, _INSIDE * low[1], np.pi])
    return [_MORE + math.ceil(-np.log(rest) / np.arcsinh(1 / reach)) for reach in reaches]
