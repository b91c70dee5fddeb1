"""F25 Figs. 1, 3 and 4: the numbers against captions and theory, and the sketch."""

import numpy as np
import pytest
from scipy import stats

import fieldtheory as ft
from fieldtheory.figures import f25


@pytest.fixture(scope="module")
def fig1():
    return f25.fig1()


@pytest.fixture(scope="module")
def fig4():
    return f25.fig4()


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


def test_panels_are_those_printed(fig1):
    figure = f25.draw_fig1(fig1)
    sketch, signal, response, output, _ = figure.axes
    assert sketch.texts[-1].get_text() == "(a)"
    assert [ax.get_title(loc="left") for ax in (signal, response, output)] == ["(b)", "(c)", "(d)"]
    assert "L = 20" in figure.get_supxlabel() and "K^{(0)} = 0.05" in figure.get_supxlabel()


class TestFig3:
    def test_numbers_are_those_of_each_network(self):
        numbers = f25.fig3(branch_scales=(0.7, 0.2), depth=6, K0=0.3)
        for i, rho in enumerate((0.7, 0.2)):
            net = ft.ResidualNetwork(
                depth=6, branch_scale=rho, weight_variance=1.2, bias_variance=0.2
            )
            s = ft.solve(net, 0.3)
            np.testing.assert_allclose(numbers.kernels[i], s.kernels[:-1], rtol=1e-14)
            np.testing.assert_allclose(numbers.response[i], s.response, rtol=1e-14)

    def test_branch_scale_governs_the_growth(self):
        numbers = f25.fig3()
        assert numbers.branch_scales.tolist() == [1.0, 0.3, 0.1]
        for values in (numbers.kernels, numbers.response):
            assert (np.diff(values, axis=1) > 0).all()
            assert (np.diff(values[:, 1:], axis=0) < 0).all()
        np.testing.assert_allclose(numbers.kernels[:, 0], 1.2 / 100 + 0.2, rtol=1e-15)
        np.testing.assert_array_equal(numbers.response[:, 0], 1)


class TestFig4:
    @pytest.mark.slow
    def test_curves_have_one_maximum_and_hold_the_marked_one(self, fig4):
        for entry in range(2):
            rho = fig4.branch_scales[entry]
            step = rho[1] - rho[0]
            for curve, best in zip(fig4.response[entry], fig4.optima[entry], strict=True):
                assert abs(rho[curve.argmax()] - best) < step
                rising = np.diff(curve) > 0
                assert (rising == (np.arange(len(rising)) < curve.argmax())).all()

    def test_optima_fall_with_depth_and_are_larger_for_covariances(self, fig4):
        assert fig4.depths.tolist() == [10, 50, 100, 200]
        assert (np.diff(fig4.optima, axis=1) < 0).all()
        assert (fig4.optima[1] > 2 * fig4.optima[0]).all()
        # The text of F25 has optima between 0.1 and 0.3; these are the exact ones.
        np.testing.assert_allclose(fig4.optima[0, [0, -1]], [0.3265, 0.0685], atol=5e-5)
        np.testing.assert_allclose(fig4.optima[1, [0, -1]], [1.0892, 0.2050], atol=5e-5)
