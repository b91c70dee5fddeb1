"""The command that draws finite networks: simulate."""

import csv
import io
import json

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.montecarlo.comparison.extrapolation import compare
from fieldtheory.montecarlo.perturbation import simulate_response
from fieldtheory.montecarlo.simulation import simulate
from tests.cli.test_app import MATRIX, PAIR, PARAMETERS, call, column, output, typed
from tests.montecarlo.statistics_of_draws import mistaken
from tests.rounding import assert_same, same

SMALL = ("simulate", "-L", 2, "--width", 30, "-n", 40)
NET = ft.ResidualNetwork(depth=2, width=30)


class TestSimulate:
    def test_one_input(self):
        table = json.loads(output(*SMALL, "--seed", 3, "-f", "json"))
        e = simulate(NET, 0.05, samples=40, seed=3)
        assert column(table, "layer").tolist() == [0, 1, 2, 3]
        for name, value in (("C", "mean"), ("K", "kernel_mean")):
            assert_same(column(table, name), getattr(e, value))
            assert_same(column(table, f"{name}_error"), getattr(e, f"{value}_error"))
        assert_same(column(table, "var_C"), np.diag(e.covariance))
        assert_same(column(table, "var_K"), np.diag(e.kernel_covariance))
        assert_same(column(table, "V")[:3], e.four_point)
        assert_same(column(table, "V_error")[:3], e.four_point_error)
        assert table[3]["V"] is None

    def test_two_inputs(self):
        text = output(*SMALL, "--K0", MATRIX, "-m", "weights", "-f", "csv")
        table = list(csv.DictReader(io.StringIO(text)))
        e = simulate(NET, PAIR, samples=40, method="weights")
        assert len(table) == 4 * 3
        for row in table:
            l, a, b = int(row["layer"]), int(row["alpha"]), int(row["beta"])
            assert float(row["C"]) == same(e.mean[l, a, b])
            assert float(row["var_K_error"]) == same(e.kernel_covariance_error[l, l, a, b])
            assert (float(row["V"]) == same(e.four_point[l, a, b])) if l < 3 else row["V"] == ""

    def test_every_option_reaches_the_simulation(self):
        options = typed(PARAMETERS | {"branch_scale": "0.4,0.3"})
        table = json.loads(output(*SMALL, "-k", 0.3, "-m", "weights", *options, "-f", "json"))
        net = NET.replace(**PARAMETERS | {"branch_scale": (0.4, 0.3)})
        e = simulate(net, 0.3, samples=40, method="weights")
        assert_same(column(table, "C"), e.mean)

    @pytest.mark.filterwarnings("default::fieldtheory.ValidityWarning")
    def test_width_one_has_no_vertex(self):
        result = call("simulate", "-L", 1, "--width", 1, "-n", 20, "-f", "json")
        assert result.exit_code == 0
        assert result.stderr.startswith("warning: width 1")
        assert "V" not in json.loads(result.stdout)[0]


@pytest.fixture(scope="module")
def expected():
    nets = [NET.replace(width=50), NET.replace(width=100)]
    pair = [
        simulate(net, 0.05, samples=200, seed=i, variance_reduction="control_variate")
        for i, net in enumerate(nets)
    ]
    answers = [simulate_response(n, 0.05, samples=200, seed=i) for i, n in enumerate(nets)]
    return compare(ft.solve(nets[0], 0.05), pair, responses=answers)


class TestCompare:
    COMMAND = ("simulate", "-L", 2, "--width", 50, "-n", 200, "--compare")

    def test_rows_are_those_of_compare(self, expected):
        table = json.loads(output(*self.COMMAND, "-f", "json"))
        assert table == [same(row) for row in expected.rows]
        assert {row["quantity"] for row in table} >= {"G11", "response", "output_response"}

    def test_text_is_that_of_compare(self, expected):
        text = output(*self.COMMAND)
        assert str(expected) in text
        assert "200 networks of each width, φ = erf" in text

    def test_exit_code_says_that_they_disagree(self, monkeypatch):
        from fieldtheory.numerics import solution

        def wrong(net, K0):
            return mistaken(net.replace(weight_variance=1.6), net, K0)

        monkeypatch.setattr(solution, "solve", wrong)
        result = call(*self.COMMAND)
        assert result.exit_code == 1
        assert "Is the theory right? No: extrapolated from the widths 50 and 100" in result.stdout

    def test_four_neurons_are_not_described_by_a_right_theory(self):
        result = call("simulate", "-L", 5, "--width", 4, "-n", 2000, "--compare")
        assert result.exit_code == 1
        assert "Is the theory right? Yes: extrapolated from the widths 4 and 8" in result.stdout
        assert "Does it describe width 4? No: the simulation deviates" in result.stdout
