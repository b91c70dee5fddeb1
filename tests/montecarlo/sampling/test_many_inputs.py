"""`covariance_with`: sampled paths of a neuron against G11 contracted, refusals, repetition."""

import numpy as np
import pytest

import fieldtheory as ft
from tests.examples import K0_TRIPLE, network
from tests.rounding import assert_same

U = np.array([[1.0, -0.5, 0.3], [0.1, 0.4, 2.0], [-1.0, 0.0, -0.7]])


@pytest.fixture(scope="module")
def solution():
    s = ft.solve(network(3, "gelu", 0.7), K0_TRIPLE)
    _ = s.G11
    return s


def z_scores(sampled, exact):
    noisy = sampled.error > 0
    assert_same(sampled.values[~noisy], exact.values[~noisy])
    return ((sampled.values - exact.values)[noisy] / sampled.error[noisy]).ravel()


BLOCKS = ft.BlockNetwork(depth=3, epsilon=0.1, width=20)


@pytest.mark.parametrize("layer", [0, 1, 3, -1])
@pytest.mark.parametrize("net", [network(3, "tanh", 0.7, width=20), BLOCKS])
def test_without_sampling_it_is_G11_contracted(net, layer):
    solution = ft.solve(net, K0_TRIPLE)
    place = np.zeros((3, 3), dtype=int)
    i, j = np.triu_indices(3)
    place[i, j] = place[j, i] = np.arange(6)
    found = ft.covariance_with(solution, U, layer)
    expected = np.einsum("lpqij,ij->lpq", solution.G11[:, layer][:, place][..., place], U)
    np.testing.assert_allclose(found.values, expected, rtol=1e-12, atol=1e-18)
    assert (found.error <= 1e-9 * np.abs(found.values).max()).all()
    assert found.layer == layer % 5


@pytest.mark.parametrize("layer", [1, 2, -1])
def test_sampled_paths(solution, layer):
    exact = ft.covariance_with(solution, U, layer)
    sampled = ft.covariance_with(solution, U, layer, samples=40_000, seed=layer % 5)
    z = z_scores(sampled, exact)
    assert len(z) == 4 * 6 + 4 * 3 and np.abs(z).max() < 4
    # The error is small enough to see an error in the theory, and the spread of z is one.
    size = np.abs(exact.values).max(axis=(1, 2))[1:]
    assert (sampled.error[1:].max(axis=(1, 2)) < 0.1 * size).all()


@pytest.mark.slow
def test_errors_are_those_of_repetitions(solution):
    exact = ft.covariance_with(solution, U)
    runs = [ft.covariance_with(solution, U, samples=800, seed=seed) for seed in range(40)]
    spread = np.std([run.values for run in runs], axis=0, ddof=1)[1:]
    error = np.sqrt(np.mean([run.error**2 for run in runs], axis=0))[1:]
    np.testing.assert_allclose(spread / error, 1, atol=0.4)
    mean = np.mean([run.values for run in runs], axis=0)[1:]
    assert np.abs((mean - exact.values[1:]) / (spread / np.sqrt(40))).max() < 4


@pytest.mark.parametrize("name", ["relu", "erf"])
@pytest.mark.parametrize("gamma", [0.0, 1.0])
def test_other_activations(name, gamma):
    s = ft.solve(network(2, name, gamma), K0_TRIPLE[:2, :2])
    exact = ft.covariance_with(s, U[:2, :2])
    sampled = ft.covariance_with(s, U[:2, :2], samples=20_000, seed=1)
    assert np.abs(z_scores(sampled, exact)).max() < 4


def test_the_same_seed_gives_the_same(solution):
    one, two, other = (ft.covariance_with(solution, U, samples=50, seed=s) for s in (3, 3, 4))
    assert_same(one.values, two.values)
    assert (one.values != other.values)[1:].all()


def test_identical_inputs_stay_identical():
    s = ft.solve(network(2, "erf"), np.full((3, 3), 0.3))
    found = ft.covariance_with(s, U, samples=100).values
    np.testing.assert_allclose(found, np.broadcast_to(found[:, :1, :1], found.shape), rtol=1e-9)


def test_many_inputs_take_little_memory(monkeypatch):
    """Where G11 would not fit, the message names this function with samples."""
    monkeypatch.setattr("fieldtheory.numerics.memory.memory_available", lambda: 10**6)
    X = np.random.default_rng(0).standard_normal((12, 20)) / 6
    s = ft.solve(network(3, "erf"), X @ X.T)
    with pytest.raises(ValueError, match=r"ft\.covariance_with\(\.\.\., samples=10000\)"):
        ft.covariance_with(s, np.eye(12))
    assert ft.covariance_with(s, np.eye(12), samples=40).values.shape == (5, 12, 12)
