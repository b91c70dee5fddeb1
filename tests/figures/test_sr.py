"""Figures on SR: the numbers, and that the pictures show them."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.data import load_digits
from fieldtheory.figures import sr
from fieldtheory.figures.sr_regression import beside_print


def test_unscaled_kernels_explode_and_stable_ones_do_not():
    found = sr.fig1(depths=(1, 10, 30))
    unscaled, decreasing, uniform = found.kernels
    np.testing.assert_allclose(unscaled, 2.0 * 2.0**found.depths, rtol=1e-13)
    np.testing.assert_allclose(uniform, 2 * (1 + 1 / found.depths) ** found.depths, rtol=1e-13)
    assert decreasing[-1] < 20 and uniform[-1] < 2 * np.e
    # The tangent kernel lies above, as SR says: their difference is a kernel.
    assert (found.tangent_kernels[:, 1:] > found.kernels[:, 1:]).all()
    figure = sr.draw_fig1(found)
    assert figure.axes[0].get_yscale() == "log" and len(found.curves()) == 6


@pytest.mark.slow
def test_eigenvalues_are_those_of_the_spectrum():
    found = sr.fig2(depths=(4, 60), count=6)
    assert found.eigenvalues.shape == (2, 3, 2, 6)
    net = sr.stable_networks(60)[2]
    expected = ft.spectrum(net, quantity="tangent_kernel", count=6).normalised
    np.testing.assert_allclose(found.eigenvalues[1, 2, 1], expected)
    collapse = found.eigenvalues[0, :, 1, 1] / found.eigenvalues[0, :, 0, 1]
    assert collapse[0] < 0.2 and (collapse[1:] > 0.8).all()
    assert len(sr.draw_fig2(found).axes) == 2 and len(found.curves()) == 12


@pytest.mark.slow
def test_deep_unscaled_networks_fit_a_constant():
    found = sr.fig3(depth=1000, points=41)
    spread = np.ptp(found.mean, axis=1)
    assert spread[0] < 0.15 and (spread[1:] > 1).all()
    # Stable networks pass near the points.
    for mean in found.mean[1:]:
        at_points = np.interp(found.training[0], found.x, mean)
        assert np.abs(at_points - found.training[1]).max() < 0.3
    figure = sr.draw_fig3(found)
    assert figure.axes[0].get_title(loc="left") == "(a)  unscaled"


@pytest.fixture(scope="module")
def table():
    digits = load_digits(range(10), 500)
    return sr.table2(depths=(5, 1000), training=150, dataset=digits)


@pytest.mark.slow
def test_accuracies_of_deep_networks_depend_on_the_noise(table):
    assert table.accuracies.shape == (3, 2, len(table.noises))
    assert (table.tuned[1:] > 0.85).all()
    assert table.tuned[1:, 1] == pytest.approx(table.tuned[1:, 0], abs=0.05)
    # Noise of a millionth of the kernel drowns what the deep unscaled network tells apart.
    floor = np.searchsorted(table.noises, 1e-2)
    unscaled = table.accuracies[0, 1]
    assert unscaled[floor] < unscaled.max() - 0.05
    assert len(sr.draw_table2(table).axes) == 2 and len(table.curves()) == 9


def test_printed_accuracies_stand_beside_ours(table):
    """SR Table 2, MNIST, 1K images, typed."""
    three = {name: table.values[name][:, [0, 1, 1]] for name in ("accuracies", "tuned", "error")}
    depths = np.array([50, 200, 1000])
    found = beside_print(
        {**table.values, **three, "name": "digits (MNIST)", "depths": depths}, 1000
    )
    curves = {curve.label: curve for curve in found.curves()}
    for schedule, y, error in (
        ("unscaled", [92.44, 89.56, 55.13], [0.21, 0.56, 5.31]),
        ("decreasing", [92.88, 92.91, 92.92], [0.35, 0.35, 0.34]),
        ("uniform", [92.39, 92.39, 92.39], [0.33, 0.32, 0.32]),
    ):
        curve = curves[f"{schedule}, printed in SR"]
        assert 100 * curve.y == pytest.approx(y) and 100 * curve.error == pytest.approx(error)
    figure = sr.draw_table2(found)
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert "printed in SR" in labels
    assert "55.13 % in SR, which does not state" in figure.get_supxlabel()
    # The noise that is named makes ours the accuracy that is printed.
    noise = float(figure.get_supxlabel().split("$\\sigma^2 = $")[1].split(" K")[0])
    ours = np.interp(np.log10(noise), np.log10(found.noises), found.accuracies[0, 2])
    assert ours == pytest.approx(0.5513, abs=0.02)
    assert np.isnan(table.printed).all()


def test_fluctuations_at_equal_width_and_depth():
    found = sr.width(depths=(4, 16), samples=400)
    # Terms of order 1/N² are of relative size 1/N for stable schedules.
    z = (found.simulated - found.theory) / found.error
    assert np.abs(z[1:, 1]).max() < 4
    assert found.theory[0, 1] > 3 * found.theory[0, 0]
    assert (found.theory[1:, 1] < 1.6 * found.theory[1:, 0]).all()
    assert len(sr.draw_width(found).axes) == 1 and len(found.curves()) == 6
