"""The command `measure`: blocks from modules, its numbers in every format, and bad input."""

import os

import numpy as np
import pytest

import fieldtheory as ft
from tests.cli.test_app import call, output, refusal, rows

SOURCE = """
import numpy as np


def single(width, rng):
    weights = rng.normal(size=(width, width)) / width**0.5
    return lambda z: np.tanh(z) @ weights.T


class deep:
    inner = staticmethod(single)


def narrow(width, rng):
    return lambda z: z[:, 1:]
"""


def single(width, rng):
    weights = rng.normal(size=(width, width)) / width**0.5
    return lambda z: np.tanh(z) @ weights.T


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_blocks_of_test.py").write_text(SOURCE)
    (tmp_path / "broken_blocks_of_test.py").write_text("1 / 0")


SMALL = ("measure", "--width", 20, "-n", 40, "--block")
BLOCK = "my_blocks_of_test:single"


@pytest.mark.parametrize(
    "block", [BLOCK, "my_blocks_of_test:deep.inner", "./my_blocks_of_test.py:single"]
)
def test_numbers(block):
    m = ft.measure_block(single, 20, 40, K0=[[1.0, 0.5], [0.5, 1.0]], skip_scale=0.9, seed=3)
    options = ("--K0", "1,0.5;0.5,1", "--skip-scale", 0.9, "--seed", 3)
    assert rows(*SMALL, block, *options) == m.rows


def test_table_says_what_to_do(tmp_path):
    text = output(*SMALL, BLOCK, "--save", "m.npz")
    m = ft.measure_block(single, 20, 40)
    assert "single, width 20, 40 samples" in text
    assert text.rstrip().endswith(m.statement)
    assert repr(ft.BlockMeasurement.load("m.npz")) == repr(m)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Missing option '--block'"),
        (["--block", "single"], "block must be module:name, such as blocks:two_layers"),
        (["--block", ":single"], "block must be module:name"),
        (["--block", "no_such_module:f"], "got 'no_such_module': ModuleNotFoundError"),
        (["--block", "no_such_file.py:f"], "got 'no_such_file.py': FileNotFoundError"),
        (["--block", "broken_blocks_of_test:f"], "ZeroDivisionError: division by zero"),
        (["--block", "my_blocks_of_test:double"], "my_blocks_of_test, which has no 'double'"),
        (["--block", "my_blocks_of_test:narrow", "-n", 20], "got shape (1, 63)"),
        (["--block", BLOCK, "-n", 3], "samples must be an integer >= 20"),
        (["--block", BLOCK, "--width", 0], "width must be an integer >= 1, got 0"),
        (["--block", BLOCK, "--K0", 0], "K0 must have a variance > 0"),
        (["--block", BLOCK, "-n", 20, "--skip-scale", 1], "skip_scale must be below 1"),
        (["--block", BLOCK, "--gamma", 1], "did you mean --skip-scale (γ)?"),
        (["--block", BLOCK, "--save", "m.txt"], "save must be a file that ends in .npz"),
    ],
)
def test_bad_input(arguments, words):
    before = sorted(set(os.listdir()) - {"__pycache__"})
    assert words in refusal("measure", *arguments)
    assert sorted(set(os.listdir()) - {"__pycache__"}) == before


def test_interrupted(monkeypatch):
    from fieldtheory.blocks import measuring

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(measuring, "measure_block", interrupted)
    result = call(*SMALL, BLOCK, "--save", "m.npz")
    assert (result.exit_code, result.stderr) == (130, "interrupted\n")
    assert not os.path.exists("m.npz")
