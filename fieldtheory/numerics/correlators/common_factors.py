"""Correlators of four signals with kinks by factors that two planes of signals have in common.

The average of a product of functions of four signals is that of two planes of two signals each,
with the canonical correlations t_1 and t_2. Given the common factors the planes are independent:

    ⟨f(A z) f'(A' w)⟩ = Σ_ξ w_ξ F(ξ) F'(ξ)

with the averages F of `kinked_planes`. Four signals make two planes in three ways; those planes are
taken that have least in common, nearly equal signals in one plane, so that F is smooth. Where they
share a direction, its nodes are those of both planes; in one plane of four signals nothing is left
to average.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrals.quadrature import composite
from fieldtheory.averages.tolerance import tolerance
from fieldtheory.numerics.kinks.kinked_planes import (
    ORDER,
    REACH,
    RESOLUTIONS,
    Plane,
    Resolution,
    distinct,
    factor,
    factor_size,
)
from fieldtheory.numerics.observables import pair_grids
from fieldtheory.numerics.observables.pair_grids import canonical

# Allowed difference of two resolutions relative to the deviations, or that which may be rounding
# relative to the sizes; most nodes of a factor and of both.
_ALLOWED, _ROUNDING, _MOST, _MOST_TOGETHER = 3e-10, 1e-12, 3e4, 1e6
# 1 − t of directions that are the same.
_SAME = 1e-13
# Averages of squares, relative to the largest, that are those of tails, what these take, and what
# is nothing beside the largest of all.
_TAIL, _FAR_REACH, _NOTHING = 1e-5, 11.0, 1e-27
_OF_TAILS = (Resolution(0.85, 2.4), Resolution(0.7, 1.8), Resolution(0.6, 1.4))
# Ways to make two planes of four signals.
_PLANES = ((0, 1, 2, 3), (0, 2, 1, 3), (0, 3, 1, 2))


class _Split(NamedTuple):
    """Two planes of four signals: which they are, A of either, and t."""

    order: tuple[int, ...]
    first: np.ndarray
    second: np.ndarray
    t: np.ndarray

    @property
    def size(self) -> float:
        """About how many nodes the factors have; a shared direction counts as many."""
        return prod(min(factor_size(t), _MOST) for t in self.t)

    @property
    def fits(self) -> bool:
        """Whether so many nodes are found."""
        sizes = [factor_size(t) for t in self.t if t < 1]
        return max(sizes, default=0.0) <= _MOST and prod(sizes) <= _MOST_TOGETHER


@dataclass(frozen=True, eq=False)
class FourSignals:
    """Correlators ⟨g(h_a, h_b) ; g(h_c, h_d)⟩ of g(x, y) = Σ_i ψ_i(x) ψ_i(y).

    Parameters
    ----------
    psi : sequence of callable
        Of arrays.
    kinks : sequence of float
        Of any of them, with places where they change fast.
    K : ndarray, shape (n, n)
        Covariance of all signals.
    odd : bool
        Whether ψ is, so that correlators may be as small as correlations are.
    reach : float
        The radius of planes.

    Examples
    --------
    >>> K = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> pairs = FourSignals([lambda h: h], (0.0,), K)
    >>> round(pairs.connected((0, 1, 0, 1)), 9)  # K_xx K_yy + K_xy²
    7.0
    """

    psi: Sequence[Callable[[np.ndarray], np.ndarray]]
    kinks: Sequence[float]
    K: np.ndarray
    odd: bool = False
    reach: float = REACH
    known: dict[tuple[int, int], np.ndarray] = field(default_factory=dict)

    def connected(self, four: Sequence[int] | np.ndarray) -> float:
        """⟨g(h_a, h_b) ; g(h_c, h_d)⟩ for a, b, c, d.

        Raises
        ------
        QuadratureError
            If two resolutions differ by more than 3e-10 of the deviations, or a larger tolerance,
            or the signals are too nearly dependent.
        """
        a, b, c, d = (int(one) for one in four)
        if not self.K[np.ix_([a, b], [c, d])].any():
            return 0.0
        (mean, square), (other, of_other) = self._moments(a, b), self._moments(c, d)
        resolutions, nothing = RESOLUTIONS, 0.0
        if self.reach > REACH:
            resolutions = _OF_TAILS
            nothing = _NOTHING * float(np.sqrt(self._largest(a, b) * self._largest(c, d)))
        elif square < _TAIL * self._largest(a, b) or of_other < _TAIL * self._largest(c, d):
            return self._of_tails.connected(four)
        split = self._split((a, b, c, d))
        deviations = np.sqrt(max(square - mean**2, 0.0) * max(of_other - other**2, 0.0))
        allowed = max(_ALLOWED, tolerance())
        scale = max(deviations, _ROUNDING / allowed * float(np.sqrt(square * of_other)), _TINY)
        previous, error = np.nan, np.inf
        for resolution in resolutions:
            value = self._by_rule(split, resolution) - mean * other
            apart = abs(value - previous)
            error = apart / pair_grids.own_scale(value, scale, self.odd)
            if error <= allowed or apart <= nothing:
                return float(value)
            previous = value
        raise pair_grids.not_converged(np.diag(self.K)[[a, b, c, d]], error, allowed)

    @cached_property
    def _of_tails(self) -> FourSignals:
        """The same for signals that hardly reach a kink beside which ψ is nothing."""
        return FourSignals(self.psi, self.kinks, self.K, self.odd, _FAR_REACH)

    def _largest(self, a: int, b: int) -> float:
        """The largest g² of signals at the end of far planes."""
        ends = (_FAR_REACH * np.sqrt(self.K[one, one]) * np.array([-1.0, 1.0]) for one in (a, b))
        values = [np.array([psi(h) for psi in self.psi]) for h in ends]
        return float(np.max((values[0].T @ values[1]) ** 2))

    def nodes(self, four: Sequence[int] | np.ndarray) -> float:
        """About how many nodes of planes `connected` takes."""
        a, b, c, d = (int(one) for one in four)
        split = self._split((a, b, c, d))
        noise = [float(np.sqrt(1 - t)) if t < 1 else 1.0 for t in split.t]
        planes = [Plane(A, self.kinks) for A in (split.first, split.second)]
        found = [plane.size((noise[0], noise[1]), RESOLUTIONS[1].panel) for plane in planes]
        return 2.0 * float(sum(found))

    def _split(self, four: tuple[int, ...]) -> _Split:
        found = []
        for order in _PLANES:
            i, j, k, l = (four[place] for place in order)
            first, second, t = canonical(
                self._block(i, j), self._block(k, l), self.K[np.ix_((i, j), (k, l))]
            )
            found.append(_Split(order, first, second, np.where(1 - t <= _SAME, 1.0, t)))
        able = [split for split in found if split.fits]
        if not able:
            raise QuadratureError(
                "four signals with kinks that are nearly dependent, of the variances "
                f"{np.diag(self.K)[list(four)]}, are not resolved"
            )
        return min(able, key=lambda split: split.size)

    def _block(self, a: int, b: int) -> np.ndarray:
        return self.K[np.ix_((a, b), (a, b))]

    def _moments(self, a: int, b: int) -> np.ndarray:
        """⟨g(h_a, h_b)⟩ and ⟨g²⟩."""
        key = min(a, b), max(a, b)
        if key not in self.known:
            own = self._block(*key)
            first, _, _ = canonical(own, own, own)

            def functions(x: np.ndarray, y: np.ndarray) -> np.ndarray:
                g = np.sum([psi(x) * psi(y) for psi in self.psi], axis=0)
                return np.array([g, g * g])

            self.known[key] = self._in_plane(first, functions, RESOLUTIONS[1])
        return self.known[key]

    def _in_plane(
        self, A: np.ndarray, functions: Callable[..., np.ndarray], resolution: Resolution
    ) -> np.ndarray:
        """Averages of functions of signals in one plane."""
        plane, none = Plane(A, self.kinks, self.reach), factor(0.0, resolution)
        z, weights = composite(plane.cuts((1.0, 1.0), resolution.panel), ORDER)
        inner = plane.given(functions, z, none, resolution.panel)[:, 0, :, 0]
        return none.averaged(inner * weights, z)[:, 0, 0]

    def _by_rule(self, split: _Split, resolution: Resolution) -> float:
        """⟨g g⟩."""
        crossed = split.order != _PLANES[0]
        if split.t[1] == 1:
            A = np.concatenate([split.first, split.second])

            def product(*h: np.ndarray) -> np.ndarray:
                # In the order of the signals.
                a, b, c, d = (h[split.order.index(place)] for place in range(4))
                values = [[psi(x) * psi(y) for psi in self.psi] for x, y in ((a, b), (c, d))]
                return np.prod(np.sum(values, axis=1), axis=0)[None]

            return float(self._in_plane(A, product, resolution)[0])

        def functions(x: np.ndarray, y: np.ndarray) -> np.ndarray:
            if crossed:
                return np.array([psi(x) * other(y) for psi in self.psi for other in self.psi])
            return np.sum([psi(x) * psi(y) for psi in self.psi], axis=0)[None]

        planes = [Plane(A, self.kinks, self.reach) for A in (split.first, split.second)]
        return float(np.trace(joint_averages(planes, split.t, (functions, functions), resolution)))


def joint_averages(
    planes: Sequence[Plane],
    t: np.ndarray,
    functions: Sequence[Callable[..., np.ndarray]],
    resolution: Resolution,
) -> np.ndarray:
    """⟨f_i(A z) f'_j(A' w)⟩ of two planes, shape (functions f, functions f').

    Parameters
    ----------
    planes : pair of Plane
        A and A', in canonical directions.
    t : ndarray, shape (2,)
        Their correlations in descending order, of which the second is not 1.
    functions : pair of callable
        f and f', each of two arrays to (functions, *shape).
    resolution : Resolution
    """
    reach = max(plane.reach for plane in planes)
    second = factor(float(t[1]), resolution, reach=reach)
    panel, pairs = resolution.panel, list(zip(planes, functions, strict=True))
    if t[0] == 1:
        ends = [plane.cuts((1.0, second.noise), panel) for plane in planes]
        z, weights = composite(distinct(np.concatenate(ends), reach), ORDER)
        F, G = (plane.given(f, z, second, panel)[:, 0] for plane, f in pairs)
        bell = weights * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
        return np.einsum("fzn,gzn,z,n->fg", F, G, bell, second.weights, optimize=True)
    first = factor(float(t[0]), resolution, reach=reach)
    found = []
    for plane, f in pairs:
        z, weights = composite(plane.cuts((first.noise, second.noise), panel), ORDER)
        inner = plane.given(f, z, second, panel)[:, 0]
        found.append(first.averaged(np.swapaxes(inner * weights[:, None], 1, 2), z)[:, :, 0])
    F, G = found
    return np.einsum("fnx,gnx,x,n->fg", F, G, first.weights, second.weights, optimize=True)


_TINY = float(np.finfo(float).tiny)
