"""The command `optimum`: its numbers for kernels, data sets and every method."""

import json

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory import data as images
from fieldtheory.scaling import few_pairs
from tests.cli.test_app import MATRIX, PAIR, call, rows
from tests.rounding import assert_same
from tests.tables import slow


def test_pairs():
    table = rows("optimum", "-L", 20, "--K0", MATRIX, "--weight-variance", 1.5)
    rho = ft.optimal_scaling(ft.ResidualNetwork(depth=20, weight_variance=1.5), PAIR)
    assert [(r["alpha"], r["beta"]) for r in table] == [(0, 0), (0, 1), (1, 1)]
    assert_same([r["rho"] for r in table], rho[np.triu_indices(2)])
    assert [r["K0"] for r in table] == [0.05, 0.03, 0.05]


@pytest.mark.parametrize(
    ("typed", "K0", "arguments"),
    [
        slow("--K0 0.1", 0.1, {}),
        ("-m saturation --dynamic-range 1.2", 0.05, {"method": "saturation", "dynamic_range": 1.2}),
        slow(
            "-m large_depth --dynamic-range 1.2",
            0.05,
            {"method": "large_depth", "dynamic_range": 1.2},
        ),
        slow("-m saturation --slope 1.0", 0.05, {"method": "saturation", "slope": 1.0}),
    ],
)
def test_one_input(typed, K0, arguments):
    (row,) = rows("optimum", "-L", 20, *typed.split())
    rho = ft.optimal_scaling(ft.ResidualNetwork(depth=20), K0, **arguments)
    assert row == {"depth": 20, "K0": K0, "rho": rho}


@pytest.mark.parametrize(("order", "typed", "K0"), [slow(1, MATRIX, PAIR), (2, 0.05, [[0.05]])])
def test_deep_limit(order, typed, K0):
    table = rows("optimum", "-L", 20, "-k", typed, "-m", "deep_limit", "--order", order)
    rho = ft.optimal_scaling(ft.ResidualNetwork(depth=20), K0, "deep_limit", order=order)
    assert_same([r["rho"] for r in table], rho[np.triu_indices(len(K0))])


@pytest.mark.parametrize("data", ["digits", slow("mnist")])
def test_one_number_for_a_data_set(data):
    own, between = rows("optimum", "-L", 10, "--data", data, "--classes", "1,7", "--count", 6)
    load = images.load_digits if data == "digits" else images.load_mnist
    samples = load(classes=(1, 7), count=6).samples
    net = ft.ResidualNetwork(depth=10)
    rho = ft.optimal_scaling(net, images.scaled_kernel(samples, 0.05))
    upper = rho[np.triu_indices(6, 1)]
    assert own["entries"] == "variances" and between["entries"] == "covariances"
    assert own["mean rho"] == pytest.approx(ft.optimal_scaling(net, 0.05), rel=1e-10)
    expected = [upper.mean(), upper.min(), upper.max()]
    found = [between[name] for name in ("mean rho", "min", "max")]
    assert found == pytest.approx(expected, rel=1e-9)


def test_equal_samples_are_left_out_and_few_pairs_that_carry_the_mean_are_named(tmp_path):
    X = np.random.default_rng(1).normal(size=(5, 7))
    X[4], X[3] = X[1], X[0] + 1e-3
    np.savez(tmp_path / "samples.npz", X=X)
    result = call("optimum", "-L", 10, "--data", tmp_path / "samples.npz", "--format", "json")
    with pytest.warns(UserWarning):
        rho = ft.optimal_scaling(ft.ResidualNetwork(depth=10), images.scaled_kernel(X, 0.05))
    upper = rho[np.triu_indices(5, 1)]
    own, between = json.loads(result.stdout)
    assert (own["number"], between["number"]) == (5, 9)
    assert between["mean rho"] == pytest.approx(np.nanmean(upper), rel=1e-9)
    assert between["median"] == pytest.approx(np.nanmedian(upper), rel=1e-9)
    warning, note = result.stderr.splitlines()
    assert "1 of 10 pairs of inputs without ρ*, the first of inputs 1 and 4" in warning
    assert note == f"note: {few_pairs(rho)}" and "median" in note
    table = call("optimum", "-L", 10, "--K0", "0.05,0.05;0.05,0.05", "--format", "json").stdout
    assert [row["rho"] for row in json.loads(table)][1] is None


@pytest.mark.filterwarnings("default::UserWarning")
def test_samples_that_are_too_large_are_told_to_be(tmp_path):
    path = tmp_path / "samples.csv"
    np.savetxt(path, 9 * np.random.default_rng(0).standard_normal((4, 7)), delimiter=",")
    result = call("optimum", "-L", 5, "--data", path, "--scale", "none")
    assert "4 samples as they are" in " ".join(result.stdout.split())
    assert "warning: K0 has 16 of 16 entries with ρ* = 0" in result.stderr
    assert "below K*_out = 0.2511" in result.stderr
