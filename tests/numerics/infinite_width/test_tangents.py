"""Tangent kernels against networks whose recursion is written out by hand."""

import numpy as np
import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.numerics.infinite_width import tangents
from fieldtheory.theory.elementary_averages import X, Y, _require_square_slopes
from tests.examples import K0_TRIPLE, network
from tests.numerics.pair_maps.test_pair_map import inputs
from tests.rounding import assert_same
from tests.tables import slow

RHO, GAMMA = np.array([0.5, 0.8, 0.3]), np.array([0.7, 1.0, 0.9])
NET = ft.ResidualNetwork(
    depth=3, branch_scale=RHO, skip_scale=GAMMA, readout_weight_variance=1.4, bias_variance=0.2
)


def by_hand(net, K0, product, slope):
    """The tangent kernels of all layers; product and slope map K (P, P) to ⟨φφ⟩ and ⟨φ'φ'⟩."""
    K = theta = np.asarray(K0)
    found = [theta]
    for rho, gamma in [*zip(net.branch_scales, net.skip_scales, strict=True), (1.0, 0.0)]:
        out = len(found) == net.depth + 1
        weight, bias = net.readout_variances if out else (net.weight_variance, net.bias_variance)
        C = rho**2 * (weight * product(K) + bias)
        theta = (gamma**2 + rho**2 * weight * slope(K)) * theta + C
        K = gamma**2 * K + C
        found.append(theta)
    return np.array(found)


def relu_product(K):
    sides = np.sqrt(np.outer(np.diagonal(K), np.diagonal(K)))
    angle = np.arccos(np.clip(K / sides, -1, 1))
    return sides * (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / (2 * np.pi)


def relu_slope(K):
    sides = np.sqrt(np.outer(np.diagonal(K), np.diagonal(K)))
    return 0.5 - np.arccos(np.clip(K / sides, -1, 1)) / (2 * np.pi)


CASES = {
    "linear": (lambda K: K, np.ones_like),
    "relu": (relu_product, relu_slope),
    "square": (lambda K: 2 * K**2 + np.outer(np.diagonal(K), np.diagonal(K)), lambda K: 4 * K),
}


@pytest.mark.parametrize("name", CASES)
def test_by_hand(name):
    net = NET.replace(activation=name)
    expected = by_hand(net, K0_TRIPLE, *CASES[name])
    s = ft.solve(net, K0_TRIPLE)
    np.testing.assert_allclose(s.tangent_kernels, expected, rtol=1e-13, atol=1e-15)
    np.testing.assert_array_equal(s.output_tangent_kernel, s.tangent_kernels[-1])
    alone = ft.solve(net, K0_TRIPLE).output_tangent_kernel
    np.testing.assert_allclose(alone, expected[-1], rtol=1e-13, atol=1e-15)
    one = ft.solve(net, K0_TRIPLE[1, 1])
    np.testing.assert_allclose(one.tangent_kernels, expected[:, 1, 1], rtol=1e-13)
    assert one.output_tangent_kernel == one.tangent_kernels[-1]


def test_variances_have_the_square_of_the_slope():
    """⟨φ'²⟩, not M' = ⟨φ'² + φφ''⟩: for φ = h² it is 4K, M' is 6K."""
    s = ft.solve(ft.ResidualNetwork(depth=1, activation="square", bias_variance=0.0), 0.3)
    theta, K, a = s.tangent_kernels, s.kernels, 1.25
    assert theta[1] == pytest.approx((1 + a * 4 * K[0]) * theta[0] + a * 3 * K[0] ** 2)


@pytest.mark.slow_but(0, 1)
@pytest.mark.parametrize("name", ["erf", "relu", "tanh", "elu"])
def test_identical_inputs_have_identical_entries(name):
    K0 = np.array([[0.3, 0.3, 0.1], [0.3, 0.3, 0.1], [0.1, 0.1, 0.6]])
    net = network(6, activation=name)
    for theta in (ft.solve(net, K0).tangent_kernels, ft.solve(net, K0).output_tangent_kernel):
        np.testing.assert_array_equal(theta[..., 0, 1], theta[..., 0, 0])
        np.testing.assert_array_equal(theta[..., 2, 0], theta[..., 2, 1])


BATCH = ft.ResidualNetwork(depth=2, branch_scale=[[0.1, 0.2], [0.4, 0.3]], skip_scale=[0.9, 1.0])


def test_batch_of_one_input():
    s = ft.solve(BATCH, [0.4, 0.8])
    for i, K0 in enumerate((0.4, 0.8)):
        one = ft.solve(BATCH.member((2,), (i,)), K0)
        np.testing.assert_allclose(s.tangent_kernels[i], one.tangent_kernels, rtol=1e-14)
        assert s.output_tangent_kernel[i] == s.tangent_kernels[i, -1]


def test_batch_of_several_inputs():
    stack = np.stack([K0_TRIPLE, 2 * K0_TRIPLE, 3 * K0_TRIPLE])[:, None]
    s, output = ft.solve(BATCH, stack), ft.solve(BATCH, stack).output_tangent_kernel
    for i, j in np.ndindex(3, 2):
        one = ft.solve(BATCH.member((2,), (j,)), stack[i, 0])
        np.testing.assert_allclose(s.tangent_kernels[i, j], one.tangent_kernels, rtol=1e-14)
        np.testing.assert_allclose(output[i, j], one.output_tangent_kernel, rtol=1e-14)


@pytest.mark.slow_but(1)
@pytest.mark.parametrize("kind", ["one norm", "many norms", "doubtful"])
@pytest.mark.parametrize("rates", [{}, {"parametrization": "standard", "rates": {"weight": 0.1}}])
def test_many_inputs(kind, rates):
    """The output alone, by a map of pairs, is what the recursion over the layers gives."""
    net = ft.ResidualNetwork(depth=20, activation="relu", branch_scale=0.2)
    K0 = inputs(kind) + 0.05
    fast, layers = (ft.tangent_kernels(net, K0, **rates) for _ in range(2))
    expected = layers.tangent_kernels[-1]
    # The angle of two inputs that differ by 1e-7 is known to 1e-9, and ⟨φ'φ'⟩ is linear in it.
    rtol = 1e-9 if kind == "doubtful" else 1e-12
    np.testing.assert_allclose(fast.output_tangent_kernel, expected, rtol=rtol)
    assert "tangent_kernels" not in vars(fast)
    diagonals = np.diagonal(fast.output_tangent_kernel), np.diagonal(expected)
    assert_same(*diagonals)


@pytest.mark.slow_but(0, 1)
@pytest.mark.parametrize(
    "phi, place",
    [("sign", "0"), ("heaviside", "0"), ("hardshrink", "-0.5"), ("sqrt(abs(h - 2))", "2")],
)
def test_infinite_slopes_are_refused(phi, place):
    s = ft.solve(ft.ResidualNetwork(depth=2, activation=phi), 0.4)
    for name in ("tangent_kernels", "output_tangent_kernel"):
        with pytest.raises(ValueError, match=rf"must have no jumps .* got one at h = {place}$"):
            getattr(s, name)


def test_rounded_constants_are_no_jumps():
    """1/3 of a cosine for h < 0, and 16 digits of 1/3."""
    constant = sp.Rational("0.3333333333333333")
    one, other = (sp.Piecewise((constant, x > 0), (sp.cos(x) / 3, True)) for x in (X, Y))
    _require_square_slopes(one * other)


@pytest.mark.parametrize(
    "phi, limit", [("relu", 0.5), slow("selu", None), ("abs", 1.0), ("erf", None)]
)
def test_inputs_that_vanish(phi, limit):
    """At K = 0 the average is its limit."""
    net = ft.ResidualNetwork(depth=2, activation=phi)
    zero, small = (ft.solve(net, K0).tangent_kernels for K0 in (0.0, 1e-20))
    np.testing.assert_allclose(zero, small, rtol=1e-8, atol=1e-18)
    slope = tangents.slope_gains(net, np.zeros(4))
    np.testing.assert_allclose(slope[1:], tangents.slope_gains(net, np.full(4, 1e-20))[1:], 1e-8)
    assert limit is None or slope[1] == 1.25 * limit


def test_what_exceeds_float64_is_said():
    net = ft.ResidualNetwork(depth=900, activation="relu", weight_variance=3.0, bias_variance=0.0)
    for K0 in (1e-30, 1e-30 * K0_TRIPLE):
        for name in ("tangent_kernels", "output_tangent_kernel"):
            with pytest.raises(OverflowError, match="exceeds the range of float64 in layer"):
                getattr(ft.solve(net, K0), name)
