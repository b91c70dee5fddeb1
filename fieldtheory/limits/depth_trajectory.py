"""Trajectories of kernels over the depth of an infinitely deep network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from fieldtheory.limits.kernel_flow import RELATIVE, Flow, followed
from fieldtheory.limits.schedule_limits import (
    FIRST,
    SummableSchedule,
    UniformSchedule,
    schedule_limit,
)
from fieldtheory.networks.family import DeepNetwork

TIMES = np.linspace(0.0, 1.0, 21)
# Layers of the grid of a trajectory over infinitely many.
LAYERS = np.array([0.0, *(2.0**k for k in range(21)), np.inf])
# Tolerance of doubling the layers before the flow, relative, and their largest number.
_SETTLED, _MOST = 3e-11, 2**15


class States(NamedTuple):
    """States at all depths (n, 2, P + pairs), the number of layers before the flow, the error."""

    values: np.ndarray
    last: int
    error: float


@dataclass(frozen=True, eq=False)
class UniformTrajectory:
    """The trajectory over t = l/L, from 0 to 1."""

    schedule: UniformSchedule
    places = TIMES

    def states(self, flow: Flow, state: np.ndarray) -> States:
        """The states on the grid of depths."""
        states = [state]
        for start, end in pairwise(self.places):
            states.append(self.advance(flow, states[-1], start, end))
        return States(np.stack(states), 0, RELATIVE)

    def checked(self, place: float) -> float:
        """The depth, ValueError if it is none."""
        if not 0 <= place <= 1:
            raise ValueError(f"place must be t = l/L from 0 to 1, got {place!r}")
        return place

    def advance(self, flow: Flow, state: np.ndarray, start: float, end: float) -> np.ndarray:
        """The state at a larger depth."""
        speed = self.schedule.speed
        return followed(flow, state, None, start, end, speed, speed)[0]

    def changes(self, flow: Flow, state: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The states on the grid of depths with their coefficients of 1/L."""
        # A layer is a step of λ(l/L)²/L; l of them take s(t) + [λ(t)² − λ(0)²]/(2L).
        speed = self.schedule.speed
        first = speed(0.0)
        change: Any = first / 2 * flow.rates(state)
        for start, end in pairwise([0.0, *self.places]):
            state, change = followed(flow, state, change, start, end, speed, speed)
            yield state, change + (speed(end) / 2 - first) * flow.rates(state)


@dataclass(frozen=True, eq=False)
class SummableTrajectory:
    """The trajectory over layers l, from 0 to infinity."""

    # The first ``last`` layers are those of the network, the others the flow over the time
    # Σ_{k>last} λ_k² with its first change by their steps, whose error is of the order of Σ λ_k⁶.
    schedule: SummableSchedule
    last: int = FIRST
    places = LAYERS

    def states(self, flow: Flow, state: np.ndarray) -> States:
        """The states on the grid, after enough layers that half of them give the same limit."""
        states, trajectory, end, error = [state], self, np.full_like(state, np.nan), np.nan
        while not error <= _SETTLED:
            if len(states) > 1 and (trajectory.last >= _MOST or not np.isfinite(end).all()):
                raise ArithmeticError(
                    f"the limit of the kernel was found to a relative {error:.1g} only, with "
                    f"{trajectory.last} layers before the flow"
                )
            trajectory = replace(trajectory, last=2 * trajectory.last)
            done = len(states)
            for start, place in pairwise(self.places[done - 1 :]):
                if place > trajectory.last:
                    break
                states.append(trajectory.advance(flow, states[-1], start, place))
            before = replace(trajectory, last=trajectory.last // 2)
            last = end if done > 1 else before.advance(flow, states[-2], before.last, np.inf)
            end = trajectory.advance(flow, states[-1], trajectory.last, np.inf)
            size = flow.size(end)
            error = float((np.abs(end - last) / np.maximum(size, size.max() * 1e-12)).max())
        for start, place in pairwise(self.places[len(states) - 1 :]):
            states.append(trajectory.advance(flow, states[-1], start, place))
        return States(np.stack(states), trajectory.last, error)

    def checked(self, place: float) -> float:
        """The depth, ValueError if it is none."""
        if not (place >= 0 and (place == np.inf or place == int(place))):
            raise ValueError(f"place must be a layer l = 0, 1, ..., or infinity, got {place!r}")
        return place

    def advance(self, flow: Flow, state: np.ndarray, start: float, end: float) -> np.ndarray:
        """The state at a larger depth."""
        if start == end:
            return state
        middle = int(min(max(start, self.last), end))
        for l in range(int(start) + 1, middle + 1) if start < middle else ():
            with np.errstate(over="ignore", invalid="ignore"):
                step = self.schedule.square(l)
                state = state + step / (1 + step * flow.damping) * flow.rates(state)
            if not np.isfinite(state).all():
                raise ArithmeticError(
                    f"there is no limit: kernels grow beyond all bounds, and exceed float64 in "
                    f"layer {l}; a smaller branch_scale, weight_variance or K0 may have one"
                )
        start = max(start, middle)
        if start == end:
            return state
        tail = self.schedule.tail
        left = tail.after(start)
        time = left - tail.after(end)
        state, change = followed(
            flow,
            state,
            np.zeros_like(state),
            0.0,
            time,
            lambda t: 1.0,
            lambda t: tail.step(left - t),
        )
        return state + change


def trajectory_of(network: DeepNetwork, last: int = 0) -> UniformTrajectory | SummableTrajectory:
    """The trajectory of a network, by the limit of its schedule."""
    schedule = schedule_limit(network)
    if isinstance(schedule, UniformSchedule):
        return UniformTrajectory(schedule)
    return SummableTrajectory(schedule, last or FIRST)
