"""The forward pass and its steps: Grams, roots, tiles, and the features of a network."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.montecarlo.sampling.forward import Neurons, feature_functions, forward
from tests.examples import network


def test_a_pass_stops_where_a_kernel_overflows():
    net = network(3, "linear", 1.0)
    sampler = Neurons(net, lambda l, kernel, features: np.full((1, 1, 2), 1e160 * l + 1))
    huge = forward(sampler, np.eye(1))
    assert next(huge)[1].item() > 0
    with pytest.raises(OverflowError, match="a kernel exceeds .* in layer 2"):
        next(huge)


@pytest.mark.slow_but(0)
@pytest.mark.parametrize(
    ("expression", "value", "slope"),
    [
        ("sin(h)/h", 1, 0),
        ("h/(exp(h) - 1)", 1, -0.5),
        ("(1 - cos(h))/h", 0, 0.5),
        # At a kink the slope is that of one side.
        ("max(0, h) + tanh(h)/h", 1, 0),
    ],
)
def test_removable_singularities_at_zero(expression, value, slope):
    net = ft.ResidualNetwork(depth=1, activation=expression)
    x = np.array([0.0, 0.5])
    (found,) = feature_functions(net)(x)
    np.testing.assert_allclose(found, [value, float(net.activation(0.5))], rtol=1e-14)
    assert feature_functions(net, slopes=True)(x)[0][0] == pytest.approx(slope, abs=1e-7)


def test_a_zero_input_passes_a_removable_singularity():
    net = ft.ResidualNetwork(depth=1, activation="sin(h)/h", bias_variance=0.0, width=20)
    for method in ("kernel", "weights"):
        mean = ft.simulate(net, 0.0, samples=20, seed=0, method=method).mean
        np.testing.assert_allclose(mean[:2], [0.0, 1.25], rtol=1e-12)


@pytest.mark.parametrize("name", ["erf", "relu", "leaky_relu", "tanh", "gelu", "sin"])
def test_slopes_of_the_activation(name):
    net, step = ft.ResidualNetwork(depth=1, activation=name), 1e-5
    x = np.linspace(-3, 3, 60)
    psi = feature_functions(net)
    expected = (psi(x + step)[0] - psi(x - step)[0]) / (2 * step)
    np.testing.assert_allclose(
        feature_functions(net, slopes=True)(x)[0], expected, rtol=0, atol=1e-9
    )
