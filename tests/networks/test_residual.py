"""The network: defaults, changes, per-layer scales, and every kind of bad argument."""

from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

from fieldtheory.networks.activations import ACTIVATIONS
from fieldtheory.networks.residual import FeedForwardNetwork, ResidualNetwork, input_kernel

x, y = sp.symbols("x y", real=True)


def test_defaults():
    """F25 Fig. 4."""
    net = ResidualNetwork(depth=50)
    assert (net.depth, net.width, net.input_dim) == (50, 500, 100)
    assert net.activation is ACTIVATIONS["erf"]
    assert (net.branch_scale, net.skip_scale) == (1.0, 1.0)
    assert (net.weight_variance, net.bias_variance) == (1.25, 0.05)
    assert net.readin_variances == net.readout_variances == (1.25, 0.05)


def test_replace():
    net = ResidualNetwork(depth=3, branch_scale=[0.1, 0.2, 0.3], activation="relu")
    changed = net.replace(weight_variance=2.0)
    assert changed.weight_variance == 2.0
    assert changed.branch_scale == (0.1, 0.2, 0.3)
    assert changed.activation is ACTIVATIONS["relu"]
    assert net.weight_variance == 1.25
    assert net.replace() == net
    with pytest.raises(ValueError, match="branch_scale .* depth=4"):
        net.replace(depth=4)
    with pytest.raises(TypeError, match="did you mean weight_variance"):
        net.replace(weight_varince=2.0)


def test_outer_layers_follow_the_hidden_ones():
    net = ResidualNetwork(depth=1, readout_bias_variance=0.0)
    assert net.readout_variances == (1.25, 0.0)
    assert net.replace(weight_variance=3.0).readout_variances == (3.0, 0.0)
    assert net.replace(weight_variance=3.0).readin_variances == (3.0, 0.05)
    given = net.replace(readin_weight_variance=0.0, readin_bias_variance=0.2)
    assert given.readin_variances == (0.0, 0.2)
    assert given.replace(weight_variance=9.0).readin_variances == (0.0, 0.2)
    assert given.replace(readin_weight_variance=None).readin_variances == (1.25, 0.2)


def test_networks_are_values():
    net = ResidualNetwork(depth=2, branch_scale=np.array([0.5, 0.6]))
    assert net == ResidualNetwork(depth=np.int64(2), branch_scale=(0.5, 0.6))
    assert len({net, net.replace(depth=2), net.replace(width=7)}) == 2
    with pytest.raises(AttributeError):
        net.depth = 3


@pytest.mark.parametrize(
    ("scale", "shape"),
    [(0.5, (3,)), ([0.5], (3,)), ([[1.0], [2.0]], (2, 3)), (np.ones((4, 2, 3)), (4, 2, 3))],
)
def test_batches_of_scales(scale, shape):
    net = ResidualNetwork(depth=3, branch_scale=scale)
    assert net.branch_scales.shape == shape
    np.testing.assert_array_equal(net.branch_scales, np.broadcast_to(scale, shape))


def test_numbers_of_other_kinds():
    net = ResidualNetwork(depth=1, weight_variance=Fraction(5, 4), bias_variance=sp.Rational(1, 20))
    assert (net.weight_variance, net.bias_variance) == (1.25, Fraction(1, 20))
    assert type(net.weight_variance) is float and float(net.bias_variance) == 0.05
    assert ResidualNetwork(depth=1, bias_variance="0.05") == net.replace(weight_variance=1.25)
    assert ResidualNetwork(depth=1, bias_variance=np.float32(0.5)).bias_variance == 0.5


def test_feed_forward():
    net = FeedForwardNetwork(depth=4, activation="relu", weight_variance=2.0)
    assert isinstance(net, ResidualNetwork)
    np.testing.assert_array_equal(net.skip_scales, np.zeros(4))
    np.testing.assert_array_equal(net.branch_scales, np.ones(4))
    assert net.weight_variance == 2.0
    for name in ("skip_scale", "branch_scale"):
        with pytest.raises(TypeError, match=f"{name} is fixed in a feed-forward network"):
            FeedForwardNetwork(depth=4, **{name: 0.5})


BAD = [
    ("depth", 0, ValueError, "depth must be an integer >= 1, got 0"),
    ("depth", -3, ValueError, "depth must be an integer >= 1, got -3"),
    ("depth", 2.0, TypeError, "depth must be an integer >= 1, got 2.0"),
    ("depth", True, TypeError, "depth must be an integer >= 1, got True"),
    ("depth", "3", TypeError, "depth must be an integer >= 1, got '3'"),
    ("depth", None, TypeError, "depth must be an integer"),
    ("width", 0, ValueError, "width must be an integer >= 1, got 0"),
    ("width", 1.5, TypeError, "width must be an integer"),
    ("input_dim", 0, ValueError, "input_dim must be an integer >= 1, got 0"),
    ("branch_scale", [0.1, 0.2], ValueError, "branch_scale .* 1 or depth=3 entries"),
    ("branch_scale", [], ValueError, "branch_scale must not be empty"),
    ("branch_scale", float("nan"), ValueError, "branch_scale must be finite, got nan"),
    ("branch_scale", [1.0, np.inf, 2.0], ValueError, "branch_scale must be finite, got inf"),
    ("branch_scale", "a third", ValueError, "branch_scale must be a number, an array, a function"),
    ("skip_scale", "uniform", TypeError, "skip_scale must be a real number"),
    ("branch_scale", 1j, TypeError, "branch_scale must be a real number"),
    ("branch_scale", True, TypeError, "branch_scale must be a real number"),
    ("branch_scale", [[1.0], [1.0, 2.0]], TypeError, "branch_scale must be a real number"),
    ("skip_scale", np.ones((3, 2)), ValueError, "skip_scale .* got shape \\(3, 2\\)"),
    ("skip_scale", None, TypeError, "skip_scale must be a real number"),
    ("activation", "erff", ValueError, "activation must be one of"),
    ("activation", x * y, ValueError, "activation must have exactly one symbol"),
    ("activation", sp.Integer(1), ValueError, "activation must have exactly one symbol, got none"),
    ("activation", 3, TypeError, "activation must be a SymPy expression"),
] + [
    (name, value, error, f"{name} must be a finite real number >= 0, got")
    for name in (
        "weight_variance",
        "bias_variance",
        "readin_weight_variance",
        "readin_bias_variance",
        "readout_weight_variance",
        "readout_bias_variance",
    )
    for value, error in [
        (-0.1, ValueError),
        (float("nan"), ValueError),
        (float("inf"), ValueError),
        ("one", TypeError),
        (True, TypeError),
        ([1.0], TypeError),
    ]
]


@pytest.mark.parametrize(("name", "value", "error", "message"), BAD)
def test_bad_arguments(name, value, error, message):
    with pytest.raises(error, match=message) as caught:
        ResidualNetwork(**{"depth": 3, name: value})
    assert "\n" not in str(caught.value)


def test_hidden_variances_are_required():
    for name in ("weight_variance", "bias_variance"):
        with pytest.raises(TypeError, match=name):
            ResidualNetwork(depth=1, **{name: None})


def test_batches_must_fit_together():
    with pytest.raises(ValueError, match="branch_scale and skip_scale"):
        ResidualNetwork(depth=2, branch_scale=np.ones((3, 2)), skip_scale=np.ones((4, 2)))


def test_input_kernel():
    net = ResidualNetwork(
        depth=1, readin_weight_variance=2.0, readin_bias_variance=0.5, input_dim=77
    )
    X = np.array([[1.0, 2.0, 2.0], [0.0, 3.0, -3.0]])
    expected = 0.5 + 2.0 / 3 * np.array([[9.0, 0.0], [0.0, 18.0]])
    np.testing.assert_allclose(input_kernel(X, net), expected, rtol=1e-15)
    hidden = ResidualNetwork(depth=1, weight_variance=3.0, bias_variance=0.0)
    np.testing.assert_allclose(input_kernel(X, hidden), X @ X.T, rtol=1e-15)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ([1.0, 2.0], ValueError, r"X must have shape \(P, d\), got shape \(2,\)"),
        ([[1.0, np.nan]], ValueError, "X must be finite"),
        ([["a", "b"]], TypeError, "X must be a real number or an array"),
        ([[]], ValueError, "X must not be empty"),
    ],
)
def test_bad_inputs(X, error, message):
    with pytest.raises(error, match=message):
        input_kernel(X, ResidualNetwork(depth=1))
