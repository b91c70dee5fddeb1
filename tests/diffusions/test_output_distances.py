"""Distances of outputs: what is one law is seen as one, what differs is told apart."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.diffusions.output_distances import GaussianOutputs, distances
from fieldtheory.networks.diffusion import DiffusionNetwork

NET = DiffusionNetwork(depth=10, width=5)
Z = [0.0, 1.0]


def test_kernel_and_weights_are_one_law():
    first, second = (ft.simulate(NET, Z, samples=4000, method=m) for m in ("kernel", "weights"))
    found = first.distances(second)
    assert found.p_value.min() > 1e-3 and found.statistic.max() < 0.05
    for scores in (found.mean_z, found.covariance_z, found.kurtosis_z):
        assert np.abs(scores).max() < 4
    assert "method=weights" in str(found) and "<td>" in found._repr_html_()
    assert list(found.rows[1])[:3] == ["input", "KS", "p-value"]


@pytest.mark.parametrize(
    "changes, field",
    [
        ({"bias_variance": 1.6}, "covariance_z"),
        ({"activation": "swish"}, "mean_z"),
        ({"width": 1}, "kurtosis_z"),
    ],
)
def test_other_laws_are_told_apart(changes, field):
    e = ft.simulate(NET, Z, samples=4000)
    other = ft.simulate(NET.replace(**changes), Z, samples=4000, seed=1)
    found = e.distances(other)
    assert np.abs(getattr(found, field)).max() > 4
    assert found.p_value.min() < 1e-2


def test_gaussian_outputs():
    draws = np.random.default_rng(0).multivariate_normal([1, 2], [[2, 0.5], [0.5, 1]], size=5000)
    law = GaussianOutputs(np.array([1.0, 2.0]), np.array([[2, 0.5], [0.5, 1.0]]))
    found = distances(draws, law, "the law")
    assert found.p_value.min() > 1e-2
    assert max(abs(found.covariance_z).max(), abs(found.kurtosis_z).max()) < 3.5
    shifted = distances(draws, law._replace(mean=law.mean + 0.1), "another")
    assert shifted.p_value.max() < 1e-3 and shifted.mean_z.max() < -4


def test_what_does_not_fluctuate():
    e = ft.simulate(NET.replace(bias_variance=0.0), [0.0], samples=50)
    found = e.distances(e)
    assert found.statistic[0] == 0 and not found.covariance_z.any()
    point = distances(e.outputs, GaussianOutputs(np.zeros(1), np.zeros((1, 1))), "zero")
    assert point.statistic[0] == 0 and not point.kurtosis_z.any()


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
