"""Text and files of a shell as values: what is understood, and one line for what is not."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.cli import values
from tests.cli.test_app import rows


def test_an_activation_keeps_the_name_that_was_typed():
    assert values.parameter("activation", "0.5*h").name == "0.5*h"
    assert values.parameter("activation", "silu").name == "swish"


def test_kernels_that_are_typed():
    assert values.kernel("0.05") == 0.05
    np.testing.assert_array_equal(values.kernel("1,0.5; 0.5,2"), [[1, 0.5], [0.5, 2]])


def test_kernels_of_files(tmp_path):
    matrix = np.array([[1, 0.5], [0.5, 2]])
    np.save(tmp_path / "kernel.npy", matrix)
    np.savetxt(tmp_path / "kernel.csv", matrix, delimiter=",")
    (tmp_path / "variance.csv").write_text("0.25\n")
    for name in ("kernel.npy", "kernel.csv"):
        np.testing.assert_array_equal(values.kernel(str(tmp_path / name)), matrix)
    assert values.kernel(str(tmp_path / "variance.csv")) == 0.25
    np.savetxt(tmp_path / "samples.csv", np.ones((2, 3)), delimiter=",")
    with pytest.raises(ValueError, match="got shape .2, 3. in .* samples in rows are for --data"):
        values.kernel(str(tmp_path / "samples.csv"))


@pytest.mark.parametrize("name", ["kernel.csv", "kernel.npy"])
@pytest.mark.filterwarnings("ignore:loadtxt")
def test_unreadable_kernels(tmp_path, name):
    (tmp_path / name).write_text("not, a\nkernel\n")
    with pytest.raises(ValueError, match="^K0 cannot be read from [^\n]*$"):
        values.kernel(str(tmp_path / name))


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("depth=10, 50", "depth", [10, 50]),
        ("depth=10:30:3", "depth", [10, 20, 30]),
        ("branch-scale=0.1", "branch_scale", [0.1]),
        ("branch_scale=0.1:0.7:4", "branch_scale", [0.1, 0.3, 0.5, 0.7]),
        ("branch_scale=none,uniform", "branch_scale", ["none", "uniform"]),
        ("K0=1e-3,1", "K0", [1e-3, 1.0]),
        ("readout_bias_variance=none,0", "readout_bias_variance", [None, 0.0]),
    ],
)
def test_axes_of_numbers(text, name, expected):
    found = values.axis(text)
    assert found == (name, expected)
    assert [type(value) for value in found[1]] == [type(value) for value in expected]


def test_axes_of_activations():
    name, found = values.axis("activation=erf, max(0, h),tanh(2*h)")
    assert name == "activation"
    assert [phi.name for phi in found] == ["erf", "max(0, h)", "tanh(2*h)"]


FILES = {
    "": (ft.ResidualNetwork(depth=50), "depth = 50"),
    "feed-forward": (
        ft.FeedForwardNetwork(depth=3, activation="tanh(2*h)", weight_variance=2.0),
        'family = "FeedForwardNetwork"\ndepth = 3\nactivation = "tanh(2*h)"\nweight_variance = 2',
    ),
    "residual": (
        ft.ResidualNetwork(depth=2, branch_scale=[0.3, 0.2], skip_scale=0.9, width=200),
        "depth = 2\nbranch_scale = [0.3, 0.2]\nskip_scale = 0.9\nwidth = 200",
    ),
    "block": (
        ft.BlockNetwork(depth=2, normalization=None, gated=True, branch_scale="uniform"),
        'family = "BlockNetwork"\ndepth = 2\nnormalization = "none"\ngated = true\n'
        'branch_scale = "uniform"',
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_networks_of_files(tmp_path, name):
    expected, text = FILES[name]
    path = tmp_path / "net.toml"
    path.write_text(text)
    assert values.network(file=path) == expected
    # Options that are typed come first.
    typed = {"depth": 4, "readout_weight_variance": 0.5}
    if name != "feed-forward":
        typed["branch_scale"] = 0.1
    found = values.network("relu", file=path, **{n: str(value) for n, value in typed.items()})
    assert found == expected.replace(activation="relu", **typed)


def test_commands_take_a_file(tmp_path):
    path = tmp_path / "net.toml"
    path.write_text('depth = 2\nactivation = "tanh"\nskip_scale = 0.5\nwidth = 30')
    net = ft.ResidualNetwork(depth=2, activation="tanh", skip_scale=0.5, width=30)
    table = rows("solve", "--network", path, "--width", 60)
    assert table == rows("solve", "-L", 2, "-a", "tanh", "--skip-scale", 0.5, "--width", 60)
    (row,) = rows("optimum", "--network", path)
    assert row["rho"] == ft.optimal_scaling(net, 0.05)
    (row,) = rows("critical", "--network", path)
    assert row == rows("critical", "-a", "tanh", "--skip-scale", 0.5)[0]
    (row,) = rows("sweep", "--network", path, "--over", "depth=3")
    assert row["output_response"] == pytest.approx(
        float(ft.solve(net.replace(depth=3), 0.05).output_response), rel=1e-13
    )
    path.write_text('family = "DiffusionNetwork"\ndepth = 3\nactivation = "swish"')
    found = rows("diffusion", "--network", path, "-T", 0.5)
    assert found == rows("diffusion", "-L", 3, "-a", "swish", "-T", 0.5)
