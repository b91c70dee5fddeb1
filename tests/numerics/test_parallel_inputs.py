"""Fluctuations of inputs that are exactly parallel, of different norms."""

import numpy as np
import pytest

import fieldtheory as ft
from tests.numerics.pair_examples import network
from tests.tables import slow


def two(x, y, c):
    K = c * np.sqrt(x * y)
    return np.array([[x, K], [K, y]])


@pytest.mark.parametrize("name", ["relu", "abs", "leaky_relu"])
def test_homogeneous_functions_scale(name):
    """φ(λh) = λφ(h) without biases: what one input has, times λ for every signal of the other."""
    net = network(name, 0.7, 3, bias_variance=0.0, readout_bias_variance=0.0)
    s, one, factor = ft.solve(net, two(0.3, 3.0, 1.0)), ft.solve(net, 0.3), np.sqrt(10)
    factors = np.array([1.0, factor, factor**2])
    expected = one.G11[:, :, None, None] * np.outer(factors, factors)
    np.testing.assert_allclose(s.G11, expected, rtol=1e-11)
    expected = one.four_point[:, None, None] * np.outer(factors, factors)
    np.testing.assert_allclose(s.four_point, expected, rtol=1e-11)
    size = np.abs(one.residual_kernels)
    expected = factor * one.mean_shift
    assert (np.abs(s.mean_shift[:, 0, 1] - expected) <= 1e-12 * size).all()


@pytest.mark.parametrize("name", ["relu", "abs", slow("hard_tanh")])
@pytest.mark.parametrize(("c", "bias"), [(1.0, 0.07), (-1.0, 0.0), (-1.0, 0.07)])
def test_they_are_the_limit_of_nearly_parallel_ones(name, c, bias):
    net = network(name, 0.7, 2, bias_variance=bias, readout_bias_variance=bias)
    s, near = (ft.solve(net, two(0.3, 3.0, c * (1 - off))) for off in (0.0, 3e-9))
    for field in ("G11", "mean_shift", "four_point"):
        value = getattr(s, field)
        # Shifts of |h| are small beside the kernels.
        size = max(np.abs(value).max(), 4 / net.width)
        np.testing.assert_allclose(getattr(near, field), value, atol=5e-9 * size)


def test_what_counts_as_parallel_does_so_everywhere():
    """Kernels that rounding sets apart by less than 1e-14, of signals of different norms."""
    K = two(0.3, 3.0, 1 - 6e-15)
    s, exact = (ft.solve(network("relu", 0.7, 2), one) for one in (K, two(0.3, 3.0, 1.0)))
    for field in ("G11", "mean_shift", "four_point"):
        value = getattr(exact, field)
        np.testing.assert_allclose(getattr(s, field), value, atol=1e-8 * np.abs(value).max())


def test_responses_of_parallel_inputs_where_slopes_diverge():
    net = network("sign", 0.7, 2)
    for norms in ((0.3, 0.75), (0.3, 0.3)):
        for field in ("response", "G12"):
            with pytest.raises(OverflowError, match="inputs that are parallel"):
                getattr(ft.solve(net, two(*norms, 1.0)), field)


@pytest.mark.parametrize("norms", [(0.3, 0.75), (0.3, 1.2)])
def test_opposite_inputs_are_the_same_to_even_functions(norms):
    """|h| without skip connections and biases: shifts were NaN, or of the size of the kernels."""
    given = {"bias_variance": 0.0, "readout_bias_variance": 0.0}
    net = network("abs", 0.0, 3, **given)
    s, one = ft.solve(net, two(*norms, -1.0)), ft.solve(net, norms[0])
    factor = np.sqrt(norms[1] / norms[0])
    size = np.abs(one.residual_kernels)
    assert (np.abs(s.mean_shift[:, 0, 1] - factor * one.mean_shift) <= 1e-12 * size).all()
    factors = np.array([1.0, factor, factor**2])
    expected = one.four_point[1:, None, None] * np.outer(factors, factors)
    np.testing.assert_allclose(s.four_point[1:], expected, rtol=1e-11)
