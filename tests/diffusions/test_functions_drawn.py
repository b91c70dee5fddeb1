"""Random functions: interpolated draws follow the law of those at the inputs themselves."""

import numpy as np
import pytest
from scipy import stats

import fieldtheory as ft
from fieldtheory.diffusions.functions_drawn import function_samples
from fieldtheory.networks.diffusion import DiffusionNetwork
from tests.tables import slow

GRID = np.linspace(-2.0, 2.0, 50)


def network(**changes):
    return DiffusionNetwork(**{"depth": 10, "width": 10} | changes)


@pytest.mark.parametrize(
    "changes",
    [{}, slow({"activation": "swish"}), {"input_activation": "tanh", "width": 4}],
    ids=str,
)
def test_functions_follow_the_law_of_outputs(changes):
    net, places = network(**changes), [0, 20, 30, 49]
    found = function_samples(net, GRID, samples=2000, seed=1)
    direct = ft.simulate(net, GRID[places], samples=2000, seed=2).outputs
    assert found.values.shape == (2000, 50) and found.error < 1e-3 and found.nodes < 50
    functions = found.values[:, places]
    for one, other in zip(functions.T, direct.T, strict=True):
        assert stats.ks_2samp(one, other).pvalue > 1e-3
    for one, other in zip(np.diff(functions).T, np.diff(direct).T, strict=True):
        assert stats.ks_2samp(one, other).pvalue > 1e-3


def test_linear_networks_are_linear_functions():
    found = function_samples(network(activation="linear"), GRID, samples=20)
    assert found.nodes == 4
    assert np.abs(np.diff(found.values, 2)).max() < 1e-12


def test_few_or_equal_inputs_are_drawn_themselves():
    found = function_samples(network(), [1.0, -1.0, 1.0], samples=20)
    assert found.nodes == 2 and found.error == 0
    np.testing.assert_array_equal(found.values[:, 0], found.values[:, 2])
    assert (found.values[:, 0] != found.values[:, 1]).all()
    np.testing.assert_array_equal(found.inputs, [1.0, -1.0, 1.0])


def test_jumps_are_not_interpolated():
    found = function_samples(network(depth=4, input_activation="sign"), GRID[::2], samples=20)
    assert found.nodes == 25 and found.error == 0


def test_a_smaller_tolerance_takes_more_nodes():
    nodes = [
        function_samples(network(), GRID, samples=20, tolerance=10.0**-n).nodes for n in (2, 6)
    ]
    assert nodes[0] < nodes[1]


@pytest.mark.parametrize(
    "z, arguments, message",
    [
        ([[1.0, 2.0]], {}, r"z must have shape \(m,\), got \(1, 2\)"),
        ([], {}, "z must not be empty"),
        ([0.0], {"samples": 5}, "samples must be an integer >= 20"),
        ([0.0], {"tolerance": 0}, "tolerance must be a finite real number > 0"),
    ],
)
def test_bad_input(z, arguments, message):
    with pytest.raises(ValueError, match=message):
        function_samples(network(), z, **arguments)
