"""The main job on a small configuration: files, keys, numbers, and what a failure leaves behind."""

import csv
import os
import re
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.literature import checks, f23
from fieldtheory.report import main_job
from fieldtheory.report.results_folder import _take_place

DEPTHS = (5, 8)
# What the summary takes from the results of a run.
FOUND = SimpleNamespace(
    depth=8,
    variance_scaling=0.1,
    covariance_scaling=0.2,
    pair_class="different classes",
    largest_difference=1e-16,
    failed_checks=0,
)


def small(output, **changes):
    nothing = {"activations": (), "papers": ()}
    arguments = {"depths": DEPTHS, "digits": 20, "count": 4} | nothing | changes
    return main_job.run(output=output, **arguments)


@pytest.fixture
def made(small_run):
    return small_run


@pytest.fixture
def quick(small_run, monkeypatch):
    """Figures of an earlier run and a check that fails, for runs with other images."""

    def copied(folder, *_):
        made = {name: small_run[0].folder / f"{name}.png" for name in main_job.FIGURES}
        return {name: shutil.copy(path, folder) for name, path in made.items()}

    def failing(*_):
        return [checks.Check("averages", "M(K), erf", "0.5", "0.6", 0.17, 1e-12)]

    monkeypatch.setattr(main_job, "_write_figures", copied)
    monkeypatch.setattr(checks, "run_checks", failing)


@pytest.fixture
def instant(monkeypatch):
    """A run whose files are made at once, for tests of folders."""

    def write(folder, *_):
        for name in main_job.FILES:
            (folder / name).write_text("new")
        return FOUND

    monkeypatch.setattr(main_job, "_write", write)


@pytest.fixture(scope="module")
def inputs():
    return main_job.load(count=4)


class TestFiles:
    def test_all_of_them_and_nothing_else(self, made):
        summary, _ = made
        assert {path.name for path in summary.folder.iterdir()} == {
            *main_job.FILES,
            ".fieldtheory-results",
        }
        assert all(path.stat().st_size > 50 for path in summary.folder.iterdir())
        assert [path.name for path in summary.folder.parent.iterdir()] == ["results"]
        assert summary.report == summary.folder / "report.html"

    def test_steps_are_reported_in_order(self, made):
        numbers = [number for number, _ in made[1]]
        assert numbers == sorted(numbers)
        assert set(numbers) == set(range(1, main_job.STEPS + 1))
        reported = [text for number, text in made[1] if number == 5]
        for text in ("averages, erf", "connected correlator, erf", "network", "entropy, erf"):
            assert any(found.endswith(text) for found in reported)
        assert "checked: F23 (8)" in reported

    def test_propagators_are_those_of_solve(self, made, inputs):
        names = ("C", "K", "eta", "chi", "chi_out", "G12", "G11")
        with np.load(made[0].folder / "propagators.npz") as found:
            assert set(found.files) == {
                *("depths", "rho", "K0", "labels"),
                *(f"{name}_L{L}" for name in names for L in DEPTHS),
            }
            assert found["depths"].tolist() == list(DEPTHS)
            assert found["labels"].tolist() == [0, 0, 3, 3]
            np.testing.assert_array_equal(found["K0"], inputs.K0)
            for L, rho in zip(DEPTHS, found["rho"], strict=True):
                net = inputs.network.replace(depth=L, branch_scale=float(rho))
                assert rho == ft.optimal_scaling(net, 0.05)
                several, one = ft.solve(net, inputs.K0), ft.solve(net, 0.05)
                expected = (
                    several.residual_kernels,
                    several.kernels,
                    several.residual_response,
                    several.response,
                    several.output_response,
                    one.G12,
                    one.G11,
                )
                for name, values in zip(names, expected, strict=True):
                    np.testing.assert_array_equal(found[f"{name}_L{L}"], values)
                assert found[f"K_L{L}"].shape == (L + 2, 4, 4)
                assert found[f"chi_L{L}"].shape == (L + 1, 4, 4)
                assert found[f"G11_L{L}"].shape == (L + 2, L + 2)

    def test_optimal_scaling_by_pair_class(self, made, inputs):
        with (made[0].folder / "optimal_scaling.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert [(row["depth"], row["pair_class"], row["count"]) for row in rows] == [
            (str(L), name, count)
            for L in DEPTHS
            for name, count in (
                ("same sample", "4"),
                ("same class", "2"),
                ("different classes", "4"),
            )
        ]
        for L in DEPTHS:
            net = inputs.network.replace(depth=L)
            rho = ft.optimal_scaling(net, inputs.K0)
            image, same, different = (row for row in rows if row["depth"] == str(L))
            np.testing.assert_allclose(float(image["mean"]), ft.optimal_scaling(net, 0.05))
            assert float(image["spread"]) == 0
            assert float(image["saturation"]) == ft.optimal_scaling(net, 0.05, "saturation")
            limit = ft.optimal_scaling(net, 0.05, "deep_limit", order=2)
            assert float(image["deep_limit"]) == limit
            assert same["saturation"] == different["saturation"] == ""
            for row, values in ((same, [rho[0, 1], rho[2, 3]]), (different, rho[:2, 2:])):
                for name, value in (
                    ("mean", np.mean(values)),
                    ("min", np.min(values)),
                    ("max", np.max(values)),
                    ("spread", np.std(values)),
                ):
                    np.testing.assert_allclose(float(row[name]), value, rtol=1e-10)

    def test_checks_have_both_numbers_and_a_verdict(self, made):
        with (made[0].folder / "checks.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert {"float64", "mpmath", "difference", "passed"} <= set(rows[0])
        assert {row["passed"] for row in rows} == {"True"}
        assert len(rows) == 39
        expected = checks.maximum_entropy_checks("erf", 20)
        assert [(row["quantity"], row["mpmath"]) for row in rows[-len(expected) :]] == [
            (check.quantity, check.mpmath) for check in expected
        ]

    def test_claims_have_both_sides_and_a_verdict(self, made):
        with (made[0].folder / "claims.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert [(row["paper"], row["equation"]) for row in rows] == [
            (claim.paper, claim.equation) for claim in f23.CLAIMS
        ]
        assert {row["verdict"] for row in rows} == {"holds", "does not hold"}
        assert all(row["printed"] and row["derived"] and row["evidence"] for row in rows)

    def test_summary(self, made, inputs):
        summary, _ = made
        net = inputs.network.replace(depth=8)
        assert summary.depth == 8
        assert summary.variance_scaling == ft.optimal_scaling(net, 0.05)
        rho = ft.optimal_scaling(net, inputs.K0)
        np.testing.assert_allclose(summary.covariance_scaling, rho[:2, 2:].mean(), rtol=1e-12)
        assert summary.pair_class == "different classes"
        # Identities without a float64 side, exact to all digits, do not count.
        assert 1e-17 < summary.largest_difference < 1e-12
        assert summary.failed_checks == 0

    def test_equations_render(self, made, katex_failures):
        equations = {}
        for name in ("action.tex", "saddle_point.tex", "hessian.tex"):
            text = (made[0].folder / name).read_text(encoding="utf-8")
            bodies = re.findall(r"\\begin\{equation\}\n(.*?)\\end\{equation\}", text, re.DOTALL)
            assert len(bodies) == text.count("% ") - 1
            equations |= {f"{name} {i}": body for i, body in enumerate(bodies)}
        assert len(equations) == 6
        assert katex_failures(equations) == {}

    def test_equations_are_explicit_and_generic(self, made):
        text = (made[0].folder / "hessian.tex").read_text(encoding="utf-8")
        for block in ("11", "12"):
            assert f"S_{{{block}}} &=" in text
        for block in ("21", "22"):
            assert rf"S_{{{block}}} = N \begin{{pmatrix}}" in text
            assert f"S_{{{block}}}^{{k l}} &=" in text
        assert r"\tilde{C}^{(3)}" in (made[0].folder / "action.tex").read_text(encoding="utf-8")


class TestOtherImages:
    def test_images_without_labels(self, tmp_path, quick):
        rng = np.random.default_rng(1)
        np.savez(tmp_path / "images.npz", images=rng.random((3, 4, 4)))
        summary = small(tmp_path / "out", data=tmp_path / "images.npz", count=None)
        assert summary.pair_class == "different samples"
        with np.load(summary.folder / "propagators.npz") as found:
            assert "labels" not in found.files
            assert found["C_L5"].shape == (7, 3, 3)
        assert "images.npz: 3 samples" in summary.report.read_text(encoding="utf-8")

    def test_failed_checks_are_counted_and_shown(self, tmp_path, quick):
        summary = small(tmp_path / "out", count=2)
        assert summary.failed_checks == 1
        assert summary.largest_difference == 0.17
        page = summary.report.read_text(encoding="utf-8")
        assert "1 do not pass." in page
        assert "fails (&gt; 1e-12)" in page


class TestFolder:
    def test_a_new_run_replaces_an_old_one(self, tmp_path, instant):
        folder = tmp_path / "results"
        for _ in range(2):
            main_job.run(output=folder, depths=DEPTHS)
            assert (folder / "report.html").read_text() == "new"
            (folder / "report.html").write_text("old")
            (folder / "fig3.pdf").unlink()
        assert os.listdir(tmp_path) == ["results"]

    def test_an_empty_folder_is_filled(self, tmp_path, instant):
        (tmp_path / "results").mkdir()
        main_job.run(output=tmp_path / "results", depths=DEPTHS)
        assert (tmp_path / "results" / "report.html").exists()

    @pytest.mark.parametrize("ours", [True, False])
    def test_other_files_are_never_removed(self, tmp_path, instant, ours):
        folder = tmp_path / "results"
        if ours:
            main_job.run(output=folder, depths=DEPTHS)
        else:
            folder.mkdir()
        (folder / "thesis.tex").write_text("five years")
        before = sorted(os.listdir(folder))
        with pytest.raises(ValueError, match=r"^output must be new, empty .* 'thesis.tex' in it$"):
            main_job.run(output=folder, depths=DEPTHS)
        assert sorted(os.listdir(folder)) == before
        assert os.listdir(tmp_path) == ["results"]

    def test_files_that_look_like_ours_are_not_enough(self, tmp_path, instant):
        (tmp_path / "report.html").write_text("mine")
        with pytest.raises(ValueError, match=r"^output must be .* 'report.html' in it$"):
            main_job.run(output=tmp_path, depths=DEPTHS)

    def test_files_added_during_the_run_are_kept(self, tmp_path, instant, monkeypatch):
        folder = tmp_path / "results"
        main_job.run(output=folder, depths=DEPTHS)

        def write(*_):
            (folder / "note.txt").write_text("mine")
            return FOUND

        monkeypatch.setattr(main_job, "_write", write)
        with pytest.raises(ValueError, match="output must be"):
            main_job.run(output=folder, depths=DEPTHS)
        assert (folder / "note.txt").exists()
        assert os.listdir(tmp_path) == ["results"]

    @pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, MemoryError])
    @pytest.mark.parametrize("older", [True, False])
    def test_failure_midway_leaves_nothing(self, tmp_path, instant, monkeypatch, error, older):
        folder = tmp_path / "results"
        if older:
            main_job.run(output=folder, depths=DEPTHS)
            (folder / "report.html").write_text("old")
        seen = []

        def fail(partial, *_):
            (partial / "action.tex").write_text("half")
            seen.extend(os.listdir(tmp_path))
            raise error

        monkeypatch.setattr(main_job, "_write", fail)
        with pytest.raises(error):
            main_job.run(output=folder, depths=DEPTHS)
        assert f"results.partial-{os.getpid()}" in seen
        assert os.listdir(tmp_path) == (["results"] if older else [])
        if older:
            assert (folder / "report.html").read_text() == "old"

    def test_failure_of_a_step_leaves_nothing(self, tmp_path, monkeypatch):
        def fail(*_):
            raise ArithmeticError("no convergence")

        monkeypatch.setattr(main_job, "propagator_arrays", fail)
        with pytest.raises(ArithmeticError, match="no convergence"):
            small(tmp_path / "results", count=2)
        assert os.listdir(tmp_path) == []

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
    @pytest.mark.parametrize(
        ("arguments", "name"),
        [
            ({"depths": (0, 5)}, "depths"),
            ({"depths": (2.5, 5)}, "depths"),
            ({"depths": (5, 5)}, "depths"),
            ({"depths": ()}, "depths"),
            ({"digits": 10}, "digits"),
            ({"digits": 20.0}, "digits"),
            ({"count": 3}, "count"),
            ({"count": -2}, "count"),
            ({"classes": (0, 12)}, "classes"),
            ({"activations": ("arf",)}, "activations"),
            ({"activations": "erf"}, "activations"),
            ({"papers": ("F99",)}, "papers"),
            ({"papers": "F25"}, "papers"),
            ({"simulated": (0, 2)}, "simulated"),
            ({"data": "missing.npz"}, "path"),
            ({"data": "images.txt"}, "path"),
        ],
    )
    def test_one_line_and_no_folder(self, tmp_path, arguments, name):
        with pytest.raises((ValueError, TypeError), match=f"^{name}[^\n]*$"):
            small(tmp_path / "results", **arguments)
        assert os.listdir(tmp_path) == []

    def test_constant_images(self, tmp_path):
        np.savez(tmp_path / "images.npz", X=np.array([[1.0, 2, 3], [5, 5, 5]]))
        with pytest.raises(ValueError, match="^samples must not be constant, got sample 2[^\n]*$"):
            small(tmp_path / "results", data=tmp_path / "images.npz", count=None)
        assert os.listdir(tmp_path) == ["images.npz"]

    @pytest.mark.parametrize("kind", ["file", "no parent"])
    def test_output(self, tmp_path, kind):
        output = tmp_path / "file" if kind == "file" else tmp_path / "missing" / "results"
        (tmp_path / "file").write_text("")
        with pytest.raises(ValueError, match="^output must [^\n]*$"):
            small(output)
        assert os.listdir(tmp_path) == ["file"]

    def test_missing_packages_are_named_before_the_work(self, tmp_path, monkeypatch):
        find = main_job.importlib.util.find_spec
        monkeypatch.setattr(
            main_job.importlib.util, "find_spec", lambda n: None if n == "jinja2" else find(n)
        )
        with pytest.raises(ImportError, match=r"jinja2: pip install .*\[figures\]"):
            small(tmp_path / "results")
        assert os.listdir(tmp_path) == []


@pytest.mark.slow
def test_the_whole_job(tmp_path):
    summary = main_job.run(output=tmp_path / "results", count=4)
    assert summary.depth == 200
    assert summary.failed_checks == 0
    assert summary.largest_difference < 1e-12
    np.testing.assert_allclose(summary.variance_scaling, 0.0685227, rtol=1e-6)
    shutil.rmtree(tmp_path / "results")
