"""The result of `compare`: every quantity beside its simulation, and one verdict."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from fieldtheory.numerics.fields import FIELDS
from fieldtheory.numerics.result import Stored
from fieldtheory.numerics.storage import Labelled
from fieldtheory.plotting.tables import table_html, table_text

AGREES, DISAGREES, UNRESOLVED = "agrees", "disagrees", "not resolved"
_PLACES = ("layer", "layer_", "alpha", "beta")
_NUMBERS = {
    "theory": "value of the theory",
    "simulation": "simulated value, extrapolated over the widths",
    "error": "standard error of the simulated value",
    "remainder": "size of the terms in 1/N that are left out of the theory",
}


@dataclass(frozen=True, eq=False)
class ComparedField:
    """Entries of one field of the solution beside the simulation, all of shape (n,).

    Parameters
    ----------
    name : str
        Field of `Solution`.
    index : dict of str to ndarray of int
        Where the entries are: ``layer``, for covariances ``layer_``, for several inputs ``alpha``
        and ``beta``. Layers count from 0, inputs from 1; L + 1 is the output.
    theory, simulation, error : ndarray
        ``simulation`` is extrapolated over the widths, ``error`` its standard error.
    remainder : ndarray
        Size of the terms in 1/N that the simulation has and the theory has not.
    threshold : float
        Largest |z| that counts as chance.
    """

    name: str
    index: dict[str, np.ndarray]
    theory: np.ndarray
    simulation: np.ndarray
    error: np.ndarray
    remainder: np.ndarray
    threshold: float

    @property
    def z(self) -> np.ndarray:
        """(simulation − theory) / error, infinite where an exact number differs."""
        with np.errstate(divide="ignore"):
            return (self.simulation - self.theory) / self.error

    @property
    def verdicts(self) -> np.ndarray:
        """The verdict on every entry."""
        excess = np.abs(self.simulation - self.theory) - self.threshold * self.error
        return np.select([excess <= 0, excess <= self.remainder], [AGREES, UNRESOLVED], DISAGREES)

    @property
    def resolution(self) -> float:
        """The smallest relative fault of the theory that some entry is sure to show."""
        sizes = np.abs(self.theory)
        with np.errstate(divide="ignore"):
            return float(np.min((self.threshold * self.error + self.remainder) / sizes))


@dataclass(frozen=True, eq=False)
class Comparison(Stored):
    """What `compare` returns; it shows itself as a table with its verdict.

    Like the other results it has ``save``, ``load``, ``to_xarray`` and ``plot``.

    Parameters
    ----------
    fields : tuple of ComparedField
    widths : tuple of int
        Widths N that were extrapolated.
    false_alarm : float
        Probability that a correct theory disagrees in one of all comparisons.
    threshold : float
        Largest |z| that counts as chance, for this probability and number of comparisons.
    differences : tuple of str
        Parameters in which the simulated networks differ from that of the solution.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.ResidualNetwork(depth=2, width=100)
    >>> found = ft.compare(ft.solve(net, 0.3), ft.simulate(net, 0.3, samples=400, seed=1))
    >>> found.verdict
    'agrees'
    """

    fields: tuple[ComparedField, ...]
    widths: tuple[int, ...]
    false_alarm: float
    threshold: float
    differences: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """Number of comparisons."""
        return sum(field.theory.size for field in self.fields)

    @cached_property
    def verdict(self) -> str:
        """ "agrees", "disagrees", or "not resolved" where terms in 1/N may explain deviations."""
        found = {verdict for field in self.fields for verdict in field.verdicts.tolist()}
        return next(v for v in (DISAGREES, UNRESOLVED, AGREES) if v in found)

    @property
    def statement(self) -> str:
        """The verdict in words, with what it rests on."""
        largest = max(np.abs(field.z).max() for field in self.fields)
        text = (
            f"The theory {_SENTENCES[self.verdict]}: largest |z| = {largest:.3g} in {self.count} "
            f"comparisons, chance exceeds {self.threshold:.3g} with probability "
            f"{self.false_alarm:g}."
        )
        widths = ", ".join(map(str, self.widths))
        order = "" if len(self.widths) == 1 else f"^{len(self.widths)}"
        text += f" Widths: {widths}; terms of order 1/N{order} are left out."
        if self.verdict == UNRESOLVED:
            text += " Some deviations may be due to them: simulate one more width, or wider."
        if self.differences:
            text += f" The networks differ: {'; '.join(self.differences)}."
        return text

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A dict for every comparison: quantity, place, theory, simulation, error, z, verdict."""
        found = []
        for field in self.fields:
            columns = dict.fromkeys(_PLACES, [""] * len(field.theory))
            columns |= {name: values.tolist() for name, values in field.index.items()}
            for name in ("theory", "simulation", "error", "z", "remainder", "verdicts"):
                columns[name.removesuffix("s")] = getattr(field, name).tolist()
            for values in zip(*columns.values(), strict=True):
                found.append({"quantity": field.name, **dict(zip(columns, values, strict=True))})
        return found

    @property
    def summary(self) -> list[dict[str, Any]]:
        """A dict for every quantity: its worst entry, and the smallest fault that would show."""
        return [_summary(field) for field in self.fields]

    def plot(self) -> Any:
        """Theory as lines, simulation as points, z-scores below; a matplotlib Figure."""
        from fieldtheory.plotting.theory_and_simulation import Compared, draw_comparison

        shown = []
        for field in self.fields:
            symbol = FIELDS[field.name].diagonal or FIELDS[field.name].symbol
            numbers = field.theory, field.simulation, field.error, field.z
            shown.append(Compared(symbol, field.index, *numbers))
        return draw_comparison(shown, self.threshold, f"theory {self.verdict}")

    def labelled(self, stored: bool) -> Labelled:
        """A row for every comparison; places that a quantity does not have are -1."""
        columns: dict[str, list[np.ndarray]] = {}
        for field in self.fields:
            nowhere = np.full(field.theory.shape, -1)
            columns.setdefault("quantity", []).append(np.full(field.theory.shape, field.name))
            for name in _PLACES:
                columns.setdefault(name, []).append(field.index.get(name, nowhere))
            for name in _NUMBERS:
                columns.setdefault(name, []).append(getattr(field, name))
            if not stored:
                columns.setdefault("z", []).append(field.z)
                columns.setdefault("verdict", []).append(field.verdicts)
        meanings = _NUMBERS | {
            "quantity": "compared field of the solution",
            "z": "deviation in standard errors",
            **{name: f"{name.rstrip('_')} of the entry, -1 if it has none" for name in _PLACES},
        }
        variables: dict[str, Any] = {
            name: (("comparison",), np.concatenate(parts), {"long_name": meanings.get(name, name)})
            for name, parts in columns.items()
        }
        attributes = {
            "widths": json.dumps(self.widths),
            "false_alarm": self.false_alarm,
            "threshold": self.threshold,
            "differences": json.dumps(self.differences),
        }
        return Labelled(variables, {}, attributes)

    @classmethod
    def from_content(cls, content: dict[str, Any]) -> Self:
        """The comparison of the arrays, numbers and text in a file."""
        plain = {
            name: np.asarray(content[name]).item()
            for name in ("widths", "false_alarm", "threshold", "differences")
        }
        quantities = np.asarray(content["quantity"]).astype(str)
        found = []
        for name in dict.fromkeys(quantities.tolist()):
            rows = quantities == name
            places = {key: np.asarray(content[key])[rows].astype(int) for key in _PLACES}
            index = {key: place for key, place in places.items() if (place >= 0).all()}
            numbers = {key: np.asarray(content[key], float)[rows] for key in _NUMBERS}
            found.append(ComparedField(name, index, **numbers, threshold=plain["threshold"]))
        return cls(
            tuple(found),
            tuple(json.loads(plain["widths"])),
            plain["false_alarm"],
            plain["threshold"],
            tuple(json.loads(plain["differences"])),
        )

    def __str__(self) -> str:
        return f"{table_text(self.summary, 'theory and simulation')}\n{self.statement}"

    def _repr_html_(self) -> str:
        return table_html(self.summary, self.statement)

    def __repr__(self) -> str:
        return f"Comparison({self.verdict}, comparisons={self.count}, widths={self.widths})"


_SENTENCES = {
    AGREES: "agrees with the simulation",
    DISAGREES: "disagrees with the simulation",
    UNRESOLVED: "is neither confirmed nor refuted",
}


def _summary(field: ComparedField) -> dict[str, Any]:
    verdicts = field.verdicts
    severity = np.select([verdicts == DISAGREES, verdicts == UNRESOLVED], [2, 1], 0)
    worst = int(np.lexsort((np.abs(field.z), severity))[-1])
    place = ", ".join(f"{name} {values[worst]}" for name, values in field.index.items())
    return {
        "quantity": field.name,
        "number": len(verdicts),
        "largest deviation": place.replace("layer_ ", ""),
        "theory": float(field.theory[worst]),
        "simulation": float(field.simulation[worst]),
        "error": float(field.error[worst]),
        "z": float(field.z[worst]),
        "remainder": float(field.remainder[worst]),
        "shows faults of": f"{100 * field.resolution:.2g} %"
        if math.isfinite(field.resolution)
        else "",
        "verdict": str(verdicts[worst]),
    }
