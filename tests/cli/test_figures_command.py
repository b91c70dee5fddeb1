"""The command figures: its files, the arguments that reach the figures, bad input."""

import csv
import os
from functools import partial

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory import data
from fieldtheory.cli import figures_command
from fieldtheory.figures import f25, pf
from tests.cli.test_app import call, output
from tests.data.batches import write_batches
from tests.rounding import assert_same

NET = ft.ResidualNetwork(depth=3)


def table(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def small(monkeypatch):
    """Figures of data sets with few samples and layers."""
    one = {"depths": (4,), "weight_variances": (1.25,), "bias_variances": (0.05,)}
    monkeypatch.setattr(f25, "fig5", partial(f25.fig5, **one))
    monkeypatch.setattr(f25, "fig6", partial(f25.fig6, count=4, network=NET))
    monkeypatch.setattr(f25, "fig9", partial(f25.fig9, count=4))
    monkeypatch.setattr(data, "load_cifar10", partial(data.load_cifar10, count=6))


class TestFiles:
    def test_pictures_and_numbers(self, tmp_path, monkeypatch):
        monkeypatch.setattr(f25, "fig2", partial(f25.fig2, depth=2))
        shown = output(
            "figures", "f25.fig2", "f25.fig3", "-o", tmp_path, "-n", 20, "--inputs", 2, "--seed", 5
        )
        assert sorted(os.listdir(tmp_path)) == [
            f"f25.{name}.{kind}" for name in ("fig2", "fig3") for kind in ("csv", "pdf", "png")
        ]
        assert shown.splitlines() == [str(tmp_path / f"f25.{n}.png") for n in ("fig2", "fig3")]
        expected = f25.fig2(samples=20, inputs=2, seed=5)
        found = [
            (float(row["y"]), float(row["error"]))
            for row in table(tmp_path / "f25.fig2.csv")
            if (row["panel"], row["curve"]) == ("b", "FFNet, simulation")
        ]
        simulated = expected.simulated_response[1], expected.simulated_response_error[1]
        assert_same(found, np.transpose(simulated))

    def test_panels_are_those_of_their_figure(self, monkeypatch, tmp_path):
        asked = []
        monkeypatch.setattr(figures_command, "_draw", lambda *a: asked.append(a[0]) or tmp_path)
        output("figures", "f25.fig9b", "f25.fig1a", "f25.fig1b")
        assert asked == ["f25.fig1", "f25.fig9"]

    def test_defaults_are_the_counts_of_the_paper(self, monkeypatch, tmp_path):
        asked = []
        monkeypatch.setattr(figures_command, "_draw", lambda *a: asked.append(a) or tmp_path)
        output("figures", "f25.fig8", "f25.fig8")
        ((name, *_, options),) = asked
        assert name == "f25.fig8"
        assert (options["samples"], options["inputs"]) == (1000, 100)

    def test_all(self, monkeypatch, tmp_path):
        monkeypatch.setattr(figures_command, "_draw", lambda name, *_: name)
        monkeypatch.setattr(figures_command, "find_spec", lambda name: name)
        assert output("figures", "f25.fig3", "all").splitlines() == list(figures_command.FIGURES)

    def test_trained_networks_are_left_out_of_all_without_torch(self, monkeypatch):
        monkeypatch.setattr(figures_command, "_draw", lambda name, *_: name)
        monkeypatch.setattr(figures_command, "find_spec", lambda name: None)
        result = call("figures", "pf.fig5", "sr.*")
        assert result.stderr == "sr.table3 needs torch and is left out\n"
        drawn = result.stdout.splitlines()
        assert "pf.fig5" in drawn and "sr.table2" in drawn and "sr.table3" not in drawn


class TestInterrupted:
    @pytest.mark.slow
    def test_finished_parts_stay_until_the_figure_is_there(self, tmp_path, monkeypatch):
        small = partial(pf.fig4, depth=3, width=20, points=4)
        stopped = []

        def stop(*arguments, **options):
            stopped.append(small(*arguments, **options))
            raise KeyboardInterrupt

        monkeypatch.setattr(pf, "fig4", stop)
        arguments = ("figures", "pf.fig4", "-o", tmp_path, "-n", 20)
        found = call(*arguments)
        parts = tmp_path / ".pf.fig4.parts"
        assert found.exit_code == 130 and "200 functions" in stopped[0].chosen
        assert f"Finished parts are in {parts}" in found.stderr.replace("\n", "")
        assert len(list(parts.glob("*.npz"))) >= 4
        monkeypatch.setattr(pf, "fig4", small)
        found = call(*arguments)
        assert found.exit_code == 0 and "4 of 4 parts found" in found.stderr
        assert sorted(os.listdir(tmp_path)) == [f"pf.fig4.{kind}" for kind in ("csv", "pdf", "png")]


class TestImages:
    @pytest.mark.slow
    def test_of_the_folder(self, tmp_path, small):
        folder, images = write_batches(tmp_path)
        names = ("f25.fig5", "f25.fig6", "f25.fig9")
        output("figures", *names, "-o", tmp_path, "--data-folder", folder)
        panels = {name: {row["panel"] for row in table(tmp_path / f"{name}.csv")} for name in names}
        assert panels == {"f25.fig5": {*"ab"}, "f25.fig6": {*"abc"}, "f25.fig9": {*"ab"}}
        overlap = images[[1, 3, 4, 0, 8, 12]].astype(float)
        overlap = overlap @ overlap.T
        found = [float(row["y"]) for row in table(tmp_path / "f25.fig9.csv") if row["panel"] == "b"]
        np.testing.assert_allclose(np.reshape(found, (6, 6)), overlap / overlap.max(), rtol=1e-13)

    def test_patterns(self, monkeypatch, tmp_path):
        asked = []
        monkeypatch.setattr(figures_command, "_draw", lambda *a: asked.append(a[0]) or tmp_path)
        monkeypatch.setattr(figures_command, "find_spec", lambda name: name)
        output("figures", "sr.fig3", "sr.fig*", "f25.fig3")
        assert asked == ["f25.fig3", "sr.fig1", "sr.fig2", "sr.fig3"]
        asked.clear()
        output("figures", "sr.*")
        assert {"sr.fig1", "sr.fig2", "sr.fig3", "sr.table2"} < set(asked)
        assert all(name.startswith("sr.") for name in asked)

    @pytest.mark.slow
    def test_absent(self, tmp_path, small):
        found = call("figures", "f25.fig5", "f25.fig6", "-o", tmp_path)
        assert found.exit_code == 0
        first, second = found.stderr.splitlines()
        assert "CIFAR-10" in first and "MNIST takes its place; --data-folder" in first
        assert "CIFAR-10" in second and "its panel is empty; --data-folder" in second
        assert {row["panel"] for row in table(tmp_path / "f25.fig6.csv")} == {"a", "b"}
        found = [float(row["y"]) for row in table(tmp_path / "f25.fig5.csv")]
        numbers = f25.fig5(data.load_mnist())
        expected = [numbers.by_weight_variance, numbers.by_bias_variance]
        assert_same(found, np.transpose(expected, (1, 0, 2, 3)).ravel())
