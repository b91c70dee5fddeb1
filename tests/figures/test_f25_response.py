"""F25 Figs. 3 and 4: the numbers against captions and theory, and their drawing."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.figures import f25

PAIR = np.array([[0.05, 0.03], [0.03, 0.05]])


@pytest.fixture(scope="module")
def fig4():
    return f25.fig4()


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
    def test_maxima_are_those_of_a_dense_grid(self, fig4):
        for i, L in enumerate(fig4.depths):
            for entry in range(2):
                best = fig4.optima[entry, i]
                rho = np.linspace(0.8 * best, 1.2 * best, 401)
                net = ft.ResidualNetwork(depth=int(L), branch_scale=rho[:, None])
                chi = ft.solve(net, PAIR).output_response[:, 0, entry]
                assert abs(rho[chi.argmax()] - best) <= 0.51 * (rho[1] - rho[0])
                np.testing.assert_allclose(fig4.maxima[entry, i], chi.max(), rtol=1e-5)
                assert fig4.maxima[entry, i] >= chi.max() * (1 - 1e-13)

    def test_curves_have_one_maximum_and_hold_the_marked_one(self, fig4):
        for entry in range(2):
            rho = fig4.branch_scales[entry]
            step = rho[1] - rho[0]
            for curve, best in zip(fig4.response[entry], fig4.optima[entry], strict=True):
                assert abs(rho[curve.argmax()] - best) < step
                rising = np.diff(curve) > 0
                assert (rising == (np.arange(len(rising)) < curve.argmax())).all()

    def test_curves_start_from_the_single_hidden_layer(self, fig4):
        M = ft.solve(ft.ResidualNetwork(depth=1, branch_scale=0.0), PAIR).output_response[0]
        for entry in range(2):
            np.testing.assert_allclose(fig4.response[entry, :, 0], M[entry], rtol=1e-14)

    def test_optima_fall_with_depth_and_are_larger_for_covariances(self, fig4):
        assert fig4.depths.tolist() == [10, 50, 100, 200]
        assert (np.diff(fig4.optima, axis=1) < 0).all()
        assert (fig4.optima[1] > 2 * fig4.optima[0]).all()
        # The text of F25 has optima between 0.1 and 0.3; these are the exact ones.
        np.testing.assert_allclose(fig4.optima[0, [0, -1]], [0.3265, 0.0685], atol=5e-5)
        np.testing.assert_allclose(fig4.optima[1, [0, -1]], [1.0892, 0.2050], atol=5e-5)

    def test_scaling_approaches_the_inverse_root_of_depth(self, fig4):
        slope = np.diff(np.log(fig4.scaling)) / np.diff(np.log(fig4.scaling_depths))
        np.testing.assert_allclose(slope[:, -1], -0.5, atol=0.03)
        assert (abs(slope + 0.5)[:, -1] < abs(slope + 0.5)[:, 0]).all()
        assert fig4.scaling_depths[[0, -1]].tolist() == [10, 200]
        np.testing.assert_array_equal(fig4.scaling[:, [0, -1]], fig4.optima[:, [0, -1]])

    @pytest.mark.parametrize("depths", [(10,), (10, 10), (0, 10)])
    def test_refuses_depths(self, depths):
        with pytest.raises(ValueError, match="depths"):
            f25.fig4(depths=depths)

    def test_curves_are_the_numbers(self, fig4):
        curves = {(curve.panel, curve.label): curve for curve in fig4.curves()}
        assert len(curves) == 2 * (4 + 1) + 2
        curve = curves["b", "L = 100"]
        np.testing.assert_array_equal(curve.x, fig4.branch_scales[1])
        np.testing.assert_array_equal(curve.y, fig4.response[1, 2])
        np.testing.assert_array_equal(curves["a", "maxima"].x, fig4.optima[0])
        np.testing.assert_array_equal(curves["a", "maxima"].y, fig4.maxima[0])
        np.testing.assert_array_equal(curves["c", "off-diagonal"].y, fig4.scaling[1])

    def test_lines_are_the_numbers(self, fig4):
        figure = f25.draw_fig4(fig4)
        curves = [line for line in figure.axes[0].lines if len(line.get_xdata()) > 1]
        for curve, values in zip(curves, fig4.response[0], strict=True):
            np.testing.assert_array_equal(curve.get_ydata(), values)
        marks = [line for line in figure.axes[1].lines if len(np.ravel(line.get_xdata())) == 1]
        found = [float(np.ravel(mark.get_xdata())[0]) for mark in marks]
        np.testing.assert_array_equal(found, fig4.optima[1])
