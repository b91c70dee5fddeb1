"""Every command: its help, its numbers in every format, and one line for bad input."""

import csv
import io
import json
import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from fieldtheory.cli.app import app, main
from tests.tables import slow

COMMANDS = (
    "derive",
    "solve",
    "tangent",
    "diffusion",
    "sweep",
    "optimum",
    "critical",
    "simulate",
    "measure",
    "audit",
    "verify",
    "figures",
    "run",
)
MATRIX = "0.05,0.03;0.03,0.05"
PAIR = np.array([[0.05, 0.03], [0.03, 0.05]])
PARAMETERS = {
    "activation": "relu",
    "branch_scale": 0.4,
    "skip_scale": 0.8,
    "weight_variance": 1.5,
    "bias_variance": 0.1,
    "readout_weight_variance": 0.7,
    "readout_bias_variance": 0.2,
    "width": 300,
}


def typed(parameters):
    """Options with these values."""
    return [x for name, v in parameters.items() for x in (f"--{name.replace('_', '-')}", v)]


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def said(result):
    """The lines on stderr but for notes."""
    return [line for line in result.stderr.splitlines() if not line.startswith("note: ")]


def output(*arguments):
    result = call(*arguments)
    assert (result.exit_code, said(result)) == (0, [])
    return result.stdout


def rows(*arguments):
    """The rows that a command prints, the same from CSV and from JSON."""
    from_json = json.loads(output(*arguments, "--format", "json"))
    text = output(*arguments, "--format", "csv")
    from_csv = list(csv.DictReader(io.StringIO(text)))
    assert len(from_json) == len(from_csv)
    # A second run may round otherwise.
    for one, other in zip(from_json, from_csv, strict=True):
        assert list(one) == list(other)
        for value, text in zip(one.values(), other.values(), strict=True):
            if isinstance(value, float):
                assert float(text) == pytest.approx(value, rel=1e-9, nan_ok=True)
            else:
                assert text == ("" if value is None else str(value))
    return from_json


def refusal(*arguments):
    """The one line on stderr that bad input gets, with exit code 2 and nothing on stdout."""
    result = call(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = said(result)
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


def test_lists_of_help_pages_are_those_of_the_package():
    """They are written out, since a help page loads no formulas."""
    from fieldtheory.audits.intents import INTENTS
    from fieldtheory.cli import options
    from fieldtheory.networks.activations import ACTIVATIONS
    from fieldtheory.networks.block import BlockNetwork
    from fieldtheory.networks.schedules import SCHEDULES

    assert options.ACTIVATIONS.split(", ") == list(ACTIVATIONS)
    assert options.INTENTS.split(", ") == list(INTENTS)
    formulas = ", ".join(f"{name} {s.formula}" for name, s in SCHEDULES.items())
    assert formulas == options.SCHEDULES
    default = BlockNetwork(depth=1)
    of_block = {n: option for n, (option, _) in options.OF_FAMILIES.items() if n != "family"}
    own = [f.name for f in fields(BlockNetwork) if f.name not in options.PARAMETERS]
    assert {*of_block, "input_dim"} == {*own}
    for name, option in of_block.items():
        shown = option.__metadata__[0].show_default
        unsaid = "1" if name == "gate_weight_variance" else "none"
        value = "no-gated" if name == "gated" else getattr(default, name)
        if isinstance(value, float):
            value = f"{value:g}"
        assert shown == (unsaid if value is None else value)


class TestProcess:
    """The installed command, as a shell sees it."""

    def shell(self, command, encoding="utf-8"):
        path = Path(sys.executable).parent
        environment = os.environ | {"PATH": f"{path}:{os.environ['PATH']}"}
        return subprocess.run(
            ["bash", "-c", command],
            capture_output=True,
            encoding=encoding,
            errors="replace",
            env=environment,
        )

    @pytest.mark.slow
    def test_output_can_be_piped_and_cut(self):
        done = self.shell("set -o pipefail; fieldtheory solve -L 2000 -f csv | head -n 1")
        assert (done.stdout, done.stderr) == ("layer,C,K,eta,chi\n", "")

    def test_help_and_typos_load_nothing_that_computes(self):
        """Seconds depend on the machine; what takes them are these modules."""
        program = (
            "import sys; from fieldtheory.cli.app import app\n"
            "for words in sys.argv[1].split(';'):\n"
            "    try: app(words.split())\n"
            "    except SystemExit: pass\n"
            "    heavy = {'sympy', 'numpy', 'scipy', 'fieldtheory.front'} & set(sys.modules)\n"
            "    # What typer checks options with: a help page has none.\n"
            "    heavy |= {'pydantic'} & set(sys.modules) if '--help' in words else set()\n"
            "    assert not heavy, (words, heavy)\n"
            "    assert len(sys.modules) < 700, (words, len(sys.modules))"
        )
        typed = ("--help", "--version", "slove", "run -d", "--rho 1")
        calls = [" ".join((name, words)) for words in typed for name in ("", *COMMANDS)]
        done = subprocess.run(
            [sys.executable, "-c", program, ";".join(calls)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr

    def test_bad_input(self):
        done = self.shell("PYTHONIOENCODING=ascii fieldtheory solve --rho 0 --gamma 1", "ascii")
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr == "error: no such option --rho: did you mean --branch-scale (rho)?\n"


@pytest.mark.parametrize("encoding", [slow("ascii"), "latin-1", slow("cp1252")])
def test_any_encoding_takes_the_output(encoding, monkeypatch):
    """A process whose streams have this encoding, but for its start."""

    def shown(command):
        streams = [io.TextIOWrapper(io.BytesIO(), encoding) for _ in range(2)]
        with monkeypatch.context() as process, pytest.raises(SystemExit) as ended:
            for name, stream in zip(("stdout", "stderr"), streams, strict=True):
                process.setattr(sys, name, stream)
            process.setattr(sys, "argv", ["fieldtheory", *command.split()])
            main()
        texts = []
        for stream in streams:
            stream.flush()
            texts.append(stream.buffer.getvalue().decode(encoding))
        return ended.value.code, *texts

    for command in ("--help", "solve --help", "solve", "solve -L 1 -f json", "derive -L 1"):
        code, printed, said = shown(command)
        assert (code, said) == (0, ""), command
        assert "\ufffd" not in printed and ("phi = erf" in printed) == (command == "solve")
    code, _, said = shown("solve --rho 1")
    assert code == 2 and "--branch-scale (rho)" in said


def test_a_package_that_wrote_over_this_one_is_named(monkeypatch):
    monkeypatch.delattr("fieldtheory._ROOMS")
    with pytest.raises(SystemExit, match="is not that of fieldtheory-networks"):
        main()
