"""One field of the theory compared with a simulation: deviations and verdicts of its entries.

The two kinds answer two questions. A `Coefficient` of 1/N is extrapolated over several widths and
says whether the theory is right; an `AtWidth` is taken as simulated and says whether the theory
describes that width.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

AGREES, DISAGREES = "agrees", "disagrees"
WITHIN, OFF = "within", "off"
UNRESOLVED, NOISY, ZERO = "not resolved", "too noisy", "zero in both"
RIGHT, WIDTH = "right", "width"
# The relative error that a tested value has to reveal: the value itself.
COARSEST = 1.0


@dataclass(frozen=True, eq=False, kw_only=True)
class ComparedField(ABC):
    """Arrays of shape (n,), an entry for every compared value.

    Parameters
    ----------
    name : str
        Field of the solution.
    index : dict of str to ndarray
        Where the entries are: ``layer`` or ``time``, for covariances of two layers ``layer_``, for
        several inputs ``alpha`` and ``beta``, for two pairs of inputs ``gamma`` and ``delta``.
        Layers and inputs count from 0; layer L + 1 is the output.
    order : int
        Power of 1/N of the theory.
    theory, simulation, error : ndarray
        ``error`` is the standard error of the simulated value.
    size : ndarray
        To what deviations are relative: √(K_αα K_ββ) for kernels, √(Var Var) for covariances of
        layers, the size of the theory otherwise.
    threshold : float
        Largest |z| that counts as chance.
    """

    question: ClassVar[str]

    name: str
    index: dict[str, np.ndarray]
    order: int
    theory: np.ndarray
    simulation: np.ndarray
    error: np.ndarray
    size: np.ndarray
    threshold: float

    @property
    @abstractmethod
    def verdicts(self) -> np.ndarray:
        """One word on every entry."""

    @property
    @abstractmethod
    def worst(self) -> int:
        """The entry that decides."""

    @property
    def z(self) -> np.ndarray:
        """(simulation − theory) / error, infinite where an exact number differs."""
        return self._scores(self.theory)

    @property
    def deviation(self) -> np.ndarray:
        """(simulation − theory) / size."""
        return self._relative(self.simulation - self.theory)

    def place(self, entry: int) -> str:
        """Place of an entry, in words."""
        at = {name: values[entry] for name, values in self.index.items()}
        words = [f"t = {at['time']:.4g}"] if "time" in at else []
        if "layer" in at:
            pair = "layer_" in at
            words = [f"layers {at['layer']}, {at['layer_']}" if pair else f"layer {at['layer']}"]
        if "alpha" in at:
            inputs = f"inputs {at['alpha']}, {at['beta']}"
            words.append(inputs + (f" and {at['gamma']}, {at['delta']}" if "gamma" in at else ""))
        return ", ".join(words)

    def columns(self) -> dict[str, Any]:
        """The entries as columns of a table."""
        count = len(self.theory)
        heads: dict[str, Any] = {"question": self.question, "quantity": self.name}
        heads["order"] = self.order
        return {
            **{name: np.repeat(value, count) for name, value in heads.items()},
            **self.index,
            **{name: getattr(self, name) for name in ("theory", "simulation", "error", "size")},
            **{"deviation": self.deviation, "z": self.z, "verdict": self.verdicts},
        }

    def _scores(self, theory: np.ndarray) -> np.ndarray:
        difference = self.simulation - theory
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(difference == 0, 0.0, difference / self.error)

    def _relative(self, values: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(values == 0, 0.0, values / self.size)


@dataclass(frozen=True, eq=False, kw_only=True)
class Coefficient(ComparedField):
    """One coefficient of the expansion in 1/N, extrapolated over the widths.

    Theory and simulation have the power of 1/N of the network of the solution.

    Parameters
    ----------
    remainder : ndarray
        Size of the terms that the simulation has and the theory has not; infinite if unknown.
    **others
        As for `ComparedField`.
    """

    question = RIGHT
    remainder: np.ndarray

    @property
    def verdicts(self) -> np.ndarray:
        """On every entry: "agrees", "disagrees", or "not resolved" if neglected terms may be it.

        "too noisy" is what would agree as well if it were off by ``COARSEST``, and "zero in both" a
        quantity that is 0 in the theory and within chance in the simulation.
        """
        excess = np.abs(self.simulation - self.theory) - self.threshold * self.error
        agrees = np.where(self.more_networks > 1, NOISY, AGREES if self.size.any() else ZERO)
        cases = [np.isinf(self.remainder), excess <= 0, excess <= self.remainder]
        return np.select(cases, [UNRESOLVED, agrees, UNRESOLVED], DISAGREES)

    @property
    def more_networks(self) -> np.ndarray:
        """Factor by which more networks tell an entry from 0, from 1/√samples; below 1 fewer do.

        Infinite where the terms that are left out hide it. What is 0 has to show a fault of the
        size of the largest entry; where all are 0 there is no relative fault to show.
        """
        size = np.where(self.size > 0, self.size, self.size.max(initial=0.0))
        chance, left = self.threshold * self.error, COARSEST * size - self.remainder
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.where(left > 0, (chance / left) ** 2, np.inf)
        return np.where(size > 0, factor, 0.0)

    @property
    def worst(self) -> int:
        """The entry with the largest |z| among those of the worst verdict."""
        return _worst(self.verdicts, (UNRESOLVED, DISAGREES), np.abs(self.z))

    @property
    def resolution(self) -> float:
        """The smallest fault of all entries, relative to the theory, that some entry shows.

        A covariance that is small against the variances shows little of it.
        """
        visible = self.threshold * self.error + self.remainder
        relative = np.full(len(visible), np.inf)
        np.divide(visible, np.abs(self.theory), out=relative, where=self.theory != 0)
        return float(relative.min())

    def columns(self) -> dict[str, Any]:
        """The entries as columns of a table."""
        return super().columns() | {"remainder": self.remainder}


@dataclass(frozen=True, eq=False, kw_only=True)
class AtWidth(ComparedField):
    """One field at a width as it was simulated.

    Parameters
    ----------
    tolerance : float
        Largest relative deviation with which the theory still describes the width.
    with_next : dict of int to ndarray
        The theory with all terms up to this power of 1/N, for orders beyond the leading one; nan
        where the solution does not have them, off the diagonal of covariances of layers.
    **others
        As for `ComparedField`.
    """

    question = WIDTH
    tolerance: float
    with_next: dict[int, np.ndarray] = field(default_factory=dict)

    @property
    def verdicts(self) -> np.ndarray:
        """On every entry: "within" the tolerance, "off", or "not resolved" for its error."""
        deviation = np.abs(self.deviation)
        chance = self.threshold * self._relative(self.error)
        cases = [deviation + chance <= self.tolerance, deviation - chance > self.tolerance]
        return np.select(cases, [WITHIN, OFF], UNRESOLVED)

    @property
    def worst(self) -> int:
        """The entry that deviates most, of those that are off the one that is so most surely."""
        verdicts, deviation = self.verdicts, np.abs(self.deviation)
        sure = deviation - self.threshold * self._relative(self.error)
        return _worst(verdicts, (UNRESOLVED, OFF), np.where(verdicts == OFF, sure, deviation))

    def next_order(self, power: int) -> dict[str, np.ndarray]:
        """``theory`` with all terms up to a power of 1/N, ``deviation`` and ``z`` from it."""
        theory = self.with_next[power]
        deviation = self._relative(self.simulation - theory)
        return {"theory": theory, "deviation": deviation, "z": self._scores(theory)}

    def columns(self) -> dict[str, Any]:
        """The entries as columns of a table."""
        orders = {
            f"{key}_to_order_{power}": values
            for power in self.with_next
            for key, values in self.next_order(power).items()
        }
        return super().columns() | orders


def _worst(verdicts: np.ndarray, grave: tuple[str, str], by: np.ndarray) -> int:
    severity = np.select([verdicts == grave[1], verdicts == grave[0]], [2, 1], 0)
    return int(np.lexsort((by, severity))[-1])
