"""Figures on PDLT-B: the numbers, and that the pictures show them."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.criticality import closure_four_point
from fieldtheory.figures import pdlt
from tests.rounding import assert_same


@pytest.fixture(scope="module")
def closure():
    return pdlt.closure(depth=60, width=50, samples=400, seed=1)


def test_closure_is_told_from_the_exact_result_by_simulation(closure):
    z = (closure.simulated - closure.variances)[:, 1:] / closure.error[:, 1:]
    assert np.abs(z).max() < 4
    missed = (closure.simulated - closure.printed_variances)[:, 60] / closure.error[:, 60]
    assert (missed > 4).all()
    error = closure.vertex_error[:, 1:]
    assert (np.abs(closure.simulated_vertices - closure.vertices)[:, 1:] < 4 * error).all()
    # The vertex differs by as much as N Var K.
    np.testing.assert_allclose(
        closure.vertices - closure.printed_vertices,
        closure.variances - closure.printed_variances,
        atol=1e-12,
    )


def test_parameters_of_the_preprint(closure):
    net = closure.network.replace(branch_scale=0.05)
    assert (net.weight_variance, net.bias_variance, net.skip_scale) == (2.0, 0.0, 1.0)
    assert_same(closure.vertices[0], ft.solve(net, 2.0).four_point)
    assert_same(closure.printed_vertices[0], closure_four_point(net, 2.0))
    assert 2 * closure.branch_scales[1] ** 2 == pytest.approx(0.1)


def test_drawing_of_the_closure(closure):
    figure = pdlt.draw_closure(closure)
    missed = np.abs(closure.vertices - closure.printed_vertices)
    below = (missed <= 2 * closure.vertex_error).all(axis=1)
    hidden = [f"({panel})" for panel, small in zip("bd", below, strict=True) if small]
    assert hidden and f"which hide in {', '.join(hidden)} what the" in figure.get_supxlabel()
    for ax, panel in zip(figure.axes, "abcd", strict=True):
        assert ax.get_title(loc="left").startswith(f"({panel})") and len(ax.containers) == 1
    assert "400 networks" in figure.get_supxlabel()
