"""The two verdicts of a comparison, a sentence each, and the tables that support them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fieldtheory.montecarlo.comparison.compared_field import (
    AGREES,
    COARSEST,
    DISAGREES,
    NOISY,
    OFF,
    UNRESOLVED,
    WITHIN,
    ZERO,
    AtWidth,
    Coefficient,
    ComparedField,
)
from fieldtheory.numerics.fields import compared

DESCRIBES, DOES_NOT = "describes", "does not describe"
_ALL = f"{100 * COARSEST:g} %"
# The verdicts of entries that these are made of.
_OF_ENTRIES = {DESCRIBES: WITHIN, DOES_NOT: OFF}


def is_it_right(comparison: Any) -> str:
    """Is the theory of a `Comparison` right? With its widths and what it neglects."""
    fields, widths, verdict = comparison.extrapolated, comparison.widths, comparison.verdict
    source = (
        f"at width {widths[0]} alone"
        if len(widths) == 1
        else f"extrapolated from the widths {listed(widths)}"
    )
    count = sum(field.theory.size for field in fields)
    deciding = [field for field in fields if (field.verdicts == verdict).any()] or fields
    worst = max(deciding, key=lambda field: abs(field.z[field.worst]))
    deviation = worst.deviation[worst.worst]
    size = f"is {_percent(deviation)}, |z| =" if np.isfinite(deviation) else "has |z| ="
    largest = (
        f"the largest of {count} deviations {size} "
        f"{abs(worst.z[worst.worst]):.3g} ({_entry_name(worst)}); chance alone exceeds "
        f"{worst.threshold:.3g} with probability {comparison.false_alarm:g}"
    )
    neglected = comparison.neglected or "nothing"
    if verdict == AGREES:
        testable = _count(fields, AGREES)
        # The smallest relative error that is visible in some kernel, or anywhere if there is none.
        kernels = [field for field in fields if compared()[field.name].of_kernels] or fields
        resolution = min(field.resolution for field in kernels)
        what = (
            f"all {count} values"
            if testable == count
            else f"all {testable} values that can be tested"
        )
        text = (
            f"Yes: {source}, {what} agree; {largest}. An error of "
            f"{100 * resolution:.2g} % in all kernels would be seen. The theory neglects "
            f"{neglected}."
        )
    elif verdict == DISAGREES:
        text = f"No: {source}, {largest}, and the neglected {neglected} do not explain it."
    elif all(np.isin(field.verdicts, (NOISY, ZERO)).all() for field in fields):
        text = f"Not decided: {source}, none of {count} values can be tested."
    else:
        text = (
            f"Not decided: {source}, {largest}. The neglected {neglected} may be as large. "
            "Simulate another width, or wider networks."
        )
    text += _untested(fields)
    if comparison.not_compared:
        text += f" Not compared: {'; '.join(comparison.not_compared)}."
    return f"Is the theory right? {text}"


def does_it_describe(comparison: Any) -> str:
    """Does it describe the width? With the largest deviation of the deciding fields."""
    width, verdict = comparison.width, _OF_ENTRIES.get(comparison.description, UNRESOLVED)
    deciding = [field for field in comparison.at_width if compared()[field.name].decides]
    if not deciding:
        return f"Does it describe width {width}? Yes: no kernel deviates from the leading order."
    deciding = [field for field in deciding if verdict in field.verdicts]
    # Kernels speak before responses.
    deciding = [field for field in deciding if compared()[field.name].of_kernels] or deciding
    worst = max(deciding, key=lambda field: abs(field.deviation[field.worst]))
    entry = worst.worst
    number = (
        f"{_percent(worst.deviation[entry])} ({_entry_name(worst)}; {worst.z[entry]:+.3g} standard "
        "errors)"
    )
    allowed = f"{100 * comparison.tolerance:g} %"
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
        order = worst.next_order(power)
        text += (
            f" With {_terms(power)} it is {_percent(order['deviation'][entry])} "
            f"(z = {order['z'][entry]:.3g})."
        )
    return f"Does it describe width {width}? {text}"


def coefficient_rows(fields: Sequence[Coefficient]) -> list[dict[str, Any]]:
    """Of every coefficient its worst entry, and the smallest error of the theory that is seen.

    Beyond 2 standard errors are 5 % of the entries of a right theory, give or take.
    """
    return [
        _row(field, "largest |z| at", int(np.count_nonzero(np.abs(field.z) > 2)))
        | {
            "order": _terms(field.order) if field.order else "1",
            "neglected terms": float(field.remainder[field.worst]),
            "smallest error seen": (
                f"{100 * field.resolution:.2g} %" if math.isfinite(field.resolution) else ""
            ),
        }
        for field in fields
    ]


def width_rows(fields: Sequence[AtWidth]) -> list[dict[str, Any]]:
    """Of every quantity at the width its worst entry, with the theory to every order it has."""
    powers = sorted({power for field in fields for power in field.with_next})
    rows = []
    for field in fields:
        row = _row(field, "largest deviation at") | {
            "deviation": _percent(field.deviation[field.worst])
        }
        for power in powers:
            row |= _next_columns(field, power, field.worst)
        rows.append(row)
    return rows


def _row(field: ComparedField, where: str, beyond: int | None = None) -> dict[str, Any]:
    worst = field.worst
    theory = field.theory[worst]
    return {
        "quantity": field.name,
        "verdict": str(field.verdicts[worst]),
        "values": len(field.theory),
        **({} if beyond is None else {"|z| > 2": beyond}),
        where: field.place(worst),
        "z": float(field.z[worst]),
        # 0 where it is the rounding of sums that cancel, small against the error.
        "theory": float(theory) if abs(theory) >= 1e-12 * field.error[worst] else 0.0,
        "simulation": float(field.simulation[worst]),
        "error": float(field.error[worst]),
    }


def listed(widths: Sequence[int]) -> str:
    """Numbers as "3", "3 and 6" or "3, 6 and 12"."""
    *first, last = map(str, widths)
    return f"{', '.join(first)} and {last}" if first else last


def _count(fields: Sequence[Coefficient], verdict: str) -> int:
    return sum(int(np.count_nonzero(field.verdicts == verdict)) for field in fields)


def _untested(fields: Sequence[Coefficient]) -> str:
    """Quantities that are too noisy or zero, and how many more networks would test them."""
    text = ""
    if count := _count(fields, NOISY):
        noisy = [field for field in fields if (field.verdicts == NOISY).all()]
        factors = [float(field.more_networks.min()) for field in noisy]
        many = [
            f"{factor:.2g} times as many networks" if math.isfinite(factor) else "wider ones"
            for factor in factors
        ]
        words = ", ".join(
            f"{field.name} (it needs {each})" for field, each in zip(noisy, many, strict=True)
        )
        among = f", among them all of {words}" if words else ""
        text = f" Too noisy to test are {count} values, where chance hides {_ALL}{among}."
    zeros = ", ".join(field.name for field in fields if (field.verdicts == ZERO).all())
    return f"{text} Zero in theory and, within chance, in simulation: {zeros}." if zeros else text


def _next_columns(field: AtWidth, power: int, entry: int) -> dict[str, Any]:
    names = [f"{name}{_terms(power)}" for name in ("with ", "deviation with ", "z with ")]
    if power not in field.with_next or np.isnan(field.with_next[power][entry]):
        return dict.fromkeys(names)
    order = field.next_order(power)
    values = float(order["theory"][entry]), _percent(order["deviation"][entry])
    return dict(zip(names, (*values, float(order["z"][entry])), strict=True))


def _entry_name(field: ComparedField) -> str:
    place = field.place(field.worst)
    return f"{field.name}, {place}" if place else field.name


def _percent(deviation: np.floating[Any] | float) -> str:
    return f"{100 * deviation:+.3g} %"


def _terms(order: int) -> str:
    return "1/N" if order == 1 else f"1/N^{order}"
