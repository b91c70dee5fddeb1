"""The command `measure`: blocks from modules, its numbers in every format, and bad input."""

import numpy as np
import pytest

import fieldtheory as ft
from tests.cli.test_app import output, rows
from tests.rounding import same

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


SMALL = ("measure", "--width", 20, "-n", 40, "--block")
BLOCK = "my_blocks_of_test:single"


@pytest.mark.slow_but(0)
@pytest.mark.parametrize(
    "block", [BLOCK, "my_blocks_of_test:deep.inner", "./my_blocks_of_test.py:single"]
)
def test_numbers(block):
    m = ft.measure_block(single, 20, 40, K0=[[1.0, 0.5], [0.5, 1.0]], skip_scale=0.9, seed=3)
    options = ("--K0", "1,0.5;0.5,1", "--skip-scale", 0.9, "--seed", 3)
    assert rows(*SMALL, block, *options) == [same(row) for row in m.rows]


def test_table_says_what_to_do():
    text = output(*SMALL, BLOCK)
    m = ft.measure_block(single, 20, 40)
    assert "single, width 20, 40 samples" in text
    assert text.rstrip().endswith(m.statement)
