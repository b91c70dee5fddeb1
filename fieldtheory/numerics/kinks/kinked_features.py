"""Features ψ of a network as functions of arrays, and where they have kinks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import sympy as sp

from fieldtheory.averages.integrals.vectorising import vectorised
from fieldtheory.averages.integrands.narrow import steep_cuts
from fieldtheory.averages.integrands.steps import branch, break_points, has_steps, slope_of_pieces
from fieldtheory.numerics.neurons.hermite_modes import Jump
from fieldtheory.theory.elementary_averages import X


class Feature(NamedTuple):
    """ψ as a function of arrays.

    Parameters
    ----------
    function : callable
    jumps : tuple of Jump
        Empty if it is smooth.
    degree : int or None
        Of the polynomials between the kinks, None if they are not polynomials.
    slope : callable
        ψ' beside the kinks.
    curvature : Curvature or None
        ψ'', None if ψ is smooth, or ψ or ψ' infinite somewhere.
    steep : tuple of float
        Places at and beside which ψ changes within less than one.
    """

    function: Callable[..., np.ndarray]
    jumps: tuple[Jump, ...]
    degree: int | None
    slope: Callable[..., np.ndarray]
    curvature: Curvature | None
    steep: tuple[float, ...] = ()

    @property
    def has_orthants(self) -> bool:
        """Whether it is linear on either side of zero, so that averages are moments of orthants."""
        return self.degree == 1 and all(jump.place == 0 for jump in self.jumps)

    @property
    def has_bounded_slope(self) -> bool:
        """Whether ψ is continuous, and has slopes on either side of its kinks."""
        places = np.array([jump.place for jump in self.jumps])
        below, above = (self.function(places + side * _NEAR) for side in (-1, 1))
        if np.any(np.abs(above - below) > _STEADY):
            return False
        near, nearer = (
            self.slope(np.concatenate([places - e, places + e])) for e in (_NEAR, _NEAR**2)
        )
        return bool(np.all(np.abs(nearer - near) <= _STEADY * (1 + np.abs(near))))


# Distance from a kink at which a slope is that beside it, and by how much it may move further in.
_NEAR, _STEADY = 1e-6, 1e-2


@lru_cache(maxsize=64)
def feature(psi: sp.Expr) -> Feature:
    """ψ compiled, an expression in ``X``.

    Examples
    --------
    >>> feature(sp.Max(-1, sp.Min(X, 1))).jumps
    (Jump(place=-1.0, sizes=(0.0, 1.0)), Jump(place=1.0, sizes=(0.0, -1.0)))
    """
    function, slope = _of_arrays(psi), _of_arrays(slope_of_pieces(psi, X))
    if not has_steps(psi):
        return Feature(function, (), None, slope, None, steep_cuts(psi, X))
    cuts, pieces = _pieces(psi)
    degree = None
    if all(piece.is_polynomial(X) for piece in pieces):
        degree = max([0, *(int(sp.degree(piece, X)) for piece in pieces if piece != 0)])
    jumps = []
    for cut, (left, right) in zip(cuts, pairwise(pieces), strict=True):
        orders = range((degree or 0) + 1)
        sizes = [float((right - left).diff(X, i).subs(X, cut)) for i in orders]
        jumps.append(Jump(float(cut), tuple(sizes)))
    steep = steep_cuts(psi, X) if degree is None else ()
    return Feature(function, tuple(jumps), degree, slope, curvature(psi), steep)


def _pieces(psi: sp.Expr) -> tuple[list[sp.Expr], list[sp.Expr]]:
    """Where ψ has kinks, and what it is beside and between them."""
    cuts = break_points(psi, X)
    middles = [cuts[0] - 1, *((a + b) / 2 for a, b in pairwise(cuts)), cuts[-1] + 1]
    return cuts, [sp.expand(branch(psi, X, middle)) for middle in middles]


class Curvature(NamedTuple):
    """ψ'' with kinks: a function between these, and δ' and δ of the jumps of ψ and ψ' there.

    Parameters
    ----------
    between : callable
    jumps : tuple of Jump
        Of orders 0 and 1.
    """

    between: Callable[..., np.ndarray]
    jumps: tuple[Jump, ...]


@lru_cache(maxsize=64)
def curvature(psi: sp.Expr) -> Curvature | None:
    """ψ'' compiled, None if ψ or ψ' is infinite somewhere.

    Examples
    --------
    >>> curvature(X * abs(X)).jumps, curvature(X * abs(X)).between(np.array([-1.0, 3.0]))
    ((Jump(place=0.0, sizes=(0.0, 0.0)),), array([-2,  2]))
    """
    cuts, pieces = _pieces(psi)
    jumps = []
    for cut, (left, right) in zip(cuts, pairwise(pieces), strict=True):
        sizes = [(right - left).diff(X, i).subs(X, cut) for i in range(2)]
        if not all(size.is_finite for size in sizes):
            return None
        jumps.append(Jump(float(cut), tuple(float(size) for size in sizes)))
    return Curvature(_of_arrays(slope_of_pieces(slope_of_pieces(psi, X), X)), tuple(jumps))


def _of_arrays(F: sp.Expr) -> Callable[..., np.ndarray]:
    compiled = vectorised([X], F)
    return lambda h: np.broadcast_to(compiled(h), np.shape(h))


def centres(features: Sequence[Feature]) -> tuple[float, ...]:
    """Where functions of the features are not smooth or, at zero, change fastest.

    Examples
    --------
    >>> centres([feature(sp.Max(-1, sp.Min(X, 1)))])
    (-1.0, 0.0, 1.0)
    """
    places = (place for f in features for place in (*f.steep, *(jump.place for jump in f.jumps)))
    return tuple(sorted({0.0, *places}))


def is_odd(psi: Sequence[Feature]) -> bool:
    """Whether there is one ψ and it is odd."""
    h = np.linspace(0.1, 4.0, 14)
    return len(psi) == 1 and bool(np.allclose(psi[0].function(-h), -psi[0].function(h), 1e-12, 0))


def is_even(psi: Sequence[Feature]) -> bool:
    """Whether all ψ are even."""
    h = np.linspace(0.1, 4.0, 14)
    return all(np.allclose(each.function(-h), each.function(h), 1e-12, 0) for each in psi)
