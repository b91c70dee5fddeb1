"""The command run: what it asks of the main job, what it ends with, bad input."""

import os
import sys
from pathlib import Path

import pytest

from fieldtheory.report import main_job
from tests.cli.test_app import call, refusal

NUMBERS = {
    "depth": 8,
    "variance_scaling": 0.123456789,
    "covariance_scaling": 0.5,
    "pair_class": "different classes",
    "largest_difference": 4e-16,
    "failed_checks": 0,
}


class TestRun:
    @pytest.fixture
    def asked(self, monkeypatch, tmp_path):
        """What the command asks of the main job, which answers at once."""
        found = []

        def run(*arguments):
            found.append(arguments[:-1])
            arguments[-1](1, "deriving the formulas")
            folder = tmp_path / "results"
            page = folder / "report.html"
            return main_job.Summary(folder=folder, report=page, **NUMBERS)

        monkeypatch.setattr(main_job, "run", run)
        return found

    def test_ends_with_the_places_and_the_numbers(self, asked, tmp_path):
        result = call("run")
        assert result.exit_code == 0
        assert result.stderr == "[1/6] deriving the formulas\n"
        lines = result.stdout.splitlines()
        assert lines[0] == f"Results in {tmp_path / 'results'}"
        assert lines[1] == f"Page to look at: {tmp_path / 'results' / 'report.html'}"
        assert [line.split()[-1] for line in lines[2:]] == ["0.123457", "0.5", "4.0e-16"]

    def test_defaults_are_those_of_the_job(self, asked):
        call("run")
        assert asked == [(None, Path("results"), list(main_job.DEPTHS), 50, None, None)]

    def test_every_option_reaches_the_job(self, asked):
        call(
            "run", "--depths", "3,4", "--digits", 30, "--classes", "1,7", "--count", 6, "-o", "out"
        )
        call("run", "--data", "images.csv", "--classes", "cat, dog")
        assert asked == [
            (None, Path("out"), [3, 4], 30, [1, 7], 6),
            (Path("images.csv"), Path("results"), [10, 50, 100, 200], 50, ["cat", "dog"], None),
        ]

    def test_exit_code_says_that_a_check_fails(self, monkeypatch, tmp_path):
        failed = main_job.Summary(
            folder=tmp_path, report=tmp_path / "x", **NUMBERS | {"failed_checks": 2}
        )
        monkeypatch.setattr(main_job, "run", lambda *_: failed)
        result = call("run")
        assert result.exit_code == 1
        assert result.stderr == "2 checks fail, see checks.csv.\n"


class TestBadInput:
    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--depths", "0,5"], "depths must be"),
            (["--depths", "2.5,5"], "depths must be"),
            (["--depths", "5"], "depths must hold"),
            (["--digits", 5], "digits must be"),
            (["--count", 3], "count must be"),
            (["--classes", "0,12"], "classes must be"),
            (["--classes", "cats"], "classes must be"),
            (["--data", "missing.csv"], "no such file"),
            (["--data", "broken.npz"], "cannot be read"),
            (["--data", "text.csv"], "is not a number"),
            (["--data", "constant.csv"], "samples must not be constant"),
            (["--data", "infinite.csv"], "must be a finite number"),
            (["--data", "one.csv"], "at least 2 samples"),
            (["--output", "mine"], "output must be"),
            (["--output", "missing/results"], "output must lie in"),
            (["--output", "text.csv"], "output must be a folder"),
        ],
    )
    def test_of_the_main_job(self, tmp_path, monkeypatch, arguments, words):
        files = {
            "broken.npz": "not an archive",
            "text.csv": "1,2\n3,four\n",
            "constant.csv": "1,2\n3,3\n",
            "infinite.csv": "1,2\n3,inf\n",
            "one.csv": "1,2\n",
        }
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "thesis.tex").write_text("")
        monkeypatch.chdir(tmp_path)
        assert words in refusal("run", *arguments)
        assert sorted(os.listdir(tmp_path)) == sorted([*files, "mine"])
        assert os.listdir(tmp_path / "mine") == ["thesis.tex"]

    def test_missing_package_is_one_line(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "sklearn", None)
        assert "pip install fieldtheory-networks[data]" in refusal("run")

    def test_faults_of_the_program_are_not_hidden(self, monkeypatch):
        monkeypatch.setattr(main_job, "run", lambda *_: {}["missing"])
        assert isinstance(call("run").exception, KeyError)
