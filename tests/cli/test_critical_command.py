"""The command `critical`: its numbers, the best skip scale, bad input."""

import pytest

from fieldtheory.criticality import (
    critical_point,
    optimal_aspect_ratio,
    optimal_skip_scale,
    vertex_slope,
)
from tests.cli.test_app import output, rows
from tests.rounding import same


def test_a_row_for_every_skip_scale():
    table = rows("critical", "-a", "relu", "--skip-scale", "0,0.5", "--outputs", 3)
    for row, gamma in zip(table, (0.0, 0.5), strict=True):
        assert (row["gamma"], row["class"], row["K*"]) == (gamma, "scale-invariant", "any")
        assert row["weight_variance"] == same(critical_point("relu", gamma).weight_variance)
        assert row["bias_variance"] == 0.0
        assert row["nu"] == same(vertex_slope("relu", gamma))
        assert row["nu as printed"] == same(vertex_slope("relu", gamma, closure=True))
        assert row["best L/N"] == same(optimal_aspect_ratio("relu", gamma, outputs=3))


def test_best_skip_scale_of_a_depth_and_width():
    (row,) = rows("critical", "-a", "tanh", "--depth", 200, "--width", 100)
    assert row["gamma"] == optimal_skip_scale("tanh", 2.0)
    assert row["best L/N"] == pytest.approx(2.0, rel=1e-9)
    assert row["K*"] == 0.0


def test_table_and_defaults():
    shown = output("critical", "-a", "gelu")
    assert "half-stable" in shown and "3.56155" in shown and "1.98306" in shown
    assert [row["gamma"] for row in rows("critical")] == [0.0]
