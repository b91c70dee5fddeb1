"""Rescaled scalings and responses: their formulas, and what they are good for."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.scaling.rescaling import rescaled_by_biases, rescaled_by_weights

NET = ft.ResidualNetwork(
    depth=30, weight_variance=1.75, bias_variance=0.1, readout_weight_variance=3.0
)


def test_weights_enter_by_their_standard_deviation_and_the_readout_as_a_factor():
    rho, chi = rescaled_by_weights(NET, [[0.1, 0.2]], [[6.0, 3.0]])
    np.testing.assert_allclose(rho, np.sqrt(1.75) * np.array([[0.1, 0.2]]), rtol=1e-15)
    np.testing.assert_allclose(chi, [[2.0, 1.0]], rtol=1e-15)


@pytest.mark.parametrize(("slope", "square"), [(1.0, 1.0), (None, 4 / np.pi)])
def test_biases_enter_by_the_ratio_of_the_saturation_scalings(slope, square):
    def printed(bias):
        gain = 1.75 * square
        return np.sqrt(((gain / 4 + bias) / (gain * 0.05 + bias)) ** (1 / 30) - 1)

    found = rescaled_by_biases(NET, [0.1, 0.3], 0.05, 0.05, slope=slope)
    expected = np.array([0.1, 0.3]) * printed(0.05) / printed(0.1)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_the_reference_is_its_own_rescaling():
    assert rescaled_by_biases(NET, 0.2, 0.05, 0.1) == pytest.approx(0.2, rel=1e-15)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: rescaled_by_weights(NET, np.nan, 1.0), "branch_scale must be finite"),
        (lambda: rescaled_by_weights(NET, 0.1, np.inf), "response must be finite"),
        (
            lambda: rescaled_by_weights(NET.replace(readout_weight_variance=0.0), 0.1, 1.0),
            "readout_weight_variance > 0",
        ),
        (lambda: rescaled_by_biases(NET, 0.1, 0.3, 0.05), "K0 must be below the dynamic range"),
        (lambda: rescaled_by_biases(NET, 0.1, -0.3, 0.05), "K0 must be a finite real number >= 0"),
        (lambda: rescaled_by_biases(NET, 0.1, 0.05, -1.0), "bias_variance must be"),
    ],
)
def test_bad_arguments(call, match):
    with pytest.raises(ValueError, match=match):
        call()
