"""The command sweep: its rows are those of the grid, and interrupted work goes on."""

import json
import os

import pytest
import xarray as xr

import fieldtheory as ft
from tests.cli.test_app import MATRIX, PAIR, output, rows
from tests.rounding import assert_same, same

NET = ft.ResidualNetwork(depth=2)


def test_rows_are_those_of_the_grid():
    table = rows("sweep", "--over", "depth=2,5", "--over", "branch-scale=0.1:0.5:3", "-k", 0.1)
    over = {"depth": [2, 5], "branch_scale": [0.1, 0.3, 0.5]}
    grid = ft.sweep(NET, 0.1, over=over)
    assert len(table) == 6 and list(table[0]) == ["depth", "branch_scale", "output_response"]
    for row in table:
        chosen = grid.sel(depth=row["depth"], branch_scale=row["branch_scale"])
        assert row["output_response"] == same(float(chosen.output_response))


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
            assert_same(grid[name], values)


def test_schedules_by_name_over_depth():
    command = ("sweep", "-a", "relu", "--over", "depth=2,4", "-k", 0.1)
    table = rows(*command, "--over", "branch_scale=uniform,0.3,none")
    assert [row["branch_scale"] for row in table] == ["uniform", "0.3", "none"] * 2
    net = ft.ResidualNetwork(depth=4, activation="relu", branch_scale="uniform")
    assert table[3]["output_response"] == same(ft.solve(net, 0.1).output_response)
    assert rows(*command, "--schedule", "uniform")[1]["output_response"] == pytest.approx(
        table[3]["output_response"], rel=1e-14
    )
