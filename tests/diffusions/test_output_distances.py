"""Distances of outputs: what is one law is seen as one, what differs is told apart."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.diffusions.diffusion_ensemble import GaussianOutputs, distances
from fieldtheory.networks.diffusion import DiffusionNetwork

NET = DiffusionNetwork(depth=10, width=5)
Z = [0.0, 1.0]


def test_kernel_and_weights_are_one_law():
    first, second = (ft.simulate(NET, Z, samples=4000, method=m) for m in ("kernel", "weights"))
    found = first.distances(second)
    assert found.p_value.min() > 1e-3 and found.statistic.max() < 0.05


@pytest.mark.parametrize(
    "changes", [{"bias_variance": 1.6}, {"activation": "swish"}, {"width": 1}], ids=str
)
def test_other_laws_are_told_apart(changes):
    e = ft.simulate(NET, Z, samples=4000)
    other = ft.simulate(NET.replace(**changes), Z, samples=4000, seed=1)
    assert e.distances(other).p_value.min() < 1e-2


def test_gaussian_outputs():
    draws = np.random.default_rng(0).multivariate_normal([1, 2], [[2, 0.5], [0.5, 1]], size=5000)
    law = GaussianOutputs(np.array([1.0, 2.0]), np.array([[2, 0.5], [0.5, 1.0]]))
    assert distances(draws, law).p_value.min() > 1e-2
    assert distances(draws, law._replace(mean=law.mean + 0.1)).p_value.max() < 1e-3


def test_what_does_not_fluctuate():
    e = ft.simulate(NET.replace(bias_variance=0.0), [0.0], samples=50)
    point = GaussianOutputs(np.zeros(1), np.zeros((1, 1)))
    assert e.distances(e).statistic[0] == distances(e.outputs, point).statistic[0] == 0


@pytest.mark.parametrize(
    "changes, inputs, message",
    [
        ({}, [0.5], "other must have the inputs"),
        ({"horizon": 2.0}, Z, "other must have horizon=1.0"),
    ],
)
def test_bad_input(changes, inputs, message):
    e = ft.simulate(NET, Z, samples=20)
    with pytest.raises(ValueError, match=message):
        e.distances(ft.simulate(NET.replace(**changes), inputs, samples=20))
    with pytest.raises(TypeError, match="other must be a DiffusionEnsemble"):
        e.distances(3.0)
