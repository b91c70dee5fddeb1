"""F25 Figs. 5, 6 and 9: the numbers against optima of single pairs and theory."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.data import Dataset, equal_angles, load_mnist
from fieldtheory.figures import f25
from tests.rounding import assert_same

DEPTHS = (5, 20, 80)
NET = ft.ResidualNetwork(depth=20)


@pytest.fixture(scope="module")
def fig5():
    return f25.fig5(load_mnist(count=4), DEPTHS, (1.0, 1.25, 2.0), (0.0, 0.05, 0.1))


@pytest.fixture(scope="module")
def planes():
    """Stands for images of CIFAR-10."""
    samples = np.random.default_rng(4).integers(0, 256, (6, 30)).astype(float)
    return Dataset(samples, np.array(["airplane"] * 3 + ["dog"] * 3), "airplane, dog")


@pytest.fixture(scope="module")
def fig6(planes):
    return f25.fig6(planes, count=8, network=NET)


def correlations(samples):
    length = np.linalg.norm(samples, axis=1)
    return samples @ samples.T / np.outer(length, length)


class TestFig5:
    def test_averages_are_those_of_all_pairs(self, fig5):
        overlap = correlations(load_mnist(count=4).samples)
        net = ft.ResidualNetwork(depth=20, weight_variance=2.0)
        total = 0.0
        for a in range(4):
            for b in range(a):
                pair = 0.05 * np.array([[1, overlap[a, b]], [overlap[a, b], 1]])
                total += ft.optimal_scaling(net, pair)[0, 1]
        np.testing.assert_allclose(fig5.by_weight_variance[1, 2, 1], total / 6, rtol=1e-9)
        expected = ft.optimal_scaling(net, 0.05)
        np.testing.assert_allclose(fig5.by_weight_variance[0, 2, 1], expected, rtol=1e-9)

    def test_both_families_hold_the_network_of_the_caption(self, fig5):
        assert_same(fig5.by_weight_variance[:, 1], fig5.by_bias_variance[:, 1])
        expected = ft.optimal_scaling(ft.ResidualNetwork(depth=80), 0.05)
        np.testing.assert_allclose(fig5.by_bias_variance[0, 1, 2], expected, rtol=1e-9)

    def test_optima_are_ordered_by_the_variances(self, fig5):
        assert (np.diff(fig5.by_weight_variance, axis=1) < 0).all()
        # Biases bring a variance to saturation, and two inputs closer to each other.
        assert (np.diff(fig5.by_bias_variance[0], axis=0) < 0).all()
        assert (np.diff(fig5.by_bias_variance[1], axis=0) > 0).all()

    def test_they_fall_as_the_inverse_root_of_depth(self, fig5):
        for values in (fig5.by_weight_variance, fig5.by_bias_variance):
            slope = np.diff(np.log(values)) / np.diff(np.log(fig5.depths))
            np.testing.assert_allclose(slope[0, :, -1], -0.5, atol=0.025)
            # The next order of ρ*√L is 1/L, so that four times the depth leaves a fourth of it.
            ratio = (slope[0, :, 0] + 0.5) / (slope[0, :, 1] + 0.5)
            np.testing.assert_allclose(ratio, 4, atol=0.8)
            assert (abs(slope[1] + 0.5)[:, 1] < 0.5 * abs(slope[1] + 0.5)[:, 0]).all()

    def test_default_is_mnist(self):
        numbers = f25.fig5(depths=(3,), weight_variances=(1.25,), bias_variances=(0.05,))
        assert "MNIST" in numbers.name and numbers.by_bias_variance.shape == (2, 1, 1)
        assert f25.draw_fig5(numbers).get_suptitle() == numbers.name


class TestFig6:
    def test_panels(self, fig6):
        assert fig6.names == ["equal angles", "MNIST", "CIFAR-10"]
        assert [len(matrix) for matrix in fig6.matrices] == [8, 8, 6]
        assert fig6.labels[1].tolist() == [0] * 4 + [3] * 4
        assert fig6.labels[2].tolist() == ["airplane"] * 3 + ["dog"] * 3
        titles = [ax.get_title() for ax in f25.draw_fig6(fig6).axes[:3]]
        assert titles == fig6.names

    def test_entries_are_the_optima_of_their_pairs(self, fig6, planes):
        samples = equal_angles(8).samples, load_mnist(count=8).samples, planes.samples
        for matrix, x in zip(fig6.matrices, samples, strict=True):
            np.testing.assert_array_equal(matrix, matrix.T)
            np.testing.assert_allclose(np.diag(matrix), ft.optimal_scaling(NET, 0.05), rtol=1e-9)
            for a, b in ((0, 1), (2, 5)):
                r = 0.05 * correlations(x)[a, b]
                expected = ft.optimal_scaling(NET, [[0.05, r], [r, 0.05]])[0, 1]
                np.testing.assert_allclose(matrix[a, b], expected, rtol=1e-9)

    def test_optima_of_synthetic_samples_depend_on_their_angle_alone(self, fig6):
        scaling = fig6.matrices[0]
        for shift in range(8):
            around = scaling[np.arange(8), (np.arange(8) + shift) % 8]
            np.testing.assert_allclose(around, around[0], rtol=1e-9)
        # From the smallest angle to π, where the sign of the sample is opposite.
        assert (np.diff(scaling[0, 1:5]) < 0).all()
        np.testing.assert_allclose(scaling[0, 5:], scaling[0, 3:0:-1], rtol=1e-9)

    def test_absent_data_leave_an_empty_panel_that_says_so(self):
        numbers = f25.fig6(count=4, network=ft.ResidualNetwork(depth=3))
        assert numbers.matrices[2] is None
        assert {curve.panel for curve in numbers.curves()} == {"a", "b"}
        figure = f25.draw_fig6(numbers)
        assert [len(ax.images) for ax in figure.axes[:3]] == [1, 1, 0]
        reason = figure.axes[2].texts[0].get_text()
        assert "no images of CIFAR-10 were given" in reason and "--data-folder" in reason


class TestFig9:
    def test_overlaps_are_those_of_the_pixels(self, planes):
        numbers = f25.fig9(planes, count=6)
        samples = load_mnist(count=6).samples, planes.samples
        for matrix, x in zip(numbers.matrices, samples, strict=True):
            overlap = np.einsum("ai,bi->ab", x, x)
            np.testing.assert_allclose(matrix, overlap / overlap.max(), rtol=1e-14)
            assert matrix.max() == 1
        assert numbers.names == ["MNIST", "CIFAR-10"]
        # A line for the border of the classes, in each direction.
        assert [len(ax.lines) for ax in f25.draw_fig9(numbers).axes[:2]] == [2, 2]
