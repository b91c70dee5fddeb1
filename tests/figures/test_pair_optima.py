"""The picture of all pairs of inputs: its numbers and its drawing."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.figures.pair_optima import draw_pairs, pairs

PAIR = np.array([[0.05, 0.03], [0.03, 0.05]])


@pytest.fixture(scope="module")
def found():
    # Unit vectors at equal angles, sorted into two halves of the circle.
    angles = np.linspace(0, 2 * np.pi, 8, endpoint=False)
    net = ft.ResidualNetwork(depth=20)
    return pairs(0.05 * np.cos(angles[:, None] - angles), np.arange(8) // 4, net)


class TestPairs:
    def test_scaling_is_that_of_each_pair(self, found):
        net = ft.ResidualNetwork(depth=20)
        pair = 0.05 * np.array([[1, found.overlap[0, 3]], [found.overlap[0, 3], 1]])
        expected = ft.optimal_scaling(net, pair)
        np.testing.assert_allclose(found.scaling[0, 3], expected[0, 1], rtol=1e-10)
        np.testing.assert_allclose(np.diag(found.scaling), expected[0, 0], rtol=1e-10)
        np.testing.assert_array_equal(found.scaling, found.scaling.T)

    def test_overlap_is_the_cosine_of_the_angle(self, found):
        np.testing.assert_allclose(found.overlap[0], np.cos(np.arange(8) * np.pi / 4), atol=1e-15)

    def test_pairs_lie_on_the_curve(self, found):
        order = np.argsort(found.curve_overlap)
        overlap, scaling = found.curve_overlap[order], found.curve_scaling[order]
        first, second = np.triu_indices(8, 1)
        inside = found.overlap[first, second] < 0.9
        on_curve = np.interp(found.overlap[first, second], overlap, scaling)[inside]
        np.testing.assert_allclose(found.scaling[first, second][inside], on_curve, rtol=0.02)

    def test_known_scaling_is_taken_as_it_is(self):
        known = np.array([[0.1, 0.2], [0.2, 0.1]])
        numbers = pairs(PAIR, network=ft.ResidualNetwork(depth=3), scaling=known)
        assert numbers.scaling is known
        assert numbers.labels is None

    @pytest.mark.parametrize("K0", [0.05, [[0.05]]])
    def test_refuses_a_single_input(self, K0):
        with pytest.raises(ValueError, match="K0 must be a matrix"):
            pairs(K0)

    def test_picture_of_pairs_is_the_matrix(self, found):
        figure = draw_pairs(found)
        np.testing.assert_array_equal(figure.axes[0].images[0].get_array(), found.scaling)

    def test_curves_are_the_numbers(self, found):
        curves = found.curves()
        assert [curve.label for curve in curves[:8]] == [f"alpha = {i}" for i in range(1, 9)]
        np.testing.assert_array_equal([curve.y for curve in curves[:8]], found.scaling)
        kinds = {curve.label: curve for curve in curves[8:]}
        assert len(kinds["same class"].y) == 2 * 6 and len(kinds["different classes"].y) == 16
        np.testing.assert_array_equal(
            np.sort(np.append(kinds["same class"].y, kinds["different classes"].y)),
            np.sort(found.scaling[np.triu_indices(8, 1)]),
        )
        np.testing.assert_array_equal(kinds["same input"].y, np.diag(found.scaling))
