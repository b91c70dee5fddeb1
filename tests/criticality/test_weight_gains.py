"""Gains of all named activations against quadrature, and what networks with these gains keep."""

import mpmath
import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.criticality import susceptibilities
from tests.networks.test_named_activations import REFERENCES
from tests.tables import slow

JUMPS = "sign", "heaviside", "hardshrink"
KINKS = (-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 6.0)
# The first average of these takes a second or more.
SLOW = "hard_tanh hard_sigmoid hard_swish relu6 softshrink hardshrink gelu_tanh mish selu celu elu"


def average(f, variance):
    """⟨f(h)⟩ by panels that end at every kink of the table."""
    deviation = np.sqrt(variance)
    cuts = np.union1d(deviation * np.linspace(-12, 12, 49), KINKS)
    x, w = np.polynomial.legendre.leggauss(24)
    half = np.diff(cuts)[:, None] / 2
    u = cuts[:-1, None] + half * (1 + x)
    bell = np.exp(-(u**2) / (2 * variance)) / (deviation * np.sqrt(2 * np.pi))
    return float((half * w * bell * f(u)).sum())


def slope(phi, u, step=2e-4):
    """φ' of order step⁴; no node of `average` is so near to a kink that 2 steps cross it."""
    near, far = (phi(u + n * step) - phi(u - n * step) for n in (1, 2))
    return (8 * near - far) / (12 * step)


@pytest.mark.slow_but(1, 2, 8, 26, 32, 33, 35, 38)
@pytest.mark.parametrize(
    "name", [slow(name) if name in SLOW.split() else name for name in REFERENCES]
)
def test_named_activations(name):
    found, phi = ft.gain(name), REFERENCES[name]
    square = average(lambda u: phi(u) ** 2, 1.0)
    change = average(lambda u: phi(u) ** 2 * (u**2 - 1) / 2, 1.0)
    assert found.forward == pytest.approx(square**-0.5, rel=1e-12)
    assert found.parallel == pytest.approx(change / square, rel=1e-12, abs=1e-12)
    if name in JUMPS:
        assert (found.backward, found.perpendicular, found.bias_variance) == (None,) * 3
        assert "no gain keeps gradients" in str(found)
        return
    slopes = average(lambda u: slope(phi, u) ** 2, 1.0)
    assert found.backward == pytest.approx(slopes**-0.5, rel=1e-10)
    assert found.perpendicular == pytest.approx(slopes / square, rel=1e-10)
    bias = 1 - square / slopes
    if bias < -1e-10:
        assert found.bias_variance is None
    else:
        assert found.bias_variance == pytest.approx(bias, abs=1e-10)


@pytest.mark.slow_but(0, 2, 5)
@pytest.mark.parametrize(
    ("activation", "forward"),
    [
        *(("tanh", 1.592537), ("gelu", 1.533530), ("swish", 1.676532), ("mish", 1.486848)),
        *(("selu", 1.0), ("relu", 2**0.5), ("where(x>0,x,x/5)", (2 / 1.04) ** 0.5)),
        # Magnitude-preserving SiLU (Karras et al., arXiv:2312.02696, (81)).
        ("x*sigmoid(x)/0.596", 0.596 * 1.676532),
    ],
)
def test_numbers_in_use(activation, forward):
    assert ft.gain(activation).forward == pytest.approx(forward, abs=5e-7)


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "linear", "abs", "exp"])
def test_both_gains_agree_without_a_bias(name):
    for found in (ft.gain(name), ft.gain(name, digits=20)):
        assert found.bias_variance == 0
        assert found.backward == pytest.approx(found.forward, rel=1e-15)


@pytest.mark.parametrize(
    ("name", "fate", "end"),
    [
        ("tanh", "stable", "K*=0"),
        slow("gelu", "unstable", "half-stable"),
        ("square", "unstable", "no"),
    ],
)
def test_a_variance_near_one_returns_to_it_or_leaves(name, fate, end):
    found = ft.gain(name)
    net = ft.FeedForwardNetwork(
        depth=8, activation=name, weight_variance=found.forward**2, bias_variance=0.0
    )
    kernels = ft.solve(net, 1.001).kernels[:-1] - 1
    np.testing.assert_allclose(kernels[1] / kernels[0], found.parallel, rtol=2e-3)
    assert (kernels[8] < kernels[0]) == (fate == "stable")
    assert f"a {fate} fixed point" in str(found) and end in str(found)


@pytest.mark.parametrize("name", [slow("tanh"), slow("gelu"), slow("selu"), "relu"])
def test_backward_gain_and_bias_keep_variance_and_gradients(name):
    found = ft.gain(name)
    net = ft.FeedForwardNetwork(
        depth=5,
        activation=name,
        weight_variance=found.backward**2,
        bias_variance=found.bias_variance,
    )
    np.testing.assert_allclose(ft.solve(net, 1.0).kernels, 1, rtol=1e-12)
    assert susceptibilities(net, 1.0).perpendicular == pytest.approx(1, rel=1e-12)
    assert found.critical == ft.gain(name, digits=16).critical


def test_digits_and_proven_intervals():
    with mpmath.workdps(40):
        # Even functions.
        cuts = [0, 2, 4, 8, 14]
        square, slopes = (
            2 * mpmath.quad(lambda z, f=f: f(z) * mpmath.npdf(z), cuts)
            for f in (lambda z: mpmath.tanh(z) ** 2, lambda z: mpmath.sech(z) ** 4)
        )
        exact = {
            "forward": 1 / mpmath.sqrt(square),
            "backward": 1 / mpmath.sqrt(slopes),
            "perpendicular": slopes / square,
            "bias_variance": 1 - square / slopes,
        }
        many, proven = ft.gain("tanh", digits=30), ft.gain("tanh", digits=30, proven=True)
        for name, value in exact.items():
            assert abs(getattr(many, name) / value - 1) < 1e-30
            ball = getattr(proven, name)
            middle, radius = (mpmath.mpf(x.str(40, radius=False)) for x in (ball.mid(), ball.rad()))
            assert abs(middle - value) <= radius + mpmath.mpf(10) ** -38 and radius < 1e-30
    assert ft.gain("sign", digits=20, proven=True).backward is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("tahn",), "did you mean tanh"),
        (("tanh", 3), "digits must be an integer >= 16, got 3"),
        (("tanh", None, True), "digits must be given with proven=True"),
        (("mish", 20, True), "has no bound in a strip"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        ft.gain(*arguments)
