"""The command sweep: its rows are those of the grid, and interrupted work goes on."""

import json
import os

import numpy as np
import pytest
import xarray as xr

import fieldtheory as ft
from fieldtheory.sweeps import parameter_grid
from tests.cli.test_app import MATRIX, PAIR, call, output, refusal, rows

NET = ft.ResidualNetwork(depth=2)


def test_rows_are_those_of_the_grid():
    table = rows("sweep", "--over", "depth=2,5", "--over", "branch-scale=0.1:0.5:3", "-k", 0.1)
    over = {"depth": [2, 5], "branch_scale": [0.1, 0.3, 0.5]}
    grid = ft.sweep(NET, 0.1, over=over)
    assert len(table) == 6 and list(table[0]) == ["depth", "branch_scale", "output_response"]
    for row in table:
        chosen = grid.sel(depth=row["depth"], branch_scale=row["branch_scale"])
        assert row["output_response"] == float(chosen.output_response)


def test_layers_and_pairs_have_rows():
    arguments = ("--over", "skip_scale=0.5,1", "--of", "kernels,output_kernel", "--K0", MATRIX)
    table = rows("sweep", "-L", 2, *arguments)
    assert len(table) == 2 * 4 * 3
    assert {(row["alpha"], row["beta"]) for row in table} == {(0, 0), (0, 1), (1, 1)}
    for row in table:
        s = ft.solve(NET.replace(skip_scale=row["skip_scale"]), PAIR)
        pair = row["alpha"], row["beta"]
        assert row["kernels"] == pytest.approx(s.kernels[row["layer"]][pair], rel=1e-13)
        assert row["output_kernel"] == pytest.approx(s.output_kernel[pair], rel=1e-13)


def test_names_kernels_and_what_is_left_out():
    over = ("activation=erf,max(0,h)", "K0=0.1,0.2", "readout_weight_variance=none,2")
    axes = [part for axis in over for part in ("--over", axis)]
    table = json.loads(output("sweep", "-L", 1, *axes, "--of", "residual_response", "-f", "json"))
    assert len(table) == 8 * 2
    assert {row["activation"] for row in table} == {"erf", "max(0,h)"}
    assert {row["readout_weight_variance"] for row in table} == {"None", "2.0"}
    assert {row["K0"] for row in table} == {0.1, 0.2}
    assert {row["layer"] for row in table} == {0, 1}


def test_every_option_reaches_the_network():
    options = {
        "--activation": "relu",
        "--branch-scale": 0.4,
        "--skip-scale": 0.8,
        "--weight-variance": 1.5,
        "--bias-variance": 0.1,
        "--readout-weight-variance": 0.7,
        "--readout-bias-variance": 0.2,
        "--width": 300,
    }
    flat = [part for option in options.items() for part in option]
    (row,) = rows("sweep", "--over", "depth=3", "-k", 0.3, *flat)
    names = {name.removeprefix("--").replace("-", "_"): v for name, v in options.items()}
    expected = ft.solve(ft.ResidualNetwork(depth=3, **names), 0.3).output_response
    assert row["output_response"] == pytest.approx(float(expected), rel=1e-13)


def test_a_file_holds_the_grid(tmp_path):
    path, of = tmp_path / "grid.nc", "output_response,optimal_scaling"
    output("sweep", "--over", "depth=2,5", "--of", of, "--save", path)
    assert os.listdir(tmp_path) == ["grid.nc"]
    expected = ft.sweep(
        ft.ResidualNetwork(depth=50),
        0.05,
        over={"depth": [2, 5]},
        of=of.split(","),
    )
    with xr.open_dataset(path, engine="scipy") as grid:
        for name, values in expected.items():
            np.testing.assert_array_equal(grid[name], values)


def test_an_interrupted_sweep_goes_on(tmp_path, monkeypatch):
    path, evaluate, calls = tmp_path / "grid.nc", parameter_grid._evaluate, []

    def interrupted(task):
        calls.append(task[0])
        if len(calls) == 3:
            raise KeyboardInterrupt
        return evaluate(task)

    monkeypatch.setattr(parameter_grid, "_evaluate", interrupted)
    command = ("sweep", "-L", 1, "--over", "branch_scale=0.1:1:200", "--save", path, "--chunk", 64)
    result = call(*command)
    assert (result.exit_code, result.stdout) == (130, "")
    assert "Finished parts are in" in result.stderr
    assert len(os.listdir(tmp_path / ".grid.nc.parts")) == 2 and not path.exists()
    calls.clear()
    calls.extend("resumed")
    result = call(*command)
    assert result.exit_code == 0 and result.stderr == "sweep: 2 of 4 parts found\n"
    assert calls[len("resumed") :] == [2, 3]
    assert os.listdir(tmp_path) == ["grid.nc"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Missing option '--over'"),
        (["--over", "depth"], "over must be a parameter and its values name=a,b,..., got 'depth'"),
        (["--over", "rho=1,2"], "got 'rho': did you mean branch_scale (ρ)?"),
        (["--over", "depth=1", "--over", "depth=2"], "every parameter once, got depth again"),
        (["--over", "depth=1", "--of", "chy"], "got 'chy'"),
        (["--over", "depth=1", "--of", "chi"], "of must not have response where depth is swept"),
        (["--over", "depth=1", "--of", "kernels"], "of must not have kernels where depth is"),
        (["--over", "width=1,2", "--of", "kernels,response"], "over the same layers for one table"),
        (["--over", "depth=1", "--save", "grid.npz"], "save must be a file that ends in .nc"),
        (["--over", "depth=1", "--save", "none/g.nc"], "save must lie in a folder that exists"),
    ],
)
def test_bad_input(arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert words in refusal("sweep", *arguments)
    assert os.listdir(tmp_path) == []


def test_schedules_by_name_over_depth():
    command = ("sweep", "-a", "relu", "--over", "depth=2,4", "-k", 0.1)
    table = rows(*command, "--over", "branch_scale=uniform,0.3,none")
    assert [row["branch_scale"] for row in table] == ["uniform", "0.3", "none"] * 2
    net = ft.ResidualNetwork(depth=4, activation="relu", branch_scale="uniform")
    assert table[3]["output_response"] == ft.solve(net, 0.1).output_response
    assert rows(*command, "--schedule", "uniform")[1]["output_response"] == pytest.approx(
        table[3]["output_response"], rel=1e-14
    )
