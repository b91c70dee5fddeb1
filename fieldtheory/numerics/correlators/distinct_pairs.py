"""Two inputs that are not nearly parallel: correlators of their observables in two layers.

With x and u of the earlier layer, of the correlation c, and what layers add to y and v of the later
one, of the correlation κ, averages of products are double series,

    ⟨F(x) G(y) F'(u) G'(v)⟩ = Σ_im κ^i c^m ⟨F G_i h_m⟩ ⟨F' G'_i h_m⟩,

in which derivatives of G are shifts of i (see `later_signals`), also where G has kinks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fieldtheory.numerics.correlators.distinct_inputs import DERIVATIVES, DistinctInputs
from fieldtheory.numerics.correlators.later_signals import LaterSignal
from fieldtheory.numerics.observables.pair_observables import PairObservables
from fieldtheory.numerics.observables.two_layers import TwoLayers

# Seconds of a pair of inputs in a pair of layers, and of an input, whose noise may be narrow.
SECONDS, _ALONE_SECONDS = 4e-4, 2e-2


class _Alone(NamedTuple):
    """⟨F G_i h_m⟩ of one signal in two layers, for F = 1, g(x, x) − ⟨g⟩, and every ψ(x).

    Parameters
    ----------
    constant, square : ndarray, shape (F, orders of x)
        Of G = 1 and G = g(y, y), which have no orders i.
    features : ndarray, shape (derivatives, F, functions, orders of noise, orders of x)
        Of the derivatives of every ψ.
    """

    constant: np.ndarray
    square: np.ndarray
    features: np.ndarray


def seconds_needed(signals: PairObservables, slopes: bool) -> float:
    """About how many seconds `correlators` or `slopes` of all layers take."""
    layers = len(np.triu_indices(len(signals.K), int(slopes))[0])
    return layers * (SECONDS * len(signals.pairs[0]) + _ALONE_SECONDS * signals.K.shape[-1])


def correlators(inputs: DistinctInputs, two: TwoLayers, later: Sequence[LaterSignal]) -> np.ndarray:
    """⟨g_e^(k) ; g_e'^(l)⟩ of e = αα, ββ, αβ, shape (3, 3, pairs α < β).

    From what is ``later`` of every input, as `DistinctInputs.later` has it.
    """
    series = _Series.of(inputs, two, later, 0)
    found = [
        [series.with_squares(e, 0), series.with_squares(e, 1), series.with_features(e, 0, 0)]
        for e in range(3)
    ]
    return np.array(found)


def slopes(inputs: DistinctInputs, two: TwoLayers, later: Sequence[LaterSignal]) -> np.ndarray:
    """∂_e ⟨g^(l) ; g_e'^(k)⟩ of e = αα, ββ, αβ, shape (3, 3, pairs α < β), of layers k < l."""
    series = _Series.of(inputs, two, later, DERIVATIVES)
    orders = ((2, 0, 0.5), (0, 2, 0.5), (1, 1, 1.0))
    return np.array([[c * series.with_features(e, a, b) for e in range(3)] for a, b, c in orders])


class _Series(NamedTuple):
    """Of every input alone, stacked, and the powers of c and κ of the pairs."""

    alone: _Alone
    first: np.ndarray
    second: np.ndarray
    of_common: np.ndarray
    of_noise: np.ndarray

    @classmethod
    def of(
        cls,
        inputs: DistinctInputs,
        two: TwoLayers,
        later: Sequence[LaterSignal],
        derivatives: int,
    ) -> _Series:
        first, second = np.triu_indices(len(two.early), 1)
        c, kappa = two.within[first, second], two.added[first, second]
        M, I = (int(inputs.count(np.array([np.abs(each).max()]))[0]) for each in (c, kappa))
        every = zip(later, two.noise.tolist(), strict=True)
        found = [_alone(y, noise, (I, M), derivatives) for y, noise in every]
        alone = _Alone(*(np.stack(parts) for parts in zip(*found, strict=True)))
        powers = c[:, None] ** np.arange(M), kappa[:, None] ** np.arange(I)
        return cls(alone, first, second, *powers)

    def _early(self, e: int) -> list[tuple[int, int, np.ndarray | float]]:
        """g_e of the earlier layer less its mean, as products of F of two inputs and factors."""
        if e < 2:
            return [(1, 0, 1.0) if e == 0 else (0, 1, 1.0)]
        F = self.alone.constant
        psi = range(2, F.shape[1])
        mean = sum(
            np.einsum("pm,pm,pm->p", F[self.first, f], F[self.second, f], self.of_common)
            for f in psi
        )
        return [*((f, f, 1.0) for f in psi), (0, 0, -mean)]

    def with_squares(self, e: int, side: int) -> np.ndarray:
        """⟨g_e ; g(y, y)⟩ with y of the first or of the second input, shape (pairs,)."""
        total = np.zeros(len(self.first))
        for F, G, factor in self._early(e):
            one, other = (
                (self.alone.square if side == place else self.alone.constant)[own, function]
                for place, (own, function) in enumerate(((self.first, F), (self.second, G)))
            )
            total += factor * np.einsum("pm,pm,pm->p", one, other, self.of_common)
        return total

    def with_features(self, e: int, a: int, b: int) -> np.ndarray:
        """⟨g_e ; Σ ψ^(a)(y) ψ^(b)(v)⟩, shape (pairs,)."""
        total = np.zeros(len(self.first))
        for F, G, factor in self._early(e):
            one = self.alone.features[self.first, a, F]
            other = self.alone.features[self.second, b, G]
            values = np.einsum("pfim,pfim,pm->pi", one, other, self.of_common, optimize=True)
            total += factor * (values * self.of_noise).sum(axis=1)
        return total


def _alone(y: LaterSignal, noise: float, orders: tuple[int, int], derivatives: int) -> _Alone:
    I, M = orders
    weights = y.roots**2
    square = (y.early**2).sum(axis=0)
    F = np.concatenate([[np.ones_like(y.z), square - square @ weights], y.early]) * y.roots
    basis = y.basis[:M].T
    features = np.zeros((derivatives + 1, len(F), len(y.early), I, M))
    for a in range(derivatives + 1 if noise else 1):
        raised = np.prod([np.arange(1, I + 1) + n for n in range(a)], axis=0) ** 0.5
        psi = y.later[..., a : a + I] * (raised / noise**a if a else 1.0)
        features[a] = np.einsum("Fn,fni->Ffin", F, psi) @ basis
    return _Alone(F @ basis, (F * y.square) @ basis, features)
