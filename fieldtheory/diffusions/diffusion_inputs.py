"""Inputs of `diffusion`, layers x_0, samples, a law of the parameters, and its tables."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from fieldtheory.cli import samples, values
from fieldtheory.diffusions.diffusion_network import ParameterLaw
from fieldtheory.numerics.storage import read_npz

# Columns, and the fields they show.
SOLVED = {
    "mean": "mean",
    "covariance": "covariance",
    "gram": "gram",
    "var_gram": "gram_variance",
    "kurtosis": "kurtosis",
}
SIMULATED = {
    column: field
    for name, estimate in SOLVED.items()
    for column, field in ((name, estimate), (f"{name}_error", f"{estimate}_error"))
}


def rows_of(
    result: Any, times: int, fields: dict[str, str], also: dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    """A row for every time and pair of inputs, of the fields that are known."""
    values_of = {name: getattr(result, field) for name, field in fields.items()} | (also or {})
    columns = {name: value for name, value in values_of.items() if value is not None}
    if len(result.inputs) > 1:
        variance = np.diagonal(result.covariance, axis1=1, axis2=2)
        scale = np.sqrt(variance[:, :, None] * variance[:, None, :])
        empty = np.full_like(scale, np.nan)
        columns["correlation"] = np.divide(result.covariance, scale, out=empty, where=scale > 0)
    last = len(result.times) - 1
    chosen = np.unique(np.round(np.linspace(0, last, min(times, last + 1))).astype(int))
    return [
        {"t": result.times[n]} | _of_pair(columns, n, i, j, len(result.inputs))
        for n in chosen
        for i, j in zip(*np.triu_indices(len(result.inputs)), strict=True)
    ]


def _of_pair(columns: dict[str, Any], n: int, i: Any, j: Any, inputs: int) -> dict[str, Any]:
    """The entries of a pair of inputs; those of one input where both are the same."""
    row: dict[str, Any] = {"alpha": int(i), "beta": int(j)} if inputs > 1 else {}
    for name, value in columns.items():
        of_pair = value.ndim == 3
        entry = value[n, i, j] if of_pair else value[n, i]
        row[name] = entry if (of_pair or i == j) and np.isfinite(entry) else None
    return row


def compared_rows(comparison: Any, distances: Any) -> list[dict[str, Any]]:
    """The worst entry of every quantity, and below them the laws of the outputs."""
    rows = [row | {"p-value": None} for row in comparison.summary_at_width]
    if distances is None:
        return rows
    laws = zip(distances.statistic, distances.p_value, strict=True)
    blank = dict.fromkeys(rows[0])
    for number, (statistic, p_value) in enumerate(laws):
        rows.append(
            blank
            | {
                "quantity": "law of x_T (KS)",
                "largest deviation at": f"inputs {number}",
                "simulation": statistic,
                "p-value": p_value,
            }
        )
    return rows


def layers(text: str) -> np.ndarray:
    """Inputs as they are typed: numbers z "0,1", or the layers x_0 themselves "0.5,1;-1,2".

    >>> layers("0,1").shape, layers("0.5,1,2;-1,2,0").shape
    ((2,), (2, 3))
    """
    rows = values.number_rows("inputs", text)
    if len(rows) == 1:
        return rows[0]
    if len({len(row) for row in rows}) > 1:
        raise ValueError(f"inputs must have rows of one length, a,b;c,d, got {text!r}")
    return np.stack(rows)


def sampled_layers(
    data: str, classes: str | None, count: int | None, scale: str | None, **columns: Any
) -> tuple[str, np.ndarray]:
    """Samples as layers x_0, in words, and as (P, D), each of them of one mean square.

    >>> words, Z = sampled_layers("digits", "0,3", 4, None)
    >>> words, Z.shape
    ('digits 0, 3 (scikit-learn, 8x8 pixels): 4 samples of mean square 1', (4, 64))
    >>> (Z**2).mean(axis=1).round(12)
    array([1., 1., 1., 1.])
    """
    dataset = samples.chosen(data, classes, count, **columns)
    words, Z = f"{dataset.name}: {dataset.size}", dataset.samples
    size = 1.0 if scale is None else samples.variance(scale)
    samples.tell(dataset)
    if size is None:
        return f"{words} as they are", Z
    squares = (Z**2).mean(axis=1, keepdims=True)
    if (zero := np.flatnonzero(squares == 0)).size:
        raise ValueError(f"sample {zero[0] + 1} is zero: it cannot be scaled, see --scale none")
    return f"{words} of mean square {size:g}", Z * np.sqrt(size / squares)


def law(path: Path) -> ParameterLaw:
    """The law of the parameters whose arguments are the arrays of an .npz file."""
    if path.suffix != ".npz" or not path.is_file():
        raise ValueError(f"law must be an .npz file that exists, got {str(path)!r}")
    names = [field.name for field in fields(ParameterLaw)]
    arrays = values.loaded("law", path, read_npz)
    if unknown := sorted(set(arrays) - set(names)):
        raise ValueError(
            f"law must be a file of arrays {', '.join(names)}, got {unknown[0]!r} in {str(path)!r}"
        )
    return ParameterLaw(**arrays)
