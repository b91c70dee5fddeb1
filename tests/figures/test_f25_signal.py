"""F25 Fig. 1: the numbers of panels (b)-(d), and their drawing."""

import numpy as np
import pytest
from scipy import stats

import fieldtheory as ft
from fieldtheory.figures import f25


@pytest.fixture(scope="module")
def fig1():
    return f25.fig1()


def test_the_middle_scaling_is_the_optimum(fig1):
    best = ft.optimal_scaling(ft.ResidualNetwork(depth=20), 0.05)
    np.testing.assert_allclose(fig1.branch_scales, best * np.array([0.25, 1, 4]), rtol=1e-14)
    assert fig1.output_response[1] > fig1.curve_response.max() * (1 - 1e-12)
    top = fig1.curve_response.argmax()
    assert abs(fig1.curve_scales[top] - best) < np.diff(fig1.curve_scales)[0]


def test_signals_are_normal_with_the_variances_of_the_last_layer(fig1):
    for rho, density in zip(fig1.branch_scales, fig1.density, strict=True):
        net = ft.ResidualNetwork(depth=20, branch_scale=float(rho))
        deviation = np.sqrt(ft.solve(net, 0.05).kernels[20])
        np.testing.assert_allclose(density, stats.norm.pdf(fig1.signal, scale=deviation))


def test_small_scalings_stay_in_the_dynamic_range_and_large_ones_leave_it(fig1):
    inside = np.abs(fig1.signal) <= 0.5
    step = np.diff(fig1.signal)[0]
    share = fig1.density[:, inside].sum(axis=1) * step
    # At the optimum about one standard deviation fits.
    assert share[0] > 0.95 and share[2] < 0.2
    assert share[1] == pytest.approx(0.68, abs=0.03)


def test_response_of_the_layers_grows_with_the_scaling(fig1):
    assert (np.diff(fig1.response, axis=1) > 0).all()
    assert (np.diff(fig1.response[:, 1:], axis=0) > 0).all()


def test_response_of_the_output_is_limited_on_both_sides(fig1):
    assert fig1.output_response[1] > 1.3 * fig1.output_response[[0, 2]].max()
    rising = np.diff(fig1.curve_response) > 0
    assert (rising == (np.arange(len(rising)) < fig1.curve_response.argmax())).all()


def test_curves_hold_the_numbers(fig1):
    panels = {curve.panel for curve in fig1.curves()}
    assert panels == {"b", "c", "d"}
    marked = fig1.curves()[-1]
    np.testing.assert_array_equal(marked.y, fig1.output_response)


def test_panels_are_those_printed(fig1):
    figure = f25.draw_fig1(fig1)
    sketch, signal, response, output, _ = figure.axes
    assert sketch.texts[-1].get_text() == "(a)"
    assert [ax.get_title(loc="left") for ax in (signal, response, output)] == ["(b)", "(c)", "(d)"]
    assert "L = 20" in figure.get_supxlabel() and "K^{(0)} = 0.05" in figure.get_supxlabel()


def test_sketch_has_the_symbols_of_the_network(fig1):
    written = {text.get_text() for text in f25.draw_fig1(fig1).axes[0].texts}
    one_each = ("$x$", "$h^{(0)}$", "$h^{(l-1)}$", "$f^{(l)}$", "$h^{(l)}$", "$h^{(L)}$", "$y$")
    assert {*one_each, r"$\phi$", "$W^{(l)}, b^{(l)}$", r"$\rho$", "$+$"} <= written
    weights = {text for text in written if "mathrm{in}" in text or "mathrm{out}" in text}
    assert weights == {
        rf"$W^{{\mathrm{{{end}}}}}, b^{{\mathrm{{{end}}}}}$" for end in ("in", "out")
    }
    assert any("skip connection" in text and r"\gamma" in text for text in written)


@pytest.mark.parametrize("factors", [(1.5, 2.0), (0.5, 0.9), (0.0, 2.0)])
def test_factors_are_below_and_above_one(factors):
    with pytest.raises(ValueError, match="factors must hold one below and one above 1"):
        f25.fig1(factors=factors)
