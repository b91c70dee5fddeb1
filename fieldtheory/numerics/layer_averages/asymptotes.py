"""The straight lines that φ approaches far from zero, and their averages over wide signals."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import sympy as sp

from fieldtheory.averages.integrals.vectorising import vectorised
from fieldtheory.networks import activations

# Arguments at which lines are told from each other, and where slopes are read off.
_TOLD, _TOLD_LATE, _READ = np.exp2(np.arange(22.0)), np.exp2(np.arange(28.0)), 2.0**400
# Times its width, the angle from which on a step counts as sharp.
_SHARP = 2.0**10
# Below this angle sin θ − θ cos θ = Σ (−1)^(k+1) 2k θ^(2k+1)/(2k+1)!, these being 2k/(2k+1)!, the
# last first.
_SMALL = 0.5
_SERIES = tuple(2 * k / math.factorial(2 * k + 1) for k in range(8, 0, -1))


class Lines(NamedTuple):
    """The lines that φ approaches on both sides, A x + B|x| + C + D sign(x).

    Their averages, with R = √(K_xx K_yy), c = K_xy/R and s = √(2/π) (√K_xx + √K_yy), are

        ⟨φφ⟩ = R [A² c + (2/π) B² (√(1−c²) + c asin c)] + (A D c + B C) s + C² + (2/π) D² asin c

    (the arc-cosine kernels of degrees 0 and 1). Where K_xx and K_yy are so large that A and B alone
    count, 1 − ⟨φφ⟩/√(MM) and ⟨φ'φ'⟩ follow from δ = 1 − c with all digits: θ = 2 asin √(δ/2),

        δ_φ = δ − κ (sin θ − θ cos θ),   ⟨φ'φ'⟩ = A² + B² − (2/π) B² θ,

    κ = (2/π) B²/(A² + B²) (SR eq. (5)).
    """

    A: float
    B: float
    C: float
    D: float

    @property
    def is_homogeneous(self) -> bool:
        """Whether both lines go through zero, and are not zero."""
        return self.C == self.D == 0 and (self.A, self.B) != (0, 0)

    def covariance(self, K_xx: np.ndarray, K_yy: np.ndarray, c: np.ndarray) -> np.ndarray:
        """⟨φφ⟩."""
        R, s = np.sqrt(K_xx * K_yy), np.sqrt(2 / np.pi) * (np.sqrt(K_xx) + np.sqrt(K_yy))
        angle = np.arcsin(c)
        bent = 2 / np.pi * self.B**2 * (np.sqrt((1 - c) * (1 + c)) + c * angle)
        steps = self.C**2 + 2 / np.pi * self.D**2 * angle
        return R * (self.A**2 * c + bent) + (self.A * self.D * c + self.B * self.C) * s + steps

    def decorrelation(self, delta: np.ndarray) -> np.ndarray:
        """δ_φ."""
        return self.at_angles(delta)[1]

    def slope_at(self, delta: np.ndarray) -> np.ndarray:
        """⟨φ'φ'⟩ of δ."""
        return self.A**2 + self.B**2 - 2 / np.pi * self.B**2 * angle_of(delta)

    def at_angles(self, delta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """⟨φ'φ'⟩ and δ_φ of δ."""
        angle, size = angle_of(delta), self.A**2 + self.B**2
        bend = 2 / np.pi * self.B**2
        return size - bend * angle, delta - bend / size * _sector(angle, delta)

    def slope(self, K_xx: np.ndarray, K_yy: np.ndarray, delta: np.ndarray) -> np.ndarray:
        """⟨φ'φ'⟩, the derivative of ⟨φφ⟩ by K_xy; steps, which are none of φ, are no sharper."""
        R, s = np.sqrt(K_xx * K_yy), np.sqrt(2 / np.pi) * (np.sqrt(K_xx) + np.sqrt(K_yy))
        width = np.maximum(np.sqrt(delta * (2 - delta)), _SHARP / np.sqrt(R))
        steps = (2 / np.pi * self.D**2 / width + self.A * self.D * s) / R
        return self.slope_at(delta) + steps


def angle_of(delta: np.ndarray) -> np.ndarray:
    """θ of 1 − cos θ = δ."""
    return 2 * np.arcsin(np.sqrt(np.clip(delta, 0, 2) / 2))


def _sector(angle: np.ndarray, delta: np.ndarray) -> np.ndarray:
    """sin θ − θ cos θ, of θ and 1 − cos θ."""
    small = np.minimum(angle, _SMALL)
    square, series = small * small, 0.0
    for coefficient in _SERIES:
        series = coefficient - square * series
    # √(δ (2 − δ)) − θ (1 − δ).
    return np.where(
        angle < _SMALL, square * small * series, np.sqrt(delta * (2 - delta)) - angle * (1 - delta)
    )


@lru_cache(maxsize=64)
def lines_of(phi: sp.Expr, slowly: bool = False) -> Lines | None:
    """The lines that a function of `activations.h` approaches, None if there are none.

    With ``slowly``, also those to which the distance falls as 1/h only, as that of √(1 + h²).

    Examples
    --------
    >>> lines_of(sp.Max(0, activations.h)), lines_of(activations.h**2)
    (Lines(A=0.5, B=0.5, C=0.0, D=0.0), None)
    """
    f, told = vectorised([activations.h], phi), _TOLD_LATE if slowly else _TOLD
    with np.errstate(all="ignore"):
        try:
            far = np.array([float(f(np.array(x))) for x in (_READ, -_READ)]) / _READ
            near = np.array([f(told), f(-told)]) + np.zeros((2, 1))
        except (ArithmeticError, ValueError, TypeError):
            return None
    if not (np.isfinite(far).all() and np.isfinite(near[:, -2:]).all()):
        return None
    # What is left of an offset is no slope.
    far = np.where(np.abs(far) * np.sqrt(_READ) < 1, 0.0, far)
    rest = near - far[:, None] * told
    rounding = 8 * np.finfo(float).eps * np.abs(near).max(axis=0)
    differ = ~(np.abs(np.diff(rest)) <= rounding[1:]).all(axis=0)
    if differ[-1]:
        return None
    # From the last place that is not there yet the second, so that little is rounded.
    place = min(int(np.nonzero(differ)[0].max(initial=-1)) + 2, len(told) - 1)
    offsets = np.where(np.abs(rest[:, place]) <= rounding[place], 0.0, rest[:, place])
    (up, down), (above, below) = far, offsets
    return Lines(*(float(v) / 2 for v in (up - down, up + down, above + below, above - below)))
