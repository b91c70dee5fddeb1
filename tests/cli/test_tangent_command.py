"""The command tangent: its numbers are those of tangent_kernels, in every format."""

import numpy as np
import pytest

import fieldtheory as ft
from tests.cli.test_app import MATRIX, PAIR, call, column, output, refusal, rows


def test_one_input():
    table = rows("tangent", "-L", 3, "-a", "relu", "--branch-scale", "0.5,0.3,0.1", "-k", 0.4)
    net = ft.ResidualNetwork(depth=3, activation="relu", branch_scale=(0.5, 0.3, 0.1))
    assert list(table[0]) == ["layer", "Theta"]
    np.testing.assert_array_equal(column(table, "Theta"), ft.solve(net, 0.4).tangent_kernels)


def test_two_inputs_and_a_schedule():
    table = rows("tangent", "-L", 2, "--schedule", "uniform", "--K0", MATRIX)
    net = ft.ResidualNetwork(depth=2, branch_scale="uniform")
    theta = ft.solve(net, PAIR).tangent_kernels
    assert len(table) == 4 * 3
    for row in table:
        assert row["Theta"] == theta[row["layer"], row["alpha"], row["beta"]]


def test_what_is_trained():
    arguments = ("-L", 2, "-k", 0.4, "--weight-rates", "0,1,1,2", "--bias-rates", 0)
    net = ft.ResidualNetwork(depth=2, input_dim=30, width=200)
    for kind in ("NTK", "standard"):
        options = ("--parametrization", kind, "--input-dim", 30, "--width", 200)
        table = rows("tangent", *arguments, *options)
        expected = ft.tangent_kernels(net, 0.4, kind, weight_rates=[0, 1, 1, 2], bias_rates=0)
        np.testing.assert_array_equal(column(table, "Theta"), expected.tangent_kernels)
    assert "standard parametrization" in " ".join(output("tangent", *arguments, *options).split())


def test_the_readin_of_its_own():
    given = ("--readin-weight-variance", 2.0, "--readin-bias-variance", 0.1)
    table = rows("tangent", "-L", 1, "-k", 0.4, "--parametrization", "standard", *given)
    net = ft.ResidualNetwork(depth=1, readin_weight_variance=2.0, readin_bias_variance=0.1)
    expected = ft.tangent_kernels(net, 0.4, "standard").tangent_kernels
    np.testing.assert_array_equal(column(table, "Theta"), expected)
    assert table[0]["Theta"] == pytest.approx(100 * 0.3 / 2.0 + 1)


def test_beyond_float64():
    table = rows("tangent", "-L", 60, "-a", "relu", "--weight-variance", 1e12, "-k", 0.4)
    net = ft.ResidualNetwork(depth=60, activation="relu", weight_variance=1e12)
    expected = ft.solve(net, 0.4).log_tangent_kernels
    assert list(table[0]) == ["layer", "ln|Theta|"]
    np.testing.assert_array_equal(column(table, "ln|Theta|"), expected)
    refused = call("tangent", "-L", 7, "-a", "h**3", "--weight-variance", 9, "-k", 0.5)
    assert refused.exit_code == 2 and "leaves the range of float64" in refused.stderr


class TestData:
    @pytest.fixture
    def samples(self, tmp_path):
        X = np.random.default_rng(0).normal(size=(3, 5))
        np.savetxt(tmp_path / "samples.csv", X, delimiter=",")
        return X, ("tangent", "-L", 2, "--data", tmp_path / "samples.csv")

    def test_as_they_are(self, samples):
        X, command = samples
        net = ft.ResidualNetwork(depth=2, input_dim=5)
        for kind in ("ntk", "standard"):
            given = ("--scale", "none", "--parametrization", kind, "--input-dim", 5)
            expected = ft.tangent_kernels(net, ft.input_kernel(X, net), kind).rows()
            found = column(rows(*command, *given), "Theta")
            np.testing.assert_allclose(found, [row["Theta"] for row in expected], rtol=1e-12)

    def test_rescaled_without_biases_of_the_readin(self, samples):
        _, command = samples
        first = rows(*command, "--parametrization", "standard", "--input-dim", 5)[0]
        assert first["Theta"] == pytest.approx(5 * 0.05 / 1.25 + 1)
        assert rows(*command)[0]["Theta"] == pytest.approx(0.05)

    def test_the_number_of_columns_is_asked_for(self, samples):
        _, command = samples
        line = refusal(*command, "--parametrization", "standard")
        assert "input_dim must be given with data in the standard parametrization" in line


@pytest.mark.parametrize("suffix", [".npz", ".nc"])
def test_a_file_holds_the_result(suffix, tmp_path):
    path = tmp_path / f"theta{suffix}"
    options = ("--parametrization", "standard", "--bias-rates", 0.5, "-k", 0.3)
    output("tangent", "-L", 2, *options, "--save", path)
    loaded = ft.TangentKernels.load(path)
    net = ft.ResidualNetwork(depth=2)
    expected = ft.tangent_kernels(net, 0.3, "standard", bias_rates=0.5)
    assert (loaded.network, loaded.parametrization) == (net, "standard")
    np.testing.assert_array_equal(loaded.bias_rates, expected.bias_rates)
    np.testing.assert_array_equal(loaded.tangent_kernels, expected.tangent_kernels)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["-a", "sign"], "activation must have no jumps"),
        (["-L", 2, "--weight-rates", "1,2"], "weight_rates must be a number or depth + 2 = 4"),
        (["--weight-rates", "fast"], "weight_rates must be a number or numbers separated by"),
        (["--bias-rates", "-1"], "bias_rates must be >= 0"),
        (["--parametrization", "mup"], "must be one of 'ntk', 'standard', got 'mup'"),
        (["-k", 0.01, "--parametrization", "standard"], "K0 must have variances of at least"),
        (["--save", "theta.txt"], "save must be a file that ends in .npz or .nc"),
        (["--scale", "none"], "scale must be left out without data"),
        (["--data", "none.csv"], "there is no such file"),
    ],
    ids=str,
)
def test_bad_input(arguments, message):
    assert message in refusal("tangent", *arguments)
