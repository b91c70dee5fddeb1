"""Fluctuations of inputs that are exactly parallel, of different norms."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.networks.coefficients import layer_coefficients
from tests.numerics.pair_examples import STEP, network
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


@pytest.mark.parametrize("c", [1.0, -1.0])
def test_signs_of_parallel_inputs(c):
    """Their product is constant in the first layer, and what biases make of it later."""
    net = network("sign", 0.7, 2)
    s, near = (ft.solve(net, two(0.3, 3.0, c * (1 - off))) for off in (0.0, 1e-12))
    # By the rounding of K0 they are parallel to 1e-8.
    assert net.width * np.abs(s.G11[1, 1]).max() < 1e-8
    for field in ("G11", "mean_shift", "four_point"):
        # Apart by the root of what they are from parallel.
        value = getattr(s, field)
        size = max(np.abs(value).max(), 1 / net.width)
        np.testing.assert_allclose(getattr(near, field), value, atol=3e-4 * size)


@pytest.mark.parametrize("off", [6e-15, 1e-12, 1e-9])
def test_jumps_tell_nearly_equal_inputs_apart(off):
    """sign(h) is odd: opposite inputs of the same norm have what equal ones have, by −1."""
    net = network("sign", 0.7, 2, bias_variance=0.0, readout_bias_variance=0.0)
    s, opposite = (ft.solve(net, two(0.3, 0.3, c * (1 - off))) for c in (1, -1))
    np.testing.assert_allclose(s.G11[..., 1, 1], opposite.G11[..., 1, 1], rtol=1e-9)
    np.testing.assert_allclose(s.mean_shift[:, 0, 1], -opposite.mean_shift[:, 0, 1], rtol=1e-7)
    (_, a, *_), c = layer_coefficients(net).weights.ravel(), s.kernels[0, 0, 1] / 0.3
    angle = np.arccos(c)
    variance = a**2 * (1 - (1 - 2 * angle / np.pi) ** 2) / net.width
    assert s.G11[1, 1, 1, 1] == pytest.approx(variance, rel=1e-5)


def test_what_counts_as_parallel_does_so_everywhere():
    """Kernels that rounding sets apart by less than 1e-14, of signals of different norms."""
    K = two(0.3, 3.0, 1 - 6e-15)
    s, exact = (ft.solve(network("relu", 0.7, 2), one) for one in (K, two(0.3, 3.0, 1.0)))
    for field in ("G11", "mean_shift", "four_point"):
        value = getattr(exact, field)
        np.testing.assert_allclose(getattr(s, field), value, atol=1e-8 * np.abs(value).max())


@pytest.mark.parametrize(
    "name", ["sign", "heaviside", *map(slow, ("heaviside(h)*exp(-h)", "heaviside(h-1)"))]
)
@pytest.mark.parametrize("off", [2e-16, 4e-15])
def test_what_rounding_tells_apart_is_one(name, off):
    """Kernels of X Xᵀ of one input twice, beside another one."""
    net = network(name, 0.7, 2)
    one, s = (ft.solve(net, K) for K in (two(0.3, 0.2, 0.4), beside(two(0.3, 0.2, 0.4), off)))
    of = [0, 0, 1, 0, 1, 2]
    for field in ("G11", "four_point"):
        value = getattr(one, field)[..., of, :][..., of]
        np.testing.assert_allclose(getattr(s, field), value, rtol=1e-7, atol=1e-12 * value.max())
    value = one.mean_shift[:, [0, 0, 1]][:, :, [0, 0, 1]]
    np.testing.assert_allclose(s.mean_shift, value, rtol=1e-7, atol=1e-12 * np.abs(value).max())


def beside(K, off):
    """Two inputs as three, of which the first two are the same but for 1 − c."""
    found = K[np.ix_([0, 0, 1], [0, 0, 1])]
    found[0, 1] = found[1, 0] = K[0, 0] * (1 - off)
    return found


def test_opposite_signs_are_one_up_to_the_sign():
    net = network("sign", 0.7, 2, bias_variance=0.0, readout_bias_variance=0.0)
    s, same = (ft.solve(net, two(0.3, 0.3, c * (1 - 2e-16))) for c in (-1, 1))
    assert not s.G11.any() and not same.G11.any()
    np.testing.assert_allclose(s.mean_shift, 0, atol=1e-15)


def test_responses_of_parallel_inputs_where_slopes_diverge():
    net = network("sign", 0.7, 2)
    for norms in ((0.3, 0.75), (0.3, 0.3)):
        for field in ("response", "G12"):
            with pytest.raises(OverflowError, match="inputs that are parallel"):
                getattr(ft.solve(net, two(*norms, 1.0)), field)


@pytest.mark.parametrize("name", [STEP, slow("hardshrink"), slow("heaviside(h-1)*h")])
@pytest.mark.parametrize("norms", [(0.3, 0.75), slow((1e-4, 50.0))])
def test_jumps_away_from_zero_do_not_see_small_angles(name, norms):
    """Of different norms they are not at one place: what 1 − c changes is of its size.

    Slopes had terms over the determinant that cancelled, and vertices lost all digits.
    """
    off, net = 1e-12, network(name, 0.7, 1)
    exact, near = (ft.solve(net, two(*norms, 1 - one)) for one in (0.0, off))
    for field in ("four_point", "G11"):
        value = getattr(exact, field)
        np.testing.assert_allclose(getattr(near, field), value, atol=5e-12 * np.abs(value).max())


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
