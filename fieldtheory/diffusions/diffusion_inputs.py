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
    f"{column}{end}": f"{field}{end}" for column, field in SOLVED.items() for end in ("", "_error")
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
    rows = []
    for n in chosen:
        for i, j in zip(*np.triu_indices(len(result.inputs)), strict=True):
            pair = {"alpha": int(i), "beta": int(j)} if len(result.inputs) > 1 else {}
            row = {"t": result.times[n]} | pair
            for name, value in columns.items():
                # Fields of one input stand where both are the same.
                of_pair = value.ndim == 3
                entry = value[n, i, j] if of_pair else value[n, i]
                row[name] = entry if (of_pair or i == j) and np.isfinite(entry) else None
            rows.append(row)
    return rows


def compared_rows(comparison: Any, distances: Any) -> list[dict[str, Any]]:
    """The worst entry of every quantity, and below them the laws of the outputs."""
    rows = [row | {"p-value": None} for row in comparison.summary_at_width]
    if distances is None:
        return rows
    blank = dict.fromkeys(rows[0]) | {"quantity": "law of x_T (KS)"}
    laws = zip(distances.statistic, distances.p_value, strict=True)
    return rows + [
        blank | {"largest deviation at": f"inputs {n}", "simulation": statistic, "p-value": p}
        for n, (statistic, p) in enumerate(laws)
    ]


def layers(typed: str, of_data: dict[str, Any]) -> tuple[str, np.ndarray]:
    """Words on samples, and the inputs: numbers z, layers x_0, or samples of one mean square.

    Examples
    --------
    >>> layers("0,1", {"data": None})[1].shape, layers("0.5,1,2;-1,2,0", {"data": None})[1].shape
    ((2,), (2, 3))
    >>> words, Z = layers("", {"data": "digits", "count": 4, "scale": None})
    >>> words, Z.shape
    ('; digits 0, 3 (scikit-learn, 8x8 pixels): 4 samples of mean square 1', (4, 64))
    """
    dataset = samples.read(of_data)
    if dataset is None:
        rows = values.number_rows("inputs", typed)
        return "", rows[0] if len(rows) == 1 else rows
    words, Z = f"; {dataset.name}: {dataset.size}", dataset.samples
    size = samples.variance(of_data["scale"], 1.0)
    if size is None:
        return f"{words} as they are", Z
    squares = (Z**2).mean(axis=1, keepdims=True)
    if (zero := np.flatnonzero(squares == 0)).size:
        raise ValueError(f"sample {zero[0] + 1} is zero: it cannot be scaled, see --scale none")
    return f"{words} of mean square {size:g}", Z * np.sqrt(size / squares)


def law(path: Path) -> ParameterLaw:
    """The law of the parameters whose arguments are the arrays of an .npz file."""
    arrays = values.loaded("law", path, read_npz)
    names = [field.name for field in fields(ParameterLaw)]
    if unknown := sorted(set(arrays) - set(names)):
        raise ValueError(
            f"law must be a file of arrays {', '.join(names)}, got {unknown[0]!r} in {str(path)!r}"
        )
    return ParameterLaw(**arrays)
