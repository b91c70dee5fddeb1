"""The result of `compare`: every quantity with its simulation, and two verdicts.

Is the theory right? Does it describe this width?
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from fieldtheory.montecarlo.comparison import verdict_text
from fieldtheory.montecarlo.comparison.compared import (
    AGREES,
    DISAGREES,
    HEADS,
    NUMBERS,
    OFF,
    PLACES,
    RIGHT,
    UNRESOLVED,
    WIDTH,
    WITHIN,
    Compared,
)
from fieldtheory.montecarlo.comparison.verdict_text import DESCRIBES, DOES_NOT
from fieldtheory.numerics.fields import compared, notes
from fieldtheory.numerics.storage import Variables
from fieldtheory.numerics.stored import Stored
from fieldtheory.plotting.tables import table_html, table_text

# Columns of the table of all entries with their meaning and symbol.
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
_NEXT = "_to_order_"


def _tuple(text: str) -> tuple[Any, ...]:
    return tuple(json.loads(text))


@dataclass(frozen=True, eq=False)
class Comparison(Stored):
    """Theory and simulation of every compared quantity, with two verdicts; see `compare`.

    It shows itself as two tables with a sentence below each. Like the other results it has
    ``save``, ``load``, ``to_xarray`` and ``plot``.

    Parameters
    ----------
    columns : dict of str to ndarray
        All compared entries, one in each row: those that are extrapolated, then those at the width.
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
    threshold, threshold_at_width : float
        Largest |z| that counts as chance, in the extrapolated values and in those at the width.

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.ResidualNetwork(depth=2, width=100)
    >>> pair = [ft.simulate(net.replace(width=N), 0.3, samples=800, seed=N) for N in (100, 200)]
    >>> comparison = ft.compare(ft.solve(net, 0.3), pair)
    >>> comparison.verdict, comparison.description
    ('agrees', 'describes')
    """

    settings: ClassVar = {
        **{"widths": _tuple, "width": int, "false_alarm": float, "threshold": float},
        **{"tolerance": float, "threshold_at_width": float, "not_compared": _tuple},
        "neglected": str,
    }

    columns: dict[str, np.ndarray]
    widths: tuple[int, ...]
    width: int
    false_alarm: float
    tolerance: float
    not_compared: tuple[str, ...]
    neglected: str
    threshold: float
    threshold_at_width: float

    @cached_property
    def extrapolated(self) -> tuple[Compared, ...]:
        """Is the theory right? The coefficients of 1/N, extrapolated over ``widths``."""
        return tuple(self._compared(RIGHT, self.threshold))

    @cached_property
    def at_width(self) -> tuple[Compared, ...]:
        """Does it describe this width? The quantities as they were simulated at ``width``."""
        return tuple(self._compared(WIDTH, self.threshold_at_width))

    def _compared(self, question: str, threshold: float) -> Iterator[Compared]:
        heads = [self.columns[name] for name in HEADS]
        for head in dict.fromkeys(zip(*(values.tolist() for values in heads), strict=True)):
            if head[0] != question:
                continue
            kept = np.all([values == of for values, of in zip(heads, head, strict=True)], axis=0)
            part = {name: values[kept] for name, values in self.columns.items()}
            yield Compared(
                question=question,
                name=head[1],
                order=head[2],
                # Places that the quantity has are no -1 and no nan.
                index={at: part[at] for at in PLACES if at in part and (part[at] >= 0).all()},
                **{name: part[name] for name in NUMBERS},
                threshold=threshold,
                tolerance=self.tolerance,
                with_next={
                    int(name.partition(_NEXT)[2]): values
                    for name, values in part.items()
                    if _NEXT in name and not np.isnan(values).all()
                },
            )

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
        columns: dict[str, list[Any]] = {}
        for name, values in self._columns().items():
            missing = values == -1 if values.dtype.kind == "i" else values != values
            column = values.astype(object)
            column[missing] = None
            columns[name] = column.tolist()
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    @property
    def summary(self) -> list[dict[str, Any]]:
        """Is the theory right? Of every coefficient its worst entry, and what it would show."""
        return verdict_text.summary(self.extrapolated)

    @property
    def summary_at_width(self) -> list[dict[str, Any]]:
        """Does it describe this width? Of every quantity its worst entry."""
        return verdict_text.summary(self.at_width)

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
        limits = self.threshold, self.tolerance
        # The question and the first word of the answer.
        short = [text[: text.index(": ")].removesuffix(",") for text in self.sentences]
        # Behind the hidden layers is the output.
        outputs = [of for *_, of in panels if compared()[of.name].dims[0] == "layer"]
        hidden = max((of.index["layer"].max() for of in outputs), default=np.inf)
        return draw_comparison(panels, self.widths, self.width, hidden, *limits, "\n".join(short))

    def _columns(self) -> dict[str, np.ndarray]:
        """The columns with those that follow from them."""
        fields = [*self.extrapolated, *self.at_width]
        columns = {name: values for name, values in self.columns.items() if _NEXT not in name}
        columns |= {
            "deviation": np.concatenate([field.deviation for field in fields]),
            "z": np.concatenate([field.z for field in fields]),
            "verdict": np.concatenate([field.verdicts for field in fields]),
        }
        for power in sorted({power for field in fields for power in field.with_next}):
            others = [field.to_order(power) for field in fields]
            for name in ("theory", "deviation", "z"):
                values = np.concatenate([getattr(other, name) for other in others])
                columns[f"{name}{_NEXT}{power}"] = values
        return columns

    def _arguments(self, stored: bool) -> Variables:
        variables: Variables = {}
        for name, values in (self.columns if stored else self._columns()).items():
            base, _, power = name.partition(_NEXT)
            words, symbol = _COLUMNS[base]
            words += f", to order {power} in 1/N" if power else ""
            variables[name] = ("comparison",), values, notes(words, symbol)
        return variables

    @classmethod
    def _read_arguments(cls, content: dict[str, Any]) -> dict[str, Any]:
        names = [of for name in _COLUMNS for of in content if of.partition(_NEXT)[0] == name]
        return {"columns": {name: np.asarray(content[name]) for name in names}}

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
