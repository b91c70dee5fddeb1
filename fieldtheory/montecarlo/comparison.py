"""The result of `compare`: every quantity with its simulation, and two verdicts.

Is the theory right? Does it describe this width?
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from fieldtheory.montecarlo import comparison_table, verdict_text
from fieldtheory.montecarlo.compared_field import (
    AGREES,
    DISAGREES,
    OFF,
    UNRESOLVED,
    WITHIN,
    AtWidth,
    Coefficient,
)
from fieldtheory.montecarlo.verdict_text import DESCRIBES, DOES_NOT
from fieldtheory.numerics.fields import FIELDS
from fieldtheory.numerics.result import Stored
from fieldtheory.numerics.storage import Labelled
from fieldtheory.plotting.tables import table_html, table_text

_OF_INPUTS = "alpha", "beta", "gamma", "delta"


@dataclass(frozen=True, eq=False)
class Comparison(Stored):
    """What `compare` returns; it shows itself as two tables with an answer below each.

    Like the other results it has ``save``, ``load``, ``to_xarray`` and ``plot``.

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

    Examples
    --------
    >>> import fieldtheory as ft
    >>> net = ft.ResidualNetwork(depth=2, width=100)
    >>> pair = [ft.simulate(net.replace(width=N), 0.3, samples=800, seed=N) for N in (100, 200)]
    >>> found = ft.compare(ft.solve(net, 0.3), pair)
    >>> found.verdict, found.description
    ('agrees', 'describes')
    """

    extrapolated: tuple[Coefficient, ...]
    at_width: tuple[AtWidth, ...]
    widths: tuple[int, ...]
    width: int
    false_alarm: float
    tolerance: float
    not_compared: tuple[str, ...] = ()

    @cached_property
    def verdict(self) -> str:
        """Is the theory right? "agrees", "disagrees" or "not resolved".

        Not resolved are deviations that the terms in 1/N that were left out may explain. For one
        width these are all, so that it never agrees. Values that chance hides as a whole do not
        count; if these are all it is not resolved either.
        """
        found = {verdict for field in self.extrapolated for verdict in field.verdicts.tolist()}
        if DISAGREES in found:
            return DISAGREES
        decided = AGREES in found and UNRESOLVED not in found and len(self.widths) > 1
        return AGREES if decided else UNRESOLVED

    @cached_property
    def description(self) -> str:
        """Does it describe this width? "describes", "does not describe" or "not resolved".

        Not resolved are deviations whose error is too large to compare them with the tolerance.
        """
        deciding = [field for field in self.at_width if FIELDS[field.name].decides]
        if any((field.verdicts == OFF).any() for field in deciding):
            return DOES_NOT
        kernels = [field for field in deciding if FIELDS[field.name].of_kernels]
        return DESCRIBES if all((f.verdicts == WITHIN).all() for f in kernels) else UNRESOLVED

    @property
    def statement(self) -> str:
        """Both questions with their answers, a line each."""
        return "\n".join(self.answers)

    @property
    def answers(self) -> tuple[str, str]:
        """The questions with their answers: "Is the theory right?", "Does it describe ...?"."""
        return verdict_text.is_it_right(self), verdict_text.does_it_describe(self)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A dict for every comparison, all with the same keys; None where one does not apply.

        ``question`` is "right" for what is extrapolated and "width" for what is at the width.
        ``order`` is the power of 1/N of the theory, ``deviation`` relative. Where the solution has
        terms beyond the leading order, ``theory_to_order_1`` and so on contain them.
        """
        return comparison_table.rows((*self.extrapolated, *self.at_width))

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

        raw = {field.name: field for field in self.at_width}
        shown = [
            (FIELDS[field.name].diagonal or FIELDS[field.name].symbol, field, raw[field.name])
            for field in self.extrapolated
            if field.name in raw and "layer" in field.index
        ]
        limits = self.extrapolated[0].threshold, self.tolerance
        # The question and the first word of the answer.
        short = [text[: text.index(": ")].removesuffix(",") for text in self.answers]
        # Behind the hidden layers is the output.
        last = [of.index["layer"].max() for _, _, of in shown if FIELDS[of.name].dims[0] == "layer"]
        hidden = int(max(last, default=len(shown[0][2].index["layer"])))
        return draw_comparison(shown, self.widths, self.width, hidden, *limits, "\n".join(short))

    def labelled(self, stored: bool) -> Labelled:
        """A row for every comparison; indices that a quantity does not have are -1."""
        fields = (*self.extrapolated, *self.at_width)
        attributes = {
            "widths": json.dumps(self.widths),
            "width": self.width,
            "false_alarm": self.false_alarm,
            "threshold": self.extrapolated[0].threshold,
            "tolerance": self.tolerance,
            "threshold_at_width": self.at_width[0].threshold,
            "not_compared": json.dumps(self.not_compared),
            "first_input": 0,
        }
        return Labelled(comparison_table.variables(fields, stored), {}, attributes)

    @classmethod
    def from_content(cls, content: dict[str, Any]) -> Self:
        """The comparison of the arrays, numbers and text in a file."""

        def plain(name: str) -> Any:
            return np.asarray(content[name]).item()

        if "first_input" not in content:
            # Files of the first releases count inputs from 1.
            counted = {name: content[name] for name in _OF_INPUTS if name in content}
            content = content | {name: at - (at > 0) for name, at in counted.items()}
        tolerance = plain("tolerance")
        thresholds = {
            comparison_table.RIGHT: plain("threshold"),
            comparison_table.WIDTH: plain("threshold_at_width"),
        }
        found = comparison_table.fields_of(content, thresholds, tolerance)
        return cls(
            tuple(field for field in found if isinstance(field, Coefficient)),
            tuple(field for field in found if isinstance(field, AtWidth)),
            tuple(json.loads(plain("widths"))),
            plain("width"),
            plain("false_alarm"),
            tolerance,
            # Files of the first releases do not have it.
            tuple(json.loads(plain("not_compared"))) if "not_compared" in content else (),
        )

    def __str__(self) -> str:
        tables = zip(self._titles, self._summaries, self.answers, strict=True)
        return "\n\n".join(f"{table_text(rows, title)}\n{text}" for title, rows, text in tables)

    def _repr_html_(self) -> str:
        tables = zip(self._summaries, self.answers, strict=True)
        return "".join(table_html(rows, text) for rows, text in tables)

    def __repr__(self) -> str:
        described = self.description if self.description != UNRESOLVED else "may describe"
        return f"Comparison({self.verdict}, {described} width {self.width}, widths={self.widths})"

    @property
    def _summaries(self) -> tuple[list[dict[str, Any]], ...]:
        return self.summary, self.summary_at_width

    @property
    def _titles(self) -> tuple[str, str]:
        widths = verdict_text.listed(self.widths)
        how = f"extrapolated from the widths {widths}" if len(self.widths) > 1 else "of one width"
        return f"theory and simulation {how}", f"theory and simulation at width {self.width}"
