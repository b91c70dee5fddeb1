"""The entries of a comparison as one long table, for rows, labelled arrays and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fieldtheory.montecarlo.compared_field import AtWidth, Coefficient, ComparedField
from fieldtheory.numerics.fields import notes

RIGHT, WIDTH = "right", "width"
_PLACES = ("layer", "layer_", "alpha", "beta")
_NUMBERS = ("theory", "simulation", "error", "size")
_TEXT = ("question", "quantity", "verdict")
INTEGERS = ("order", *_PLACES)
# What follows from the other columns.
_DERIVED = ("deviation", "z", "verdict")
_NOTES = {
    "question": ("right: is the theory right; width: does it describe this width", ""),
    "quantity": ("compared field of the solution", "q"),
    "order": ("power of 1/N of the theory", "k"),
    "layer": ("layer of the entry, -1 if it has none", "l"),
    "layer_": ("second layer of the entry, -1 if it has none", "m"),
    "alpha": ("first input of the entry, -1 if it has none", r"\alpha"),
    "beta": ("second input of the entry, -1 if it has none", r"\beta"),
    "theory": ("value of the theory", r"q_{\mathrm{theory}}"),
    "simulation": ("simulated value, extrapolated or at the width", r"\hat{q}"),
    "error": ("standard error of the simulated value", r"\sigma_{\hat{q}}"),
    "size": ("to what deviations are relative", "|q|"),
    "remainder": ("size of the terms in 1/N that the extrapolation leaves out", r"R_k"),
    "deviation": ("relative deviation of the simulation", r"\delta"),
    "z": ("deviation in standard errors", "z"),
    "verdict": ("whether the entry agrees, or is within the tolerance", ""),
}


def rows(fields: Sequence[ComparedField]) -> list[dict[str, Any]]:
    """A dict for every entry, all with the same keys; None where one does not apply."""
    powers = _powers(fields)
    return [row for field in fields for row in _rows(field, powers)]


def variables(
    fields: Sequence[ComparedField], stored: bool
) -> dict[str, tuple[tuple[str, ...], Any, dict[str, Any]]]:
    """The rows as named arrays; without what follows from the others if they are stored."""
    table = rows(fields)
    found: dict[str, tuple[tuple[str, ...], Any, dict[str, Any]]] = {}
    for name in table[0]:
        base, _, power = name.partition("_to_order_")
        if stored and base in _DERIVED:
            continue
        values = [row[name] for row in table]
        if name in INTEGERS:
            array = np.array([-1 if value is None else value for value in values])
        elif name in _TEXT:
            array = np.array(values, dtype=str)
        else:
            array = np.array([np.nan if value is None else value for value in values])
        words, symbol = _NOTES[base]
        words += f", to order {power} in 1/N" if power else ""
        found[name] = (("comparison",), array, notes(words, symbol))
    return found


def fields_of(
    content: Mapping[str, Any], thresholds: Mapping[str, float], tolerance: float
) -> list[ComparedField]:
    """The fields of stored `variables`."""
    names = zip(*(np.asarray(content[key]).astype(str) for key in _TEXT[:2]), strict=True)
    heads = list(zip(names, np.asarray(content["order"], dtype=int).tolist(), strict=True))
    found: list[ComparedField] = []
    for head in dict.fromkeys(heads):
        (question, name), order = head
        chosen = np.array([other == head for other in heads])
        places = {key: np.asarray(content[key], dtype=int)[chosen] for key in _PLACES}
        numbers = {
            key: np.asarray(values, dtype=float)[chosen]
            for key, values in content.items()
            if key in (*_NUMBERS, "remainder") or key.startswith("theory_to_order_")
        }
        given: dict[str, Any] = {
            "name": str(name),
            "order": order,
            "index": {key: at for key, at in places.items() if (at >= 0).all()},
            "threshold": thresholds[question],
            **{key: numbers.pop(key) for key in _NUMBERS},
        }
        remainder = numbers.pop("remainder")
        if question == RIGHT:
            found.append(Coefficient(**given, remainder=remainder))
            continue
        sums = {
            int(key.removeprefix("theory_to_order_")): values
            for key, values in numbers.items()
            if not np.isnan(values).all()
        }
        found.append(AtWidth(**given, tolerance=tolerance, with_next=sums))
    return found


def _powers(fields: Sequence[ComparedField]) -> list[int]:
    """The powers of 1/N up to which some field has a theory beyond its leading order."""
    return sorted({p for field in fields if isinstance(field, AtWidth) for p in field.with_next})


def _rows(field: ComparedField, powers: list[int]) -> list[dict[str, Any]]:
    count = len(field.theory)
    empty = [None] * count
    columns: dict[str, list[Any]] = {
        "question": [WIDTH if isinstance(field, AtWidth) else RIGHT] * count,
        "quantity": [field.name] * count,
        "order": [field.order] * count,
        **{key: field.index[key].tolist() if key in field.index else empty for key in _PLACES},
        **{key: getattr(field, key).tolist() for key in _NUMBERS},
        "remainder": field.remainder.tolist() if isinstance(field, Coefficient) else empty,
        "deviation": field.deviation.tolist(),
        "z": field.z.tolist(),
        "verdict": field.verdicts.tolist(),
    }
    for power in powers:
        rest: dict[str, np.ndarray] = {}
        if isinstance(field, AtWidth) and power in field.with_next:
            rest = field.next_order(power)
        for key in ("theory", "deviation", "z"):
            values = rest[key].tolist() if rest else empty
            columns[f"{key}_to_order_{power}"] = [None if v != v else v for v in values]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
