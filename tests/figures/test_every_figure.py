"""What all figures have in common: a bar that counts, and a line of what is chosen here."""

import re
from importlib import import_module

import pytest

import fieldtheory as ft
from fieldtheory.cli.figures_command import FIGURES
from fieldtheory.data import load_mnist
from fieldtheory.figures.parts import in_turn

SIMULATED = {"depth": 2, "samples": 20, "inputs": 2}
SMALL = {
    "f23.fig1": {"depth": 3, "points": 5},
    "f23.fig2": SIMULATED,
    "f23.fig3": {"depth": 3},
    "f23.fig4": {"depths": (2, 3), "points": 8},
    "f23.fig5": {"depth": 3, "points": 5},
    "f23.fig6": SIMULATED,
    "f25.fig1": {"depth": 3, "points": 5},
    "f25.fig2": SIMULATED,
    "f25.fig3": {"depth": 3},
    "f25.fig4": {"depths": (2, 3), "points": 5},
    "f25.fig5": {"depths": (4,), "weight_variances": (1.25,), "dataset": load_mnist(count=4)},
    "f25.fig6": {"count": 4, "network": ft.ResidualNetwork(depth=3)},
    "f25.fig7": {"quick": True},
    "f25.fig8": SIMULATED,
    "f25.fig9": {"count": 4},
    "learning.scaling": {"depths": (2,), "multiples": (1.0,), "training": 4, "tested": 2},
    "pdlt.closure": {"depth": 3, "samples": 20},
    "pf.fig1": {"depth": 3, "width": 10, "samples": 20},
    "pf.fig2": {"depth": 3, "width": 10, "samples": 20},
    "pf.fig3": {"sizes": ((3, 5),), "samples": 20},
    "pf.fig4": {"depth": 3, "width": 10, "samples": 20, "points": 2},
    "pf.fig5": {"quick": True},
    "sr.fig1": {"depths": (1, 2)},
    "sr.fig2": {"depths": (2, 3), "count": 3},
    "sr.fig3": {"depth": 3, "points": 5},
    "sr.gradients": {"depths": (2, 3), "width": 20, "samples": 20},
    "sr.table2": {"depths": (2,), "training": 20, "splits": 2},
    "sr.table3": {"quick": True},
    "sr.width": {"depths": (2, 3), "samples": 20},
    "width.orders": {"widths": (4, 8), "samples": 20},
}


def test_every_figure_is_here():
    assert set(SMALL) == set(FIGURES)


@pytest.mark.parametrize("name", SMALL)
def test_progress_is_shown_on_stderr_if_wanted(name, capsys, monkeypatch):
    monkeypatch.setattr("fieldtheory.numerics.chunks.SILENCE", 0.0)
    if "quick" in SMALL[name]:
        pytest.importorskip("torch", reason="torch is not installed")
    paper, figure = name.split(".")
    module = import_module(f"fieldtheory.figures.{paper}")
    compute = getattr(module, figure)
    compute(**SMALL[name])
    assert capsys.readouterr().err == ""
    numbers = compute(**SMALL[name], progress=True)
    shown = capsys.readouterr().err
    assert re.search(r"\b(\d+) of \1\n", shown) and any(
        word in shown for word in ("simulate", "fig", name)
    )
    drawn = getattr(module, f"draw_{figure}")(numbers)
    # The caption of F25 Fig. 4 leaves nothing open.
    assert drawn.get_supxlabel().startswith("chosen here: ") == (name != "f25.fig4")


def test_parts_are_computed_in_their_order(capsys, monkeypatch):
    monkeypatch.setattr("fieldtheory.numerics.chunks.SILENCE", 0.0)
    done = []
    parts = [lambda i=i: done.append(i) or i * i for i in range(4)]
    assert in_turn(parts, "squares", progress=True) == [0, 1, 4, 9]
    assert done == [0, 1, 2, 3]
    assert "squares" in capsys.readouterr().err
