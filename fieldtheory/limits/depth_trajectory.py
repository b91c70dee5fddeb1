"""How kernels get from one place in an infinitely deep network to a later one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from fieldtheory.limits.flow_numbers import RELATIVE, Flow, followed
from fieldtheory.limits.schedule_limits import (
    FIRST,
    SummableSchedule,
    UniformSchedule,
    schedule_limit,
)
from fieldtheory.networks.family import LayeredNetwork

TIMES = np.linspace(0.0, 1.0, 21)
# Layers at which a sum over infinitely many is looked at.
LAYERS = np.array([0.0, *(2.0**k for k in range(21)), np.inf])
# What the last layers before the flow takes over may change, and how many there are at most.
_SETTLED, _MOST = 3e-11, 2**15


class States(NamedTuple):
    """States at all places (n, 2, P + pairs), the layers before the flow, and the error."""

    values: np.ndarray
    last: int
    error: float


@dataclass(frozen=True, eq=False)
class UniformTrajectory:
    """Places are t = l/L, from 0 to 1."""

    schedule: UniformSchedule
    places = TIMES

    def states(self, flow: Flow, state: np.ndarray) -> States:
        """The states at all places."""
        found = [state]
        for start, end in pairwise(self.places):
            found.append(self.advance(flow, found[-1], start, end))
        return States(np.stack(found), 0, RELATIVE)

    def checked(self, place: float) -> float:
        """A place, or ValueError."""
        if not 0 <= place <= 1:
            raise ValueError(f"place must be t = l/L from 0 to 1, got {place!r}")
        return place

    def advance(self, flow: Flow, state: np.ndarray, start: float, end: float) -> np.ndarray:
        """The state at a later place."""
        speed = self.schedule.speed
        return followed(flow, state, None, start, end, speed, speed)[0]

    def changes(self, flow: Flow, state: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The states at all places with the coefficients e of 1/L.

        A layer is a step of λ(l/L)²/L, of which l make up the time s(t) + [λ(t)² − λ(0)²]/(2L).
        """
        speed = self.schedule.speed
        first = speed(0.0)
        change: Any = first / 2 * flow.rates(state)
        for start, end in pairwise([0.0, *self.places]):
            state, change = followed(flow, state, change, start, end, speed, speed)
            yield state, change + (speed(end) / 2 - first) * flow.rates(state)


@dataclass(frozen=True, eq=False)
class SummableTrajectory:
    """Places are layers l, from 0 to infinity.

    The first ``last`` layers are those of the network, the others the flow over the time
    Σ_{k>last} λ_k² with its first change by their steps, whose error is of the order of Σ λ_k⁶.
    """

    schedule: SummableSchedule
    last: int = FIRST
    places = LAYERS

    def states(self, flow: Flow, state: np.ndarray) -> States:
        """The states at all places, after so many layers that half of them lead to the same end."""
        found, trajectory, end, error = [state], self, np.full_like(state, np.nan), np.nan
        while not error <= _SETTLED:
            if len(found) > 1 and (trajectory.last >= _MOST or not np.isfinite(end).all()):
                raise ArithmeticError(
                    f"the limit of the kernel was found to a relative {error:.1g} only, with "
                    f"{trajectory.last} layers before the flow"
                )
            trajectory = replace(trajectory, last=2 * trajectory.last)
            done = len(found)
            for start, place in pairwise(self.places[done - 1 :]):
                if place > trajectory.last:
                    break
                found.append(trajectory.advance(flow, found[-1], start, place))
            before = replace(trajectory, last=trajectory.last // 2)
            last = end if done > 1 else before.advance(flow, found[-2], before.last, np.inf)
            end = trajectory.advance(flow, found[-1], trajectory.last, np.inf)
            size = flow.size(end)
            error = float((np.abs(end - last) / np.maximum(size, size.max() * 1e-12)).max())
        for start, place in pairwise(self.places[len(found) - 1 :]):
            found.append(trajectory.advance(flow, found[-1], start, place))
        return States(np.stack(found), trajectory.last, error)

    def checked(self, place: float) -> float:
        """A place, or ValueError."""
        if not (place >= 0 and (place == np.inf or place == int(place))):
            raise ValueError(f"place must be a layer l = 0, 1, ..., or infinity, got {place!r}")
        return place

    def advance(self, flow: Flow, state: np.ndarray, start: float, end: float) -> np.ndarray:
        """The state at a later place."""
        if start == end:
            return state
        middle = int(min(max(start, self.last), end))
        for l in range(int(start) + 1, middle + 1) if start < middle else ():
            state = state + self.schedule.square(l) * flow.rates(state)
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


def trajectory_of(network: LayeredNetwork, last: int = 0) -> UniformTrajectory | SummableTrajectory:
    """The trajectory that the schedule of a network says.

    Parameters
    ----------
    network : LayeredNetwork
    last : int
        The layers before the flow, if they are known.

    Raises
    ------
    ValueError
        See `schedule_limit`.
    """
    schedule = schedule_limit(network)
    if isinstance(schedule, UniformSchedule):
        return UniformTrajectory(schedule)
    return SummableTrajectory(schedule, last or FIRST)
