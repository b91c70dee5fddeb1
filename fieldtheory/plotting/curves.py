"""The plotted numbers of a figure as a table: one row per point, in one file."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

COLUMNS = ("panel", "curve", "x", "y", "error")


@dataclass(frozen=True, eq=False)
class Curve:
    """One curve of a panel, or one row of a matrix: arrays (S,), with errors where simulated."""

    panel: str
    label: str
    x: np.ndarray
    y: np.ndarray
    error: np.ndarray | None = None


def over_layers(panel: str, label: str, y: np.ndarray, error: np.ndarray | None = None) -> Curve:
    """A curve over the layers l = 0, 1, ..."""
    return Curve(panel, label, np.arange(len(y)), y, error)


def matrix_rows(panel: str, matrix: np.ndarray) -> list[Curve]:
    """A matrix (P, P) as one curve for each row α, over the columns β; both count from 1."""
    columns = np.arange(1, len(matrix) + 1)
    return [Curve(panel, f"alpha = {i}", columns, row) for i, row in enumerate(matrix, 1)]


def write_csv(curves: Iterable[Curve], path: Path) -> None:
    """Write curves with the columns panel, curve, x, y, error; every digit of a float is kept.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "figure.csv"
    >>> write_csv([Curve("a", "L = 2", np.array([0, 1]), np.array([0.1, 0.3]))], path)
    >>> print(path.read_text(), end="")
    panel,curve,x,y,error
    a,L = 2,0,0.1,
    a,L = 2,1,0.3,
    """
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for curve in curves:
            error: Any = [""] * len(curve.y) if curve.error is None else curve.error.tolist()
            points = zip(curve.x.tolist(), curve.y.tolist(), error, strict=True)
            writer.writerows([curve.panel, curve.label, *point] for point in points)
