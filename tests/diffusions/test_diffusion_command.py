"""The command diffusion: its numbers are those of solve, simulate and compare for such networks."""

import json
from typing import ClassVar

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.diffusions.diffusion_limit.diffusion_conditions import diffusion_conditions
from fieldtheory.networks.activations import as_activation
from tests.cli.test_app import call, column, output, rows, typed
from tests.rounding import assert_same, same
from tests.tables import slow

LIMIT = ft.DiffusionNetwork(depth=None)
SMALL = ("diffusion", "-L", 10, "--width", 20, "-n", 40)
NET = ft.DiffusionNetwork(depth=10, width=20)


class TestSolved:
    def test_pairs_of_inputs_at_a_few_times(self):
        table = rows("diffusion", "-z", "0,1,-1.5")
        s = ft.solve(LIMIT, [0, 1, -1.5])
        assert len(table) == 6 * 6
        for row in table:
            n, i, j = round(20 * row["t"]), row["alpha"], row["beta"]
            assert row["covariance"] == same(s.covariance[n, i, j])
            assert row["gram"] == same(s.gram[n, i, j])
            assert row["var_gram"] == same(s.gram_variance[n, i, j])
            assert row["mean"] == (same(s.mean[n, i]) if i == j else None)
            assert row["kurtosis"] == (same(s.kurtosis[n, i]) if i == j else None)
            assert "explosion_time" not in row
        last = [row["correlation"] for row in table[-6:]]
        expected = [1, 0.5**0.5, 1 / 3.25**0.5, 1, -0.5 / 6.5**0.5, 1]
        np.testing.assert_allclose(last, expected, rtol=1e-12)
        assert table[0]["correlation"] is None

    def test_one_input_explosion_and_the_coefficient_of_depth(self):
        options = ("-T", 0.2, "-z", -1.5, "-a", "swish", "--times", 3)
        table = json.loads(output("diffusion", *options, "-f", "json"))
        s = ft.solve(LIMIT.replace(activation="swish", horizon=0.2), [-1.5])
        assert column(table, "t").tolist() == [0, 0.1, 0.2]
        assert {"alpha", "correlation", "kurtosis"}.isdisjoint(table[0])
        assert_same(column(table, "mean"), s.mean[::10, 0])
        assert_same(column(table, "explosion_time"), s.explosion_time[0])

    def test_every_option_reaches_the_network(self):
        options = {
            "depth": 4,
            "width": 30,
            "horizon": 0.5,
            "activation": "swish",
            "input_activation": "tanh",
            "weight_variance": 1.5,
            "bias_variance": 0.2,
        }
        table = rows("diffusion", "-z", 0.7, *typed(options), "--times", 99)
        s = ft.solve(ft.DiffusionNetwork(**options), [0.7])
        assert_same(column(table, "t"), s.times)
        assert_same(column(table, "mean"), s.mean[:, 0])
        assert_same(column(table, "gram"), s.gram[:, 0, 0])


class TestLayersAndLaws:
    LAYERS = np.array([[0.5, 1.0], [-1.0, 2.0]])
    LAW: ClassVar = {"row_covariance": [[1.0, 0.5], [0.5, 1.0]], "column_covariance": np.eye(2) / 2}

    @pytest.fixture
    def law(self, tmp_path):
        np.savez(tmp_path / "law.npz", **self.LAW)
        return tmp_path / "law.npz"

    def test_layers_that_are_typed(self):
        table = rows("diffusion", "-z", "0.5,1;-1,2", "-L", 3, "--times", 99)
        s = ft.solve(ft.DiffusionNetwork(depth=3, width=2), self.LAYERS)
        assert table[-1]["gram"] == same(s.gram[-1, 1, 1])

    @pytest.mark.parametrize(("scale", "size"), [slow([], 1.0), (["--scale", 0.3], 0.3)])
    def test_samples_of_a_file(self, tmp_path, scale, size):
        path = tmp_path / "samples.csv"
        np.savetxt(path, self.LAYERS, delimiter=",")
        table = rows("diffusion", "--data", path, *scale, "--times", 2)
        squares = (self.LAYERS**2).mean(axis=1)
        s = ft.solve(LIMIT.replace(width=2), self.LAYERS * np.sqrt(size / squares)[:, None])
        np.testing.assert_allclose(table[-1]["gram"], s.gram[-1, 1, 1], rtol=1e-13)
        shown = " ".join(output("diffusion", "--data", path, "--scale", "none").split())
        assert "2 samples as they are" in shown

    def test_a_law_of_a_file_is_solved_drawn_and_compared(self, law):
        net = LIMIT.replace(width=2, parameter_law=ft.ParameterLaw(**self.LAW))
        table = rows("diffusion", "--law", law, "-z", 1)
        assert table[-1]["covariance"] == same(ft.solve(net, [1.0]).covariance[-1, 0, 0])
        assert table[-1]["mean"] == 1.0 and "kurtosis" not in table[-1]
        drawn = rows("diffusion", "--law", law, "-z", 1, "-L", 4, "-n", 20, "--times", 99)
        e = ft.simulate(net.replace(depth=4), [1.0], samples=20, method="weights")
        assert_same(column(drawn, "gram"), e.gram[:, 0, 0])
        compared = call(
            "diffusion", "--law", law, "-n", 40, "--steps", 20, "-m", "sde", "--compare"
        )
        assert "covariance" in compared.stdout and "KS" not in compared.stdout
        words = " ".join(compared.stdout.split())
        assert "matrix" not in words and "another law" in words


class TestDerived:
    @pytest.mark.parametrize(
        "quantity", [slow("network"), slow("diffusion"), slow("next_order"), "wide_limit"]
    )
    def test_latex(self, quantity):
        expected = ft.derive(LIMIT.replace(activation="swish")).latex(quantity)
        assert output("diffusion", "-a", "swish", "--latex", quantity) == f"{expected}\n"

    @pytest.mark.parametrize("phi", ["tanh", slow("cos")])
    def test_conditions_also_of_what_has_no_limit(self, phi):
        found = diffusion_conditions(*map(as_activation, (phi, "linear")))
        assert output("diffusion", "-a", phi, "--conditions") == f"{found}\n"
        table = rows("diffusion", "-a", phi, "--conditions")
        assert [str(row["holds"]) for row in table] == [str(c.holds) for c in found]


class TestSimulated:
    def test_estimates_with_errors(self):
        table = rows(*SMALL, "-z", "0,1", "--seed", 3, "--times", 2)
        e = ft.simulate(NET, [0, 1], samples=40, seed=3)
        assert [row["t"] for row in table] == [0, 0, 0, 1, 1, 1]
        row = table[4]
        assert (row["alpha"], row["beta"]) == (0, 1)
        for name, field in (("covariance", "covariance"), ("var_gram", "gram_variance")):
            assert row[name] == same(getattr(e, field)[-1, 0, 1])
            assert row[f"{name}_error"] == same(getattr(e, f"{field}_error")[-1, 0, 1])
        assert table[5]["mean_error"] == same(e.mean_error[-1, 1])
        assert table[5]["kurtosis"] == same(e.kurtosis[-1, 1])

    @pytest.mark.slow_but(0)
    @pytest.mark.parametrize("method", ["weights", "sde", "gram"])
    def test_methods(self, method):
        options = ("-z", 1, "-m", method, "--times", 99, "-f", "json")
        table = json.loads(output(*SMALL, *options))
        e = ft.simulate(NET, [1.0], samples=40, method=method)
        assert_same(column(table, "gram"), e.gram[:, 0, 0])

    def test_infinite_depth_is_drawn_in_steps_and_compared(self):
        options = ("--width", 20, "-n", 40, "-m", "gram", "--steps", 40, "--compare")
        result = call("diffusion", *options, "-f", "json")
        table = json.loads(result.stdout)
        e = ft.simulate(NET.replace(depth=40), [0, 1], samples=40, method="gram")
        s = ft.solve(NET.replace(depth=None), [0, 1])
        expected, distances = ft.compare(s, e), e.distances(s)
        summary = expected.summary_at_width
        assert [row["quantity"] for row in table[:5]] == [row["quantity"] for row in summary]
        assert_same([row["z"] for row in table[:5]], [row["z"] for row in summary])
        assert_same([row["simulation"] for row in table[5:]], distances.statistic)
        assert_same([row["p-value"] for row in table[5:]], distances.p_value)
        # 40 networks cannot tell whether deviations are below 5 %.
        assert result.exit_code == 1
        assert expected.statement in call("diffusion", *options).stdout

    def test_the_exit_code_is_zero_where_the_theory_describes_the_networks(self):
        options = ("-L", 10, "--width", 500, "-n", 300, "-z", 1, "-a", "linear")
        result = call("diffusion", *options, "--compare")
        assert "The theory neglects nothing." in result.stdout
        assert result.exit_code == 0
