"""Figures with simulated networks: the numbers against theory and definition."""

import numpy as np
import pytest
from scipy import optimize

import fieldtheory as ft
from fieldtheory.figures import f25
from tests.rounding import assert_same

PARAMETERS = {"weight_variance": 1.2, "bias_variance": 0.2}
NETWORKS = (
    ft.ResidualNetwork(depth=8, **PARAMETERS),
    ft.FeedForwardNetwork(depth=8, **PARAMETERS),
)
SMALL = {"depth": 8, "samples": 40, "inputs": 10}


@pytest.fixture(scope="module")
def fig2():
    return f25.fig2(**SMALL)


@pytest.fixture(scope="module")
def fig8():
    return f25.fig8(**SMALL)


def z_scores(value, error, theory):
    return (value - theory)[..., 1:] / error[..., 1:]


class TestFig2:
    def test_curves_are_those_of_both_networks(self, fig2):
        for i, net in enumerate(NETWORKS):
            s = ft.solve(net, 1.2 / 100 + 0.2)
            assert_same(fig2.kernels[i], s.residual_kernels[:-1])
            assert_same(fig2.response[i], s.residual_response)

    def test_simulation_lies_on_them(self, fig2):
        # 1/N is too small to be seen with so few networks.
        z = z_scores(fig2.simulated_kernels, fig2.simulated_kernels_error, fig2.kernels)
        assert 0.5 < np.abs(z).max() < 5
        z = z_scores(fig2.simulated_response, fig2.simulated_response_error, fig2.response)
        assert 0.5 < np.abs(z).max() < 6

    def test_it_would_show_a_theory_that_is_off(self, fig2):
        wrong = ft.solve(NETWORKS[0].replace(weight_variance=1.26), 0.212)
        for kind, theory in (
            ("kernels", wrong.residual_kernels[:-1]),
            ("response", wrong.residual_response),
        ):
            names = f"simulated_{kind}", f"simulated_{kind}_error"
            z = z_scores(*(fig2.values[name][0] for name in names), theory)
            assert np.abs(z).max() > 8

    def test_kernels_of_feed_forward_networks_end_at_a_fixed_point_above_zero(self, fig2):
        # ⟨erf²⟩ = (2/π) arcsin(2K/(1+2K)), Williams 1997, typed.
        def step(K):
            return 1.2 * 2 / np.pi * np.arcsin(2 * K / (1 + 2 * K)) + 0.2

        point = optimize.brentq(lambda K: step(K) - K, 0.2, 2, xtol=1e-15)
        assert round(point, 2) == 0.66
        np.testing.assert_allclose(fig2.fixed_point, point, rtol=1e-13)
        # The only one, and every input comes closer to it; the response decays by this factor.
        K = np.linspace(0, 3, 3001)
        assert ((step(K) > K) == (K < point)).all()
        slope = (step(point + 1e-6) - step(point - 1e-6)) / 2e-6
        np.testing.assert_allclose(slope, 0.3434, atol=1e-4)
        deep = f25.fig2(depth=40, samples=20, inputs=2).response[1]
        np.testing.assert_allclose(deep[31:] / deep[30:-1], slope, rtol=1e-8)


class TestFig8:
    def test_numbers_are_those_of_the_residual_network(self, fig8, fig2):
        for name in ("response", "simulated_response", "simulated_response_error"):
            assert_same(fig8.values[name], fig2.values[name][0])
        for curve, panel, first in zip(fig8.curves(), "aabb", (0, 0, 1, 1), strict=True):
            assert (curve.panel, curve.x.tolist()) == (panel, list(range(first, 9)))
        np.testing.assert_array_equal(curve.error, fig8.simulated_response_error[1:])


@pytest.mark.slow
def test_sample_counts_of_the_paper():
    found = f25.fig8(jobs=2)
    z = z_scores(found.simulated_response, found.simulated_response_error, found.response)
    relative = np.abs(found.simulated_response / found.response - 1)
    # Terms in 1/N are of the size of the errors.
    assert np.abs(z).max() < 12 and relative.max() < 0.03
    assert found.simulated_response_error.max() < 1e-3
