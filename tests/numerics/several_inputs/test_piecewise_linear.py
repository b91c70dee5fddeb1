"""Correlators of ReLU and its relatives, also of nearly collinear inputs and small branches."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.averages.quadrature.panelled_functions import Function
from fieldtheory.numerics.several_inputs import piecewise_linear
from fieldtheory.numerics.several_inputs.pair_curvatures import _by_differences, _of_lines
from tests.numerics.pair_examples import TWO, network


def signals_of(name, K0, gamma=0.9, **others):
    return ft.solve(network(name, gamma, 3, **others), K0).chain.pairs.signals


def test_inputs_of_very_different_norms_scale():
    """Without biases ⟨φφ⟩ is of degree one in each signal."""
    small, none = 1e-8, {"bias_variance": 0.0, "readout_bias_variance": 0.0}
    one, other = (
        piecewise_linear.correlators(signals)
        for signals in (
            signals_of("relu", TWO * np.outer(scale, scale), **none)
            for scale in ([1.0, 1.0], [1.0, small])
        )
    )
    powers = np.array([1.0, small, small**2])
    np.testing.assert_allclose(other / powers[:, None, None] / powers, one, rtol=1e-9)


def test_second_derivatives_by_euler_and_by_differences():
    relu = Function(lambda h: np.maximum(h, 0.0), lambda h: 1.0 * (h > 0), (0.0,))
    a, b, t = np.array([[0.5, 1.3], [0.8, 2.0], [0.2, -0.9]])
    exact, found = (f(relu, a, b, t) for f in (_of_lines, _by_differences))
    np.testing.assert_allclose(found, exact, rtol=1e-10, atol=1e-12)


@pytest.mark.slow_but(14)
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
