"""The result of `compare`: every quantity with its simulation, and two verdicts.

Is the theory right? Does it describe this width?
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from fieldtheory.montecarlo.comparison import verdict_text
from fieldtheory.montecarlo.comparison.compared_field import (
    AGREES,
    DISAGREES,
    OFF,
    RIGHT,
    UNRESOLVED,
    WITHIN,
    AtWidth,
    Coefficient,
    ComparedField,
)
from fieldtheory.montecarlo.comparison.verdict_text import DESCRIBES, DOES_NOT
from fieldtheory.numerics.fields import compared, notes
from fieldtheory.numerics.storage import Labelled, Variables
from fieldtheory.numerics.stored import Stored
from fieldtheory.plotting.tables import table_html, table_text

_INPUTS = ("alpha", "beta", "gamma", "delta")
# Columns of the table of all entries with their meaning and symbol, and those that others imply.
_COLUMNS = {
    "question": ("right: is the theory right; width: does it describe this width", ""),
    "quantity": ("compared field of the solution", "q"),
    "order": ("power of 1/N of the theory", "k"),
    "layer": ("layer of the entry, -1 if it has none", "l"),
    "layer_": ("second layer of the entry, -1 if it has none", "m"),
    "time": ("time of the entry", "t"),
    "alpha": ("first input of the entry, -1 if it has none", r"\alpha"),
    "beta": ("second input of the entry, -1 if it has none", r"\beta"),
    "gamma": ("first input of the second pair of the entry, -1 if it has none", r"\gamma"),
    "delta": ("second input of the second pair of the entry, -1 if it has none", r"\delta"),
    "theory": ("value of the theory", r"q_{\mathrm{theory}}"),
    "simulation": ("simulated value, extrapolated or at the width", r"\hat{q}"),
    "error": ("standard error of the simulated value", r"\sigma_{\hat{q}}"),
    "size": ("to what deviations are relative", "|q|"),
    "remainder": ("size of the terms that the extrapolation leaves out", r"R_k"),
    "deviation": ("relative deviation of the simulation", r"\delta"),
    "z": ("deviation in standard errors", "z"),
    "verdict": ("whether the entry agrees, or is within the tolerance", ""),
}
_DERIVED = ("deviation", "z", "verdict")
_COUNTS = ("layer", "layer_", *_INPUTS)
_NUMBERS = ("theory", "simulation", "error", "size")
_NEXT = "theory_to_order_"


@dataclass(frozen=True, eq=False)
class Comparison(Stored):
    """Theory and simulation of every compared quantity, with two verdicts; see `compare`.

    It shows itself as two tables with a sentence below each. Like the other results it has
    ``save``, ``load``, ``to_xarray`` and ``plot``.

    Parameters
    ----------
    extrapolated : tuple of Coefficient
        Is the theory right? The coefficients of 1/N, extrapolated over ``widths``.
    at_width : tuple of AtWidth
        Does it describe this width? The quantities as they were simulated at ``width``.
    widths : tuple of int
        Widths N that were extrapolated.
    width : int
        The width that the theory is to describe.
    false_alarm : float
        Probability of a wrong "disagrees", and of a wrong answer to the second question.
    tolerance : float
        Largest relative deviation with which the theory still describes the width.
    not_compared : tuple of str
        Quantities that are left out, each with the reason and what includes it.
    neglected : str
        What simulations have and the theory has not; empty if it is exact.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.ResidualNetwork(depth=2, width=100)
    >>> pair = [ft.simulate(net.replace(width=N), 0.3, samples=800, seed=N) for N in (100, 200)]
    >>> comparison = ft.compare(ft.solve(net, 0.3), pair)
    >>> comparison.verdict, comparison.description
    ('agrees', 'describes')
    """

    extrapolated: tuple[Coefficient, ...]
    at_width: tuple[AtWidth, ...]
    widths: tuple[int, ...]
    width: int
    false_alarm: float
    tolerance: float
    not_compared: tuple[str, ...]
    neglected: str

    @cached_property
    def verdict(self) -> str:
        """Is the theory right? "agrees", "disagrees" or "not resolved".

        Not resolved are deviations that neglected terms may explain. For one width these are all,
        unless the theory is exact, so that it never agrees. Values that chance hides as a whole do
        not count; if these are all it is not resolved either.
        """
        verdicts = {verdict for field in self.extrapolated for verdict in field.verdicts.tolist()}
        if DISAGREES in verdicts:
            return DISAGREES
        separated = len(self.widths) > 1 or not self.neglected
        decided = separated and AGREES in verdicts and UNRESOLVED not in verdicts
        return AGREES if decided else UNRESOLVED

    @cached_property
    def description(self) -> str:
        """Does it describe this width? "describes", "does not describe" or "not resolved".

        Not resolved are deviations whose error is too large to compare them with the tolerance.
        """
        deciding = [field for field in self.at_width if compared()[field.name].decides]
        if any((field.verdicts == OFF).any() for field in deciding):
            return DOES_NOT
        kernels = [field for field in deciding if compared()[field.name].of_kernels]
        return DESCRIBES if all((f.verdicts == WITHIN).all() for f in kernels) else UNRESOLVED

    @property
    def statement(self) -> str:
        """Both questions with their answers, a line each."""
        return "\n".join(self.sentences)

    @property
    def sentences(self) -> tuple[str, str]:
        """The questions with their answers: "Is the theory right?", "Does it describe ...?"."""
        return verdict_text.is_it_right(self), verdict_text.does_it_describe(self)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A dict for every comparison, all with the same keys; None where one does not apply.

        ``question`` is "right" for what is extrapolated and "width" for what is at the width.
        ``order`` is the power of 1/N of the theory, ``deviation`` relative. Where the solution has
        terms beyond the leading order, ``theory_to_order_1`` and so on contain them.
        """
        table = {name: _with_none(name, values) for name, values in _table(self).items()}
        return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]

    @property
    def summary(self) -> list[dict[str, Any]]:
        """Is the theory right? Of every coefficient its worst entry, and what it would show."""
        return verdict_text.coefficient_rows(self.extrapolated)

    @property
    def summary_at_width(self) -> list[dict[str, Any]]:
        """Does it describe this width? Of every quantity its worst entry."""
        return verdict_text.width_rows(self.at_width)

    def plot(self) -> Any:
        """Theory as lines and simulation as points, above what either answer rests on.

        In the middle the deviations at the width in per cent, with the band of the tolerance; at
        the bottom the z-scores of what is extrapolated, with the band that chance explains.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from fieldtheory.plotting.theory_and_simulation import draw_comparison

        raw, known = {field.name: field for field in self.at_width}, compared()
        panels = [
            (known[field.name].diagonal or known[field.name].symbol, field, raw[field.name])
            for field in self.extrapolated
            if field.name in raw and {"layer", "time"} & field.index.keys()
        ]
        limits = self.extrapolated[0].threshold, self.tolerance
        # The question and the first word of the answer.
        short = [text[: text.index(": ")].removesuffix(",") for text in self.sentences]
        # Behind the hidden layers is the output.
        outputs = [of for *_, of in panels if compared()[of.name].dims[0] == "layer"]
        hidden = max((of.index["layer"].max() for of in outputs), default=np.inf)
        return draw_comparison(panels, self.widths, self.width, hidden, *limits, "\n".join(short))

    def labelled(self, stored: bool) -> Labelled:
        """A row for every comparison; indices that a quantity does not have are -1."""
        variables: Variables = {}
        for name, values in _table(self).items():
            base, _, power = name.partition("_to_order_")
            if not (stored and base in _DERIVED):
                words, symbol = _COLUMNS[base]
                words += f", to order {power} in 1/N" if power else ""
                variables[name] = ("comparison",), values, notes(words, symbol)
        attributes = {
            "widths": json.dumps(self.widths),
            "width": self.width,
            "false_alarm": self.false_alarm,
            "threshold": self.extrapolated[0].threshold,
            "tolerance": self.tolerance,
            "threshold_at_width": self.at_width[0].threshold,
            "not_compared": json.dumps(self.not_compared),
            "neglected": self.neglected,
        }
        return Labelled(variables, {}, attributes)

    @classmethod
    def from_content(cls, content: dict[str, Any]) -> Self:
        """The comparison of the arrays, numbers and text in a file."""
        plain = {
            name: np.asarray(value).item() for name, value in content.items() if np.size(value) == 1
        }
        right = {"threshold": plain["threshold"]}
        described = {"threshold": plain["threshold_at_width"], "tolerance": plain["tolerance"]}
        columns = {
            name: np.asarray(values) for name, values in content.items() if np.ndim(values) == 1
        }
        heads = list(zip(*(columns[name].tolist() for name in list(_COLUMNS)[:3]), strict=True))
        fields = [
            (head, {name: values[[h == head for h in heads]] for name, values in columns.items()})
            for head in dict.fromkeys(heads)
        ]
        return cls(
            tuple(
                Coefficient(**_entries(head, part), remainder=part["remainder"], **right)
                for head, part in fields
                if head[0] == RIGHT
            ),
            tuple(
                AtWidth(**_entries(head, part), with_next=_sums(part), **described)
                for head, part in fields
                if head[0] != RIGHT
            ),
            tuple(json.loads(plain["widths"])),
            plain["width"],
            plain["false_alarm"],
            plain["tolerance"],
            tuple(json.loads(plain["not_compared"])),
            plain["neglected"],
        )

    def __str__(self) -> str:
        widths = verdict_text.listed(self.widths)
        how = f"extrapolated from the widths {widths}" if len(self.widths) > 1 else "of one width"
        titles = f"theory and simulation {how}", f"theory and simulation at width {self.width}"
        tables = zip(titles, (self.summary, self.summary_at_width), self.sentences, strict=True)
        return "\n\n".join(f"{table_text(rows, title)}\n{text}" for title, rows, text in tables)

    def _repr_html_(self) -> str:
        tables = zip((self.summary, self.summary_at_width), self.sentences, strict=True)
        return "".join(table_html(rows, text) for rows, text in tables)

    def __repr__(self) -> str:
        described = self.description if self.description != UNRESOLVED else "may describe"
        return f"Comparison({self.verdict}, {described} width {self.width}, widths={self.widths})"


def _table(comparison: Comparison) -> dict[str, np.ndarray]:
    """All entries as columns, with -1 and nan where a place or a number does not apply."""
    fields: Sequence[ComparedField] = (*comparison.extrapolated, *comparison.at_width)
    parts = [field.columns() for field in fields]
    powers = sorted({p for field in comparison.at_width for p in field.with_next})
    sums = [f"{key}_to_order_{power}" for power in powers for key in ("theory", "deviation", "z")]
    present = {name for part in parts for name in part}
    names = [name for name in _COLUMNS if name in present or name in _COUNTS]
    return {
        name: np.concatenate(
            [
                part.get(name, np.full(len(part["theory"]), -1 if name in _COUNTS else np.nan))
                for part in parts
            ]
        )
        for name in (*names, *sums)
    }


def _with_none(name: str, values: np.ndarray) -> list[Any]:
    if values.dtype.kind == "U":
        return values.tolist()
    missing = values < 0 if name in _COUNTS else np.isnan(values)
    return [None if no else value for value, no in zip(values.tolist(), missing, strict=True)]


def _entries(head: tuple[str, str, int], part: dict[str, np.ndarray]) -> dict[str, Any]:
    """Arguments that both kinds of compared fields take, from the columns of one of them."""
    index = {name: part[name] for name in _COUNTS if (part[name] >= 0).all()}
    if "time" in part and not np.isnan(part["time"]).any():
        index["time"] = part["time"]
    numbers = {name: part[name] for name in _NUMBERS}
    return {"name": str(head[1]), "order": int(head[2]), "index": index} | numbers


def _sums(part: dict[str, np.ndarray]) -> dict[int, np.ndarray]:
    return {
        int(name.removeprefix(_NEXT)): values
        for name, values in part.items()
        if name.startswith(_NEXT) and not np.isnan(values).all()
    }
