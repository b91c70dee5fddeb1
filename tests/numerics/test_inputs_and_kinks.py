"""Several inputs of φ with kinks and jumps: routes against one another, and single inputs."""

import numpy as np
import pytest

import fieldtheory as ft
from tests.numerics.pair_examples import network, of_pairs
from tests.tables import slow


@pytest.mark.parametrize("gamma", [slow(0.7), 1.0])
@pytest.mark.parametrize("off", [0.0, 7e-9, 1e-8, 1e-4])
def test_nearly_identical_inputs_of_functions_with_kinks(gamma, off):
    """What fluctuates and shifts is that of one input, up to their distance."""
    net = network("relu", gamma, 2)
    s, one = ft.solve(net, [[0.3, 0.3 - off], [0.3 - off, 0.3]]), ft.solve(net, 0.3)
    shift = s.mean_shift - one.mean_shift[:, None, None]
    allowed = (1e-9 if off else 1e-11) + 6 * off
    assert net.width * np.abs(shift).max() < allowed
    assert net.width * np.abs(s.G11 - one.G11[..., None, None]).max() < allowed


@pytest.mark.parametrize("name", [slow("hard_tanh"), slow("relu6"), slow("hard_swish"), "relu"])
@pytest.mark.parametrize("gamma", [1.0, slow(0.7)])
def test_three_inputs_hold_what_two_do(name, gamma):
    """Of every two of three inputs, strongly correlated and wide ones, also exchanged."""
    K0 = np.array([[2.0, 1.96, -0.5], [1.96, 2.1, -0.6], [-0.5, -0.6, 8.0]])
    net = network(name, gamma, 2, branch_scale=0.2)
    s, order = ft.solve(net, K0), [2, 0, 1]
    other = ft.solve(net, K0[np.ix_(order, order)])
    place = {pair: n for n, pair in enumerate(zip(*np.triu_indices(3), strict=True))}
    # The promise: 1e-9 of the largest entry for ReLU, 1e-6 with other kinks.
    allowed = (1e-9 if name == "relu" else 1e-6) * s.G11.max()
    for pair in ([0, 1], [0, 2], [1, 2]):
        at = [place[pair[0], pair[0]], place[tuple(pair)], place[pair[1], pair[1]]]
        two = ft.solve(net, K0[np.ix_(pair, pair)]).G11
        np.testing.assert_allclose(s.G11[:, :, at][..., at], two, rtol=0, atol=allowed)
    to = [place[tuple(sorted((order[i], order[j])))] for i, j in place]
    np.testing.assert_allclose(other.G11, s.G11[:, :, to][..., to], rtol=0, atol=allowed)
    eigenvalues = np.linalg.eigvalsh(of_pairs(s.G11))
    assert eigenvalues.min() > -1e-10 * eigenvalues.max()


@pytest.mark.parametrize(
    ("name", "inputs"),
    [("relu", 5), ("hard_tanh", 3), slow("relu6", 4), slow("hard_tanh", 5)],
)
def test_inputs_on_a_line(name, inputs):
    """Fewer dimensions than inputs: covariances of four signals are singular."""
    points = np.linspace(-1.0, 1.2, inputs)
    K0 = 0.5 * np.outer(points, points) + 0.1
    net = network(name, 1.0, 1)
    s, two = ft.solve(net, K0), ft.solve(net, K0[:2, :2]).G11
    at = [0, 1, inputs]
    allowed = (1e-9 if name == "relu" else 1e-6) * s.G11.max()
    np.testing.assert_allclose(s.G11[:, :, at][..., at], two, rtol=0, atol=allowed)
    assert np.linalg.eigvalsh(of_pairs(s.G11)).min() > -allowed
