"""Random functions: draws follow the law of outputs, with several neurons of one network."""

import numpy as np
import pytest
from scipy import stats

import fieldtheory as ft
from fieldtheory.diffusions.diffusion_network import DiffusionNetwork
from fieldtheory.diffusions.diffusion_simulation import function_samples

NET = DiffusionNetwork(depth=10, width=10)
GRID = np.linspace(-2.0, 2.0, 6)


@pytest.mark.parametrize("neurons", [1, 4])
def test_functions_follow_the_law_of_outputs(neurons):
    found = function_samples(NET, GRID, samples=2000, neurons=neurons, seed=1)
    direct = ft.simulate(NET, GRID, samples=2000, seed=2).outputs
    assert found.values.shape == (2000, 6)
    for one, other in zip(found.values.T, direct.T, strict=True):
        assert stats.ks_2samp(one, other).pvalue > 1e-3
    for one, other in zip(np.diff(found.values).T, np.diff(direct).T, strict=True):
        assert stats.ks_2samp(one, other).pvalue > 1e-3


def test_linear_networks_are_linear_functions():
    found = function_samples(NET.replace(activation="linear"), GRID, samples=20)
    assert np.abs(np.diff(found.values, 2)).max() < 1e-12


def test_equal_inputs_are_drawn_once():
    found = function_samples(NET, [1.0, -1.0, 1.0], samples=20)
    np.testing.assert_array_equal(found.values[:, 0], found.values[:, 2])
    assert (found.values[:, 0] != found.values[:, 1]).all()
    np.testing.assert_array_equal(found.inputs, [1.0, -1.0, 1.0])
