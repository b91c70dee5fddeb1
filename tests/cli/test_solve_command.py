"""The command solve: its numbers are those of the solution, in every format."""

import re

import numpy as np
import pytest

import fieldtheory as ft
from tests.cli.test_app import MATRIX, PAIR, PARAMETERS, call, column, output, refusal, rows, typed
from tests.rounding import assert_same, same


class TestSolve:
    def test_one_input(self):
        table = rows("solve", "-L", 3, "--branch-scale", "0.5,0.3,0.1", "--skip-scale", 0.9)
        net = ft.ResidualNetwork(depth=3, branch_scale=(0.5, 0.3, 0.1), skip_scale=0.9)
        s = ft.solve(net, 0.05)
        assert column(table, "layer").tolist() == [0, 1, 2, 3, 4]
        assert_same(column(table, "C"), s.residual_kernels)
        assert_same(column(table, "K"), s.kernels)
        assert_same(column(table, "eta")[:-1], s.residual_response)
        assert_same(column(table, "chi")[:-1], s.response)
        assert table[-1]["chi"] == table[-1]["eta"] == same(s.output_response)

    def test_digits(self, tmp_path):
        """Decimals are those that are typed."""
        options = ("--branch-scale", "0.3,0.1", "--digits", 30, "--fluctuations")
        path = tmp_path / "s.npz"
        table = rows("solve", "-L", 2, "-a", "relu", *options, "--save", path)
        exact = {"weight_variance": "1.25", "bias_variance": "1/20", "branch_scale": ("0.3", "0.1")}
        net = ft.ResidualNetwork(depth=2, activation="relu", **exact)
        s = ft.solve(net, "0.05", digits=30)
        assert table == s.rows(fluctuations=True) == ft.load(path).rows(fluctuations=True)

    def test_two_inputs(self):
        table = rows("solve", "-L", 2, "--K0", MATRIX)
        s = ft.solve(ft.ResidualNetwork(depth=2), PAIR)
        assert len(table) == 4 * 3
        for row in table:
            l, a, b = row["layer"], row["alpha"], row["beta"]
            assert row["K"] == same(s.kernels[l, a, b])
            assert row["C"] == same(s.residual_kernels[l, a, b])
            assert row["chi"] == same(s.response[l, a, b] if l < 3 else s.output_response[a, b])

    def test_fluctuations_of_two_inputs(self):
        table = rows("solve", "-L", 1, "--K0", MATRIX, "--fluctuations")
        s = ft.solve(ft.ResidualNetwork(depth=1), PAIR)
        V = s.four_point
        for row in table:
            l, a, b = row["layer"], row["alpha"], row["beta"]
            pair = a + b
            assert row["var_C"] == same(s.G11[l, l, pair, pair])
            assert row["mean_shift"] == same(s.mean_shift[l, a, b])
            assert row["V"] == (same(V[l, pair, pair]) if l < 2 else None)

    def test_every_option_reaches_the_network(self):
        table = rows("solve", "-L", 2, "-k", 0.3, "--fluctuations", *typed(PARAMETERS))
        s = ft.solve(ft.ResidualNetwork(depth=2, **PARAMETERS), 0.3)
        assert_same(column(table, "K"), s.kernels)
        assert_same(column(table, "var_C"), np.diag(s.G11))
        assert_same(column(table, "var_K")[:-1], s.kernel_variance)

    def test_convention_of_f25(self):
        table = rows("solve", "-L", 2, "--width", 300, "--input-dim", 75, "--convention", "F25")
        s = ft.solve(ft.ResidualNetwork(depth=2, width=300, input_dim=75), 0.05, convention="F25")
        assert_same(column(table, "eta")[:-1], s.residual_response)
        assert_same(column(table, "chi")[:-1], s.response)
        assert table[0]["eta"] == 4 and table[-1]["chi"] == same(s.output_response)
        assert "in the convention of F25" in output("solve", "-L", 1, "--convention", "F25")

    def test_table_shows_the_numbers(self):
        text = output("solve", "-L", 2)
        s = ft.solve(ft.ResidualNetwork(depth=2), 0.05)
        for value in (*s.kernels, *s.response, s.output_response):
            assert format(value, ".6g") in text
        assert "layer 3 is the output" in text

    def test_warnings_are_one_line_each(self):
        result = call("solve", "-L", 5, "-a", "relu", "--fluctuations", "--width", 1)
        assert result.exit_code == 0
        spread, shift = result.stderr.splitlines()
        assert spread.startswith("warning: the standard deviation of K^(5) is ")
        assert shift.startswith("warning: the shift of the mean of K^(6) is ")


class TestData:
    def test_samples_as_they_are(self, samples):
        X, data = samples
        net = ft.ResidualNetwork(depth=2)
        found = rows("solve", "-L", 2, *data, "--scale", "none")
        expected = ft.solve(net, ft.input_kernel(X, net)).rows(fluctuations=False)
        assert [row["K"] for row in found] == pytest.approx([row["K"] for row in expected])

    def test_samples_are_rescaled(self, samples):
        _, data = samples
        first = rows("solve", "-L", 2, *data)[0]
        assert first["K"] == pytest.approx(0.05)
        text = output("solve", "-L", 2, *data)
        assert "3 samples rescaled to K0 = 0.05" in " ".join(text.split())


def test_schedules_by_name():
    for options in (("--schedule", "uniform"), ("--branch-scale", "uniform")):
        table = rows("solve", "-L", 4, "-a", "relu", *options)
        net = ft.ResidualNetwork(depth=4, activation="relu", branch_scale="uniform")
        assert_same(column(table, "K"), ft.solve(net, 0.05).kernels)
    text = " ".join(output("solve", "-L", 4, "--schedule", "decreasing").split())
    assert "ρ_l = 1/(√l ln(l+1)), L = 4: Σρ_l² = 2.7656, bounded as L grows" in text
    assert "Σρ_l² = 4, not bounded" in output("solve", "-L", 4, "--schedule", "none")


@pytest.mark.slow
def test_logarithms_where_kernels_overflow():
    options = ("-L", 300, "-a", "relu", "--weight-variance", 20, "--K0", MATRIX)
    table = rows("solve", *options, "--decorrelation")
    s = ft.solve(ft.ResidualNetwork(depth=300, activation="relu", weight_variance=20.0), PAIR)
    assert list(table[0]) == ["layer", "alpha", "beta", "ln|K|", "ln|chi|", "decorrelation"]
    between = [row for row in table if (row["alpha"], row["beta"]) == (0, 1)]
    assert_same(column(between, "ln|K|"), s.log_kernels[:, 0, 1])
    assert_same(column(between, "ln|chi|")[:-1], s.log_response[:, 0, 1])
    assert_same(column(between, "decorrelation"), s.decorrelation[:, 0, 1])
    assert "exceeds the range of float64" in refusal("solve", *options, "--fluctuations")


def test_decorrelation():
    table = rows("solve", "-L", 2, "--K0", MATRIX, "--decorrelation")
    expected = ft.solve(ft.ResidualNetwork(depth=2), PAIR).decorrelation
    for row in table:
        assert row["decorrelation"] == same(expected[row["layer"], row["alpha"], row["beta"]])
    assert "K" in table[0]


def test_rounding_of_terms_that_cancel_is_shown_as_zero():
    command = ("solve", "-L", 3, "-a", "relu", "--order", 2)
    noise = [row["V_2"] for row in rows(*command) if row["V_2"]]
    assert any(abs(value) < 1e-18 for value in noise), "nothing to show here"
    text = output(*command)
    assert not re.search(r"e-(1[89]|[2-9]\d)\b", text)
