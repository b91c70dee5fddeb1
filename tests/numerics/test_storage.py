"""Solutions as labelled arrays and as files."""

import os
import pickle

import numpy as np
import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.numerics import storage
from fieldtheory.numerics.fields import FIELDS
from tests.examples import K0_PAIR
from tests.rounding import assert_same

x = sp.Symbol("x", real=True)
CASES = {
    "one input": (ft.ResidualNetwork(depth=4, branch_scale=0.1 + 0.2), 1 / 3),
    "layers": (ft.ResidualNetwork(depth=3, branch_scale=[0.1, 0.2, 0.3], skip_scale=0.9), 0.4),
    "batch": (ft.ResidualNetwork(depth=3, branch_scale=[[0.1], [1 / 3]]), 0.4),
    "two batch axes": (
        ft.ResidualNetwork(depth=2, branch_scale=np.full((3, 1, 1), 0.3)),
        np.array([0.1, 0.7]),
    ),
    "schedule": (ft.ResidualNetwork(depth=3, branch_scale="decreasing"), 0.4),
    "schedules of a batch": (
        ft.ResidualNetwork(depth=3, branch_scale="none", skip_scale=[[0.9], [1.0]]),
        0.4,
    ),
    "pair": (ft.ResidualNetwork(depth=3, readout_weight_variance=1.4, width=7), K0_PAIR),
    "batch of pairs": (
        ft.ResidualNetwork(depth=2, branch_scale=[[0.1], [0.2], [0.3]]),
        np.array([K0_PAIR]),
    ),
    "expression": (ft.ResidualNetwork(depth=2, activation=sp.erf(0.3 * x) + x / 3), 0.4),
    "named": (
        ft.ResidualNetwork(depth=2, activation=ft.Activation(sp.atan(2 * x), "φ ≤ 1")),
        0.4,
    ),
}


@pytest.mark.parametrize("suffix", [".npz", ".nc"])
@pytest.mark.parametrize("case", CASES)
def test_a_file_gives_back_every_bit(case, suffix, tmp_path):
    solution = ft.solve(*CASES[case])
    names = ["kernels", "output_response", "response"]
    if case in ("one input", "layers", "expression"):
        names += ["G12", "G11", "kernel_variance"]
    if case == "pair":
        names += ["G12", "full_response", "output_kernel"]
    expected = {name: getattr(solution, name) for name in names}
    path = tmp_path / f"solution{suffix}"
    solution.save(path)
    loaded = ft.Solution.load(path)
    assert loaded.network == solution.network
    assert loaded.input_kernel.tobytes() == solution.input_kernel.tobytes()
    assert loaded.input_kernel.shape == solution.input_kernel.shape
    for name, values in expected.items():
        assert name in vars(loaded), name
        found = getattr(loaded, name)
        assert found.shape == values.shape and found.tobytes() == values.tobytes(), name
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", [".npz", ".nc"])
def test_a_schedule_that_is_a_function_is_written_as_its_values(suffix, tmp_path):
    net = ft.ResidualNetwork(
        depth=3, branch_scale=lambda l, L: 1 / (l + L), skip_scale=lambda l, L: 1 - l / 7
    )
    solution = ft.solve(net, 0.4)
    assert "&lt;lambda&gt;(l, L)" in solution._repr_html_()
    solution.save(tmp_path / f"s{suffix}")
    loaded = ft.Solution.load(tmp_path / f"s{suffix}")
    assert loaded.network == net.replace(branch_scale=net.branch_scales, skip_scale=net.skip_scales)
    np.testing.assert_array_equal(loaded.kernels, solution.kernels)


def test_a_field_not_written_is_computed_again(tmp_path):
    solution = ft.solve(*CASES["one input"])
    solution.save(tmp_path / "s.npz")
    loaded = ft.Solution.load(tmp_path / "s.npz")
    assert "G11" not in vars(loaded)
    assert_same(loaded.G11, solution.G11)


def test_what_is_read_is_the_file_and_not_computed(tmp_path):
    network, K0 = CASES["one input"]
    solution = ft.solve(network, K0)
    vars(solution)["kernels"] = solution.kernels + 1
    solution.save(tmp_path / "s.nc")
    np.testing.assert_array_equal(
        ft.Solution.load(tmp_path / "s.nc").kernels, ft.solve(network, K0).kernels + 1
    )


@pytest.mark.parametrize(
    ("case", "field", "dims"),
    [
        ("one input", "kernels", ("layer",)),
        ("one input", "G11", ("layer", "layer_")),
        ("one input", "kernel_variance", ("hidden_layer",)),
        ("batch", "response", ("batch", "hidden_layer")),
        ("two batch axes", "output_response", ("batch_0", "batch_1")),
        ("pair", "kernels", ("layer", "input", "input_")),
        ("batch of pairs", "kernels", ("batch", "layer", "input", "input_")),
    ],
)
def test_dimensions(case, field, dims):
    solution = ft.solve(*CASES[case])
    labelled = solution.to_xarray()
    assert labelled[field].dims == dims
    np.testing.assert_array_equal(labelled[field].values, getattr(solution, field))
    np.testing.assert_array_equal(
        labelled.input_kernel.values.reshape(-1), solution.input_kernel.reshape(-1)
    )


def test_coordinates_and_attributes():
    network, K0 = CASES["batch"]
    labelled = ft.solve(network, K0).to_xarray()
    np.testing.assert_array_equal(labelled.layer, np.arange(5))
    np.testing.assert_array_equal(labelled.hidden_layer, np.arange(4))
    np.testing.assert_array_equal(labelled.branch_scale, [0.1, 1 / 3])
    assert "G11" not in labelled
    assert storage.network_from_attributes(labelled.attrs) == network
    chosen = labelled.output_response[1]
    alone = ft.solve(network.replace(branch_scale=1 / 3), K0).output_response
    assert float(chosen) == pytest.approx(float(alone), rel=1e-14)


def test_a_function_that_cannot_be_written(tmp_path):
    solution = ft.solve(ft.ResidualNetwork(depth=1, activation=sp.besselj(1, x)), 0.1)
    vars(solution).update(dict.fromkeys(FIELDS, np.zeros(3)))
    with pytest.raises(ValueError, match="cannot be written to a file.*besselj"):
        solution.save(tmp_path / "s.npz")
    assert not os.listdir(tmp_path)


def test_a_failed_write_leaves_the_old_file(tmp_path):
    def fail(file):
        file.write(b"half")
        raise KeyboardInterrupt

    path = tmp_path / "s.npz"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        storage.write_whole(path, fail)
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["s.npz"]


def _damaged(tmp_path):
    ft.solve(*CASES["one input"]).save(tmp_path / "good.npz")
    content = dict(np.load(tmp_path / "good.npz"))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "good.npz").read_bytes()[:200])
    (tmp_path / "text.nc").write_text("no netCDF")
    np.savez(tmp_path / "shape.npz", **content | {"kernels": np.zeros(2)})
    np.savez(tmp_path / "other.npz", kernels=np.zeros(2))
    np.savez(tmp_path / "depth.npz", **content | {"depth": np.array("four")})
    np.savez(tmp_path / "object.npz", **content | {"branch_scale": np.array({}, dtype=object)})
    with open(tmp_path / "pickle.npz", "wb") as file:
        pickle.dump({}, file)


@pytest.mark.parametrize(
    "name",
    ["cut.npz", "text.nc", "shape.npz", "other.npz", "depth.npz", "object.npz", "pickle.npz"],
)
def test_damaged_files(name, tmp_path):
    _damaged(tmp_path)
    with pytest.raises(ValueError, match="written by Solution.save") as caught:
        ft.Solution.load(tmp_path / name)
    assert "\n" not in str(caught.value) and name in str(caught.value)


def test_html():
    activation = ft.Activation(sp.Max(x, x / 3), "a<b>&c")
    solution = ft.solve(ft.ResidualNetwork(depth=2, activation=activation), K0_PAIR)
    text = solution._repr_html_()
    assert "a&lt;b&gt;&amp;c" in text and "<b>" not in text
    assert FIELDS["output_kernel"].symbol in text and FIELDS["response"].symbol in text
    assert "shape (2, 2)" in text and "(3, 2, 2)" in text
    assert "G11" not in vars(solution) and "kernels" not in vars(solution)


def test_html_of_a_network_whose_kernel_overflows():
    network = ft.ResidualNetwork(depth=2000, activation="relu", weight_variance=10.0)
    assert "range of float64" in ft.solve(network, 1.0)._repr_html_()
