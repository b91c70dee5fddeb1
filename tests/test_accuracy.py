"""The table of docs/accuracy.md: a sample of its points, and that a wrong number is outside."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = runpy.run_path(str(ROOT / "benchmarks" / "accuracy.py"))
POINTS = list(SCRIPT["points"]())


@pytest.mark.slow_but(0, 3, 8, 14, 18, 22, 25, 30)
@pytest.mark.parametrize("point", POINTS[::33], ids=lambda point: "-".join(point[:3]))
def test_float64_lies_in_the_widened_interval(point):
    assert point.error() <= 1


def test_a_wrong_number_lies_outside():
    flint = pytest.importorskip("flint")
    ball = flint.arb(2, 1e-15)
    for number, units in ((2 + 5e-16, 0.0), (2 + 4e-11, 2.0), (np.array([2, 2 + 1e-10]), 5.0)):
        assert SCRIPT["distance"]("kernels", number, ball, 2.0) == pytest.approx(units, abs=1e-3)


def test_the_page_has_all_points():
    page = (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\|.*\| (\d+) \| ([\d.e+-]+) \|[^|]*\|$", page, re.MULTILINE)
    assert sum(int(count) for count, _ in rows) == len(POINTS) == 1000
    assert max(float(largest) for _, largest in rows) <= 1
    assert f"{len(POINTS)} points, {len(POINTS)} inside" in page
