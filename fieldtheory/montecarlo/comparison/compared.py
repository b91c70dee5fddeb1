"""One quantity of the theory beside its simulation: columns, and a verdict on every entry."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

AGREES, DISAGREES = "agrees", "disagrees"
WITHIN, OFF = "within", "off"
UNRESOLVED, NOISY, ZERO = "not resolved", "too noisy", "zero in both"
RIGHT, WIDTH = "right", "width"
# The relative error that a tested value has to reveal: the value itself.
COARSEST = 1.0
# Places of an entry, and what stands where it has none: a layer or a time, of covariances of two
# layers the second one, of several inputs a pair, of two pairs the second one.
PLACES: dict[str, float] = {"layer": -1, "layer_": -1, "time": np.nan}
PLACES |= dict.fromkeys(("alpha", "beta", "gamma", "delta"), -1)
HEADS = "question", "quantity", "order"
NUMBERS = "theory", "simulation", "error", "size", "remainder"


@dataclass(frozen=True, eq=False, kw_only=True)
class Compared:
    """Columns (n,), an entry for every compared value of a quantity, for one of two questions."""

    # RIGHT: a coefficient of 1/N, extrapolated over widths. WIDTH: a quantity as simulated at one.
    question: str
    name: str
    # Power of 1/N of the theory, that of the network of the solution.
    order: int
    # Those of PLACES that the quantity has, from 0; layer L + 1 is the output.
    index: dict[str, np.ndarray]
    theory: np.ndarray
    simulation: np.ndarray
    # Standard error of the simulated value.
    error: np.ndarray
    # To what deviations are relative: √(K_αα K_ββ) for kernels, √(Var Var) for covariances of
    # layers, the size of the theory otherwise.
    size: np.ndarray
    # Size of the terms that an extrapolation leaves out, infinite if unknown; nan at a width.
    remainder: np.ndarray
    # Largest |z| that counts as chance.
    threshold: float
    # Largest relative deviation with which the theory still describes a width.
    tolerance: float
    # At a width, the theory with all terms up to this power of 1/N, beyond the leading one; nan
    # where the solution does not have them.
    with_next: dict[int, np.ndarray] = field(default_factory=dict)

    @property
    def z(self) -> np.ndarray:
        """(simulation − theory) / error, infinite where an exact number differs."""
        return _quotient(self.simulation - self.theory, self.error)

    @property
    def deviation(self) -> np.ndarray:
        """(simulation − theory) / size."""
        return _quotient(self.simulation - self.theory, self.size)

    @property
    def relative_error(self) -> np.ndarray:
        """error / size."""
        return _quotient(self.error, self.size)

    @property
    def verdicts(self) -> np.ndarray:
        """One word on every entry."""
        if self.question == RIGHT:
            excess = np.abs(self.simulation - self.theory) - self.threshold * self.error
            agrees = np.where(self.more_networks > 1, NOISY, AGREES if self.size.any() else ZERO)
            cases = [np.isinf(self.remainder), excess <= 0, excess <= self.remainder]
            return np.select(cases, [UNRESOLVED, agrees, UNRESOLVED], DISAGREES)
        deviation, chance = np.abs(self.deviation), self.threshold * self.relative_error
        cases = [deviation + chance <= self.tolerance, deviation - chance > self.tolerance]
        return np.select(cases, [WITHIN, OFF], UNRESOLVED)

    @property
    def worst(self) -> int:
        """The entry that decides: of those of the worst verdict the one that is so most surely."""
        verdicts, by = self.verdicts, np.abs(self.z)
        off = verdicts == OFF
        if self.question == WIDTH:
            by = np.abs(self.deviation)
            by = np.where(off, by - self.threshold * self.relative_error, by)
        grave = 2 * (off | (verdicts == DISAGREES)) + (verdicts == UNRESOLVED)
        return int(np.lexsort((by, grave))[-1])

    @property
    def more_networks(self) -> np.ndarray:
        """Factor by which more networks tell an entry from 0, from 1/√samples; below 1 fewer do."""
        size = np.where(self.size > 0, self.size, self.size.max(initial=0.0))
        chance, left = self.threshold * self.error, COARSEST * size - self.remainder
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.where(left > 0, (chance / left) ** 2, np.inf)
        return np.where(size > 0, factor, 0.0)

    @property
    def resolution(self) -> float:
        """The smallest fault of all entries, relative to the theory, that some entry shows."""
        visible = self.threshold * self.error + self.remainder
        relative = np.full(len(visible), np.inf)
        np.divide(visible, np.abs(self.theory), out=relative, where=self.theory != 0)
        return float(relative.min())

    def to_order(self, power: int) -> Compared:
        """The same with the terms of the theory up to a power of 1/N, nan where it has none."""
        missing = np.full(len(self.theory), np.nan)
        return replace(self, theory=self.with_next.get(power, missing))

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


def _quotient(values: np.ndarray, by: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(values == 0, 0.0, values / by)
