"""What a sweep gives: labels, pictures and files."""

import os

import matplotlib.image
import numpy as np
import pytest
import xarray as xr

import fieldtheory as ft
from fieldtheory.sweeps.grid_dataset import GridDataset
from tests.examples import K0_PAIR

NET = ft.ResidualNetwork(depth=4)
MAKE = {
    "two axes": (
        {"depth": [2, 4, 8], "branch_scale": np.linspace(0.1, 1, 5)},
        0.05,
        "output_response",
    ),
    "layers": ({"branch_scale": [0.1, 0.3]}, 0.05, ["kernels", "response", "G11"]),
    "pairs": ({"branch_scale": [0.1, 0.3]}, K0_PAIR, ["kernels", "output_response"]),
    "names": ({"activation": ["erf", "tanh"]}, 0.05, "optimal_scaling"),
    "kernels": ({"K0": [K0_PAIR, 2 * K0_PAIR]}, None, "output_response"),
    "none": ({"readout_weight_variance": [None, 2.0]}, 0.05, "output_kernel"),
    "powers": ({"width": [10, 100, 1000, 10_000]}, 0.05, "kernel_variance"),
    "depths": ({"depth": [2, 4, 100]}, 0.05, "output_response"),
}


@pytest.fixture(scope="module")
def grids():
    return {name: ft.sweep(NET, K0, over=over, of=of) for name, (over, K0, of) in MAKE.items()}


@pytest.mark.parametrize("name", MAKE)
def test_every_variable_and_coordinate_is_named_in_words_and_in_latex(grids, name):
    grid = grids[name]
    for variable in (*grid.data_vars, *grid.coords):
        assert grid[variable].attrs["long_name"] and grid[variable].attrs["symbol"], variable
        assert grid[variable].attrs["units"] == "1", variable


@pytest.mark.slow_but(3)
@pytest.mark.parametrize("name", MAKE)
def test_it_draws_and_shows_itself(grids, name, tmp_path):
    grid = grids[name]
    figure = grid.plot()
    assert len(figure.axes) == len(grid.data_vars)
    figure.savefig(tmp_path / "figure.png")
    image = matplotlib.image.imread(tmp_path / "figure.png")
    assert 0.5 < (image[..., :3].min(axis=2) == 1).mean() < 0.99
    assert grid._repr_html_().startswith("<div>") and all(v in grid._repr_html_() for v in grid)
    for ax, field in zip(figure.axes, grid.data_vars.values(), strict=True):
        assert ax.get_xlabel() and f"${field.symbol}$" in ax.get_ylabel()


@pytest.mark.parametrize("name", MAKE)
def test_a_file_gives_the_grid_back(grids, name, tmp_path):
    grids[name].save(tmp_path / "grid.nc")
    loaded = GridDataset.load_file(tmp_path / "grid.nc")
    assert type(loaded) is GridDataset and loaded.identical(grids[name])
    assert os.listdir(tmp_path) == ["grid.nc"]
    loaded.plot()


def test_lines_of_two_axes(grids):
    (ax,) = grids["two axes"].plot().axes
    field = grids["two axes"].output_response
    assert ax.get_xlabel() == r"scale of the residual branch $\rho$"
    assert [line.get_label() for line in ax.lines] == ["$L = 2$", "$L = 4$", "$L = 8$"]
    for line, values in zip(ax.lines, field.values, strict=True):
        np.testing.assert_array_equal(line.get_xdata(), field.branch_scale)
        np.testing.assert_array_equal(line.get_ydata(), values)


def test_lines_over_layers(grids):
    grid = grids["layers"]
    kernels, response, fluctuations = grid.plot().axes
    assert kernels.get_xlabel() == "layer $l$"
    for ax, values in (
        (kernels, grid.kernels),
        (response, grid.response),
        (fluctuations, [np.diag(G11) for G11 in grid.G11.values]),
    ):
        for line, expected in zip(ax.lines, values, strict=True):
            np.testing.assert_array_equal(line.get_ydata(), expected)
    assert fluctuations.get_ylabel().endswith("$m = l$")
    (first, second) = grids["pairs"].plot().axes
    assert [line.get_label() for line in second.lines] == [
        r"$\alpha$: 0, $\beta$: 0", r"$\alpha$: 0, $\beta$: 1", r"$\alpha$: 1, $\beta$: 1"
    ]  # fmt: skip
    assert len(first.lines) == 6


def test_what_is_chosen_from_it_is_a_grid(grids):
    chosen = grids["two axes"].sel(depth=4)
    assert isinstance(chosen, GridDataset) and len(chosen.plot().axes[0].lines) == 1
    assert callable(chosen.plot.scatter)
    assert isinstance(grids["layers"], xr.Dataset)


def test_paths_that_are_refused(grids, tmp_path):
    with pytest.raises(ValueError, match=r"^path must end in .nc for a sweep, got 'grid.npz'"):
        grids["layers"].save("grid.npz")
    with pytest.raises(ValueError, match="^path must lie in a folder that exists"):
        grids["layers"].save(tmp_path / "none" / "grid.nc")
    with pytest.raises(ValueError, match="^path must be a file that exists"):
        GridDataset.load_file(tmp_path / "grid.nc")
