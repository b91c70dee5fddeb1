"""Figures of PF: the numbers, and that the pictures show them."""

import joblib
import numpy as np
import pytest
from scipy import stats

import fieldtheory as ft
from fieldtheory.diffusions.pf_figures import pf_edge
from fieldtheory.figures import pf
from tests.rounding import assert_same
from tests.tables import slow


def test_functions_on_the_edge_of_chaos():
    numbers = pf.fig1(depth=40, width=40, samples=50)
    (tanh, relu), (tanh_wide, relu_wide) = numbers.draws, numbers.wide
    # Functions of tanh networks vary little beside how they differ from each other.
    assert np.ptp(tanh, axis=1).mean() < 0.4 * (tanh_wide[2] - tanh_wide[0]).min()
    assert np.ptp(tanh_wide, axis=1).max() < 0.05
    # Those of ReLU are two straight lines.
    for lines in (relu[:, numbers.z <= 0], relu[:, numbers.z >= 0]):
        assert np.abs(np.diff(lines, 2, axis=1)).max() < 1e-12
    assert relu_wide[2] == pytest.approx(1.6448536 * np.sqrt(2) * np.abs(numbers.at), rel=1e-6)
    figure = pf.draw_fig1(numbers)
    assert [ax.get_title() for ax in figure.axes] == ["tanh", "ReLU"] == numbers.titles
    assert len(figure.axes[0].lines) == 5 + 3 + 3


@pytest.mark.parametrize("index", [slow(0), 1])
def test_edge_functions_have_the_law_of_simulated_networks(index):
    network = pf_edge.edge_networks(4, 30)[index]
    z = np.array([-1.5, 0.5])
    drawn = pf_edge.edge_functions(network, z, 2000, seed=1)
    expected = ft.simulate(network, X=z[:, None], samples=2000, method="weights", seed=2)
    products = drawn[:, :, None] * drawn[:, None, :]
    difference = products.mean(axis=0) - expected.mean[-2]
    error = np.hypot(products.std(axis=0) / np.sqrt(2000), expected.mean_error[-2])
    assert np.abs(difference / error).max() < 4


def test_numbers_do_not_depend_on_the_jobs():
    network = pf_edge.edge_networks(3, 10)[0]
    arguments = (network, np.array([-1.0, 0.0, 2.0]), 60)
    with joblib.parallel_config("threading"):
        one, two = (pf_edge.edge_functions(*arguments, seed=5, jobs=jobs) for jobs in (1, 2))
    assert_same(one, two)


@pytest.mark.slow
def test_one_relu_output_is_drawn_without_its_width():
    network = pf_edge.edge_networks(5, 7)[1]
    fast = pf_edge.relu_outputs(network, 4000, 1)
    slow = pf_edge.edge_functions(network, np.array([1.0]), 4000, seed=1)[:, 0]
    assert stats.ks_2samp(fast, slow).pvalue > 1e-3
    # Fluctuations of K: without them the law is another one.
    wide = pf_edge.relu_outputs(pf_edge.edge_networks(5, 1000)[1], 4000, 1)
    assert stats.ks_2samp(wide, slow).pvalue < 1e-3


def test_neurons_of_a_network_are_draws():
    network = pf_edge.edge_networks(5, 40)[0]
    z = np.array([-1.0, 1.0])
    many = pf_edge.edge_functions(network, z, 4000, neurons=4, seed=1)
    one = pf_edge.edge_functions(network, z, 1000, seed=1)
    # One after the other, the first one as before.
    assert_same(many[::4], one)
    assert stats.ks_2samp(many[:, 0], one[:, 0]).pvalue > 1e-3


def test_network_and_diffusion_have_one_law():
    found = pf.fig2(depth=40, width=20, samples=500)
    growth = np.e - 1
    np.testing.assert_allclose(found.limit.covariance, growth * np.array([[1, 1], [1, 2]]))
    for distance in (found.beside, found.beside_limit):
        assert distance.p_value.min() > 1e-3
    figure = pf.draw_fig2(found)
    shown = figure.axes[1].texts[0].get_text()
    assert f"KS to SDE: {found.beside.statistic[0]:.4f}" in shown
    assert [curve.panel for curve in found.curves()] == [*"aabbbccc"]
    x, density = found.at[1], found.density[1]
    assert density.sum() * (x[1] - x[0]) == pytest.approx(1, abs=1e-4)


def test_functions_of_the_diffusions_keep_their_input():
    numbers = pf.fig3(sizes=((10, 30),), samples=300)
    assert [title.split(",")[0] for title in numbers.titles] == ["tanh", "swish"]
    quantiles, wide = numbers.quantiles[0], numbers.wide[0]
    # Standard errors of quantiles of 300 draws are about a tenth of the standard deviation.
    spread = (wide[2] - wide[0]) / 3.29
    assert (np.abs(quantiles - wide) < 0.5 * spread).all() and np.ptp(quantiles[1]) > 2
    figure = pf.draw_fig3(numbers)
    assert len(figure.axes) == 2 and figure.axes[1].get_title().startswith("swish")


def test_correlations_of_simulated_networks_are_those_of_the_theory():
    found = pf.fig4(depth=10, width=40, samples=200, points=8)
    np.testing.assert_array_equal(found.z, found.at)
    error = (1 - found.theory**2) / np.sqrt(200)
    # What differs at finite width and depth is of the order 1/D; for ReLU of the order L/D.
    assert (np.abs(found.simulated - found.theory) < 5 * error + 0.05)[:3].all()
    assert found.simulated[3].min() > 0.7
    products = np.multiply.outer(found.z, found.z) + 1
    sizes = np.sqrt(found.z**2 + 1)
    np.testing.assert_allclose(
        found.theory[0], products / np.multiply.outer(sizes, sizes), atol=1e-12
    )
    assert (found.theory[:2].min(axis=(1, 2)) < -0.1).all()
    assert found.theory[3].min() > 0.8
    figure = pf.draw_fig4(found)
    assert figure.axes[2].texts[0].get_text() == f"lowest: {found.theory[2].min():.4g}"
    assert len(found.curves()) == 4 * 16
