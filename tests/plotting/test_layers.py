"""The picture of a result."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.plotting.curves import over_layers
from fieldtheory.plotting.layers import draw_layers


def curve(values, error=None):
    return over_layers("kernels", "$K$", np.array(values), error)


@pytest.mark.parametrize(
    ("values", "scale"),
    [([0.0, 1.0, 10.0], "linear"), ([0.0, 1.0, 100.0], "log"), ([-1.0, 1.0, 100.0], "linear")],
)
def test_scale_is_logarithmic_where_values_spread_widely(values, scale):
    (ax,) = draw_layers({"kernels": [[curve(values)]]}, hidden=3).axes
    assert ax.get_yscale() == scale


def test_errors_are_bars():
    error = np.array([0.1, 0.2, 0.3])
    (ax,) = draw_layers({"kernels": [[curve([1.0, 2.0, 3.0], error)]]}, hidden=2).axes
    (bars,) = ax.containers
    np.testing.assert_allclose(
        [np.ptp(segment[:, 1]) for segment in bars.lines[2][0].get_segments()], 2 * error
    )


def test_two_inputs_are_told_from_one_and_no_line_is_left_out():
    K0 = np.full((5, 5), 0.1) + 0.2 * np.eye(5)
    kernels = ft.solve(ft.ResidualNetwork(depth=3), K0).plot().axes[0]
    inner = kernels.lines[::2]
    assert len(inner) == 2 * 15
    assert [line.get_linestyle() for line in inner[:6]] == ["-", "--", "--", "--", "--", "-"]
    words = [text.get_text() for text in kernels.get_legend().get_texts()]
    assert words[:2] == ["$C^{(l)}$, one input", "$C^{(l)}$, two inputs"]


def test_many_lines_of_a_grid_have_a_colour_bar_and_one_panel_no_letter():
    over = {"branch_scale": np.linspace(0.1, 0.9, 20), "weight_variance": np.linspace(1, 2, 10)}
    figure = ft.sweep(ft.ResidualNetwork(depth=3), 0.05, over=over).plot()
    panel, bar = figure.axes
    assert len(panel.lines) == 10 and panel.get_title(loc="left") == ""
    labels = [text.get_text() for text in bar.get_yticklabels()]
    assert labels[0] == r"$\sigma_w^2 = 1$" and labels[-1] == r"$\sigma_w^2 = 2$"


@pytest.mark.slow
def test_a_notebook_shows_the_picture_whether_or_not_pyplot_was_used():
    figure = ft.solve(ft.ResidualNetwork(depth=3), 0.05).plot()
    assert figure._repr_png_().startswith(b"\x89PNG")


@pytest.mark.slow
def test_text_in_pdf_files_is_text(tmp_path):
    figure = ft.solve(ft.ResidualNetwork(depth=3), 0.05).plot()
    figure.savefig(tmp_path / "figure.pdf")
    assert b"/Subtype /Type3" not in (tmp_path / "figure.pdf").read_bytes()
