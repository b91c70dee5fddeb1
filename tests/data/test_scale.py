"""The input scale, and samples made for one."""

import numpy as np
import pytest

from fieldtheory.data import equal_angles, load_digits, normalise
from tests.data.refusals import refusal

X = np.array([[0.0, 1.0, 2.0], [3.0, 5.0, 4.0], [6.0, 7.0, 9.0], [8.0, 1.0, 1.0]])


class TestNormalise:
    @pytest.mark.parametrize(("scale", "variance"), [(0.05, 1.25), (3.0, 0.2), (1e-12, 1.0)])
    def test_diagonal_of_the_input_kernel(self, scale, variance):
        samples = load_digits().samples
        x = normalise(samples, scale, variance)
        diagonal = variance / x.shape[1] * np.einsum("ai,ai->a", x, x)
        np.testing.assert_allclose(diagonal, scale, rtol=1e-12)

    @pytest.mark.parametrize("size", [1e-200, 1e200])
    def test_neither_over_nor_underflows(self, size):
        np.testing.assert_allclose(
            normalise(X * size, 0.05, 1.25), normalise(X, 0.05, 1.25), rtol=1e-12
        )

    @pytest.mark.parametrize("value", [0.0, 0.1, -7.0])
    def test_refuses_constant_samples(self, value):
        samples = X.copy()
        samples[2] = value
        message = refusal(normalise, samples, 0.05, 1.25)
        assert "sample 3 of" in message
        assert "constant" in message

    @pytest.mark.parametrize("name", ["scale", "weight_variance"])
    @pytest.mark.parametrize("value", [0, -1.0, np.nan, np.inf])
    def test_refuses_scales_that_are_not_positive(self, name, value):
        assert name in refusal(
            normalise, X, **({"scale": 1.0, "weight_variance": 1.0} | {name: value})
        )

    def test_refuses_other_samples(self):
        assert "(P, d)" in refusal(normalise, X[0], 1.0, 1.0)
        assert "finite" in refusal(normalise, np.where(X == 5, np.nan, X), 1.0, 1.0)
        assert "samples" in refusal(normalise, [["a", "b"]], 1.0, 1.0, error=TypeError)

    def test_one_column_has_no_norm_to_scale(self):
        message = refusal(normalise, X[:, :1], 0.05, 1.25)
        assert "two entries or more" in message and "scale none" in message


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
def test_equal_angles_refuse(name):
    assert f"{name} must be an integer >= 2, got 1" in refusal(equal_angles, **{name: 1})
    assert name in refusal(equal_angles, error=TypeError, **{name: 4.0})
