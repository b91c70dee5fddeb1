"""Averages of pairs by Chebyshev series in three variables, on boxes around the pairs asked for.

    ⟨φ(x)φ(y)⟩ = Σ_ijk a_ijk T_i T_j T_k,   and likewise ⟨φ'φ'⟩,

of variables, each mapped to [-1, 1], in which both are smooth. A box is used where its coefficients
have decayed and it agrees with the averages themselves at some of the pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fieldtheory.numerics.interpolation import nodes, polynomials, transform

# Variances are the same if they differ by no more, relative to what the signals do not share.
_SAME = 1e-7
# Nodes beyond those at which coefficients fall to what is asked for.
_MORE = 3
# Coefficients that are left out, of the digits, and allowed differences.
_SMALL, _ERROR = 1e-3, 10.0
# How often nodes are tried, of the ways to where averages are singular first, then of halves of
# those that are not resolved: averages of waves become large on the way.
_TRIES = 3
# Where no more is asked for, rough averages do to compare with.
ROUGH = 1e-4
# Pairs that are compared, roughly and exactly, boxes in vain after which no more are tried, and
# pairs at a time.
_COMPARED, _IN_VAIN, _AT_ONCE = (3, 6), 3, 2048


@dataclass(frozen=True, eq=False)
class Axes:
    """The variables of boxes.

    Parameters
    ----------
    places : callable
        (3, m) of pairs K_xx, K_yy and K_xy; NaN for those without.
    averages : callable
        ⟨φφ⟩ and ⟨φ'φ'⟩ at nodes of the three variables, (2, n, m, k), or None.
    cost : callable
        Of the numbers of nodes: how many pairs pay for them.
    reaches : callable
        How far from the real axes averages are analytic, (3,), of the lower bounds.
    margins : tuple
        How far a box reaches beyond its pairs, downwards and upwards: in the layers to come
        variances grow.
    ranges : tuple of float
        Further pairs than so much are left to another box.
    most : tuple of float
        Upper bounds.
    """

    places: Callable[..., np.ndarray]
    averages: Callable[..., np.ndarray | None]
    cost: Callable[..., float]
    reaches: Callable[[np.ndarray], np.ndarray]
    margins: tuple[tuple[float, float], ...]
    ranges: tuple[float, ...]
    most: tuple[float, ...] = (math.inf, math.inf, math.inf)

    def around(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of a box around places (3, m), or around the middle of those far apart."""
        low, high = places.min(axis=1), places.max(axis=1)
        for axis, most in enumerate(self.ranges):
            if high[axis] - low[axis] > most:
                middle = np.median(places[axis])
                low[axis] = max(low[axis], middle - most / 2)
                high[axis] = min(high[axis], middle + most / 2)
        below, above = np.transpose(self.margins)
        return low - below, np.minimum(high + above, self.most)

    def sizes(self, low: np.ndarray, high: np.ndarray, rest: float, parts: Any = 1.0) -> list[int]:
        """Nodes on each axis."""
        reaches = (high - low) / 2 / self.reaches(low) / parts
        return [
            _MORE + math.ceil(-np.log(rest) / np.arcsinh(1 / reach)) if reach else 1
            for reach in reaches
        ]


@dataclass(eq=False)
class Boxes:
    """Those that are made, how many were in vain, and what pairs have paid for the next one.

    Parameters
    ----------
    axes : Axes
    exact : callable
        Both averages of arrays (K_xx, K_yy, K_xy).
    rest : float
        Allowed last coefficients, of the largest; the averages are right to ten times that.
    """

    axes: Axes
    exact: Callable[..., Any]
    rest: float
    made: list[Box] = field(default_factory=list)
    in_vain: int = 0
    waiting: float = 0.0

    def fill(
        self, values: np.ndarray, known: np.ndarray, K: tuple[np.ndarray, ...], most: float
    ) -> None:
        """Fill in the averages (2, m) of pairs K that are not known, where boxes have them.

        New boxes may cost ``most`` for every pair; none is made for 0.
        """
        if not self.made and not most:
            return
        places = self.axes.places(*K)
        for box in self.made:
            box.fill(values, known, places)
        (left,) = np.nonzero(~known & np.isfinite(places).all(axis=0))
        while most and len(left) and self.in_vain < _IN_VAIN:
            low, high = self.axes.around(places[:, left])
            inside = left[_within(places[:, left], low, high)]
            # Pairs of many calls pay for a box together.
            self.waiting += most * len(inside)
            if self.axes.cost(*self.axes.sizes(low, high, self.rest)) > self.waiting:
                break
            self.waiting = 0.0
            new = self._fitted(low, high, inside, places, K)
            if new is None:
                self.in_vain += 1
                break
            self.made.append(new)
            new.fill(values, known, places)
            left = left[~known[left]]

    def _fitted(
        self,
        low: np.ndarray,
        high: np.ndarray,
        inside: np.ndarray,
        places: np.ndarray,
        K: tuple[np.ndarray, ...],
    ) -> Box | None:
        """The box between bounds, None if it is not resolved."""
        parts = np.ones(3)
        for _ in range(_TRIES):
            sizes = self.axes.sizes(low, high, self.rest, parts)
            bounds = zip(low, high, sizes, strict=True)
            values = self.axes.averages(*(a + (b - a) * (nodes(n) + 1) / 2 for a, b, n in bounds))
            if values is None:
                return None
            for axis, n in enumerate(sizes, 1):
                values = np.moveaxis(np.tensordot(transform(n), values, (1, axis)), 0, axis)
            resolved = np.array([self._falls(values, axis) for axis in (1, 2, 3)])
            if resolved.all():
                break
            parts[~resolved] /= 2
        else:
            return None
        box = Box.of(low, high, values, _SMALL * self.rest)
        count = _COMPARED[self.rest < ROUGH]
        some = inside[np.linspace(0, len(inside) - 1, min(count, len(inside))).astype(int)]
        exact = np.array(self.exact(*(k[some] for k in K)))
        agrees = np.abs(box(places[:, some]) - exact) <= _ERROR * self.rest * np.abs(exact)
        return box if agrees.all() else None

    def _falls(self, coefficients: np.ndarray, axis: int) -> bool:
        """Whether coefficients (2, ...) are small at the end of an axis, if it has one."""
        size = np.abs(coefficients)
        last = size.take((-2, -1), axis).max(axis=(1, 2, 3)) if size.shape[axis] > 1 else 0.0
        return bool((last <= self.rest * size.max(axis=(1, 2, 3))).all())


@dataclass(frozen=True, eq=False)
class Box:
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
    def of(cls, low: np.ndarray, high: np.ndarray, a: np.ndarray, small: float) -> Box:
        """Of coefficients a (2, i, j, k), without those that are small."""
        large = np.abs(a) > small * np.abs(a).max(axis=(1, 2, 3), keepdims=True)
        first, second = np.nonzero(large.any(axis=(0, 3)))
        chosen = np.moveaxis(a[:, first, second], 1, 2)
        return cls(low, high, first, second, np.ascontiguousarray(chosen.reshape(-1, len(first))))

    def __call__(self, places: np.ndarray) -> np.ndarray:
        """The averages (2, m) at places (3, m) inside."""
        values = np.empty((2, places.shape[1]))
        sizes = *(1 + int(one.max()) for one in (self.first, self.second)), len(self.coefficients)
        width = np.where(self.high > self.low, self.high - self.low, 1.0)
        for start in range(0, places.shape[1], _AT_ONCE):
            part = places[:, start : start + _AT_ONCE].T
            x = (2 * (part - self.low) / width - 1).T
            u, t, v = map(polynomials, x, (*sizes[:2], sizes[2] // 2))
            joint = u[self.first]
            joint *= t[self.second]
            of_k = (self.coefficients @ joint).reshape(2, *v.shape)
            values[:, start : start + _AT_ONCE] = np.einsum("fkm,km->fm", of_k, v)
        return values

    def fill(self, values: np.ndarray, known: np.ndarray, places: np.ndarray) -> None:
        """Fill in the averages at places (3, m) inside that are not known."""
        (inside,) = np.nonzero(~known & _within(places, self.low, self.high))
        if len(inside):
            values[:, inside] = self(places[:, inside])
            known[inside] = True


def _within(places: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    inside = (places.T >= low) & (places.T <= high)
    return np.asarray(inside.all(axis=1))


def what_is_not_shared(p: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
    """K − K_xy of pairs of one variance K, NaN for others."""
    # Averages are symmetric in both variances: what these differ by counts squared.
    rest = (p - r + (q - r)) / 2
    return np.where(np.abs(p - q) <= _SAME * rest, rest, np.nan)
