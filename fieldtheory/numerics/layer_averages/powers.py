"""Averages of two signals of φ that is a power of its argument on both sides of zero.

Of φ = a_+ h^p for h > 0 and a_- |h|^p for h < 0, signals at the angle θ have the average

    ⟨φφ⟩ = (K_xx K_yy)^{p/2} 2^p Γ(p+1)/(2π) [(a_+² + a_-²) A_p(θ) + 2 a_+ a_- A_p(π − θ)],
    A_p(θ) = ∫_0^{π−θ} (sin u sin(u + θ))^p du = ∫_0^{π−θ} (sin(x/2) sin(x/2 + θ))^p dx,

with the sectors in which both have one sign, or two: the arc-cosine kernel of degree p, of any p.
φ' is a power again, and by Price's theorem 1 − ⟨φφ⟩/√(MM) is an integral of ⟨φ'φ'⟩ sin θ over the
angle, of which no digits cancel.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import sympy as sp
from scipy.special import gamma, hyp2f1

from fieldtheory.averages.integrals.vectorising import vectorised
from fieldtheory.networks import activations
from fieldtheory.numerics.layer_averages.asymptotes import angle_of

# Where a function is compared with powers, over a first place, and how well it agrees.
_PLACES, _AGREES = np.array([1.0, 1.3, 1.7, 2.9, 8.0]), 1e-13
# Step of the double exponential rule, and how many there are on either side.
_STEP, _COUNT = 1 / 12, 48
# Correlations below which the difference of both sectors loses digits.
_WEAK = 0.5


class Powers(NamedTuple):
    """φ = ``up`` h^power for h > 0 and ``down`` |h|^power for h < 0, power >= 1."""

    up: float
    down: float
    power: float

    def covariance(self, K_xx: np.ndarray, K_yy: np.ndarray, c: np.ndarray) -> np.ndarray:
        """⟨φφ⟩."""
        return (K_xx * K_yy) ** (self.power / 2) * _average(*self, c, 1 - c)

    def slope(
        self, K_xx: np.ndarray, K_yy: np.ndarray, c: np.ndarray, delta: np.ndarray
    ) -> np.ndarray:
        """⟨φ'φ'⟩, of c and 1 − c."""
        return (K_xx * K_yy) ** ((self.power - 1) / 2) * self._slope(c, delta)

    def decorrelation(self, delta: np.ndarray) -> np.ndarray:
        """1 − ⟨φφ⟩/√(MM), of 1 − c."""
        angle, (x, weights) = angle_of(delta)[..., None], double_exponential()
        near = 2 * np.sin(angle * x / 2) ** 2
        slopes = self._slope(1 - near, near) * np.sin(angle * x)
        moment = (self.up**2 + self.down**2) * sector(self.power, np.zeros(1), np.full(1, np.pi))[0]
        return angle[..., 0] * (slopes @ weights) / (_size(self.power) * moment)

    def _slope(self, c: np.ndarray, delta: np.ndarray) -> np.ndarray:
        return self.power**2 * _average(self.up, -self.down, self.power - 1, c, delta)


def _average(up: float, down: float, p: float, c: np.ndarray, delta: np.ndarray) -> np.ndarray:
    """Of signals of variance 1."""
    angle = angle_of(delta)
    same, other = sector(p, angle, np.pi - angle), sector(p, np.pi - angle, angle)
    found = (up**2 + down**2) * same + 2 * up * down * other
    weak = np.abs(c) < _WEAK
    if weak.any():
        # Of ⟨sgn(x)|x|^p sgn(y)|y|^p⟩ the sectors nearly cancel.
        half = (1 - p) / 2
        odd = gamma(p / 2 + 1) ** 2 / gamma(p + 1) * c * hyp2f1(half, half, 1.5, weak * c**2)
        even = (up + down) ** 2 / 2 * (same + other)
        found = np.where(weak, even + (up - down) ** 2 * odd, found)
    return _size(p) * found


def _size(p: float) -> float:
    return float(2**p * gamma(p + 1) / (2 * np.pi))


def sector(
    p: float,
    angle: np.ndarray,
    left: np.ndarray,
    factor: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
) -> np.ndarray:
    """A_p(θ) of θ and π − θ, with a symmetric factor of the logarithms of both sines, if any."""
    nodes, weights = double_exponential()
    x = left[..., None] * nodes / 2
    # The second sine has its digits at both ends.
    acute = angle < left
    s = np.sin(x)
    t = np.sin(np.where(acute, angle, left)[..., None] + np.where(acute, 1, -1)[..., None] * x)
    values = (s * t) ** p
    if factor is not None:
        values = values * factor(np.log(s), np.log(t))
    return left * (values @ weights)


@lru_cache(maxsize=1)
def double_exponential() -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on (0, 1) for functions that are powers at its ends."""
    t = _STEP * np.arange(-_COUNT, _COUNT + 1)
    x = 1 / (1 + np.exp(-np.pi * np.sinh(t)))
    return x, _STEP * np.pi * np.cosh(t) * x * x[::-1]


@lru_cache(maxsize=64)
def powers_of(phi: sp.Expr, power: float, first: float) -> Powers | None:
    """φ as powers at all signals not smaller than a first one, None if it is none.

    Examples
    --------
    >>> powers_of(sp.Max(0, activations.h) ** 2, 2.0, 1.0)
    Powers(up=1.0, down=0.0, power=2.0)
    """
    f = vectorised([activations.h], phi)
    with np.errstate(all="ignore"):
        try:
            places = first * _PLACES
            sides = np.array([f(places), f(-places)]) / places**power
        except (ArithmeticError, ValueError, TypeError):
            return None
    size = np.abs(sides).max()
    if power < 1 or not np.isfinite(size) or np.ptp(sides, axis=1).max() > _AGREES * size:
        return None
    up, down = map(float, sides[:, -1])
    return Powers(up, down, power)
