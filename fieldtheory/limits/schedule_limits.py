"""The limit of a schedule ρ_l at infinite depth: a speed over t = l/L, or a sum over layers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fieldtheory.limits.tail_sums import TailSum
from fieldtheory.networks.family import DeepNetwork
from fieldtheory.networks.schedules import SCHEDULES, follows_depth, scale_text
from fieldtheory.validation import excerpt

# The layers from which on sums are continued.
FIRST = 256
# The depth at which λ(t) is read off, and one that must give the same.
_DEEP, _DEPTH = 2**40, 2**10
_LAYERS, _FACTORS = (1, 2, 3, 7, 30, 400), (1, 2, 100)
_FRACTIONS = (0.125, 0.25, 0.5, 0.75, 1.0)
_SAME = 1e-12


@dataclass(frozen=True, eq=False)
class UniformSchedule:
    """ρ_l = λ(l/L)/√L; ``scale`` is ρ of (l, L), also for l that is not an integer."""

    scale: Callable[[float, int], float]

    def speed(self, t: float) -> float:
        """λ(t)²."""
        value = float(self.scale(max(t * _DEEP, 1.0), _DEEP))
        return _DEEP * value**2

    def remaining(self, t: float) -> float:
        """∫_t^1 λ²."""
        from scipy.integrate import quad

        return float(quad(self.speed, t, 1.0, epsabs=0, epsrel=1e-12, limit=200)[0])


@dataclass(frozen=True, eq=False)
class SummableSchedule:
    """ρ_l = λ_l, the same at every depth, with a finite sum of squares; ``scale`` as above."""

    scale: Callable[[float, int], float]

    def square(self, l: float) -> float:
        """λ_l²."""
        return float(self.scale(l, math.ceil(l))) ** 2

    @cached_property
    def squares(self) -> np.ndarray:
        """λ_l² of l = 0 (which is 0), ..., `FIRST`."""
        return np.array([0.0, *(self.square(l) for l in range(1, FIRST + 1))])

    @cached_property
    def tail(self) -> TailSum:
        """The sum over later layers."""
        return TailSum(self.square, FIRST)

    def remaining(self, layer: float) -> float:
        """Σ_{k>l} λ_k²."""
        if layer >= FIRST:
            return self.tail.after(layer)
        return math.fsum([*self.squares[int(layer) + 1 :], self.tail.whole])


def schedule_limit(network: DeepNetwork) -> UniformSchedule | SummableSchedule:
    """Schedule of a network at infinite depth."""
    scale_argument = getattr(network, "branch_scale", None)
    if not follows_depth(scale_argument):
        raise ValueError(
            "branch_scale must be a schedule, which says what becomes of it at infinite depth: "
            '"uniform", "decreasing" or a function of (l, L) such as lambda l, L: 0.3 / L**0.5, '
            f"got {excerpt(scale_argument)}"
        )
    scale = _function(scale_argument)
    try:
        independent = _is_independent(scale)
        uniform = not independent and _is_uniform(scale)
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ValueError(
            "branch_scale must be a function of (l, L) for every depth and for l that are no "
            f"integers, {scale_text(scale_argument)} raised {reason}"
        ) from error
    if uniform:
        return UniformSchedule(scale)
    if not independent:
        raise ValueError(
            "branch_scale must be λ(l/L)/√L or the same at every depth to have a limit, got "
            f"{scale_text(scale_argument)}"
        )
    schedule = SummableSchedule(scale)
    try:
        schedule.remaining(0)
    except (ValueError, ArithmeticError, TypeError) as error:
        raise ValueError(
            f"branch_scale must have a bounded Σ ρ_l², got {scale_text(scale_argument)} ({error}); "
            '"uniform" and "decreasing" have one'
        ) from None
    return schedule


def _function(schedule: Any) -> Callable[[float, int], float]:
    if not isinstance(schedule, str):
        return schedule
    values = SCHEDULES[schedule].values
    return lambda l, L: float(values(np.array([float(l)]), L)[0])


def _is_independent(scale: Callable[[float, int], float]) -> bool:
    """Whether ρ_l is the same at every depth."""
    values = [[float(scale(l, factor * l)) for factor in _FACTORS] for l in _LAYERS]
    return bool(np.ptp(values, axis=1).max() <= _SAME * np.abs(values).max())


def _is_uniform(scale: Callable[[float, int], float]) -> bool:
    """Whether ρ_l √L is a function of l/L."""
    deep, shallow = (
        np.array([L**0.5 * float(scale(t * L, L)) for t in _FRACTIONS]) for L in (_DEEP, _DEPTH)
    )
    same = np.abs(deep - shallow).max() <= _SAME * np.abs(deep).max()
    return bool(np.isfinite(deep).all() and same)
