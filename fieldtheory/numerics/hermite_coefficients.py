"""Hermite coefficients of functions of one signal, interpolated in its variance.

With the orthonormal Hermite polynomials h_n,

    f_n(K) = ⟨f(√K z) h_n(z)⟩,  z ~ N(0, 1),

are functions of one variable, smooth in ln K: Chebyshev interpolants on pieces of two octaves, made
when they are needed, serve all inputs of all layers. Integrals are sums over Gauss-Legendre panels
that end at kinks. A piece says whether it is resolved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import sympy as sp

from fieldtheory.averages.integrals.hermite import basis, weighted_hermite
from fieldtheory.averages.integrals.panels import breakpoints
from fieldtheory.averages.integrals.quadrature import composite
from fieldtheory.averages.integrals.vectorising import vectorised
from fieldtheory.averages.integrands.narrow import cuts_of
from fieldtheory.numerics.interpolation import nodes, polynomials, transform

# Coefficients that are fitted together; nodes in ln K of a piece, tried one after the other.
_FITTED = (5, 32, 96, 320, 512, 1024, 1536, 3072)
_SIZES = (16, 24, 36, 54, 80)
# A piece is a range of K by this power of two.
_OCTAVES = 2
# Variances with coefficients.
_SMALLEST, _LARGEST = 1e-12, 1e8
# Radius of the integrals, nodes of a panel, of its check, and the phase of h_n on a panel, for so
# many orders at least.
_REACH, _NODES, _CHECK_NODES, _PHASE, _LOW = 13.0, 20, 26, 8.0, 64
# Orders whose tables take little memory.
_MODERATE = 512
# Halvings of panels towards zero, at least, and by how many they go up, so that pieces share them.
_LEAST, _LEVELS = 6, 3
# By how much the last ones fall at least from one number of nodes to the next, or never enough.
_FALLS = 0.1
# Where in a piece it is compared with a finer integral.
_CHECKED = 0.371
# Allowed last coefficients and errors, and f e^(-z²/4) at the ends of the integrals, relative to
# √⟨f²⟩.
_TAIL, _ERROR, _AT_ENDS = 2e-14, 5e-14, 1e-13


class _Piece(NamedTuple):
    """Chebyshev coefficients (order, nodes) in ln K on a piece, and whether they are resolved."""

    coefficients: np.ndarray
    resolved: bool


@dataclass(frozen=True, eq=False)
class HermiteCoefficients:
    """f_n(K) of a function of one variable, interpolated in ln K.

    Parameters
    ----------
    f : callable
        Vectorised, of one array.
    kinks : tuple of float
        Where it is not smooth.
    parity : {0, 1}, optional
        0 for an even, 1 for an odd function.

    Examples
    --------
    >>> found, resolved = HermiteCoefficients(np.tanh, ())(np.array([0.5]), 64)
    >>> float((found**2).sum().round(10)), bool(resolved[0])
    (0.2736763079, True)
    """

    f: Callable[..., Any]
    kinks: tuple[float, ...]
    parity: int | None = None
    _pieces: dict[tuple[int, int], _Piece] = field(default_factory=dict)

    def __call__(self, K: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray]:
        """The coefficients of variances (m,), shape (m, order), and which of them are resolved."""
        place = np.log2(K) / _OCTAVES
        number = np.floor(place).astype(int)
        fitted = _fitted_together(order)
        pieces = {each: self._piece(each, fitted) for each in set(number.tolist())}
        size = max(coefficients.shape[1] for coefficients, _ in pieces.values())
        T = polynomials(2 * (place - number) - 1, size)
        values, resolved = np.zeros((order, len(K))), np.empty(len(K), dtype=bool)
        some = slice(self.parity, order, 2 if self.parity is not None else 1)
        for each, (coefficients, good) in pieces.items():
            inside = number == each if len(pieces) > 1 else slice(None)
            values[some, inside] = coefficients[some] @ T[: coefficients.shape[1], inside]
            resolved[inside] = good
        return values.T, resolved

    def _piece(self, number: int, order: int) -> _Piece:
        if (number, order) not in self._pieces:
            self._pieces[number, order] = self._fitted(number, order)
        return self._pieces[number, order]

    def _fitted(self, number: int, order: int) -> _Piece:
        before = np.inf
        for size in _SIZES:
            K = 2.0 ** (_OCTAVES * (number + (nodes(size) + 1) / 2))
            values, square = self.integrated(K, order)
            if not (np.isfinite(values) & np.isfinite(square)[:, None]).all():
                break
            scale = np.sqrt(square.max())
            coefficients = transform(size) @ values
            tail = np.abs(coefficients[-2:]).max() / scale if scale else 0.0
            if tail <= _TAIL:
                # Between the nodes, by a finer rule.
                between = 2.0 ** (_OCTAVES * (number + np.array([_CHECKED])))
                finer, _ = self.integrated(between, order, _CHECK_NODES)
                here = polynomials(np.array([2 * _CHECKED - 1]), size).T @ coefficients
                good = bool(np.abs(finer - here).max() <= _ERROR * scale)
                return _Piece(np.ascontiguousarray(coefficients.T), good)
            if tail > _FALLS * before:
                break
            before = tail
        return _Piece(np.zeros((order, 1)), False)

    def integrated(
        self, K: np.ndarray, order: int, count: int = _NODES
    ) -> tuple[np.ndarray, np.ndarray]:
        """The coefficients (m, order) and ⟨f²⟩ (m,) by Gauss-Legendre panels that end at kinks."""
        dev = np.sqrt(K)[:, None]
        level = _LEVELS * int(np.ceil(np.log2(K.max()) / 2 / _LEVELS))
        cuts, z, tables = _panels(order, count, max(_LEAST, level))
        with np.errstate(all="ignore"):
            values = np.broadcast_to(self.f(dev * z), (len(K), len(z)))
        ends = np.abs(values[:, [0, -1]]).max(axis=1) * np.exp(-(z[0] ** 2) / 4)
        kinks = np.array([kink for kink in self.kinks if kink]) / dev
        if kinks.size:
            split, *rule = _at_kinks(cuts, kinks, count)
            values = np.where(np.repeat(split, count, axis=1), 0.0, values)
        # Even orders see the even part of f, odd ones the odd part.
        lower, upper = values[:, : len(z) // 2][:, ::-1], values[:, len(z) // 2 :]
        square = (lower**2 + upper**2) @ tables[0][0]
        found = np.zeros((len(K), order))
        for which, side in enumerate((upper + lower, upper - lower)):
            if self.parity in (None, which):
                found[:, which::2] = side @ tables[which].T
        if kinks.size:
            near, weights = rule
            with np.errstate(all="ignore"):
                values = self.f(dev * near)
            square += (values**2 * next(weighted_hermite(1, near, weights))).sum(axis=1)
            for n, h in enumerate(weighted_hermite(order, near, weights)):
                found[:, n] += np.einsum("ij,ij->i", values, h)
        # Beyond the ends is nothing that counts, or the integrals are not known.
        known = (ends <= _AT_ENDS * np.sqrt(square)) | (square == 0)
        return np.where(known[:, None], found, np.nan), square


@dataclass(frozen=True, eq=False)
class Signals:
    """Variances (m,) and the coefficients of functions of them, for series of all orders."""

    own: np.ndarray
    _tables: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    def coefficients(self, f: HermiteCoefficients, order: int) -> tuple[np.ndarray, np.ndarray]:
        """f_n (m, order), and which are resolved; none where the variance is too small or large."""
        most = _fitted_together(order)
        if (id(f), most) not in self._tables:
            usual = has_coefficients(self.own)
            table, resolved = f(np.where(usual, self.own, 1.0), most)
            self._tables[id(f), most] = table, resolved & usual
        table, resolved = self._tables[id(f), most]
        return table[:, :order], resolved


_Panels = tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]]


def _panels(order: int, count: int, level: int) -> _Panels:
    """Those of few orders are kept for all variances, long tables for a while."""
    return (_few_panels if order <= _MODERATE else _many_panels)(order, count, level)


def _panels_made(order: int, count: int, level: int) -> _Panels:
    """Cuts and nodes of panels graded to zero down to 2^-level, and h_n N(z; 0, 1) times weights.

    The latter for even and for odd orders, of the nodes z > 0.
    """
    number = 2 + int(2 * _REACH * np.sqrt(max(order, _LOW)) / _PHASE)
    graded = np.array(breakpoints([0.0], 0.5**level, _REACH))
    even = np.linspace(-_REACH, _REACH, number)
    upper = np.union1d(even[even > 0], graded[(graded >= 0) & (graded < 1)])
    z, weights = composite(upper, count)
    table = basis(order, z, weights)
    return np.union1d(-upper, upper), np.concatenate([-z[::-1], z]), (table[::2], table[1::2])


_few_panels, _many_panels = lru_cache(maxsize=32)(_panels_made), lru_cache(maxsize=4)(_panels_made)


def _at_kinks(
    cuts: np.ndarray, kinks: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which panels have kinks (m, kinks) inside, and a rule on their parts, each (m, ...)."""
    kinks = np.sort(np.clip(kinks, cuts[0], cuts[-1]), axis=1)
    panel = np.clip(np.searchsorted(cuts, kinks, side="right") - 1, 0, len(cuts) - 2)
    low, high = cuts[panel], cuts[panel + 1]
    # The part on the left of a kink starts at the kink before; the last one has a right part too.
    low[:, 1:] = np.maximum(low[:, 1:], kinks[:, :-1])
    high[:, :-1] = np.where(kinks[:, 1:] < high[:, :-1], kinks[:, :-1], high[:, :-1])
    split = np.zeros((len(kinks), len(cuts) - 1), dtype=bool)
    np.put_along_axis(split, panel, True, axis=1)
    rules = [composite(np.stack(part, axis=-1), count) for part in ((low, kinks), (kinks, high))]
    nodes, weights = (np.concatenate(both, axis=-1) for both in zip(*rules, strict=True))
    flat = len(kinks), -1
    return split, nodes.reshape(flat), weights.reshape(flat)


def _fitted_together(order: int) -> int:
    """How many coefficients are fitted where so many are asked for."""
    return next((n for n in _FITTED if n >= order), order)


def has_coefficients(K: np.ndarray) -> np.ndarray:
    """Which variances (m,) are neither too small nor too large for coefficients."""
    return (K >= _SMALLEST) & (K <= _LARGEST)


@lru_cache(maxsize=64)
def coefficients_of(f: sp.Expr, x: sp.Symbol) -> HermiteCoefficients:
    """The coefficients of an expression in x, shared by all that ask for it."""
    mirrored = f.subs(x, -x)
    parity = 0 if mirrored == f else 1 if mirrored == -f else None
    return HermiteCoefficients(vectorised([x], f), tuple(cuts_of(f, x)), parity)
