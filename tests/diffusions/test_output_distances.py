"""Distances of outputs: what is one law is seen as one, what differs is told apart."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.diffusions.diffusion_ensemble import GaussianOutputs, distances
from fieldtheory.diffusions.diffusion_network import DiffusionNetwork

NET = DiffusionNetwork(depth=10, width=5)
Z = [0.0, 1.0]


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
