"""The main job on a small configuration: files, keys, numbers, and what a failure leaves behind."""

import csv
import os
import re
from dataclasses import replace

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory import data as sets
from fieldtheory.report import main_job, results_folder
from fieldtheory.report.results_folder import _take_place
from fieldtheory.report.results_page import network_options
from tests.rounding import assert_same

NETWORK = ft.ResidualNetwork(depth=3, readin_bias_variance=0.0, input_dim=64, width=50)
DATA = sets.load_digits((0, 3), 4)
K0 = sets.scaled_kernel(DATA.samples, 0.05)


def job(output, network=NETWORK, kernel=K0, data=DATA, **options):
    return main_job.run(network, kernel, data, "digits", output=output, samples=20, **options)


@pytest.fixture
def made(small_run):
    return small_run


def new_files(folder):
    for name in main_job.FILES:
        (folder / name).write_text("new")


def filled(output, write=new_files):
    """What a run does with its folder, with files that are made at once."""
    folder = results_folder.replaceable(output, main_job.FILES)
    with results_folder.built_aside(folder, main_job.FILES) as partial:
        write(partial)


class TestFiles:
    @pytest.mark.slow
    def test_all_of_them_and_nothing_else(self, made):
        found, _ = made
        files = {path.name for path in found.folder.iterdir()}
        assert files == {*main_job.FILES, ".fieldtheory-results"}
        assert all(path.stat().st_size > 50 for path in found.folder.iterdir())
        assert [path.name for path in found.folder.parent.iterdir()] == ["results"]
        assert found.report == found.folder / "report.html"

    def test_steps_are_reported_in_order(self, made):
        assert [number for number, _ in made[1]] == list(range(1, main_job.STEPS + 1))

    def test_solution_and_comparison_are_those_of_the_package(self, made):
        found, _ = made
        solution = ft.load(found.folder / "solution.npz")
        again = ft.solve(found.network, K0)
        assert_same(solution.kernels, again.kernels)
        assert_same(solution.response, again.response)
        assert float(found.single.input_kernel) == pytest.approx(0.05)
        comparison = ft.load(found.folder / "comparison.npz")
        assert (
            comparison.widths == (100, 200) and comparison.sentences == found.comparison.sentences
        )

    def test_optimal_scaling_by_pair_class(self, made):
        found, _ = made
        with (found.folder / "optimal_scaling.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        counts = {"same sample": "4", "same class": "2", "different classes": "4"}
        counts["different samples"] = "6"
        assert {row["pair_class"]: row["count"] for row in rows} == counts
        rho = ft.optimal_scaling(found.network, K0)
        np.testing.assert_allclose(float(rows[2]["mean"]), rho[:2, 2:].mean(), rtol=1e-10)
        np.testing.assert_allclose(float(rows[2]["max"]), rho[:2, 2:].max(), rtol=1e-10)
        assert float(rows[0]["spread"]) == 0

    def test_pictures_have_their_numbers(self, made):
        found, _ = made
        with (found.folder / "kernels.csv").open(newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["curve"] == "mean, same sample"]
        expected = np.diagonal(found.solution.kernels[:-1], axis1=1, axis2=2).mean(axis=1)
        np.testing.assert_allclose([float(row["y"]) for row in rows], expected)

    def test_equations_render(self, made, katex_failures):
        equations = {}
        for name in ("action.tex", "saddle_point.tex", "hessian.tex"):
            text = (made[0].folder / name).read_text(encoding="utf-8")
            bodies = re.findall(r"\\begin\{equation\}\n(.*?)\\end\{equation\}", text, re.DOTALL)
            equations |= {f"{name} {i}": body for i, body in enumerate(bodies)}
        assert len(equations) == 6
        assert katex_failures(equations) == {}


class TestOtherNetworksAndSamples:
    @pytest.mark.slow
    def test_no_labels_and_no_largest_response(self, tmp_path):
        rng = np.random.default_rng(1)
        samples = rng.random((3, 16)) + 99 * np.eye(16)[0]
        data = sets.Dataset(
            samples,
            None,
            "three",
            note="three has no header row",
            columns=tuple("abcdefghijklmnop"),
        )
        net = NETWORK.replace(
            activation="relu", input_dim=16, skip_scale=0.9, branch_scale="uniform"
        )
        found = job(tmp_path / "out", net, ft.input_kernel(data.samples, net), data)
        assert "maximum" in found.scaling
        assert list(found.groups) == ["same sample", "different samples"]
        page = found.report.read_text(encoding="utf-8")
        assert "no largest response" in page and "--schedule" not in page
        assert "--branch-scale uniform" in page and "--skip-scale 0.9" in page
        assert "three has no header row" in page
        assert "Warning: samples are nearly parallel" in page and "--drop a" in page

    @pytest.mark.slow
    def test_pairs_without_an_optimum_are_left_out_and_the_page_says_so(self, tmp_path):
        data = replace(DATA, samples=DATA.samples[[0, 1, 1, 2]])
        found = job(tmp_path / "out", kernel=sets.scaled_kernel(data.samples, 0.05), data=data)
        rho = found.scaling[np.triu_indices(4, 1)]
        assert np.isnan(rho).sum() == 1 and found.best_scale == f"{np.nanmean(rho):.4g}"
        page = found.report.read_text(encoding="utf-8")
        assert "1 of 6 pairs of inputs without" in page and ">nan<" not in page
        with (found.folder / "optimal_scaling.csv").open(newline="") as file:
            assert [row["count"] for row in csv.DictReader(file)] == ["4", "2", "3", "5"]

    @pytest.mark.slow
    def test_warnings_are_on_the_page(self, tmp_path):
        found = job(tmp_path / "out", NETWORK.replace(width=2))
        assert any("1/N is not small" in words for words in found.warnings)
        assert "1/N is not small" in found.report.read_text(encoding="utf-8")

    @pytest.mark.parametrize(
        "changes", [{}, {"branch_scale": (0.3, 0.2, 0.1)}, {"activation": "tanh(2*h)", "width": 7}]
    )
    def test_options_give_the_network(self, changes):
        import shlex

        from fieldtheory.cli import values

        net = ft.ResidualNetwork(depth=3).replace(**changes)
        words = iter(shlex.split(network_options(net)))
        given = {name.removeprefix("--").replace("-", "_"): next(words) for name in words}
        numbers = {name: int(given.pop(name)) for name in ("depth", "width") if name in given}
        typed = given.pop("activation", "erf")
        assert values.network(typed, **given, **numbers) == net


class TestFolder:
    def test_a_new_run_replaces_an_old_one(self, tmp_path):
        folder = tmp_path / "results"
        for _ in range(2):
            filled(folder)
            assert (folder / "report.html").read_text() == "new"
            (folder / "report.html").write_text("old")
        assert os.listdir(tmp_path) == ["results"]

    def test_an_empty_folder_is_filled(self, tmp_path):
        (tmp_path / "results").mkdir()
        filled(tmp_path / "results")
        assert (tmp_path / "results" / "report.html").exists()

    @pytest.mark.parametrize("ours", [True, False])
    def test_other_files_are_never_removed(self, tmp_path, ours):
        folder = tmp_path / "results"
        if ours:
            filled(folder)
        else:
            folder.mkdir()
        (folder / "thesis.tex").write_text("five years")
        before = sorted(os.listdir(folder))
        with pytest.raises(ValueError, match=r"^output must be new, empty .* 'thesis.tex' in it$"):
            filled(folder)
        assert sorted(os.listdir(folder)) == before
        assert os.listdir(tmp_path) == ["results"]

    def test_files_that_look_like_ours_are_not_enough(self, tmp_path):
        (tmp_path / "report.html").write_text("mine")
        with pytest.raises(ValueError, match=r"^output must be .* 'report.html' in it$"):
            filled(tmp_path)

    def test_files_added_during_the_run_are_kept(self, tmp_path):
        folder = tmp_path / "results"
        filled(folder)

        def write(*_):
            (folder / "note.txt").write_text("mine")

        with pytest.raises(ValueError, match="output must be"):
            filled(folder, write)
        assert (folder / "note.txt").exists()
        assert os.listdir(tmp_path) == ["results"]

    @pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, MemoryError])
    @pytest.mark.parametrize("older", [True, False])
    def test_failure_midway_leaves_nothing(self, tmp_path, error, older):
        folder = tmp_path / "results"
        if older:
            filled(folder)
            (folder / "report.html").write_text("old")
        seen = []

        def fail(partial):
            (partial / "action.tex").write_text("half")
            seen.extend(os.listdir(tmp_path))
            raise error

        with pytest.raises(error):
            filled(folder, fail)
        assert f"results.partial-{os.getpid()}" in seen
        assert os.listdir(tmp_path) == (["results"] if older else [])
        if older:
            assert (folder / "report.html").read_text() == "old"

    def test_failed_replacement_brings_the_old_folder_back(self, tmp_path, monkeypatch):
        folder, partial = tmp_path / "results", tmp_path / "results.partial"
        for path, text in ((folder, "old"), (partial, "new")):
            path.mkdir()
            (path / "report.html").write_text(text)
        rename = type(folder).rename

        def fail(self, target):
            if self == partial:
                raise OSError("no space left on device")
            return rename(self, target)

        monkeypatch.setattr(type(folder), "rename", fail)
        with pytest.raises(OSError, match="no space"):
            _take_place(partial, folder)
        assert (folder / "report.html").read_text() == "old"


class TestBadInput:
    @pytest.mark.parametrize("kind", ["file", "no parent"])
    def test_output(self, tmp_path, kind):
        output = tmp_path / "file" if kind == "file" else tmp_path / "missing" / "results"
        (tmp_path / "file").write_text("")
        with pytest.raises(ValueError, match="^output must [^\n]*$"):
            job(output)
        assert os.listdir(tmp_path) == ["file"]

    def test_missing_packages_are_named_before_the_work(self, tmp_path, monkeypatch):
        find = main_job.importlib.util.find_spec
        monkeypatch.setattr(
            main_job.importlib.util, "find_spec", lambda n: None if n == "jinja2" else find(n)
        )
        with pytest.raises(ImportError, match=r"jinja2: pip install .*\[figures\]"):
            job(tmp_path / "results")
        assert os.listdir(tmp_path) == []


@pytest.mark.slow
def test_networks_without_fluctuations_have_a_page(tmp_path):
    found = job(tmp_path / "out", NETWORK.replace(activation="sign"))
    assert "fluctuate" in found.comparison and not (found.folder / "comparison.npz").exists()
    assert "not compared with the theory" in found.report.read_text(encoding="utf-8")
