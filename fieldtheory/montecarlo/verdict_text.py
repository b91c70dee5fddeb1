"""The verdicts of a comparison in words, and the tables that support them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fieldtheory.montecarlo.compared_field import (
    AGREES,
    COARSEST,
    DISAGREES,
    OFF,
    UNRESOLVED,
    UNTOLD,
    WITHIN,
    ZERO,
    AtWidth,
    Coefficient,
    ComparedField,
)
from fieldtheory.numerics.fields import FIELDS

DESCRIBES, DOES_NOT = "describes", "does not describe"
# A theory this much smaller than the error of the simulation is shown as 0.
_ROUNDING = 1e-12
# The verdicts of entries that these are made of.
_OF_ENTRIES = {DESCRIBES: WITHIN, DOES_NOT: OFF}


def is_it_right(found: Any) -> str:
    """Is the theory of the `Comparison` `found` right? With its widths and what was left out."""
    fields, widths, verdict = found.extrapolated, found.widths, found.verdict
    count = sum(field.theory.size for field in fields)
    threshold = fields[0].threshold
    deciding = [field for field in fields if (field.verdicts == verdict).any()] or fields
    worst = max(deciding, key=lambda field: abs(field.z[field.worst]))
    largest = f"|z| = {abs(worst.z[worst.worst]):.3g} ({_where(worst)})"
    chance = f"chance alone exceeds {threshold:.3g} with probability {found.false_alarm:g}"
    power = "" if len(widths) == 1 else f"^{len(widths)}"
    left_out = f"terms of order 1/N{power}"
    source = (
        f"at width {widths[0]} alone"
        if len(widths) == 1
        else f"extrapolated from the widths {listed(widths)}"
    )
    if verdict == AGREES:
        told = sum(int(np.count_nonzero(field.verdicts == AGREES)) for field in fields)
        what = f"all {count} values" if told == count else f"all {told} values that can be tested"
        text = (
            f"Yes: {source}, {what} agree. The largest deviation has {largest}; {chance}. "
            f"An error of {100 * _resolution(fields):.2g} % in all kernels would be seen. "
            f"The theory neglects {left_out}."
        )
    elif verdict == DISAGREES:
        text = (
            f"No: {source}, the most significant of {count} deviations is "
            f"{_percent(worst.deviation[worst.worst])}, {largest}; {chance}, and the neglected "
            f"{left_out} do not explain it."
        )
    elif all(np.isin(field.verdicts, (UNTOLD, ZERO)).all() for field in fields):
        text = f"Not decided: {source}, none of {count} values can be tested."
    elif len(widths) == 1:
        text = (
            f"Not decided: {source}, an error of the theory cannot be distinguished from the "
            f"neglected {left_out}. Simulate another width."
        )
    else:
        text = (
            f"Not decided: {source}, the largest of {count} deviations has {largest}; {chance}. "
            f"The neglected {left_out} may explain it. Simulate one more width, or wider networks."
        )
    text += _not_told(fields) + _zeros(fields)
    if found.not_compared:
        text += f" Not compared: {'; '.join(found.not_compared)}."
    return f"Is the theory right? {text}"


def does_it_describe(found: Any) -> str:
    """Does it describe the width of `found`? With the largest deviation of the deciding fields."""
    width, verdict = found.width, _OF_ENTRIES.get(found.description, UNRESOLVED)
    deciding = [field for field in found.at_width if FIELDS[field.name].decides]
    if not deciding:
        return f"Does it describe width {width}? Yes: no kernel deviates from the leading order."
    deciding = [field for field in deciding if verdict in field.verdicts]
    # Kernels speak before responses.
    deciding = [field for field in deciding if FIELDS[field.name].of_kernels] or deciding
    worst = max(deciding, key=lambda field: abs(field.deviation[field.worst]))
    entry = worst.worst
    how = f"{_where(worst)}; {worst.z[entry]:+.3g} standard errors"
    number = f"{_percent(worst.deviation[entry])} ({how})"
    allowed = f"{100 * found.tolerance:g} %"
    if verdict == OFF:
        text = (
            f"No: the simulation deviates from the leading order by {number}, more than {allowed}."
        )
    elif verdict == UNRESOLVED:
        hidden = 100 * worst.threshold * worst.error[entry] / worst.size[entry]
        text = (
            f"Not decided: the largest deviation of a kernel from the leading order is {number}, "
            f"and chance may add {hidden:.2g} %: together more than {allowed}. "
            "Simulate more networks."
        )
    else:
        text = (
            f"Yes, to {allowed}: the largest deviation of a kernel from the leading order is "
            f"{number}."
        )
    for power in worst.with_next:
        rest = worst.next_order(power)
        text += (
            f" With {_terms(power)} it is {_percent(rest['deviation'][entry])} "
            f"(z = {rest['z'][entry]:.3g})."
        )
    return f"Does it describe width {width}? {text}"


def coefficient_rows(fields: Sequence[Coefficient]) -> list[dict[str, Any]]:
    """Of every coefficient its worst entry, and the smallest error of the theory that shows.

    Beyond 2 standard errors are 5 % of the entries of a right theory, give or take.
    """
    rows = []
    for field in fields:
        worst, fault = field.worst, 100 * field.resolution
        rows.append(
            {
                "quantity": field.name,
                "order": _power(field.order),
                "verdict": str(field.verdicts[worst]),
                "values": len(field.theory),
                "|z| > 2": int(np.count_nonzero(np.abs(field.z) > 2)),
                "largest |z| at": field.place(worst),
                "z": float(field.z[worst]),
                "theory": _rounded(field.theory[worst], field.error[worst]),
                "simulation": float(field.simulation[worst]),
                "error": float(field.error[worst]),
                "neglected terms": float(field.remainder[worst]),
                "smallest error seen": f"{fault:.2g} %" if math.isfinite(fault) else "",
            }
        )
    return rows


def width_rows(fields: Sequence[AtWidth]) -> list[dict[str, Any]]:
    """Of every quantity at the width its worst entry, with the theory to every order it has."""
    powers = sorted({power for field in fields for power in field.with_next})
    rows = []
    for field in fields:
        worst = field.worst
        row: dict[str, Any] = {
            "quantity": field.name,
            "verdict": str(field.verdicts[worst]),
            "values": len(field.theory),
            "largest deviation at": field.place(worst),
            "deviation": _percent(field.deviation[worst]),
            "z": float(field.z[worst]),
            "leading order": _rounded(field.theory[worst], field.error[worst]),
            "simulation": float(field.simulation[worst]),
            "error": float(field.error[worst]),
        }
        for power in powers:
            row |= _next_columns(field, power, worst)
        rows.append(row)
    return rows


def listed(widths: Sequence[int]) -> str:
    """Numbers as "3", "3 and 6" or "3, 6 and 12"."""
    *first, last = map(str, widths)
    return f"{', '.join(first)} and {last}" if first else last


def _resolution(fields: Sequence[Coefficient]) -> float:
    """The smallest relative error that shows in some kernel, or anywhere if there is none."""
    kernels = [field for field in fields if FIELDS[field.name].of_kernels] or fields
    return min(field.resolution for field in kernels)


def _not_told(fields: Sequence[Coefficient]) -> str:
    """How many values are too noisy to test, and how many networks would test them."""
    count = sum(int(np.count_nonzero(field.verdicts == UNTOLD)) for field in fields)
    if not count:
        return ""
    said = []
    for field in fields:
        if (field.verdicts == UNTOLD).all():
            more = float(field.more_networks.min())
            needed = f"{more:.2g} times as many networks" if math.isfinite(more) else "wider ones"
            said.append(f"{field.name} (it needs {needed})")
    text = f" Too noisy to test are {count} values, where chance hides {100 * COARSEST:g} %"
    return f"{text}, among them all of {', '.join(said)}." if said else f"{text}."


def _zeros(fields: Sequence[Coefficient]) -> str:
    """How many values are 0 in the theory and, within chance, in the simulation."""
    zeros = [field for field in fields if (field.verdicts == ZERO).all()]
    if not zeros:
        return ""
    count, names = sum(field.theory.size for field in zeros), ", ".join(f.name for f in zeros)
    return f" Zero in the theory and, within chance, in the simulation are {count} values: {names}."


def _rounded(value: Any, error: Any) -> float:
    """A number of the theory; 0 where it is the rounding of sums that cancel."""
    return 0.0 if abs(value) < _ROUNDING * error else float(value)


def _next_columns(field: AtWidth, power: int, entry: int) -> dict[str, Any]:
    names = [f"{name}{_terms(power)}" for name in ("with ", "deviation with ", "z with ")]
    if power not in field.with_next:
        return dict.fromkeys(names)
    rest = field.next_order(power)
    if np.isnan(rest["theory"][entry]):
        return dict.fromkeys(names)
    values = float(rest["theory"][entry]), _percent(rest["deviation"][entry])
    return dict(zip(names, (*values, float(rest["z"][entry])), strict=True))


def _where(field: ComparedField) -> str:
    place = field.place(field.worst)
    return f"{field.name}, {place}" if place else field.name


def _percent(deviation: np.floating[Any] | float) -> str:
    return f"{100 * deviation:+.3g} %"


def _power(order: int) -> str:
    return "1" if order == 0 else _terms(order)


def _terms(order: int) -> str:
    return "1/N" if order == 1 else f"1/N^{order}"
