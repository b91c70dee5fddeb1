"""Sweeps: numbers, labels, resuming and where they run."""

import itertools
import json

import numpy as np
import pytest
import sympy as sp
import xarray as xr

import fieldtheory as ft
from fieldtheory.sweeps import parameter_grid
from tests.examples import K0_PAIR
from tests.rounding import assert_same, same
from tests.tables import slow

NET = ft.ResidualNetwork(depth=6, branch_scale=0.4)
x = sp.Symbol("x", real=True)


@pytest.fixture
def counted(monkeypatch):
    """The indices of the chunks that were computed in this process."""
    indices = []
    original = parameter_grid._evaluate

    def evaluate(task):
        indices.append(task[0])
        return original(task)

    monkeypatch.setattr(parameter_grid, "_evaluate", evaluate)
    return indices


def inverse_depth(l, L):
    return 1 / L


def inverse_layer(l, L):
    return 1 / l


OF_PHI = {
    "K0": [0.05, 0.4],
    "depth": [3, 5],
    "branch_scale": [0.1, 0.5, 0.9],
    "activation": ["erf", sp.atan(2 * x)],
    "skip_scale": [0.8, 1.0],
}
# They follow a depth that is swept.
OF_SCHEDULES = {
    "depth": [3, 5],
    "branch_scale": ["uniform", 0.3, "decreasing", "none"],
    "skip_scale": [inverse_layer, inverse_depth],
    "K0": [0.05, 0.4],
}


@pytest.mark.parametrize("over", [slow(OF_PHI), OF_SCHEDULES], ids=["φ", "schedules"])
def test_every_point_is_that_of_solve(over):
    grid = ft.sweep(NET, over=over, of=["output_response"], chunk=7)
    assert grid.output_response.dims == tuple(over)
    if over is OF_PHI:
        assert list(grid.activation.values) == ["erf", "atan(2*h)"]
    else:
        assert list(grid.branch_scale.values) == ["uniform", "0.3", "decreasing", "none"]
        texts = json.loads(grid.skip_scale.attrs["values"])
        assert texts == ["inverse_layer(l, L)", "inverse_depth(l, L)"]
    for index in itertools.product(*(range(len(values)) for values in over.values())):
        point = {name: values[i] for i, (name, values) in zip(index, over.items(), strict=True)}
        K0 = point.pop("K0")
        expected = ft.solve(NET.replace(**point), K0).output_response
        assert float(grid.output_response[index]) == pytest.approx(float(expected), rel=1e-13)


def test_a_network_with_a_schedule_is_swept_over_its_depth(tmp_path):
    for scale, jobs in (("uniform", None), (lambda l, L: 1 / (l + L), 2)):
        net = NET.replace(branch_scale=scale)
        over = {"depth": [2, 6, 9]}
        grid = ft.sweep(net, 0.4, over=over, of="output_kernel", chunk=1, jobs=jobs)
        for depth in (2, 6, 9):
            expected = ft.solve(net.replace(depth=depth), 0.4).output_kernel
            assert float(grid.output_kernel.sel(depth=depth)) == same(expected)
        grid.save(tmp_path / "grid.nc")
        assert type(grid).load_file(tmp_path / "grid.nc").identical(grid)
        assert grid.plot()


def test_functions_are_resumed_by_their_values_at_the_depths_of_the_grid(tmp_path, counted):
    def same_at_depth_of_network(l, L):
        return 1 / l if L == NET.depth else 1.0

    over, computed = {"depth": [2, 3]}, []
    for scale in (inverse_layer, lambda l, L: 1 / l, same_at_depth_of_network):
        ft.sweep(NET.replace(branch_scale=scale), 0.4, over=over, directory=tmp_path)
        computed.append(len(counted))
        ft.sweep(NET, 0.4, over=over | {"branch_scale": [scale]}, directory=tmp_path)
        computed.append(len(counted))
    assert computed == [1, 2, 2, 2, 3, 4]


def test_fields_with_layers_of_several_inputs():
    over = {"branch_scale": [0.1, 0.7], "weight_variance": [1.0, 1.5, 2.0]}
    names = ["kernels", "response", "full_response", "G12"]
    grid = ft.sweep(NET, K0_PAIR, over=over, of=names)
    assert grid.kernels.dims == (*over, "layer", "input", "input_")
    assert grid.full_response.dims == (*over, "hidden_layer", "input", "input_", "source")
    assert grid.G12.dims == (*over, "layer", "layer_", "input", "input_")
    chosen = grid.sel(branch_scale=0.7, weight_variance=1.5)
    solution = ft.solve(NET.replace(branch_scale=0.7, weight_variance=1.5), K0_PAIR)
    for name in names:
        np.testing.assert_allclose(chosen[name], getattr(solution, name), rtol=1e-13, atol=1e-17)
    assert "weight_variance" not in grid.attrs and grid.attrs["depth"] == 6
    np.testing.assert_array_equal(json.loads(grid.attrs["K0"]), K0_PAIR)


def test_fluctuations_and_the_optimum():
    grid = ft.sweep(
        NET,
        over={"width": [100, 200], "K0": [0.05, 0.1]},
        of=["G11", "kernel_variance", "optimal_scaling", "output_response"],
        chunk=3,
    )
    np.testing.assert_allclose(grid.G11[0], 2 * grid.G11[1], rtol=1e-12)
    for K0 in (0.05, 0.1):
        solution = ft.solve(NET.replace(width=200), K0)
        chosen = grid.sel(width=200, K0=K0)
        assert_same(chosen.G11, solution.G11)
        assert_same(chosen.kernel_variance, solution.kernel_variance)
        assert float(chosen.optimal_scaling) == same(ft.optimal_scaling(NET, K0))


def test_values_that_are_no_numbers_are_labelled_by_index():
    kernels = np.array([K0_PAIR, 2 * K0_PAIR, 3 * K0_PAIR])
    scales = [[0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [0.5] * 6]
    grid = ft.sweep(
        NET,
        over={"K0": kernels, "branch_scale": scales, "readout_weight_variance": [None, 2.0]},
        of=["kernels"],
    )
    np.testing.assert_array_equal(json.loads(grid.K0.attrs["values"]), kernels)
    assert json.loads(grid.readout_weight_variance.attrs["values"]) == [None, 2.0]
    for k, r in itertools.product(range(3), range(2)):
        expected = ft.solve(NET.replace(branch_scale=scales[r]), kernels[k]).kernels
        found = grid.kernels.sel(K0=k, branch_scale=r, readout_weight_variance=0)
        np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.slow_but(0, 2, 4)
@pytest.mark.parametrize("kernel", [np.array(0.3), K0_PAIR], ids=["variance", "pair"])
@pytest.mark.parametrize("scale", [0.4, (0.2, 0.5, 0.8), None], ids=str)
def test_as_many_kernels_as_layers_are_not_taken_for_layers(kernel, scale):
    net = ft.FeedForwardNetwork(depth=3)
    if scale is not None:
        net = NET.replace(depth=3, branch_scale=scale)
    for count in (3, 4, 5):
        kernels = [kernel * (k + 1) for k in range(count)]
        grid = ft.sweep(net, over={"K0": kernels}, of=["kernels", "response", "output_response"])
        assert grid.attrs["family"] == type(net).__name__
        for k, K0 in enumerate(kernels):
            for name, values in grid.data_vars.items():
                expected = getattr(ft.solve(net, K0), name)
                np.testing.assert_allclose(values[k], expected, rtol=1e-13)


def test_two_processes_give_the_same_numbers():
    over = {"branch_scale": np.linspace(0.1, 1, 7), "depth": [3, 4]}
    one = ft.sweep(NET, 0.05, over=over, chunk=3)
    xr.testing.assert_allclose(ft.sweep(NET, 0.05, over=over, chunk=3, jobs=2), one, rtol=1e-9)


class TestResuming:
    over = {"depth": [2, 3, 4, 5, 6], "branch_scale": [0.2, 0.4]}  # noqa: RUF012

    def run(self, directory, **changes):
        arguments = {"over": self.over, "chunk": 2, "directory": directory} | changes
        return ft.sweep(NET, 0.05, **arguments)

    def test_after_an_exception(self, tmp_path, monkeypatch, counted):
        original = parameter_grid._group

        def fail(grid, changes, points):
            if changes["depth"] == 5:
                raise ArithmeticError("stop")
            return original(grid, changes, points)

        with monkeypatch.context() as patch:
            patch.setattr(parameter_grid, "_group", fail)
            with pytest.raises(ArithmeticError) as caught:
                self.run(tmp_path)
        assert "depth=5" in caught.value.__notes__[0]
        assert len(list(tmp_path.iterdir())) == 3
        counted.clear()
        resumed = self.run(tmp_path)
        assert counted == [3, 4]
        assert resumed.identical(self.run(None))

    def test_a_chunk_that_cannot_be_read_is_computed_again(self, tmp_path, counted):
        first = self.run(tmp_path)
        damaged = sorted(tmp_path.iterdir())[1]
        damaged.write_bytes(damaged.read_bytes()[:50])
        counted.clear()
        assert self.run(tmp_path).identical(first) and counted == [1]

    @pytest.mark.parametrize(
        "changes",
        [
            slow({"over": over | {"depth": [2, 3, 4, 5, 7]}}),
            {"over": over | {"branch_scale": [0.2, np.nextafter(0.4, 1)]}},
            {"over": over | {"activation": ["erf"]}},
            slow(
                {"of": ["output_response", "optimal_scaling"], "over": {"depth": [2, 3, 4, 5, 6]}}
            ),
            slow({"chunk": 3}),
        ],
    )
    def test_another_specification_uses_no_old_chunk(self, tmp_path, changes, counted):
        self.run(tmp_path)
        counted.clear()
        found = self.run(tmp_path, **changes)
        assert len(counted) == -(-found.output_response.size // changes.get("chunk", 2))
        assert found.identical(self.run(None, **changes))

    def test_another_network_or_kernel_uses_no_old_chunk(self, tmp_path, counted):
        self.run(tmp_path)
        counted.clear()
        arguments = {"over": self.over, "chunk": 2, "directory": tmp_path}
        ft.sweep(NET.replace(weight_variance=1.3), 0.05, **arguments)
        ft.sweep(NET, 0.06, **arguments)
        named = [ft.Activation(sp.atan(k * x), "mine") for k in (1, 2)]
        results = [ft.sweep(NET.replace(activation=phi), 0.05, **arguments) for phi in named]
        assert len(counted) == 20
        assert (results[0].output_response < results[1].output_response).all()


def test_parts_in_a_folder_take_some_seconds_by_their_deepest_point(tmp_path, monkeypatch):
    """Of a clock that counts layers, a part has no more than it says; found parts stay parts."""
    clock, solved = [0.0], parameter_grid._solved

    def counting(grid, points):
        clock[0] += sum(point["depth"] for point in points)
        return solved(grid, points)

    monkeypatch.setattr(parameter_grid, "_solved", counting)
    monkeypatch.setattr(parameter_grid.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(parameter_grid, "_SECONDS", 12.0)
    over = {"depth": [1, 2, 4], "branch_scale": [0.1, 0.2]}
    ft.sweep(NET, 0.05, over=over, directory=tmp_path)
    # Three points a part, and the file that says so.
    files = set(tmp_path.iterdir())
    assert len(files) == 3
    monkeypatch.setattr(parameter_grid, "_SECONDS", 1.0)
    ft.sweep(NET, 0.05, over=over, directory=tmp_path)
    assert set(tmp_path.iterdir()) == files


def test_progress_is_shown_on_stderr(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("fieldtheory.numerics.chunks.SILENCE", 0.0)
    ft.sweep(NET, 0.05, over={"depth": [2, 3]}, chunk=1, directory=tmp_path, progress=True)
    ft.sweep(NET, 0.05, over={"depth": [2, 3]}, chunk=1, directory=tmp_path, progress=True)
    captured = capsys.readouterr()
    lines = ["sweep: 1 of 2", "sweep: 2 of 2"]
    assert captured.err.splitlines() == [*lines, "sweep: 2 of 2 parts found", *lines]
    assert not captured.out


def test_quantities_have_the_names_that_users_give_them():
    net = ft.ResidualNetwork(depth=3, activation="relu")
    names = {
        "chi_out": "output_response",
        "χ^out": "output_response",
        "ntk": "output_tangent_kernel",
    }
    names |= {"nngp": "output_kernel", "K": "kernels", "eta": "residual_response"}
    grid = ft.sweep(net, 0.4, over={"branch_scale": [0.3]}, of=list(names))
    assert {str(name) for name in grid.data_vars} == set(names.values())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"over": {}}, "over must map"),
        ({"over": [0.1]}, "over must map"),
        ({"over": {"depth": []}}, "sequence of values for depth"),
        ({"over": {"depth": 3}}, "sequence of values for depth"),
        ({"over": {"activation": "erf"}}, "sequence of values for activation"),
        ({"over": {"depth": [0]}}, "depth must be an integer >= 1, got 0"),
        ({"over": {"branch_scale": [0.1, [0.1] * 6]}}, "branch_scale must have values of one"),
        ({"over": {"branch_scale": np.full((2, 3, 6), 0.1)}}, "branch_scale must be one number"),
        ({"over": {"K0": [0.1]}}, "K0 must be given or swept"),
        ({"K0": None}, "K0 must be given or swept"),
        ({"K0": [0.1, 0.2]}, "K0 must be a variance or a matrix"),
        ({"over": {"rho": [0.1]}}, r"got 'rho': did you mean branch_scale \(ρ\)\?"),
        ({"of": 3}, "of must be a name or a sequence of names, got 3"),
        ({"of": ["kernal"]}, r"got 'kernal'; did you mean kernels\?"),
        ({"of": ["kernel"]}, "of must not have kernels where depth is swept"),
        ({"of": ["optimal_scaling"], "over": {"branch_scale": [0.1]}}, "not have optimal_scaling"),
        ({"of": ["variance_2"], "over": {"width": [1]}}, "not have variance_2, .*order=2"),
        ({"of": ["full_response"], "over": {"width": [1]}}, "not have full_response for one"),
        ({"chunk": 0}, "chunk must be an integer >= 1"),
        ({"directory": __file__}, "directory must be a folder"),
        ({"network": 3}, "network must be a ResidualNetwork"),
        ({"network": NET.replace(skip_scale=[[0.1], [0.2]])}, "skip_scale must be one number"),
    ],
)
def test_bad_arguments(changes, message):
    arguments = {"network": NET, "K0": 0.05, "over": {"depth": [2, 3]}} | changes
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        ft.sweep(**arguments)
    assert "\n" not in str(caught.value)
