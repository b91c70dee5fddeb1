"""The command tangent: its numbers are those of tangent_kernels, in every format."""

import pytest

import fieldtheory as ft
from tests.cli.test_app import MATRIX, PAIR, column, output, rows
from tests.rounding import assert_same, same


def test_one_input():
    table = rows("tangent", "-L", 3, "-a", "relu", "--branch-scale", "0.5,0.3,0.1", "-k", 0.4)
    net = ft.ResidualNetwork(depth=3, activation="relu", branch_scale=(0.5, 0.3, 0.1))
    assert list(table[0]) == ["layer", "Theta"]
    assert_same(column(table, "Theta"), ft.solve(net, 0.4).tangent_kernels)


def test_two_inputs_and_a_schedule():
    table = rows("tangent", "-L", 2, "--schedule", "uniform", "--K0", MATRIX)
    net = ft.ResidualNetwork(depth=2, branch_scale="uniform")
    theta = ft.solve(net, PAIR).tangent_kernels
    assert len(table) == 4 * 3
    for row in table:
        assert row["Theta"] == same(theta[row["layer"], row["alpha"], row["beta"]])


def test_what_is_trained():
    arguments = ("-L", 2, "-k", 0.4, "--rate", "weight=1,0.5", "--rate", "readin_bias=0")
    net = ft.ResidualNetwork(depth=2, input_dim=30, width=200)
    for kind in ("NTK", "standard"):
        options = ("--parametrization", kind, "--input-dim", 30, "--width", 200)
        table = rows("tangent", *arguments, *options)
        given = {"weight": [1, 0.5], "readin_bias": 0}
        expected = ft.tangent_kernels(net, 0.4, given, kind)
        assert_same(column(table, "Theta"), expected.tangent_kernels)
    assert "standard parametrization" in " ".join(output("tangent", *arguments, *options).split())


def test_the_readin_of_its_own():
    given = ("--readin-weight-variance", 2.0, "--readin-bias-variance", 0.1)
    table = rows("tangent", "-L", 1, "-k", 0.4, "--parametrization", "standard", *given)
    net = ft.ResidualNetwork(depth=1, readin_weight_variance=2.0, readin_bias_variance=0.1)
    expected = ft.tangent_kernels(net, 0.4, parametrization="standard").tangent_kernels
    assert_same(column(table, "Theta"), expected)
    assert table[0]["Theta"] == pytest.approx(100 * 0.3 / 2.0 + 1)


def test_beyond_float64():
    table = rows("tangent", "-L", 60, "-a", "relu", "--weight-variance", 1e12, "-k", 0.4)
    net = ft.ResidualNetwork(depth=60, activation="relu", weight_variance=1e12)
    expected = ft.solve(net, 0.4).log_tangent_kernels
    assert list(table[0]) == ["layer", "ln|Theta|"]
    assert_same(column(table, "ln|Theta|"), expected)


class TestData:
    def test_rescaled_without_biases_of_the_readin(self, samples):
        command = ("tangent", "-L", 2, *samples[1])
        first = rows(*command, "--parametrization", "standard", "--input-dim", 5)[0]
        assert first["Theta"] == pytest.approx(5 * 0.05 / 1.25 + 1)
        assert rows(*command)[0]["Theta"] == pytest.approx(0.05)
