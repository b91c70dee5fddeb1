"""The entries of a comparison as one long table, for rows, labelled arrays and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fieldtheory.montecarlo.compared_field import AtWidth, Coefficient, ComparedField
from fieldtheory.numerics.fields import notes

RIGHT, WIDTH = "right", "width"
_PLACES = ("layer", "layer_", "alpha", "beta", "gamma", "delta")
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
    "gamma": ("first input of the second pair of the entry, -1 if it has none", r"\gamma"),
    "delta": ("second input of the second pair of the entry, -1 if it has none", r"\delta"),
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
    found = {}
    for name, values in columns(fields).items():
        missing = _missing(name, values)
        listed = values.tolist()
        found[name] = [None if no else v for v, no in zip(listed, missing, strict=True)]
    return [dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)]


def columns(fields: Sequence[ComparedField]) -> dict[str, np.ndarray]:
    """The same as arrays, with -1 and nan where a place or a number does not apply."""
    powers = _powers(fields)
    parts = [_columns(field, powers) for field in fields]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def variables(
    fields: Sequence[ComparedField], stored: bool
) -> dict[str, tuple[tuple[str, ...], Any, dict[str, Any]]]:
    """The rows as named arrays; without what follows from the others if they are stored."""
    found: dict[str, tuple[tuple[str, ...], Any, dict[str, Any]]] = {}
    for name, array in columns(fields).items():
        base, _, power = name.partition("_to_order_")
        if stored and base in _DERIVED:
            continue
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
        places = {
            key: np.asarray(content[key], dtype=int)[chosen] for key in _PLACES if key in content
        }
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


def _missing(name: str, values: np.ndarray) -> np.ndarray:
    if name in _TEXT:
        return np.zeros(len(values), dtype=bool)
    return values < 0 if name in INTEGERS else np.isnan(values)


def _columns(field: ComparedField, powers: list[int]) -> dict[str, np.ndarray]:
    count = len(field.theory)
    nowhere, nothing = np.full(count, -1), np.full(count, np.nan)
    found: dict[str, np.ndarray] = {
        "question": np.repeat(WIDTH if isinstance(field, AtWidth) else RIGHT, count),
        "quantity": np.repeat(field.name, count),
        "order": np.repeat(field.order, count),
        **{key: field.index.get(key, nowhere) for key in _PLACES},
        **{key: getattr(field, key) for key in _NUMBERS},
        "remainder": field.remainder if isinstance(field, Coefficient) else nothing,
        "deviation": field.deviation,
        "z": field.z,
        "verdict": field.verdicts,
    }
    for power in powers:
        rest: dict[str, np.ndarray] = {}
        if isinstance(field, AtWidth) and power in field.with_next:
            rest = field.next_order(power)
        for key in ("theory", "deviation", "z"):
            found[f"{key}_to_order_{power}"] = rest.get(key, nothing)
    return found
