"""What all figures have in common: bars, the line of what is chosen, curves that are drawn."""

import re
from functools import cache

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.cli.figures_command import FIGURES
from fieldtheory.data import load_mnist
from fieldtheory.figures import f25, learning, pf, sr, width
from fieldtheory.figures.parts import Numbers, in_turn
from fieldtheory.plotting.curves import Curve

SIMULATED = {"depth": 2, "samples": 20, "inputs": 2}
SMALL = {
    "blocks.depths": {"depths": (2, 4)},
    "blocks.layers": {"depth": 3},
    "blocks.width": {"depth": 2, "samples": 20},
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
    "learning.response": {"quick": True},
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
    "sr.table2": {"depths": (2,), "training": 20, "splits": 2},
    "sr.table3": {"quick": True},
    "sr.width": {"depths": (2, 3), "samples": 20},
    "transformers.layers": {"depth": 2, "tokens": 3},
    "transformers.tokens": {"depth": 2, "tokens": 3},
    "width.orders": {"widths": (4, 8), "samples": 20},
}
# Curves that are in the csv file alone, or drawn at some of their points, as a line across the
# panel, as densities, or divided by the largest entry.
NOT_LINES = {
    "f23.fig2": "a FFNet, fixed point",
    "f25.fig2": "a FFNet, fixed point",
    "f25.fig7": "c.*",
    "learning.scaling": "(readout|evidence_error|misclassified_nngp|expansion_ratio) .*",
    "pdlt.closure": ". simulation",
    "pf.fig2": "a .*",
}
# A curve, and the value that it is.
CURVES = {
    ("blocks.depths", "d", "RMSNorm, rho = 1"): ("tangents", 0, 0),
    ("blocks.layers", "c", "no norm, rho = 1/L"): ("shares", 1, 3),
    ("blocks.width", "d", r"no norm, rho = 1/\sqrt{L}, N = 768"): ("correlations", 1, 1, 0),
    ("f23.fig1", "b", "phi"): ("activation",),
    ("f23.fig4", "a", "L = 3"): ("response", 1),
    ("f23.fig4", "b", "F23 (8)"): ("curve_printed",),
    ("f23.fig5", "c", "sigma_w^2 = 1.25"): ("weight_rescaled", 1),
    ("f23.fig5", "d", "sigma_b^2 = 0.06"): ("bias_response", 1),
    ("f25.fig1", "d", "marked"): ("output_response",),
    ("f25.fig2", "a", "FFNet, theory"): ("kernels", 1),
    ("f25.fig2", "a", "ResNet, simulation"): ("simulated_kernels", 0),
    ("f25.fig2", "b", "FFNet, simulation"): ("simulated_response", 1),
    ("f25.fig3", "b", "rho = 0.3"): ("response", 1),
    ("f25.fig4", "b", "L = 3"): ("response", 1, 1),
    ("f25.fig4", "a", "maxima"): ("maxima", 0),
    ("f25.fig4", "c", "off-diagonal"): ("scaling", 1),
    ("f25.fig5", "b", "weight variance 1.25"): ("by_weight_variance", 1, 0),
    ("f25.fig5", "a", "bias variance 0"): ("by_bias_variance", 0, 0),
    ("f25.fig6", "b", "alpha = 2"): ("matrices", 1, 1),
    ("f25.fig9", "a", "alpha = 1"): ("matrices", 0, 0),
    ("learning.scaling", "alignment", "digits, L = 2"): ("alignment", 1, 0),
    ("pf.fig1", "ReLU", "quantile 95 %, simulation"): ("quantiles", 1, 2),
    ("pf.fig2", "c", "limit"): ("density", 1),
    ("pf.fig3", "swish, L = 3, D = 5", "draw 1"): ("draws", 1, 0),
    ("pf.fig4", "diffusion, swish, theory", "z = 2"): ("theory", 1, 1),
    ("sr.fig1", "a", "decreasing, NTK"): ("tangent_kernels", 1),
    ("sr.fig2", "b", "uniform, L = 3"): ("eigenvalues", 1, 2, 1),
    ("sr.fig3", "b", "decreasing"): ("mean", 1),
    ("sr.table2", "b", "unscaled, L = 2"): ("accuracies", 0, 0),
    ("sr.width", "a", "unscaled, simulation"): ("simulated", 0),
    ("transformers.layers", "b", r"rho = 1/\sqrt{2L}, MLP"): ("shares", 1, 1),
    ("transformers.tokens", "a", "s = 4"): ("correlations", 2),
    ("transformers.tokens", "b", "no mask, last block"): ("attention_shares", 1, 1),
    ("width.orders", "d", "relu, simulation"): ("simulated", 1, 1),
}


def functions(name):
    """The function that computes a figure, and the one that draws it."""
    if "quick" in SMALL[name]:
        pytest.importorskip("torch", reason="torch is not installed")
    paper, figure = name.split(".")
    module = getattr(ft.figures, paper)
    return getattr(module, figure), getattr(module, f"draw_{figure}")


@cache
def small(name):
    return functions(name)[0](**SMALL[name])


def test_every_figure_is_here():
    assert set(SMALL) == set(FIGURES)


@pytest.mark.slow_but(5, 8, 9, 11, 13, 26, 28)
@pytest.mark.parametrize("name", SMALL)
def test_progress_is_shown_on_stderr_if_wanted(name, capsys, monkeypatch):
    monkeypatch.setattr("fieldtheory.numerics.chunks.SILENCE", 0.0)
    compute, draw = functions(name)
    small(name)
    assert capsys.readouterr().err == ""
    numbers = compute(**SMALL[name], progress=True)
    assert type(numbers) is Numbers
    shown = capsys.readouterr().err
    assert re.search(r"\b(\d+) of \1\n", shown) and any(
        word in shown for word in ("simulate", "fig", name)
    )
    # The caption of F25 Fig. 4 leaves nothing open.
    assert draw(numbers).get_supxlabel().startswith("chosen here: ") == (name != "f25.fig4")


def drawn_rows(figure):
    """Values of all lines, points of scatters, and rows of images and meshes."""
    for ax in figure.axes:
        yield from (line.get_ydata() for line in ax.lines)
        for image in (*ax.images, *ax.collections):
            values = image.get_array()
            if hasattr(image, "get_coordinates"):
                yield from np.reshape(values, np.subtract(image.get_coordinates().shape[:2], 1))
            elif image in ax.images:
                yield from values
            elif hasattr(image, "get_offsets"):
                yield image.get_offsets()[:, 1]


@pytest.mark.slow_but(0, 3, 7, 11, 16, 20, 26, 32, 34)
@pytest.mark.parametrize("name", SMALL)
def test_curves_are_drawn(name):
    numbers = small(name)
    rows = [np.ravel(row) for row in drawn_rows(functions(name)[1](numbers))]
    points = {float(row[0]) for row in rows if len(row) == 1}
    for curve in numbers.curves():
        if re.fullmatch(NOT_LINES.get(name, ""), f"{curve.panel} {curve.label}"):
            continue
        same = [row for row in rows if len(row) == len(curve.y)]
        # Some are drawn in per cent.
        assert any(
            np.allclose(row, factor * curve.y, rtol=1e-12, atol=0, equal_nan=True)
            for row in same
            for factor in (1, 100)
        ) or points >= set(curve.y.tolist()), (curve.panel, curve.label)


@pytest.mark.parametrize(("curve", "value"), CURVES.items(), ids=map(" ".join, CURVES))
def test_curves_are_the_values(curve, value):
    name, panel, label = curve
    numbers = small(name)
    (row,) = [each.y for each in numbers.panels()[panel] if each.label == label]
    key, *index = value
    expected = numbers.values[key]
    for i in index:
        expected = expected[i]
    np.testing.assert_array_equal(row, expected)


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("f25.fig7", "3 layers of 30 neurons, 10 images, 60 steps"),
        ("pf.fig5", "5 epochs of 200"),
        ("sr.table3", "10 neurons, 200 images of MNIST; errors over 2 networks"),
    ],
)
def test_notes_of_quick_figures_state_their_own_sizes(name, sizes):
    assert sizes in small(name).chosen


def test_values_are_attributes_and_errors_name_them():
    numbers = Numbers([Curve("a", "p", np.arange(2), np.arange(2))], values={"response": 1.5})
    assert numbers.response == 1.5 and "response" in dir(numbers) and "curves" in dir(numbers)
    with pytest.raises(AttributeError, match="numbers of the figure are response, got 'chi'"):
        numbers.chi  # noqa: B018


def test_parts_are_computed_in_their_order(capsys, monkeypatch):
    monkeypatch.setattr("fieldtheory.numerics.chunks.SILENCE", 0.0)
    done = []
    parts = [lambda i=i: done.append(i) or i * i for i in range(4)]
    assert in_turn(parts, "squares", progress=True) == [0, 1, 4, 9]
    assert done == [0, 1, 2, 3]
    assert "squares" in capsys.readouterr().err


REFUSED = [
    (f25.fig2, {"inputs": 1}, "inputs must be an integer >= 2, got 1"),
    (f25.fig2, {"samples": 3, "inputs": 2}, "samples must be an integer >= 20"),
    (f25.fig2, {"seed": -1}, "seed must be an integer >= 0, got -1"),
    (f25.fig2, {"depth": 0}, "depth must be an integer >= 1, got 0"),
    (f25.fig4, {"depths": (10,)}, "depths must hold at least two different depths"),
    (f25.fig4, {"depths": (10, 10)}, "depths must hold at least two different depths"),
    (f25.fig4, {"depths": (0, 10)}, "depths must be an integer >= 1, got 0"),
    (f25.fig5, {"depths": (0,)}, "depths must be an integer >= 1"),
    (f25.fig5, {"depths": ()}, "depths must hold at least one depth"),
    (f25.fig5, {"depths": (3,), "weight_variances": (-1.0,)}, "weight_variance must be"),
    (f25.fig5, {"depths": (3,), "bias_variances": (np.nan,)}, "bias_variances must be finite"),
    (f25.fig6, {"count": 5}, "count must be a multiple of 2"),
    (learning.scaling, {"depths": (0,)}, "depths must be an integer >= 1, got 0"),
    (learning.scaling, {"multiples": (0.0,)}, "multiples must be"),
    (learning.scaling, {"training": 300, "tested": 100}, r"at most 356, got 400"),
    (learning.scaling, {"depths": (2,), "noise_variance": 0.0}, "noise_variance must be"),
    (pf.fig4, {"points": 5}, "points must be even, got 5"),
    (sr.table2, {"training": 9, "dataset": load_mnist(count=20)}, "at most 8 for 20 images, got 9"),
    (width.orders, {"widths": (4, 1)}, "widths must be an integer >= 2, got 1"),
]  # fmt: skip


@pytest.mark.slow_but(0, 2, 4, 6, 8, 15, 19, 21)
@pytest.mark.parametrize(("compute", "arguments", "message"), REFUSED)
def test_bad_input(compute, arguments, message):
    with pytest.raises(ValueError, match=message):
        compute(**arguments)
