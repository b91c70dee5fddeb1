"""Correlators of ReLU and its relatives, also of nearly collinear inputs and small branches."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.numerics.several_inputs import feature_correlators, piecewise_linear
from tests.numerics.pair_examples import TWO, network
from tests.oracles.sectors import fourth_moment
from tests.tables import crossed

SLOPES = {"relu": (0.0, 1.0), "abs": (-1.0, 1.0), "leaky_relu": (0.01, 1.0)}


def signals_of(name, K0, gamma=0.9, **others):
    return ft.solve(network(name, gamma, 3, **others), K0).pair_theory.signals


@pytest.mark.parametrize(
    ("name", "case"),
    crossed(SLOPES, [(0.0, 0.6, 0.4), (0.9, 0.6, -0.8), (1.0, 0.1, 0.4), (1.0, 0.3, 0.999)]),
)
def test_covariances_of_two_inputs_are_integrals_over_angles(name, case):
    gamma, rho, c = case
    K0 = np.array([[0.3, c * np.sqrt(0.06)], [c * np.sqrt(0.06), 0.2]])
    signals = signals_of(name, K0, gamma, branch_scale=rho)
    found = piecewise_linear.correlators(signals, piecewise_linear.Lines(signals))
    for k, l in ((0, 1), (1, 3), (2, 3)):
        R = signals.passed[l, k] * signals.K[k]
        K = np.block([[signals.K[k], R], [R, signals.K[l]]])
        means = feature_correlators.means(signals)[[k, l], 1]
        exact = fourth_moment(SLOPES[name], K, panels=40) - means.prod()
        assert abs(found[k, 1, l, 1] - exact) < 1e-12 * means.prod()


@pytest.mark.parametrize("name", SLOPES)
def test_hermite_coefficients_give_the_same(name):
    signals, pairs = signals_of(name, TWO), np.array([1])
    lines = piecewise_linear.Lines(signals)
    series = feature_correlators._correlators(signals, 155).values
    found = piecewise_linear.correlators(signals, lines)
    np.testing.assert_allclose(found, series, rtol=0, atol=1e-11 * series.max())
    series = feature_correlators._correlators_by_kernels(signals, pairs, 155).values
    found = piecewise_linear.correlators_by_kernels(signals, lines, pairs)
    np.testing.assert_allclose(found, series, rtol=0, atol=1e-9 * np.abs(series).max())


@pytest.mark.parametrize("name", ["relu", "leaky_relu"])
@pytest.mark.parametrize("apart", [1e-13, 1e-11, 1e-9, 3e-8])
@pytest.mark.parametrize("rho", [0.05, 0.6])
def test_nearly_opposite_inputs_without_biases(name, apart, rho):
    net = network(name, 1.0, 3, branch_scale=rho, bias_variance=0.0)
    exact, found = (
        ft.solve(net, 0.3 * np.array([[1.0, d - 1.0], [d - 1.0, 1.0]])) for d in (0.0, apart)
    )
    for field in ("G11", "mean_shift"):
        value, other = getattr(exact, field), getattr(found, field)
        np.testing.assert_allclose(
            other, value, rtol=0, atol=(1e-9 + 6 * apart) * np.abs(value).max()
        )
