"""The forward pass and its steps: Grams, roots, tiles, and the features of a network."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.montecarlo.sampling.forward import (
    Neurons,
    correlated,
    feature_functions,
    forward,
    gram,
    in_tiles,
)
from fieldtheory.numerics.covariance_roots import psd_root
from tests.examples import PHI, network


def test_a_pass_is_the_network_written_out():
    net, n, width = network(3, "erf", [0.7, 0.0, -0.5]), 5, 6
    rng = np.random.default_rng(0)
    f = rng.standard_normal((4, n, 2, width))
    handed = []

    def residual(l, kernel, features):
        handed.append((kernel, features))
        return f[l]

    sampler, found = Neurons(net, residual), []
    h = f[0]
    a = [*net.branch_scales**2 * 1.25, 1.4]
    c = [*net.branch_scales**2 * 0.05, 0.1]
    for l, C in forward(sampler, np.eye(2)):
        if l:
            h = net.skip_scales[l - 1] * h + f[l]
        activity = PHI["erf"](h)
        kernel = a[l] * np.einsum("npi,nqi->npq", activity, activity) / width + c[l]
        assert l == len(found) and len(sampler.features) == 1
        np.testing.assert_allclose(sampler.h, h, rtol=1e-14)
        np.testing.assert_allclose(sampler.features[0], activity, rtol=1e-14)
        np.testing.assert_allclose(C, kernel, rtol=1e-13)
        found.append((C, sampler.features))
    assert handed[0][0].tolist() == np.eye(2).tolist() and handed[0][1] == ()
    for before, (kernel, features) in zip(found, handed[1:], strict=False):
        assert kernel is before[0] and features is before[1]


def test_a_pass_stops_where_a_kernel_overflows():
    net = network(3, "linear", 1.0)
    sampler = Neurons(net, lambda l, kernel, features: np.full((1, 1, 2), 1e160 * l + 1))
    huge = forward(sampler, np.eye(1))
    assert next(huge)[1].item() > 0
    with pytest.raises(OverflowError, match="a kernel exceeds .* in layer 2"):
        next(huge)


def test_parameters_of_a_layer():
    found = network(3, gamma=[0.1, 0.2, 0.3]).of_layer(3)
    assert (found["branch_scale"], found["skip_scale"]) == (0.5 + 0.3 * 2, 0.3)
    assert found["readout_weight_variance"] == 1.4


def test_grams_of_several_features():
    x, y = np.random.default_rng(0).standard_normal((2, 3, 4, 5))
    expected = (np.einsum("npi,nqi->npq", x, x) + np.einsum("npi,nqi->npq", y, y)) / 5
    found = gram(x, y)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)


def test_gaussians_have_their_covariance():
    C = np.array([[[0.5, 0.3], [0.3, 0.5]], [[1.0, 1.0], [1.0, 1.0]]])
    drawn = correlated(psd_root(C), np.random.default_rng(0).standard_normal((2, 2, 100_000)))
    np.testing.assert_allclose(gram(drawn), C, rtol=0, atol=0.02)
    np.testing.assert_allclose(drawn[1, 0], drawn[1, 1], rtol=1e-12)


@pytest.mark.parametrize(("samples", "sizes"), [(7, [3, 3, 1]), (6, [3, 3]), (2, [2])])
def test_tiles(samples, sizes):
    assert in_tiles(lambda size: size, samples, 3) == sizes


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
