"""Inputs whose signals are one up to a factor in all layers: h_β = λ h_α.

They have λ² = K_ββ/K_αα and K_αβ = λ K_αα to rounding, and φ(h_β) = μ φ(h_α): identical inputs of
every φ, opposite ones of odd and even φ, and inputs with different norms of φ that is homogeneous
of degree one, which has λ = μ or, if it is even, μ = |λ|. Their fluctuations are those of one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fieldtheory.numerics.infinite_width.homogeneous import lines_of
from fieldtheory.numerics.several_inputs.pair_expansions import Signals

# Differences of kernels, relative to them, from which on inputs differ: results change by as much,
# and rounding of those of nearly collinear inputs is divided by the root of it.
_ROUNDING = 1e-10


class Collinear(NamedTuple):
    """Representative of each input up to factors.

    Parameters
    ----------
    kept : ndarray of int
        The first of every set of collinear inputs.
    of : ndarray of int, shape (P,)
        The place of each input's first one among these.
    factors : ndarray, shape (P,)
        μ.
    """

    kept: np.ndarray
    of: np.ndarray
    factors: np.ndarray

    @classmethod
    def among(cls, signals: Signals) -> Collinear:
        """Those of a network."""
        inputs = signals.K.shape[-1]
        factors = np.zeros((inputs, inputs))
        for alpha in range(inputs):
            for beta in range(alpha, inputs):
                factors[alpha, beta] = _factor(signals, alpha, beta)
        first = np.argmax(factors != 0, axis=0)
        kept, of = np.unique(first, return_inverse=True)
        return cls(kept, of, factors[first, np.arange(inputs)])

    def of_pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """The place of every pair's among those of the kept inputs, and the product of factors."""
        alpha, beta = np.triu_indices(len(self.of))
        place = np.zeros((len(self.kept),) * 2, dtype=int)
        rows, columns = np.triu_indices(len(self.kept))
        place[rows, columns] = place[columns, rows] = np.arange(len(rows))
        return place[self.of[alpha], self.of[beta]], self.factors[alpha] * self.factors[beta]


def _factor(signals: Signals, alpha: int, beta: int) -> float:
    """μ of two inputs, 0 if they are not collinear."""
    if alpha == beta:
        return 1.0
    x, y, xy = signals.K[:, alpha, alpha], signals.K[:, beta, beta], signals.K[:, alpha, beta]
    if not (x.all() and y.all()):
        return float(np.array_equal(x, y) and np.array_equal(x, xy))
    ratio = float(np.sqrt(y[0] / x[0]))
    if (np.abs(np.sqrt(y / x) - ratio) > _ROUNDING * ratio).any():
        return 0.0
    if (np.abs(np.abs(xy) - ratio * x) > _ROUNDING * ratio * x).any():
        return 0.0
    if abs(ratio - 1) > _ROUNDING and not all(map(lines_of, signals.functions)):
        return 0.0
    if (xy > 0).all():
        return ratio
    parity = {psi.parity for psi in signals.functions}
    if parity == {1}:
        return ratio
    return -ratio if parity == {-1} and (xy < 0).all() else 0.0
