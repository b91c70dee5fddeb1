"""Averages of many strongly correlated pairs of smooth φ, by interpolation.

With x the narrower of two signals y = s x + w, where w of variance D is independent of x,

    ⟨φ(x)φ(y)⟩ = Σ_ijk a_ijk T_i T_j T_k   of ln K_xx, s and ln D, each mapped to [-1, 1],

on boxes around the pairs that are asked for, and likewise ⟨φ'φ'⟩. These are smooth functions of D
also where a Mehler series in the correlation takes thousands of terms, for wide signals that are
close to each other. Nodes with one K_xx and one s share two Fourier transforms, so that a box of a
thousand nodes takes a twentieth of a second.

Signals of one variance K are x = a + v and y = a + w, with a of variance K_xy, and v and w of
variance K − K_xy, all independent. Two variables, ln K_xy and ln(K − K_xy), are enough then, and
nodes with one of the latter share one transform: a box takes a few milliseconds.

A box is used where its coefficients have decayed and it agrees with the averages themselves at some
of the pairs.
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

# Variances are the same if they differ by no more, relative to what the signals do not share.
_SAME = 1e-7
# Nodes beyond those at which coefficients fall to what is asked for, and of the distance
# to s = 0 what functions of φ leave.
_MORE, _INSIDE = 3, 0.7
# Coefficients that are left out, of the digits, and allowed differences.
_SMALL, _ERROR = 1e-3, 10.0
# How often nodes are tried, of the ways to where the angle of a pair is singular first, then of
# halves of those that are not resolved: averages of waves become large on the way.
_TRIES = 3
# Where no more is asked for, rough transforms do.
_ROUGH = 1e-4
# Pairs that are compared, roughly and exactly, boxes in vain after which no more are tried, and
# pairs at a time.
_COMPARED, _IN_VAIN, _AT_ONCE = (3, 6), 3, 2048


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
    _of_one_variance: _Boxes = field(default_factory=lambda: _Boxes(_EQUAL))
    _of_two: _Boxes = field(default_factory=lambda: _Boxes(_DIFFERENT))

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
        for boxes in (self._of_one_variance, self._of_two):
            if boxes.made or most:
                self._fill(values, known, (p, q, r), boxes, most)
        return values, known

    def _fill(
        self,
        values: np.ndarray,
        known: np.ndarray,
        K: tuple[np.ndarray, ...],
        boxes: _Boxes,
        most: float,
    ) -> None:
        """Fill in what boxes have, those that are there and new ones."""
        places = boxes.axes.places(*K)
        for box in boxes.made:
            _fill_in(values, known, places, box)
        (left,) = np.nonzero(~known & np.isfinite(places).all(axis=0))
        while most and len(left) and boxes.in_vain < _IN_VAIN:
            low, high = boxes.axes.around(places[:, left])
            inside = left[_within(places[:, left], low, high)]
            sizes = _sizes(low, high, self.rest)
            # Pairs of many calls pay for a box together.
            boxes.waiting += most * len(inside)
            if sizes[0] * sizes[1] > boxes.waiting:
                break
            boxes.waiting = 0.0
            new = self._fitted(boxes.axes, low, high, inside, places, K)
            if new is None:
                boxes.in_vain += 1
                break
            boxes.made.append(new)
            _fill_in(values, known, places, new)
            left = left[~known[left]]

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

    def _fitted(
        self,
        axes: _Axes,
        low: np.ndarray,
        high: np.ndarray,
        inside: np.ndarray,
        places: np.ndarray,
        K: tuple[np.ndarray, ...],
    ) -> _Box | None:
        """The box between bounds, None if it is not resolved."""
        parts = np.ones(3)
        for _ in range(_TRIES):
            sizes = _sizes(low, high, self.rest, parts)
            bounds = zip(low, high, sizes, strict=True)
            grid = (a + (b - a) * (nodes(n) + 1) / 2 for a, b, n in bounds)
            values = axes.averages((self.f, self.slope), *grid, self._digits)
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
        box = _Box.of(low, high, values, _SMALL * self.rest)
        count = _COMPARED[self.rest < _ROUGH]
        some = inside[np.linspace(0, len(inside) - 1, min(count, len(inside))).astype(int)]
        exact = self._compared(*(k[some] for k in K))
        agrees = np.abs(box(places[:, some]) - exact) <= _ERROR * self.rest * np.abs(exact)
        return box if agrees.all() else None

    def _falls(self, coefficients: np.ndarray, axis: int) -> bool:
        """Whether coefficients (2, ...) are small at the end of an axis, if it has one."""
        size = np.abs(coefficients)
        last = size.take((-2, -1), axis).max(axis=(1, 2, 3)) if size.shape[axis] > 1 else 0.0
        return bool((last <= self.rest * size.max(axis=(1, 2, 3))).all())


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

    @property
    def width(self) -> np.ndarray:
        return np.where(self.high > self.low, self.high - self.low, 1.0)

    def __call__(self, places: np.ndarray) -> np.ndarray:
        values = np.empty((2, places.shape[1]))
        sizes = *(1 + int(one.max()) for one in (self.first, self.second)), len(self.coefficients)
        for start in range(0, places.shape[1], _AT_ONCE):
            part = places[:, start : start + _AT_ONCE].T
            x = (2 * (part - self.low) / self.width - 1).T
            u, t, v = map(polynomials, x, (*sizes[:2], sizes[2] // 2))
            joint = u[self.first]
            joint *= t[self.second]
            of_k = (self.coefficients @ joint).reshape(2, *v.shape)
            values[:, start : start + _AT_ONCE] = np.einsum("fkm,km->fm", of_k, v)
        return values


@dataclass(frozen=True, eq=False)
class _Axes:
    """The variables of boxes.

    Parameters
    ----------
    places : callable
        (3, m) of pairs K_xx, K_yy and K_xy; NaN for those without.
    averages : callable
        Of functions, nodes of the three variables and digits: (functions, n, m, k), or None.
    margins : tuple
        How far a box reaches beyond its pairs, downwards and upwards: in the layers to come
        variances grow.
    ranges : tuple of float
        Further pairs than so much are left to another box.
    """

    places: Callable[..., np.ndarray]
    averages: Callable[..., np.ndarray | None]
    margins: tuple[tuple[float, float], ...]
    ranges: tuple[float, ...]

    def around(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of a box around places (3, m), or around the middle of those far apart."""
        low, high = places.min(axis=1), places.max(axis=1)
        for axis, most in enumerate(self.ranges):
            if high[axis] - low[axis] > most:
                middle = np.median(places[axis])
                low[axis] = max(low[axis], middle - most / 2)
                high[axis] = min(high[axis], middle + most / 2)
        below, above = np.transpose(self.margins)
        return low - below, high + above


@dataclass(eq=False)
class _Boxes:
    """Those that are made, how many were in vain, and what pairs have paid for the next one."""

    axes: _Axes
    made: list[_Box] = field(default_factory=list)
    in_vain: int = 0
    waiting: float = 0.0


def _different(p: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
    """ln K_xx, s and ln D of pairs, x the narrower signal."""
    narrow = np.minimum(p, q)
    with np.errstate(all="ignore"):
        places = np.stack([np.log(narrow), r / narrow, np.log(determinant(p, q, r) / narrow)])
    places[:, ~((r > 0) & np.isfinite(places).all(axis=0))] = np.nan
    return places


def _equal(p: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
    """ln(K − K_xy), 1 and ln K_xy of pairs of one variance."""
    with np.errstate(all="ignore"):
        # Averages are symmetric in both variances: what these differ by counts squared.
        rest = (p - r + (q - r)) / 2
        places = np.stack([np.log(rest), np.ones(len(r)), np.log(r)])
        places[:, ~((np.abs(p - q) <= _SAME * rest) & np.isfinite(places).all(axis=0))] = np.nan
    return places


def _of_different(
    functions: tuple[Callable[..., Any], ...],
    logs: np.ndarray,
    slopes: np.ndarray,
    rests: np.ndarray,
    digits: spectral.Digits,
) -> np.ndarray | None:
    return spectral.on_tensor(functions, np.exp(logs), slopes, np.exp(rests), digits)


def _of_equal(
    functions: tuple[Callable[..., Any], ...],
    rests: np.ndarray,
    _: np.ndarray,
    shared: np.ndarray,
    digits: spectral.Digits,
) -> np.ndarray | None:
    values = spectral.of_shared_parts(functions, np.exp(rests), np.exp(shared), digits)
    return None if values is None else values[:, :, None]


_MARGINS = ((0.2, 1.5), (0.01, 0.01), (0.7, 0.7))
_DIFFERENT: _Axes = _Axes(_different, _of_different, _MARGINS, (3.0, 0.5, 4.0))
_EQUAL: _Axes = _Axes(_equal, _of_equal, ((0.7, 0.7), (0.0, 0.0), (0.2, 1.5)), (4.0, 1.0, 3.0))


def _fill_in(values: np.ndarray, known: np.ndarray, places: np.ndarray, box: _Box) -> None:
    (inside,) = np.nonzero(~known & _within(places, box.low, box.high))
    if len(inside):
        values[:, inside] = box(places[:, inside])
        known[inside] = True


def _within(places: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    inside = (places.T >= low) & (places.T <= high)
    return np.asarray(inside.all(axis=1))


def _sizes(low: np.ndarray, high: np.ndarray, rest: float, parts: Any = 1.0) -> list[int]:
    """Nodes on each axis: the angle of a pair is analytic up to |s| = 0 and logarithms ± iπ."""
    reaches = (high - low) / 2 / np.array([np.pi, _INSIDE * low[1], np.pi]) / parts
    return [
        _MORE + math.ceil(-np.log(rest) / np.arcsinh(1 / reach)) if reach else 1
        for reach in reaches
    ]
