"""The files of a figure, and the look."""

import csv
import sys

import matplotlib.image
import numpy as np
import pytest

from fieldtheory.figures import f25
from fieldtheory.plotting import style
from fieldtheory.plotting.curves import Curve, write_csv


@pytest.fixture(scope="module")
def numbers():
    return f25.fig3(depth=4)


def rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_files_are_picture_and_numbers(tmp_path, numbers):
    png = style.save(f25.draw_fig3(numbers), numbers.curves(), tmp_path, "fig3")
    assert {path.name for path in tmp_path.iterdir()} == {"fig3.png", "fig3.pdf", "fig3.csv"}
    image = matplotlib.image.imread(png)
    assert min(image.shape[:2]) > 400
    assert 0.3 < (image[..., :3].min(axis=2) == 1).mean() < 0.98
    table = rows(tmp_path / "fig3.csv")
    for panel, values in (("a", numbers.kernels), ("b", numbers.response)):
        for label, row in zip(("rho = 1", "rho = 0.3", "rho = 0.1"), values, strict=True):
            found = [r for r in table if (r["panel"], r["curve"]) == (panel, label)]
            assert [float(r["y"]) for r in found] == row.tolist()
            assert [r["x"] for r in found] == ["0", "1", "2", "3", "4"]


@pytest.mark.slow
def test_files_repeat(tmp_path, numbers):
    files = []
    for _ in range(2):
        style.save(f25.draw_fig3(numbers), numbers.curves(), tmp_path, "fig3")
        files.append([(tmp_path / f"fig3.{kind}").read_bytes() for kind in ("pdf", "csv")])
    assert files[0] == files[1]


def test_csv_keeps_every_digit_and_the_errors(tmp_path):
    generator = np.random.default_rng(0)
    x, y, error = generator.normal(size=(3, 40)) * 10.0 ** generator.integers(-20, 20, 40)
    curves = [Curve("a", "p, q", x, y, error), Curve("b", "plain", x, -y)]
    write_csv(curves, tmp_path / "numbers.csv")
    table = rows(tmp_path / "numbers.csv")
    first, second = table[:40], table[40:]
    assert {r["curve"] for r in first} == {"p, q"} and {r["panel"] for r in second} == {"b"}
    for name, values in (("x", x), ("y", y), ("error", error)):
        assert [float(r[name]) for r in first] == values.tolist()
    assert {r["error"] for r in second} == {""}


def test_names_the_extra_without_matplotlib(monkeypatch, numbers):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install fieldtheory-networks\[figures\]"):
        f25.draw_fig3(numbers)
