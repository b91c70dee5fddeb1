"""Averages along the layers against the averages of every layer."""

import numpy as np
import pytest

from fieldtheory.numerics.layer_averages.along_layers import along_layers, path_of, smoothly


def counted(function):
    asked = []

    def average(*K):
        asked.append(len(K[0]))
        return function(*K)

    return average, asked


PATHS = {
    "powers": np.arange(1.0, 601) ** 2,
    "exponentials": 1.3 ** np.arange(600.0),
    "fixed point": 2 + 0.9 ** np.arange(600.0),
    "constant": np.full(600, 0.7),
}


@pytest.mark.parametrize("name", PATHS)
def test_few_layers_tell_of_all(name):
    K = np.stack([PATHS[name], 3 * PATHS[name]], axis=1)
    average, asked = counted(lambda K: np.arctan(K) / np.sqrt(1 + K))
    found = smoothly(average, K)
    np.testing.assert_allclose(found, np.arctan(K) / np.sqrt(1 + K), rtol=1e-12)
    assert sum(asked) < 250


def test_pairs_are_told_by_their_angles():
    K = np.arange(1.0, 601)[:, None]
    c = 1 - 1 / (1 + K)
    average, asked = counted(lambda x, y, xy: 1 - np.arccos(xy / np.sqrt(x * y)) / np.pi)
    found = smoothly(average, K, 2 * K, np.sqrt(2) * c * K)
    np.testing.assert_allclose(found, 1 - np.arccos(c) / np.pi, rtol=1e-12)
    assert sum(asked) < 250


def test_layers_that_are_not_smooth_are_all_asked_for():
    """Of one layer beside the others, and of averages with kinks between layers."""
    K = np.exp(0.01 * np.arange(600.0))[:, None]
    K[437] *= 1.001
    np.testing.assert_allclose(smoothly(np.sqrt, K), np.sqrt(K), rtol=1e-13)
    bent = smoothly(lambda K: 1 + np.maximum(K - 3.3, 0), np.sort(K, axis=0))
    np.testing.assert_allclose(bent, 1 + np.maximum(np.sort(K, axis=0) - 3.3, 0), rtol=1e-12)


def test_averages_of_both_signs_are_all_asked_for():
    K = np.exp(0.01 * np.arange(600.0))[:, None]
    found = along_layers(lambda layers: np.log(K[layers]) - 2, np.log(K))
    np.testing.assert_allclose(found, np.log(K) - 2, rtol=1e-12, atol=1e-15)


def test_no_path_of_what_vanishes_or_of_many_inputs():
    assert path_of(np.zeros((9, 1))) is None
    assert path_of(np.full((9, 20), 1.0)) is None
    assert path_of(np.full((9, 2), np.inf)) is None
