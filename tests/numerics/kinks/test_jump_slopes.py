"""What moves correlators of functions with jumps in layers that add little."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.networks import ResidualNetwork
from fieldtheory.numerics.kinks.jump_slopes import slope
from fieldtheory.numerics.kinks.kinked_features import curvature
from fieldtheory.numerics.layer_averages.entries import network_entries


def step_slope(K, A, q):
    """∂ arcsin(c)/(2π)/∂K_xx of c = A √(K/K_xx), with 1 − c² = q/K_xx."""
    K_xx = A * A * K + q
    return -A * np.sqrt(K / K_xx) / (4 * np.pi * np.sqrt(K_xx * q))


@pytest.mark.parametrize("A", [1.0, -0.6])
@pytest.mark.parametrize("q", [1e-3, 1e-8, 1e-16])
def test_step(A, q):
    entries = network_entries(ResidualNetwork(depth=1, activation="heaviside(x)"))
    square = entries.averages.square
    found = slope(square, curvature(square), 0.5, (A * A * 0.7 + q, 0.7), A, q)
    assert found == pytest.approx(step_slope(0.7, A, q), rel=1e-12)


@pytest.mark.parametrize("text", ["x*heaviside(x-1)", "heaviside(x)*(1+x**2)", "tanh(x)*sign(x)+x"])
def test_other_functions(text):
    """Of noise that is no difference yet, against averages over both signals."""
    entries = network_entries(ResidualNetwork(depth=1, activation=text))
    square, K, q = entries.averages.square, 0.8, 2e-2
    mean = float(entries.second_moment(np.array(K)))
    found = slope(square, curvature(square), mean, (K + q, K), 1.0, q)
    assert found == pytest.approx(float(entries.connected_slope(K + q, K, K)), rel=1e-10)


@pytest.mark.parametrize("rho", [1e-2, 1e-6, 1e-8])
def test_mean_shift_of_steps_at_tiny_branches(rho):
    net = ResidualNetwork(depth=1, activation="heaviside(x)", branch_scale=rho, width=1)
    net = net.replace(weight_variance=1, bias_variance=0, readout_weight_variance=1)
    a = rho**2
    expected = a * step_slope(1.0, 1.0, a / 2)
    assert ft.solve(net, 1.0).mean_shift[2] == pytest.approx(expected, rel=1e-11)
