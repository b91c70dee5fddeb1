"""The two verdicts of a comparison, a sentence each, and the tables that support them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from fieldtheory.montecarlo.comparison.compared import (
    AGREES,
    COARSEST,
    DISAGREES,
    NOISY,
    OFF,
    RIGHT,
    UNRESOLVED,
    WIDTH,
    WITHIN,
    ZERO,
    Compared,
)
from fieldtheory.numerics.fields import compared

DESCRIBES, DOES_NOT = "describes", "does not describe"
# The answers by question and verdict; of the first question also if nothing can be tested, of the
# second if no kernel differs.
_SENTENCES = {
    (RIGHT, AGREES): "Yes: {source}, all {tested} values that can be tested agree; {largest}. An "
    "error of {seen:.2g} % in all kernels would be seen. The theory neglects {neglected}.",
    (RIGHT, DISAGREES): "No: {source}, {largest}, and the neglected {neglected} do not explain it.",
    (RIGHT, UNRESOLVED): "Not decided: {source}, {largest}. The neglected {neglected} may be as "
    "large. Simulate another width, or wider networks.",
    (RIGHT, NOISY): "Not decided: {source}, none of {count} values can be tested.",
    (WIDTH, WITHIN): "Yes, to {allowed:g} %: the largest deviation of a kernel from the leading "
    "order is {largest}.",
    (WIDTH, OFF): "No: the simulation deviates from the leading order by {largest}, more than "
    "{allowed:g} %.",
    (WIDTH, UNRESOLVED): "Not decided: the largest deviation of a kernel from the leading order is "
    "{largest}, and chance may add {chance:.2g} %: together more than {allowed:g} %. Simulate more "
    "networks.",
    (WIDTH, ZERO): "Yes: no kernel deviates from the leading order.",
}


def is_it_right(comparison: Any) -> str:
    """Is the theory of a `Comparison` right? With its widths and what it neglects."""
    fields, verdict = comparison.extrapolated, comparison.verdict
    found = Counter(word for field in fields for word in field.verdicts.tolist())
    deciding = [field for field in fields if verdict in field.verdicts] or fields
    worst = max(deciding, key=lambda field: abs(field.z[field.worst]))
    kernels = [field for field in fields if compared()[field.name].of_kernels] or fields
    one = len(comparison.widths) == 1
    source = "at width {} alone" if one else "extrapolated from the widths {}"
    answer = _SENTENCES[RIGHT, verdict if found.keys() - {NOISY, ZERO} else NOISY].format(
        source=source.format(listed(comparison.widths)),
        count=found.total(),
        tested=found[AGREES],
        largest=f"the largest of {found.total()} deviations has |z| = "
        f"{abs(worst.z[worst.worst]):.3g} ({_entry_name(worst)}); chance alone exceeds "
        f"{worst.threshold:.3g} with probability {comparison.false_alarm:g}",
        # The smallest relative error that is visible in some kernel.
        seen=100 * min(field.resolution for field in kernels),
        neglected=comparison.neglected or "nothing",
    )
    if found[NOISY]:
        answer += f" Too noisy to test are {found[NOISY]} values, where chance hides "
        answer += f"{100 * COARSEST:g} %"
        noisy = ", ".join(
            f"{field.name} (it needs {_more(field)})"
            for field in fields
            if (field.verdicts == NOISY).all()
        )
        answer += f", among them all of {noisy}." if noisy else "."
    if zeros := ", ".join(field.name for field in fields if (field.verdicts == ZERO).all()):
        answer += f" Zero in theory and, within chance, in simulation: {zeros}."
    if comparison.not_compared:
        answer += f" Not compared: {'; '.join(comparison.not_compared)}."
    return f"Is the theory right? {answer}"


def does_it_describe(comparison: Any) -> str:
    """Does it describe the width? With the largest deviation of the deciding fields."""
    question = f"Does it describe width {comparison.width}?"
    deciding = [field for field in comparison.at_width if compared()[field.name].decides]
    if not deciding:
        return f"{question} {_SENTENCES[WIDTH, ZERO]}"
    verdict = {DESCRIBES: WITHIN, DOES_NOT: OFF}.get(comparison.description, UNRESOLVED)
    deciding = [field for field in deciding if verdict in field.verdicts]
    # Kernels speak before responses.
    deciding = [field for field in deciding if compared()[field.name].of_kernels] or deciding
    worst = max(deciding, key=lambda field: abs(field.deviation[field.worst]))
    entry = worst.worst
    answer = _SENTENCES[WIDTH, verdict].format(
        allowed=100 * comparison.tolerance,
        largest=f"{_percent(worst.deviation[entry])} ({_entry_name(worst)}; {worst.z[entry]:+.3g} "
        "standard errors)",
        chance=100 * worst.threshold * worst.relative_error[entry],
    )
    for power in worst.with_next:
        order = worst.to_order(power)
        answer += f" With {_terms(power)} it is {_percent(order.deviation[entry])} "
        answer += f"(z = {order.z[entry]:.3g})."
    return f"{question} {answer}"


def summary(fields: Sequence[Compared]) -> list[dict[str, Any]]:
    """Of every quantity its worst entry; of coefficients with the smallest error that is seen."""
    powers = sorted({power for field in fields for power in field.with_next})
    rows = []
    for field in fields:
        worst, right = field.worst, field.question == RIGHT
        theory, error = field.theory[worst], float(field.error[worst])
        row = {
            "quantity": field.name,
            "verdict": str(field.verdicts[worst]),
            "values": len(field.theory),
        }
        if right:
            row["|z| > 2"] = int(np.count_nonzero(np.abs(field.z) > 2))
        row |= {
            "largest |z| at" if right else "largest deviation at": field.place(worst),
            "z": float(field.z[worst]),
            # 0 where it is the rounding of sums that cancel, small against the error.
            "theory": float(theory) if abs(theory) >= 1e-12 * error else 0.0,
            "simulation": float(field.simulation[worst]),
            "error": error,
        }
        if right:
            seen = field.resolution
            row["order"] = _terms(field.order) if field.order else "1"
            row["neglected terms"] = float(field.remainder[worst])
            row["smallest error seen"] = f"{100 * seen:.2g} %" if math.isfinite(seen) else ""
        else:
            row["deviation"] = _percent(field.deviation[worst])
        for power in powers:
            other, terms = field.to_order(power), _terms(power)
            known = not np.isnan(other.theory[worst])
            row[f"with {terms}"] = float(other.theory[worst]) if known else None
            row[f"deviation with {terms}"] = _percent(other.deviation[worst]) if known else None
            row[f"z with {terms}"] = float(other.z[worst]) if known else None
        rows.append(row)
    return rows


def listed(widths: Sequence[int]) -> str:
    """Numbers as "3", "3 and 6" or "3, 6 and 12"."""
    *first, last = map(str, widths)
    return f"{', '.join(first)} and {last}" if first else last


def _more(field: Compared) -> str:
    factor = float(field.more_networks.min())
    return f"{factor:.2g} times as many networks" if math.isfinite(factor) else "wider ones"


def _entry_name(field: Compared) -> str:
    return ", ".join(filter(None, (field.name, field.place(field.worst))))


def _percent(deviation: np.floating[Any] | float) -> str:
    return f"{100 * deviation:+.3g} %"


def _terms(order: int) -> str:
    return "1/N" if order == 1 else f"1/N^{order}"
