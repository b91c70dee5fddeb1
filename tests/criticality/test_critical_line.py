"""The edge of chaos against closed forms, and what nearby inputs do on either side of it."""

import numpy as np
import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.criticality import critical_point, edge_of_chaos, susceptibilities
from fieldtheory.networks.activations import as_activation, h


@pytest.mark.parametrize("bias", [1e-6, 0.05, 1.0, 30.0])
def test_sin_has_a_closed_form(bias):
    # ⟨cos²⟩ = (1 + e^(-2K))/2 and ⟨sin²⟩ = (1 − e^(-2K))/2.
    weight, found, K = edge_of_chaos("sin", bias)
    assert found == bias
    assert weight == pytest.approx(2 / (1 + np.exp(-2 * K)), rel=1e-12)
    assert bias + weight * (1 - np.exp(-2 * K)) / 2 == pytest.approx(K, rel=1e-12)


@pytest.mark.slow_but(0)
@pytest.mark.parametrize("name", ["tanh", "softsign", "swish"])
def test_distances_of_nearby_inputs_are_kept(name):
    weight, bias, K = edge_of_chaos(name, 0.05)
    net = ft.FeedForwardNetwork(
        depth=30, activation=name, weight_variance=weight, bias_variance=bias
    )
    assert susceptibilities(net, K).perpendicular == pytest.approx(1, rel=1e-12)
    kernels = ft.solve(net, K).kernels
    np.testing.assert_allclose(kernels, K, rtol=1e-9)
    below = susceptibilities(net.replace(weight_variance=0.9 * weight), K).perpendicular
    assert below == pytest.approx(0.9, rel=1e-12)


@pytest.mark.parametrize("name", ["tanh", "relu", "linear", "elu"])
def test_without_biases_it_is_the_critical_point(name):
    found, point = edge_of_chaos(name), critical_point(name)
    assert found == (point.weight_variance, 0.0, point.kernel)


@pytest.mark.slow_but(4)
@pytest.mark.parametrize("factor", ["1/1000", "100", "1000"])
@pytest.mark.parametrize("name", ["tanh", "gelu", "softsign"])
def test_the_search_is_in_units_of_the_activation(name, factor):
    """φ(c h) at K/c² is φ(h) at K, with both variances divided by c²."""
    square = float(sp.Rational(factor)) ** 2
    narrow = as_activation(as_activation(name).expression.subs(h, sp.Rational(factor) * h))
    for bias in (1e-6, 0.05):
        expected = np.array(edge_of_chaos(name, bias)) / square
        np.testing.assert_allclose(edge_of_chaos(narrow, bias / square), expected, rtol=1e-9)
    one, other = critical_point(name, 0.5), critical_point(narrow, 0.5)
    assert other.kind == one.kind
    for field in ("weight_variance", "bias_variance", "kernel"):
        expected = getattr(one, field) / square
        assert getattr(other, field) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "bias", "error"),
    [
        ("relu", 0.1, "relu has none at 0.1"),
        ("linear", 1.0, "linear has none at 1"),
        ("tanh", -0.1, "bias_variance must be a finite real number >= 0"),
        ("tanh", float("nan"), "bias_variance"),
    ],
)
def test_points_that_are_not_there(name, bias, error):
    with pytest.raises(ValueError, match=error):
        edge_of_chaos(name, bias)
