"""The tables of `diffusion`: a row for every time and pair of inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

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
