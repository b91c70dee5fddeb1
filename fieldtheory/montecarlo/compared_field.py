"""One field of the solution compared with a simulation: deviations and verdicts of its entries.

The two kinds answer two questions. A `Coefficient` of 1/N is extrapolated over several widths and
says whether the theory is right; an `AtWidth` is taken as simulated and says whether the theory
describes that width.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

AGREES, DISAGREES = "agrees", "disagrees"
WITHIN, OFF = "within", "off"
UNRESOLVED, UNTOLD, ZERO = "not resolved", "too noisy", "zero in both"
# The relative error that a tested value has to reveal: the value itself.
COARSEST = 1.0


@dataclass(frozen=True, eq=False, kw_only=True)
class ComparedField(ABC):
    """What both kinds have; all arrays are of shape (n,).

    Parameters
    ----------
    name : str
        Field of `Solution`.
    index : dict of str to ndarray of int
        Where the entries are: ``layer``, for covariances ``layer_``, for several inputs ``alpha``
        and ``beta``, for two pairs of inputs ``gamma`` and ``delta``. Layers count from 0, inputs
        from 1; L + 1 is the output.
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
        """Where an entry is, in words."""
        found = {name: int(values[entry]) for name, values in self.index.items()}
        words = [f"layer {found['layer']}"] if "layer" in found else []
        if "layer_" in found:
            words = [f"layers {found['layer']}, {found['layer_']}"]
        if "alpha" in found:
            words.append(f"inputs {found['alpha']}, {found['beta']}")
        if "gamma" in found:
            words[-1] += f" and {found['gamma']}, {found['delta']}"
        return ", ".join(words)

    def _scores(self, theory: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return (self.simulation - theory) / self.error

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
        Size of the terms in 1/N that the simulation has and the theory has not.
    **others
        As for `ComparedField`.
    """

    remainder: np.ndarray

    @property
    def verdicts(self) -> np.ndarray:
        """On every entry: "agrees", "disagrees", or "not resolved" if left out terms may be it.

        "too noisy" is what would agree as well if it were off by ``COARSEST``, and "zero in both" a
        quantity that is 0 in the theory and within chance in the simulation.
        """
        excess = np.abs(self.simulation - self.theory) - self.threshold * self.error
        agrees = np.where(self.more_networks > 1, UNTOLD, AGREES if self.size.any() else ZERO)
        return np.select([excess <= 0, excess <= self.remainder], [agrees, UNRESOLVED], DISAGREES)

    @property
    def more_networks(self) -> np.ndarray:
        """How many times as many networks tell an entry apart, from 1/√samples; below 1 fewer do.

        Infinite where the terms that are left out hide it. What is 0 has to show a fault of the
        size of the largest entry; where all are 0 there is no relative fault to show.
        """
        size = np.where(self.size > 0, self.size, self.size.max(initial=0.0))
        chance, left = self.threshold * self.error, COARSEST * size - self.remainder
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(left > 0, (chance / left) ** 2, np.inf)
        return np.where(size > 0, found, 0.0)

    @property
    def worst(self) -> int:
        """The entry with the largest |z| among those of the worst verdict."""
        return _worst(self.verdicts, (UNRESOLVED, DISAGREES), np.abs(self.z))

    @property
    def resolution(self) -> float:
        """The smallest fault of all entries, relative to the theory, that some entry shows.

        A covariance that is small against the variances shows little of it.
        """
        shown = self.threshold * self.error + self.remainder
        relative = np.full(len(shown), np.inf)
        np.divide(shown, np.abs(self.theory), out=relative, where=self.theory != 0)
        return float(relative.min())


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

    tolerance: float
    with_next: dict[int, np.ndarray]

    @property
    def verdicts(self) -> np.ndarray:
        """On every entry: "within" the tolerance, "off", or "not resolved" for its error."""
        deviation = np.abs(self.deviation)
        chance = self.threshold * self._relative(self.error)
        found = [deviation + chance <= self.tolerance, deviation - chance > self.tolerance]
        return np.select(found, [WITHIN, OFF], UNRESOLVED)

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


def _worst(verdicts: np.ndarray, grave: tuple[str, str], by: np.ndarray) -> int:
    severity = np.select([verdicts == grave[1], verdicts == grave[0]], [2, 1], 0)
    return int(np.lexsort((by, severity))[-1])
