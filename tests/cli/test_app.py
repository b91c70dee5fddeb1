"""Every command: its help, its numbers in every format, and one line for bad input."""

import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import fieldtheory as ft
from fieldtheory.cli.app import app
from fieldtheory.report import main_job

COMMANDS = ("derive", "solve", "optimum", "simulate", "verify", "figures", "run")
MATRIX = "0.05,0.03;0.03,0.05"
PAIR = np.array([[0.05, 0.03], [0.03, 0.05]])


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def output(*arguments):
    result = call(*arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def rows(*arguments):
    """The rows that a command prints, the same from CSV and from JSON."""
    from_json = json.loads(output(*arguments, "--format", "json"))
    text = output(*arguments, "--format", "csv")
    from_csv = list(csv.DictReader(io.StringIO(text)))
    assert len(from_json) == len(from_csv)
    for one, other in zip(from_json, from_csv, strict=True):
        assert {name: str(value) for name, value in one.items()} == other
    return from_json


def refusal(*arguments):
    """The one line on stderr that bad input gets, with exit code 2 and nothing on stdout."""
    result = call(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    return line.removeprefix("error: ")


def column(table, name):
    return np.array([row[name] for row in table])


class TestHelp:
    def test_names_all_commands(self):
        text = output("--help")
        for command in COMMANDS:
            assert re.search(rf"\b{command}\b", text)
        assert call().exit_code == 2
        assert "Usage" in call().stdout

    @pytest.mark.parametrize("command", COMMANDS)
    def test_every_command_has_examples_that_name_real_options(self, command):
        text = output(command, "--help")
        examples = re.findall(rf"fieldtheory {command}[^│\n]*", text)
        assert examples
        for option in set(re.findall(r" (--?[a-zA-Z][a-zA-Z0-9-]*)", " ".join(examples))):
            assert re.search(rf"│.*{option}\b", text), option

    def test_asterisks_of_expressions_survive(self):
        assert "tanh(2*h)" in output("solve", "--help")

    def test_version(self):
        assert re.fullmatch(r"fieldtheory \d+\.\d+\.\d+\S*\n", output("--version"))


class TestDerive:
    def test_prints_the_latex_of_the_derivation(self):
        assert output("derive", "-L", 1) == ft.derive(1).latex("hessian") + "\n"
        shown = output("derive", "-L", 1, "--inputs", 2, "--what", "saddle_point")
        assert shown == ft.derive(1, inputs=2).latex("saddle_point") + "\n"

    def test_activation(self):
        shown = output("derive", "-L", 1, "-w", "S21", "-a", "h**3")
        assert shown == ft.derive(1, activation=ft.Activation(_cube())).latex("S21") + "\n"
        assert r"\phi" not in shown

    def test_everything_that_can_be_asked_for_renders(self, katex_failures):
        names = ("action", "propagator", "S11", "S12", "S22", "G11", "G12", "G21", "G22")
        assert katex_failures({n: output("derive", "-L", 1, "-w", n) for n in names}) == {}


def _cube():
    import sympy as sp

    return sp.Symbol("h", real=True) ** 3


class TestSolve:
    def test_one_input(self):
        table = rows("solve", "-L", 3, "--branch-scale", "0.5,0.3,0.1", "--skip-scale", 0.9)
        net = ft.ResidualNetwork(depth=3, branch_scale=(0.5, 0.3, 0.1), skip_scale=0.9)
        s = ft.solve(net, 0.05)
        assert column(table, "layer").tolist() == [0, 1, 2, 3, 4]
        np.testing.assert_array_equal(column(table, "C"), s.residual_kernels)
        np.testing.assert_array_equal(column(table, "K"), s.kernels)
        np.testing.assert_array_equal(column(table, "eta")[:-1], s.residual_response)
        np.testing.assert_array_equal(column(table, "chi")[:-1], s.response)
        assert table[-1]["chi"] == table[-1]["eta"] == s.output_response

    def test_two_inputs(self):
        table = rows("solve", "-L", 2, "--K0", MATRIX)
        s = ft.solve(ft.ResidualNetwork(depth=2), PAIR)
        assert len(table) == 4 * 3
        for row in table:
            l, a, b = row["layer"], row["alpha"] - 1, row["beta"] - 1
            assert row["K"] == s.kernels[l, a, b]
            assert row["C"] == s.residual_kernels[l, a, b]
            assert row["chi"] == (s.response[l, a, b] if l < 3 else s.output_response[a, b])

    def test_every_option_reaches_the_network(self):
        options = {
            "--activation": "relu",
            "--branch-scale": 0.4,
            "--skip-scale": 0.8,
            "--weight-variance": 1.5,
            "--bias-variance": 0.1,
            "--readout-weight-variance": 0.7,
            "--readout-bias-variance": 0.2,
            "--width": 300,
        }
        flat = [part for option in options.items() for part in option]
        table = rows("solve", "-L", 2, "-k", 0.3, "--fluctuations", *flat)
        names = {name.removeprefix("--").replace("-", "_"): v for name, v in options.items()}
        s = ft.solve(ft.ResidualNetwork(depth=2, **names), 0.3)
        np.testing.assert_array_equal(column(table, "K"), s.kernels)
        np.testing.assert_array_equal(column(table, "var_C"), np.diag(s.G11))
        np.testing.assert_array_equal(column(table, "var_K")[:-1], s.kernel_variance)

    def test_kernel_from_a_file(self, tmp_path):
        np.savetxt(tmp_path / "K0.csv", PAIR, delimiter=",")
        from_file = rows("solve", "-L", 1, "--K0", tmp_path / "K0.csv")
        assert from_file == rows("solve", "-L", 1, "--K0", MATRIX)

    def test_expression_is_the_named_activation(self):
        assert rows("solve", "-L", 2, "-a", "max(0, h)") == rows("solve", "-L", 2, "-a", "relu")

    def test_table_shows_the_numbers(self):
        text = output("solve", "-L", 2)
        s = ft.solve(ft.ResidualNetwork(depth=2), 0.05)
        for value in (*s.kernels, *s.response, s.output_response):
            assert format(value, ".6g") in text
        assert "layer 3 is the output" in text

    def test_warning_is_one_line(self):
        result = call("solve", "-L", 5, "-a", "relu", "--fluctuations", "--width", 1)
        assert result.exit_code == 0
        (line,) = result.stderr.splitlines()
        assert line.startswith("warning: kernels fluctuate by")


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
            return main_job.Summary(
                folder, page, 8, 0.123456789, 0.5, "different classes", 4e-16, 0
            )

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
        failed = main_job.Summary(tmp_path, tmp_path / "x", 8, 0.1, 0.5, "same class", 0.1, 2)
        monkeypatch.setattr(main_job, "run", lambda *_: failed)
        result = call("run")
        assert result.exit_code == 1
        assert result.stderr == "2 checks fail, see checks.csv.\n"


NETWORK_ERRORS = [
    (["--depth", 0], "depth must be an integer >= 1, got 0"),
    (["--depth", 2.5], "--depth"),
    (["--depth", "many"], "--depth"),
    (["--weight-variance", -1], "weight_variance must be"),
    (["--bias-variance", "nan"], "bias_variance must be"),
    (["--readout-weight-variance", "inf"], "readout_weight_variance must be"),
    (["--readout-bias-variance", -0.1], "readout_bias_variance must be"),
    (["--depth", 3, "--skip-scale", "1,1"], "skip_scale must be"),
    (["--skip-scale", "nan"], "skip_scale must be"),
    (["--activation", "nonsense"], "activation must be"),
    (["--activation", "tanh(x*y)"], "activation must be"),
    (["--activation", "__import__('os').getcwd()"], "activation must be"),
    (["--K0", "0.05,0.06;0.06,0.05"], "K0 must be positive semidefinite"),
    (["--K0", "1,2,3;4,5,6"], "K0 must be"),
    (["--K0", "1,0.5;0.4,1"], "K0 must be symmetric"),
    (["--K0", -1], "K0 must be"),
    (["--K0", "nan"], "K0 must be"),
    (["--K0", "missing.csv"], "K0 must be"),
    (["--format", "xml"], "--format"),
    (["--colour", "red"], "--colour"),
]


class TestBadInput:
    @pytest.mark.parametrize("command", ["solve", "optimum"])
    @pytest.mark.parametrize(("arguments", "words"), NETWORK_ERRORS)
    def test_of_a_network(self, command, arguments, words):
        assert words in refusal(command, *arguments)

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["solve", "--depth", 3, "--branch-scale", "1,2"], "branch_scale must be"),
            (["solve", "--branch-scale", "inf"], "branch_scale must be"),
            (["solve", "--width", 0], "width must be"),
            (["solve", "--fluctuations", "--K0", MATRIX], "G11 is for one input"),
            (["solve", "-a", "exp(h)", "-L", 30], "exceeds the range of float64"),
            (["solve", "-a", "1/h", "-L", 1], "did not converge"),
            (["optimum", "--method", "guess"], "--method"),
            (["optimum", "-m", "saturation", "-a", "gelu", "--K0", MATRIX], "K0 must be"),
            (["optimum", "-a", "relu"], "network must have a response with a maximum"),
            (["derive", "--depth", 0], "depth must be"),
            (["derive", "--inputs", 0], "inputs must be"),
            (["derive", "--what", "nothing"], "--what"),
            (["verify", "--digits", 3], "digits must be"),
            (["nothing"], "nothing"),
        ],
    )
    def test_of_a_command(self, arguments, words):
        assert words in refusal(*arguments)

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


class TestProcess:
    """The installed command, as a shell sees it."""

    def shell(self, command):
        path = Path(sys.executable).parent
        environment = os.environ | {"PATH": f"{path}:{os.environ['PATH']}"}
        return subprocess.run(
            ["bash", "-c", command], capture_output=True, text=True, timeout=120, env=environment
        )

    def test_output_can_be_piped_and_cut(self):
        done = self.shell("set -o pipefail; fieldtheory derive -L 1 -w S21 | head -c 16")
        assert (done.stdout, done.stderr) == (r"\mathcal{S}_{21}", "")
        done = self.shell("fieldtheory solve -L 2000 -f csv | head -n 1")
        assert (done.stdout, done.stderr) == ("layer,C,K,eta,chi\n", "")

    def test_bad_input(self):
        done = self.shell("fieldtheory solve --depth 0")
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr == "error: depth must be an integer >= 1, got 0\n"
