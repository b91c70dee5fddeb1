"""Features ψ with kinks: nodes that end there, and averages over noise by what jumps there.

For S_j(p) = ⟨ψ(p + √q n) h_j(n)⟩ of a ψ of polynomials between kinks t, by parts,

    S_j(p) = Σ_t Σ_i √((j−1−i)!/j!) q^{i/2} Δψ^(i)(t) h_{j−1−i}(n_t) N(n_t; 0, 1)

with n_t = (t − p)/√q and the jumps Δψ^(i) of the derivatives, for j above all degrees. Else it is
integrated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import sympy as sp

from fieldtheory.averages.hermite import weighted_hermite
from fieldtheory.averages.quadrature import composite
from fieldtheory.averages.steps import branch, break_points, has_steps
from fieldtheory.averages.vectorising import vectorised
from fieldtheory.numerics.hermite_modes import Jump
from fieldtheory.theory.elementary_averages import X

# Distance in deviations beyond which the root of a Gaussian is rounding.
REACH = 12.6
# Nodes of a panel, the width of which resolves Hermite functions of order n as its part of 1/√n.
_NODES, _WIDTH, _WIDEST = 18, 8.0, 1.5
# Nodes in both directions at once.
_TOGETHER = 1 << 21


class Feature(NamedTuple):
    """ψ as a function of arrays.

    Parameters
    ----------
    function : callable
    jumps : tuple of Jump
        Empty if it is smooth.
    degree : int or None
        Of the polynomials between the kinks, None if they are not polynomials.
    """

    function: Callable[..., np.ndarray]
    jumps: tuple[Jump, ...]
    degree: int | None

    @property
    def has_orthants(self) -> bool:
        """Whether it is linear on either side of zero, so that averages are moments of orthants."""
        return self.degree == 1 and all(jump.place == 0 for jump in self.jumps)


@lru_cache(maxsize=64)
def feature(psi: sp.Expr) -> Feature:
    """ψ compiled, an expression in ``X``.

    Examples
    --------
    >>> feature(sp.Max(-1, sp.Min(X, 1))).jumps
    (Jump(place=-1.0, sizes=(0.0, 1.0)), Jump(place=1.0, sizes=(0.0, -1.0)))
    """
    compiled = vectorised([X], psi)

    def function(h: np.ndarray) -> np.ndarray:
        return np.broadcast_to(compiled(h), np.shape(h))

    if not has_steps(psi):
        return Feature(function, (), None)
    cuts = break_points(psi, X)
    middles = [cuts[0] - 1, *((a + b) / 2 for a, b in pairwise(cuts)), cuts[-1] + 1]
    pieces = [sp.expand(branch(psi, X, middle)) for middle in middles]
    degree = None
    if all(piece.is_polynomial(X) for piece in pieces):
        degree = max([0, *(int(sp.degree(piece, X)) for piece in pieces if piece != 0)])
    jumps = []
    for cut, (left, right) in zip(cuts, pairwise(pieces), strict=True):
        orders = range((degree or 0) + 1)
        sizes = [float((right - left).diff(X, i).subs(X, cut)) for i in orders]
        jumps.append(Jump(float(cut), tuple(sizes)))
    return Feature(function, tuple(jumps), degree)


def nodes_between(
    features: Sequence[Feature], K: float, count: int, A: float, q: float, noise_count: int
) -> tuple[np.ndarray, np.ndarray]:
    """z and weights for ⟨ψ(√K z) S_j(A √K z) h_n(z)⟩, j < noise_count, n < count."""
    dev = np.sqrt(K)
    kinks = np.unique([jump.place for f in features for jump in f.jumps])
    cuts = [evenly_cut(-REACH, REACH, min(_WIDTH / np.sqrt(count), _WIDEST)), kinks / dev]
    scale = np.sqrt(q) / (abs(A) * dev) if A else np.inf
    if q and scale < 2.0:
        # What kinks become under the noise.
        reach = (2 * np.sqrt(noise_count) + 6) * scale
        width = min(_WIDTH / np.sqrt(noise_count), _WIDEST) * scale
        cuts += [evenly_cut(z - reach, z + reach, width) for z in kinks / (A * dev)]
    joined = np.unique(np.clip(np.concatenate(cuts), -REACH, REACH))
    return composite(joined, _NODES)


def smoothed(
    features: Sequence[Feature], means: np.ndarray, q: float, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """S_j of all features (b, m, count), and ⟨Σ_b ψ_b²⟩ (m,), at the means p (m,)."""
    found = np.zeros((len(features), len(means), count))
    squares = np.zeros(len(means))
    degrees = [count - 1 if f.degree is None else f.degree for f in features]
    integrated = min(count, max(degrees) + 1)
    kinks = np.unique([jump.place for f in features for jump in f.jumps])
    even = evenly_cut(-REACH, REACH, min(_WIDTH / np.sqrt(integrated), _WIDEST))
    step = max(1, _TOGETHER // (_NODES * (len(even) + len(kinks))))
    for start in range(0, len(means), step):
        part = slice(start, start + step)
        p = means[part, None]
        places = np.clip((kinks - p) / np.sqrt(q), -REACH, REACH)
        cuts = np.concatenate([places, np.tile(even, (len(p), 1))], axis=1)
        n, weights = composite(np.sort(cuts, axis=1), _NODES)
        values = [f.function(p + np.sqrt(q) * n) for f in features]
        for j, h in enumerate(weighted_hermite(integrated, n, weights)):
            for b, each in enumerate(values):
                found[b, part, j] = np.einsum("mn,mn->m", each, h)
            if j == 0:
                squares[part] = np.einsum("mn,mn->m", np.sum(np.square(values), axis=0), h)
    if count > integrated:
        for b, f in enumerate(features):
            found[b, :, integrated:] = _of_jumps(f.jumps, means, q, integrated, count)
    return found, squares


def _of_jumps(
    jumps: Sequence[Jump], means: np.ndarray, q: float, first: int, count: int
) -> np.ndarray:
    """S_j for j = first, ..., count − 1 by parts, shape (m, count − first)."""
    found = np.zeros((len(means), count - first))
    j = np.arange(first, count)
    for jump in jumps:
        n = (jump.place - means) / np.sqrt(q)
        hermite = np.stack(list(weighted_hermite(count, n, np.ones_like(n))), axis=1)
        for i, size in enumerate(jump.sizes):
            factor = 1 / np.sqrt(np.prod([j - k for k in range(i + 1)], axis=0, dtype=float))
            found += size * q ** (i / 2) * factor * hermite[:, j - 1 - i]
    return found


def evenly_cut(low: float, high: float, width: float) -> np.ndarray:
    """Ends of panels of about one width."""
    return np.linspace(low, high, int(np.ceil((high - low) / width)) + 1)
