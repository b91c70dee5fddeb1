"""Synthetic samples."""

import numpy as np
import pytest

from fieldtheory.data import equal_angles, normalise
from tests.data.refusals import refusal


@pytest.mark.parametrize("count", [2, 7, 20])
def test_angles_are_those_of_the_paper(count):
    samples = equal_angles(count)
    assert samples.samples.shape == (count, 100)
    assert samples.labels is None
    k = np.arange(count)
    expected = np.cos(2 * np.pi * (k[:, None] - k) / count)
    np.testing.assert_allclose(samples.samples @ samples.samples.T, expected, atol=1e-15)


# Samples of equal components are no constant images.
@pytest.mark.parametrize("count", [4, 8])
def test_every_angle_can_be_rescaled(count):
    x = normalise(equal_angles(count).samples, 0.05, 1.25)
    np.testing.assert_allclose(1.25 / 100 * (x * x).sum(axis=1), 0.05, rtol=1e-14)


@pytest.mark.parametrize("name", ["count", "dimension"])
def test_refuses(name):
    assert f"{name} must be an integer >= 2, got 1" in refusal(equal_angles, **{name: 1})
    assert name in refusal(equal_angles, error=TypeError, **{name: 4.0})
