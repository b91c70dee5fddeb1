"""All results keep, label, show and draw themselves alike; files of all formats are read."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.networks.family import FAMILIES
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics import storage
from tests.examples import K0_PAIR, network
from tests.montecarlo.statistics_of_draws import assert_same, mistaken

OLD = Path(__file__).parents[1] / "old_files"
NET = network(3, "tanh", width=20)
SUFFIXES = [".npz", ".nc"]


def compared(K0, responses):
    options = {"samples": 30, "cross_inputs": np.ndim(K0) > 0}
    pair = [ft.simulate(NET.replace(width=N), K0, seed=N, **options) for N in (20, 40)]
    answers = [ft.simulate_response(NET, K0, samples=20)] if responses else []
    return ft.compare(mistaken(NET.replace(weight_variance=1.3), NET, K0), pair, responses=answers)


MAKE = {
    "solution": lambda: ft.solve(NET, 0.4),
    "solution of a batch": lambda: ft.solve(NET.replace(branch_scale=[[0.1], [0.2]]), K0_PAIR),
    "ensemble": lambda: ft.simulate(NET, 0.4, samples=20, seed=2**70, keep=True, cross_inputs=True),
    "ensemble of pairs": lambda: ft.simulate(NET, K0_PAIR, samples=20, method="weights"),
    "ensemble of width 1": lambda: ft.simulate(NET.replace(width=1), 0.4, samples=20),
    "control variate": lambda: ft.simulate(
        NET, 0.4, samples=20, keep=True, variance_reduction="control_variate"
    ),
    "response": lambda: ft.simulate_response(NET, [0.3, 0.4], samples=20, layer=1),
    "response of pairs": lambda: ft.simulate_response(NET, K0_PAIR, samples=20),
    "trace": lambda: ft.covariance_with(ft.solve(NET, K0_PAIR), np.eye(2), samples=20),
    "comparison": lambda: compared(0.4, responses=True),
    "comparison of pairs": lambda: compared(K0_PAIR, responses=False),
}


@pytest.fixture(scope="module")
def results():
    with pytest.warns(ft.ValidityWarning):
        return {name: make() for name, make in MAKE.items()}


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", MAKE)
def test_a_file_gives_the_result_back(results, name, suffix, tmp_path):
    result = results[name]
    path = tmp_path / f"result{suffix}"
    result.save(path)
    loaded = type(result).load(path)
    assert_same(result, loaded)
    assert repr(loaded) == repr(result)
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("name", MAKE)
def test_labelled_arrays(results, name):
    labelled = results[name].to_xarray()
    for values in labelled.coords.values():
        assert values.attrs["long_name"] and values.attrs["symbol"]
    for variable, values in labelled.data_vars.items():
        assert values.attrs["long_name"] and values.attrs["units"] == "1"
        if name.startswith("comparison"):
            assert values.dims == ("comparison",)
            # Words have no symbol.
            assert values.attrs["symbol"] or values.dtype.kind == "U"
        else:
            assert values.attrs["symbol"]
        if not (name.startswith("comparison") or variable.endswith("_error")):
            table = type(results[name]).table
            assert (f"{variable}_error" in labelled) == (
                variable in table and table[variable].error
            )


def test_labels_of_an_ensemble(results):
    labelled = results["ensemble of pairs"].to_xarray()
    assert labelled["covariance"].dims == ("layer", "layer_", "input", "input_")
    assert labelled["output_kurtosis_error"].dims == ("input",)
    assert "cross_covariance" not in labelled and "residual_kernels" not in labelled
    assert labelled.attrs["method"] == "weights" and labelled.attrs["depth"] == 3
    labelled = results["ensemble"].to_xarray()
    assert labelled["residual_kernels"].dims == ("sample", "layer")
    assert labelled.attrs["seed"] == 2**70


def test_labels_of_a_comparison(results):
    comparison = results["comparison of pairs"]
    labelled = comparison.to_xarray()
    rows = comparison.rows
    assert labelled.sizes == {"comparison": len(rows)}
    for label, row in enumerate(rows):
        place = labelled.isel(comparison=label)
        assert str(place.quantity.item()) == row["quantity"]
        for name in ("layer_", "gamma", "delta"):
            assert place[name].item() == (-1 if row[name] is None else row[name])
        for name in ("layer", "alpha", "beta", "theory", "error", "z", "verdict"):
            assert place[name].item() == row[name]
    assert json.loads(labelled.attrs["widths"]) == [20, 40]


@pytest.mark.parametrize("name", MAKE)
def test_page_of_a_notebook(results, name):
    page = results[name]._repr_html_()
    assert page.count("<table>") == page.count("</table>") >= 1
    table = getattr(type(results[name]), "table", {})
    for field, row in table.items():
        asked = name != "ensemble" and field.startswith(("cross_", "residual_kernels"))
        if not (asked or name.startswith("solution") or field == "four_point"):
            assert row.long_name in page


@pytest.mark.slow_but(8)
@pytest.mark.parametrize("name", MAKE)
def test_plots_show_the_fields(results, name, tmp_path):
    figure = results[name].plot()
    figure.savefig(tmp_path / "figure.png", dpi=50)
    image = matplotlib.image.imread(tmp_path / "figure.png")
    assert 0.5 < (image[..., :3].min(axis=2) == 1).mean() < 0.99
    if name == "solution":
        (kernels, responses, fluctuations) = figure.axes
        solution = results[name]
        responses_ = (solution.residual_response, solution.response)
        output, variance = solution.output_response, solution.G11[-1, -1]
        for ax, both in (
            (kernels, (solution.residual_kernels, solution.kernels)),
            (responses, [np.append(values, output) for values in responses_]),
            (
                fluctuations,
                (solution.G11.diagonal(), np.append(solution.kernel_variance, variance)),
            ),
        ):
            # Hidden layers as a line, the output as a point.
            for line, point, values in zip(ax.lines[::2], ax.lines[1::2], both, strict=True):
                np.testing.assert_array_equal(line.get_ydata(), values[:4])
                np.testing.assert_array_equal(point.get_ydata(), values[4:])
    if name == "ensemble of pairs":
        first = figure.axes[0].containers
        assert len(first) == 2 * 3
        np.testing.assert_array_equal(first[1].lines[0].get_ydata(), results[name].mean[:, 0, 1])
    if name == "solution of a batch":
        assert [len(ax.lines) for ax in figure.axes] == [2 * 2 * 6, 2 * 2 * 6]


def test_old_files_of_solutions():
    one = ft.Solution.load(OLD / "solution.npz")
    expected = ResidualNetwork(
        depth=3, branch_scale=[0.1, 0.2, 0.3], skip_scale=0.9, readout_weight_variance=1.4
    )
    assert one.network == expected and one.input_kernel == 1 / 3
    assert {"G11", "G12", "kernels", "kernel_variance"} <= set(vars(one))
    again = ft.solve(one.network, one.input_kernel)
    np.testing.assert_allclose(one.G11, again.G11, rtol=1e-12)
    for suffix in SUFFIXES:
        pairs = ft.Solution.load(OLD / f"solution_of_pairs{suffix}")
        assert pairs.network.activation.name == "φ ≤ 1" and pairs.network.batch_shape == (2,)
        assert "full_response" in vars(pairs)
        again = ft.solve(pairs.network, pairs.input_kernel)
        np.testing.assert_allclose(pairs.full_response, again.full_response, rtol=1e-12)


def test_old_files_of_ensembles():
    e = ft.Ensemble.load(OLD / "ensemble.npz")
    assert type(e.network) is ResidualNetwork and e.network.skip_scale == 0
    again = ft.simulate(e.network, e.input_kernel, samples=e.samples, seed=e.seed)
    np.testing.assert_allclose(e.covariance, again.covariance, rtol=1e-10)
    assert repr(e) == repr(again) and e.residual_kernels is None


def test_old_files_of_comparisons():
    found = ft.Comparison.load(OLD / "comparison.npz")
    assert repr(found) == "Comparison(agrees, describes width 50, widths=(50, 100))"
    again = ft.solve(ResidualNetwork(depth=3, width=50, activation="tanh", branch_scale=0.5), 0.3)
    (kernels,) = (field for field in found.extrapolated if field.name == "kernels")
    np.testing.assert_allclose(kernels.theory, again.kernels[kernels.index["layer"]], rtol=1e-12)
    assert set(found.at_width[0].with_next) == {1, 2} and "time" not in found.columns


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_family_comes_back_as_itself(suffix, tmp_path, monkeypatch):
    @dataclass(frozen=True, kw_only=True)
    class Damped(ResidualNetwork):
        """A family with parameters of its own, of all types."""

        damping: float = 0.5
        pattern: tuple = (1, 2)
        label: str = "none"
        reflected: bool = False

    monkeypatch.setitem(FAMILIES, "Damped", Damped)
    others = {"damping": 1 / 3, "pattern": (3.5, (4,)), "label": "[φ", "reflected": True}
    for net in (ft.FeedForwardNetwork(depth=2), Damped(depth=2, activation="relu", **others)):
        path = tmp_path / f"s{suffix}"
        ft.solve(net, 0.4).save(path)
        loaded = ft.Solution.load(path).network
        assert type(loaded) is type(net) and loaded == net


def refusal(path, kind):
    with pytest.raises(
        ValueError, match=rf"^path must be a file written by {kind.__name__}.save"
    ) as e:
        kind.load(path)
    assert "\n" not in str(e.value) and path.name in str(e.value)
    return str(e.value)


@pytest.mark.slow_but(0)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_of_another_kind(results, suffix, tmp_path):
    path = tmp_path / f"result{suffix}"
    for name, other in (
        ("solution", ft.Ensemble),
        ("ensemble", ft.Solution),
        ("response", ft.Ensemble),
        ("comparison", ft.SimulatedResponse),
    ):
        results[name].save(path)
        kind = type(results[name]).__name__
        assert f"it holds a result of kind {kind}" in refusal(path, other)
    assert "of kind Ensemble" in refusal(OLD / "ensemble.npz", ft.Solution)
    assert "of kind Solution" in refusal(OLD / "solution.npz", ft.Ensemble)


def test_files_from_elsewhere(results, tmp_path):
    path = tmp_path / "e.npz"
    results["ensemble"].save(path)
    content = storage.read_npz(path)
    assert int(content["format"]) == storage.FORMAT == 2
    for change, words in (
        ({"format": 3}, "its format is 3, this version reads up to 2"),
        ({"family": "Unknown"}, "family must be one of ResidualNetwork"),
        ({"mean": np.zeros(2)}, "mean must have shape (5,), got (2,)"),
        ({"mean_error": np.zeros(2)}, "mean_error must have shape (5,), got (2,)"),
        ({"samples": "many"}, "many"),
    ):
        storage.write_npz(path, content | change)
        assert words in refusal(path, ft.Ensemble)
    for missing in ("samples", "mean", "kind", "depth", "input_kernel"):
        storage.write_npz(path, {k: v for k, v in content.items() if k != missing})
        if missing == "kind":
            ft.Ensemble.load(path)
        else:
            assert missing in refusal(path, ft.Ensemble)


def test_paths_that_are_refused(results, tmp_path):
    for result in results.values():
        with pytest.raises(ValueError, match=r"^path must end in .npz or .nc, got 'e.csv'"):
            result.save("e.csv")
        with pytest.raises(ValueError, match="^path must lie in a folder that exists"):
            result.save(tmp_path / "none" / "e.npz")
        with pytest.raises(ValueError, match="^path must be a file that exists"):
            type(result).load(tmp_path / "missing.npz")
