"""Trajectories of kernels over infinite depth: a speed over t = l/L, or a sum over layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from fieldtheory.limits.kernel_flow import RELATIVE, Flow, followed
from fieldtheory.limits.tail_sums import TailSum
from fieldtheory.networks.family import DeepNetwork
from fieldtheory.networks.schedules import SCHEDULES, follows_depth, scale_text
from fieldtheory.validation import excerpt

TIMES = np.linspace(0.0, 1.0, 21)
# Layers of the grid of a trajectory over infinitely many.
LAYERS = np.array([0.0, *(2.0**k for k in range(21)), np.inf])
# Tolerance of doubling the layers before the flow, relative, and their largest number.
_SETTLED, _MOST = 3e-11, 2**15
# The layers from which on sums are continued.
FIRST = 256
# The depth at which λ(t) is read off, and one that must give the same.
_DEEP, _DEPTH = 2**40, 2**10
_LAYERS, _FACTORS = (1, 2, 3, 7, 30, 400), (1, 2, 100)
_FRACTIONS = (0.125, 0.25, 0.5, 0.75, 1.0)
_SAME = 1e-12


class States(NamedTuple):
    """States at all depths (n, 2, P + pairs), the number of layers before the flow, the error."""

    values: np.ndarray
    last: int
    error: float


@dataclass(frozen=True, eq=False)
class UniformTrajectory:
    """Over t = l/L, from 0 to 1, of ρ_l = λ(l/L)/√L.

    ``scale`` is ρ of (l, L), also for l that is not an integer.
    """

    scale: Callable[[float, int], float]
    places = TIMES

    def speed(self, t: float) -> float:
        """λ(t)²."""
        value = float(self.scale(max(t * _DEEP, 1.0), _DEEP))
        return _DEEP * value**2

    def remaining(self, t: float) -> float:
        """∫_t^1 λ²."""
        from scipy.integrate import quad

        return float(quad(self.speed, t, 1.0, epsabs=0, epsrel=1e-12, limit=200)[0])

    def states(self, flow: Flow, state: np.ndarray) -> States:
        """The states on the grid of depths."""
        states = [state]
        for start, end in pairwise(self.places):
            states.append(self.advance(flow, states[-1], start, end))
        return States(np.stack(states), 0, RELATIVE)

    def require(self, place: float) -> None:
        """ValueError if it is no depth."""
        if not 0 <= place <= 1:
            raise ValueError(f"place must be t = l/L from 0 to 1, got {place!r}")

    def advance(self, flow: Flow, state: np.ndarray, start: float, end: float) -> np.ndarray:
        """The state at a larger depth."""
        return followed(flow, state, None, start, end, self.speed, self.speed)[0]

    def changes(self, flow: Flow, state: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The states on the grid of depths with their coefficients of 1/L."""
        # A layer is a step of λ(l/L)²/L; l of them take s(t) + [λ(t)² − λ(0)²]/(2L).
        speed = self.speed
        first = speed(0.0)
        change: Any = first / 2 * flow.rates(state)
        for start, end in pairwise([0.0, *self.places]):
            state, change = followed(flow, state, change, start, end, speed, speed)
            yield state, change + (speed(end) / 2 - first) * flow.rates(state)


@dataclass(frozen=True, eq=False)
class SummableTrajectory:
    """Over layers l, from 0 to infinity, of ρ_l = λ_l with a finite sum of squares."""

    # The first ``last`` layers are those of the network, the others the flow over the time
    # Σ_{k>last} λ_k² with its first change by their steps, whose error is of the order of Σ λ_k⁶.
    scale: Callable[[float, int], float]
    last: int = FIRST
    places = LAYERS

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

    def states(self, flow: Flow, state: np.ndarray) -> States:
        """The states on the grid, after enough layers that half of them give the same limit."""
        states, last, end, error = [state], self.last, np.full_like(state, np.nan), np.nan
        while not error <= _SETTLED:
            if len(states) > 1 and (last >= _MOST or not np.isfinite(end).all()):
                raise ArithmeticError(
                    f"the limit of the kernel was found to a relative {error:.1g} only, with "
                    f"{last} layers before the flow"
                )
            last, done = 2 * last, len(states)
            for start, place in pairwise(self.places[done - 1 :]):
                if place > last:
                    break
                states.append(self.advance(flow, states[-1], start, place, last))
            half = last // 2
            before = end if done > 1 else self.advance(flow, states[-2], half, np.inf, half)
            end = self.advance(flow, states[-1], last, np.inf, last)
            size = flow.size(end)
            error = float((np.abs(end - before) / np.maximum(size, size.max() * 1e-12)).max())
        for start, place in pairwise(self.places[len(states) - 1 :]):
            states.append(self.advance(flow, states[-1], start, place, last))
        return States(np.stack(states), last, error)

    def require(self, place: float) -> None:
        """ValueError if it is no depth."""
        if not (place >= 0 and (place == np.inf or place == int(place))):
            raise ValueError(f"place must be a layer l = 0, 1, ..., or infinity, got {place!r}")

    def advance(
        self, flow: Flow, state: np.ndarray, start: float, end: float, last: int = 0
    ) -> np.ndarray:
        """The state at a larger depth, with ``last`` layers before the flow, `last` if left out."""
        if start == end:
            return state
        middle = int(min(max(start, last or self.last), end))
        for l in range(int(start) + 1, middle + 1) if start < middle else ():
            with np.errstate(over="ignore", invalid="ignore"):
                step = self.square(l)
                state = state + step / (1 + step * flow.damping) * flow.rates(state)
            if not np.isfinite(state).all():
                raise ArithmeticError(
                    f"there is no limit: kernels grow beyond all bounds, and exceed float64 in "
                    f"layer {l}; a smaller branch_scale, weight_variance or K0 may have one"
                )
        start = max(start, middle)
        if start == end:
            return state
        left = self.tail.after(start)
        time = left - self.tail.after(end)
        state, change = followed(
            flow,
            state,
            np.zeros_like(state),
            0.0,
            time,
            lambda t: 1.0,
            lambda t: self.tail.step(left - t),
        )
        return state + change


def trajectory_of(network: DeepNetwork, last: int = 0) -> UniformTrajectory | SummableTrajectory:
    """The trajectory of a network, by the limit of its schedule."""
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
        return UniformTrajectory(scale)
    if not independent:
        raise ValueError(
            "branch_scale must be λ(l/L)/√L or the same at every depth to have a limit, got "
            f"{scale_text(scale_argument)}"
        )
    trajectory = SummableTrajectory(scale, last or FIRST)
    try:
        trajectory.remaining(0)
    except (ValueError, ArithmeticError, TypeError) as error:
        raise ValueError(
            f"branch_scale must have a bounded Σ ρ_l², got {scale_text(scale_argument)} ({error}); "
            '"uniform" and "decreasing" have one'
        ) from None
    return trajectory


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
