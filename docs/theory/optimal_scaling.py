"""Write the tables of ``optimal_scaling.md`` between their markers.

python docs/theory/optimal_scaling.py
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import fieldtheory as ft

TARGET = Path(__file__).with_suffix(".md")
DEPTHS = (5, 10, 20, 50, 100, 200, 500, 1000)
NETWORK = ft.ResidualNetwork(depth=1, activation="erf", weight_variance=1.25, bias_variance=0.05)
VARIANCE, COVARIANCE = 0.05, 0.03
DEEP = {
    "c\\*/√L": {"method": "deep_limit"},
    "next order": {"method": "deep_limit", "order": 2},
}
SATURATION = {"(67)": {"method": "saturation"}, "(68)": {"method": "large_depth"}}


def variance_table(depths: Sequence[int] = DEPTHS) -> list[str]:
    """The rows of the table of one input, its head included."""
    return _table(depths, VARIANCE, DEEP | SATURATION)


def covariance_table(depths: Sequence[int] = DEPTHS) -> list[str]:
    """The rows of the table of the covariance of two inputs, its head included."""
    kernel = [[VARIANCE, COVARIANCE], [COVARIANCE, VARIANCE]]
    return _table(depths, kernel, DEEP)


def _table(depths: Sequence[int], kernel: object, methods: dict[str, dict]) -> list[str]:
    networks = [NETWORK.replace(depth=depth) for depth in depths]
    exact, *others = (
        _entry(ft.optimal_scaling(networks, kernel, **options))
        for options in ({}, *methods.values())
    )
    head = ["L", "exact ρ\\*", *(cell for name in methods for cell in (name, "error"))]
    rows = [head, ["---:"] * len(head)]
    for i, depth in enumerate(depths):
        row = [str(depth), f"{exact[i]:.5f}"]
        for values in others:
            row += [f"{values[i]:.5f}", f"{100 * (values[i] / exact[i] - 1):+.2g} %"]
        rows.append(row)
    return [f"| {' | '.join(row)} |" for row in rows]


def _entry(values: np.ndarray) -> np.ndarray:
    return values if values.ndim == 1 else values[:, 0, 1]


TABLES = {"variance": variance_table, "covariance": covariance_table}


def table_rows(text: str, name: str) -> list[str]:
    """The rows of a table of the page."""
    return _marked(name).search(text)[2].splitlines()


def _marked(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- table: {name} -->\n)((?:\|.*\n)*)(<!-- end -->)")


if __name__ == "__main__":
    page = TARGET.read_text(encoding="utf-8")
    for name, table in TABLES.items():
        rows = "".join(f"{row}\n" for row in table())
        page = _marked(name).sub(lambda found, rows=rows: found[1] + rows + found[3], page)
    TARGET.write_text(page, encoding="utf-8")
    print(f"wrote the tables of {TARGET}")
