"""The command run: what it asks of the main job, what it ends with, bad input."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fieldtheory.cli.run_command import MOST
from fieldtheory.report import main_job
from tests.cli.test_app import call, refusal
from tests.tables import slow


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """What the command asks of the main job, which answers at once."""
    found = []

    def run(*arguments):
        found.append(arguments[:-1])
        arguments[-1](1, "kernels")
        folder = tmp_path / "results"
        page = folder / "report.html"
        return SimpleNamespace(folder=folder, report=page, warnings=("wide",), few_pairs="few")

    monkeypatch.setattr(main_job, "run", run)
    return found


def test_ends_with_the_places_and_the_warnings(asked, tmp_path):
    result = call("run")
    assert result.exit_code == 0
    assert result.stderr == "[1/6] kernels\nwarning: wide\nnote: few\n"
    assert result.stdout.splitlines() == [
        f"Results in {tmp_path / 'results'}",
        f"Page to look at: {tmp_path / 'results' / 'report.html'}",
    ]


def test_defaults_are_digits_and_the_network_of_the_paper(asked):
    call("run")
    ((network, K0, data, words, typed, output, samples),) = asked
    assert (network.depth, network.activation.name, network.width) == (50, "erf", 500)
    assert (network.input_dim, network.readin_variances) == (64, (1.25, 0.0))
    assert K0.shape == (20, 20) and K0[0, 0] == pytest.approx(0.05)
    assert set(data.labels.tolist()) == {0, 3}
    assert words.startswith("digits 0, 3") and typed == "--data digits"
    assert (output, samples) == (Path("results"), 200)
    help_page = " ".join(call("run", "--help").stdout.split())
    assert f"Of a file with more than {MOST} samples {MOST} are taken" in help_page


def test_every_option_reaches_the_job(asked, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("a,b,label\n1,2,cat\n3,1,dog\n4,4,cat\n1,5,dog\n")
    words = "--activation gelu -L 7 --width 50 --weight-variance 2 --bias-variance 0.1"
    options = "--skip-scale 0.9 --branch-scale 0.3 --classes cat,dog --count 2 --scale none -n 25"
    result = call("run", "--data", path, *words.split(), *options.split(), "-o", "out")
    assert result.exit_code == 0, result.stderr
    ((network, K0, data, said, typed, output, samples),) = asked
    assert (network.activation.name, network.depth, network.width) == ("gelu", 7, 50)
    assert (network.weight_variance, network.bias_variance) == (2.0, 0.1)
    assert (network.skip_scale, network.branch_scale, network.input_dim) == (0.9, 0.3, 2)
    assert K0.shape == (2, 2) and data.labels.tolist() == ["cat", "dog"]
    assert "2 of 4 samples as they are" in said
    assert typed == f"--data {path} --scale none --classes cat,dog --count 2"
    assert (output, samples) == (Path("out"), 25)


@pytest.mark.parametrize(
    ("labels", "options", "kept"),
    [
        slow("ab" * 60, "--classes a,b --count 100", 100),
        slow("a" * 50 + "b" * 40 + "c" * 35, "--classes a,b,c --count 99", 99),
        slow("a" * 119 + "b", "--count 100", 100),
        (None, "--count 100", 100),
    ],
)
def test_of_a_large_file_the_page_names_the_samples_it_takes(
    asked, tmp_path, labels, options, kept
):
    X = np.random.default_rng(0).normal(size=(125 if labels is None else len(labels), 3))
    arrays = {} if labels is None else {"y": list(labels)}
    np.savez(tmp_path / "large.npz", X=X, **arrays)
    call("run", "--data", tmp_path / "large.npz")
    call("run", "--data", tmp_path / "large.npz", *options.split())
    (_, K0, data, words, typed, *_), (_, again, *_) = asked
    assert f"{kept} of {len(X)} samples" in words and len(data.samples) == kept
    assert typed == f"--data {tmp_path / 'large.npz'} {options}"
    np.testing.assert_array_equal(K0, again)


@pytest.mark.parametrize(("header", "notes"), [slow("", 1), ("a,b,c\n", 0)])
def test_a_file_without_a_header_is_said_to_have_none(asked, tmp_path, header, notes):
    path = tmp_path / "mine.csv"
    path.write_text(header + "1,2,3\n3,1,4\n2,2,1\n")
    for command in ("run", "optimum", "diffusion"):
        said = call(command, "--data", path, *(() if command == "run" else ("-L", 2))).stderr
        assert said.count("note: mine.csv has no header row: its first row is a sample") == notes


class TestBadInput:
    def test_missing_package_is_one_line(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "sklearn", None)
        assert "pip install fieldtheory-networks[data]" in refusal("run")

    def test_faults_of_the_program_are_not_hidden(self, monkeypatch):
        monkeypatch.setattr(main_job, "run", lambda *_: {}["missing"])
        assert isinstance(call("run").exception, KeyError)
