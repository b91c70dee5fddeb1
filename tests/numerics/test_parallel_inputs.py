"""Fluctuations of inputs that are exactly parallel, of different norms."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.networks.coefficients import layer_coefficients
from tests.numerics.pair_examples import STEP, network
from tests.oracles.shallow_pairs import ShallowPair
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


@pytest.mark.parametrize("name", ["sign", "heaviside"])
@pytest.mark.parametrize("c", [1.0, -1.0])
@pytest.mark.parametrize("norms", [(30.0, 75.0), (30.0, 120.0), (0.1, 0.7), (1e-6, 3e-9)])
def test_norms_whose_covariance_is_rounded(name, c, norms):
    """The angle of 1e-8 that rounding leaves had grown to 1 in kernels and shifted means by 4."""
    given = {"skip_scale": 0.0, "bias_variance": 0.0, "readout_bias_variance": 0.0}
    net = ft.ResidualNetwork(depth=4, activation=name, branch_scale=0.3, **given)
    s = ft.solve(net, two(*norms, c))
    if name == "sign":
        np.testing.assert_allclose(s.mean_shift, 0, atol=1e-15)
        assert not np.any(s.G11)
    if name == "sign" or c > 0:
        expected = np.array([[1.0, c], [c, 1.0]])[None] * s.kernels[1:, :1, :1]
        np.testing.assert_allclose(s.kernels[1:], expected, rtol=1e-15)
        np.testing.assert_array_equal(s.decorrelation[:, 0, 1], 1 - c)
        np.testing.assert_allclose(s.mean_shift[1:], c * s.mean_shift[1:, ::-1], atol=1e-15)
        np.testing.assert_allclose(s.G11[1:, 1:, 1, 1], s.G11[1:, 1:, 0, 0], atol=1e-18)
        assert ft.solve(net, two(*norms, c)).output_kernel[0, 1] == s.kernels[-1, 0, 1]
    else:
        # One of two signals that are opposite is on.
        np.testing.assert_array_equal(s.kernels[1, 0, 1], 0.0)
        assert np.isfinite(s.mean_shift).all()


def test_responses_of_parallel_inputs_where_slopes_diverge():
    net = network("sign", 0.7, 2)
    for norms in ((0.3, 0.75), (0.3, 0.3)):
        for field in ("response", "G12"):
            with pytest.raises(OverflowError, match="inputs that are parallel"):
                getattr(ft.solve(net, two(*norms, 1.0)), field)


JUMPING = {
    "sign(h)+h": (lambda h: np.sign(h) + h, (0,)),
    "heaviside(h)*exp(-h)": (lambda h: np.where(h > 0, np.exp(-np.abs(h)), 0), (0,)),
    STEP: (lambda h: np.where(h > 1, 1.0, 0.0), (1,)),
}


@pytest.mark.parametrize("c", [1.0, -1.0])
@pytest.mark.parametrize(
    ("name", "gamma"),
    [
        ("sign(h)+h", 0.7),
        (STEP, 0.7),
        *map(slow, ("sign(h)+h", STEP, "heaviside(h)*exp(-h)"), (0.0, 0.0, 0.7)),
    ],
)
def test_jumps_of_parallel_inputs_of_different_norms(name, gamma, c):
    """Mean shifts were NaN, or took terabytes of memory."""
    K0 = two(0.3, 1.0, c)
    net = network(name, gamma, 1, width=1000, readout_bias_variance=0.0)
    layers, (phi, kinks) = layer_coefficients(net), JUMPING[name]
    (_, *a), (_, b, _) = layers.weights.ravel(), layers.biases.ravel()
    dense = ShallowPair(phi, kinks, K0, gamma, tuple(a), b, width=1.0)
    s, order = ft.solve(net, K0), [0, 2, 1]
    shift = net.width * s.mean_shift[2][[0, 1, 0], [0, 1, 1]]
    np.testing.assert_allclose(shift, dense.shift, atol=3e-7 * np.abs(dense.shift).max())
    late, mixed = dense.covariance
    for G11, expected in ((s.G11[2, 2], late), (s.G11[1, 2], mixed)):
        value = net.width * G11[order][:, order]
        np.testing.assert_allclose(value, expected, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize(
    "name", ["sign", "heaviside", *map(slow, ("sign(h)+h", "heaviside(h)*exp(-h)", STEP))]
)
@pytest.mark.parametrize("c", [1.0, -1.0])
@pytest.mark.parametrize(("gamma", "bias"), [(0.0, 0.0), (0.7, 0.07)])
def test_parallel_inputs_beside_another(name, c, gamma, bias):
    """Two of three inputs have what they have alone, and nearly what their neighbours have."""
    x = np.array([[0.55, 0.0], [0.87 * c, 0.0], [0.28, 0.65]])
    net = network(name, gamma, 2, bias_variance=bias, readout_bias_variance=bias)
    s, pair = ft.solve(net, x @ x.T), ft.solve(net, (x @ x.T)[:2, :2])
    some = [0, 1, 3]
    for field in ("G11", "four_point"):
        value, alone = getattr(s, field), getattr(pair, field)
        size = np.abs(alone).max(initial=1e-12)
        np.testing.assert_allclose(value[..., some, :][..., some], alone, atol=1e-12 * size)
    np.testing.assert_allclose(s.mean_shift[:, :2, :2], pair.mean_shift, atol=1e-15)
    if gamma:
        # Without skip connections jumps see the root of the angle in every layer.
        x[1, 1] = 1e-6
        near = ft.solve(net, x @ x.T)
        np.testing.assert_allclose(near.G11, s.G11, atol=1e-4 * np.abs(s.G11).max())


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


@pytest.mark.parametrize(
    ("name", "norms"),
    [("relu6", (0.3, 0.75)), ("relu6", (0.05, 7e-4)), ("hard_tanh", (3e-5, 1e-4))],
)
def test_kinks_out_of_reach_leave_parallel_inputs_one(name, norms):
    """Layers without skip connections: shifts had been rounding over angles, or divisions by 0."""
    given = {"bias_variance": 0.0, "readout_bias_variance": 0.0}
    net = network(name, 0.0, 2, **given)
    s, one = ft.solve(net, two(*norms, 1.0)), ft.solve(net, norms[0])
    factor = np.sqrt(norms[1] / norms[0])
    size = np.abs(one.residual_kernels) * factor / net.width
    assert (np.abs(s.mean_shift[:, 0, 1] - factor * one.mean_shift) <= 1e-9 * size).all()
    expected = factor * one.G11[1:, 1:]
    np.testing.assert_allclose(s.G11[1:, 1:, 0, 1], expected, rtol=1e-8)
