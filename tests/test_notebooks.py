"""The notebooks run, and their committed outputs are what they give."""

import re
import runpy
from pathlib import Path

import pytest

from tests.tables import some

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
DECIMAL = re.compile(r"\d+\.(\d+)(?:e([-+]\d+))?")


@pytest.fixture(scope="module")
def script():
    """What `execute.py` defines; it imports nbformat, which takes seconds."""
    return runpy.run_path(str(FOLDER / "execute.py"))


def texts(cell):
    """What the outputs of a cell say, by place and kind; of a picture only that it is there."""
    return {
        (i, kind): "" if kind == "image/png" else text
        for i, output in enumerate(cell.get("outputs", ()))
        for kind, text in output.get("data", {"stream": output.get("text", "")}).items()
    }


def agree(shown, new):
    """The same letters and integers; decimals up to the last digit shown, or ten digits."""
    if DECIMAL.sub("#", shown) != DECIMAL.sub("#", new):
        return False
    for old, again in zip(DECIMAL.finditer(shown), DECIMAL.finditer(new), strict=True):
        digit = 10.0 ** (int(old[2] or 0) - len(old[1]))
        difference = abs(float(old[0]) - float(again[0]))
        if difference > max(1.01 * digit, 1e-10 * float(old[0])):
            return False
    return True


# These are quick; each of the others takes half a minute.
QUICK = [path for path in NOTEBOOKS if path.name[:2] in ("01", "08", "09", "10", "11", "12")]


@pytest.mark.slow
@pytest.mark.parametrize("path", some(NOTEBOOKS, QUICK), ids=lambda path: path.stem)
def test_outputs_are_those_of_an_execution(script, path):
    if "import torch" in path.read_text(encoding="utf-8"):
        pytest.importorskip("torch", reason="torch is not installed")
    shown, new = script["nbformat"].read(path, as_version=4), script["executed"](path)
    for old, again in zip(shown.cells, new.cells, strict=True):
        found, expected = texts(old), texts(again)
        assert found.keys() == expected.keys(), old.source
        for key in found:
            assert agree(found[key], expected[key]), f"{old.source}\n{found[key]}\n{expected[key]}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_nothing_is_kept_that_differs_from_run_to_run(script, path):
    written = path.read_text(encoding="utf-8")
    again = script["normalised"](script["nbformat"].reads(written, as_version=4))
    assert script["nbformat"].writes(again) + "\n" == written


def test_all_are_executed_and_small(script):
    assert script["notebooks"]() == NOTEBOOKS
    assert sum(path.stat().st_size for path in NOTEBOOKS) < 2_000_000


@pytest.mark.parametrize(
    ("shown", "new", "same"),
    [
        ("L = 10: 0.3265", "L = 10: 0.3266", True),
        ("L = 10: 0.3265", "L = 10: 0.3268", False),
        ("L = 10: 0.3265", "L = 20: 0.3265", False),
        ("0.5872532097884725", "0.5872532097884999", True),
        ("0.5872532097884725", "0.5872532197884725", False),
        ("1.25e-07", "1.26e-07", True),
        ("1.25e-07", "1.28e-07", False),
        ("C^{(0)}", "C^{(1)}", False),
    ],
)
def test_numbers_are_compared_by_the_digits_shown(shown, new, same):
    assert agree(shown, new) is same
