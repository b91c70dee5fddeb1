"""Mean shift of activations with a kink in signals much wider than its surroundings.

Their Hermite coefficients fall off slowly; dense panels decide.
"""

from dataclasses import replace

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.numerics.infinite_width.gains import variance_gains
from fieldtheory.numerics.neurons import finite_width, fourier_basis
from fieldtheory.numerics.neurons.interacting_neurons import first_order
from fieldtheory.numerics.one_input import shift_by_closed_forms
from tests.oracles import neurons, one_loop
from tests.oracles.recursion import Net
from tests.tables import slow

PHI = {
    "softsign": lambda h: h / (1 + np.abs(h)),
    "h/(0.5+abs(h))": lambda h: h / (0.5 + np.abs(h)),
    "h/(1+abs(h))**2": lambda h: h / (1 + np.abs(h)) ** 2,
    "log(1+abs(h))": lambda h: np.log1p(np.abs(h)),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "K0", "scale"),
    [
        ("softsign", 100.0, 1.0),
        ("h/(0.5+abs(h))", 100.0, 1.0),
        ("h/(0.5+abs(h))", 10.0, 0.3),
        ("h/(1+abs(h))**2", 10.0, 1.0),
        ("log(1+abs(h))", 30.0, 0.5),
    ],
)
def test_mean_shift(name, K0, scale):
    net = Net((scale,) * 3, (1.0,) * 3, 1.25, 0.05, 1.25, 0.05)
    network = ft.ResidualNetwork(depth=3, activation=name, branch_scale=scale)
    found = network.width * ft.solve(network, K0).mean_shift
    known = one_loop.of_measures(net, K0, PHI[name], neurons.panel_nodes(6.0, scale=0.25))
    np.testing.assert_allclose(found, known, rtol=1e-9, atol=1e-9 * np.abs(known).max())


@pytest.mark.filterwarnings("ignore::fieldtheory.ValidityWarning")
@pytest.mark.parametrize(("name", "depth"), [slow("sinh", 20), ("exp", 5)])
def test_exponentials_by_neurons_and_by_closed_forms(name, depth):
    net = ft.ResidualNetwork(depth=depth, activation=name, branch_scale=0.3, width=10**6)
    s = ft.solve(net, 0.05, order=2)
    kernels = s.residual_kernels, s.kernels
    known = shift_by_closed_forms(
        net, layer_coefficients(net), variance_gains(net, s.kernels), *kernels
    )
    np.testing.assert_allclose(net.width * s.mean_shift, known, rtol=1e-8, atol=1e-12)
    assert np.isfinite([s.mean_shift_2, s.variance_2, s.third_cumulant]).all()


@pytest.mark.parametrize("count", [6, 8, 11])
@pytest.mark.parametrize(
    ("name", "scale", "K0"),
    [("softsign", 1.0, 100.0), ("hard_tanh", 0.1, 0.5), ("relu", 0.05, 1.0), ("tanh", 0.3, 50.0)],
)
def test_errors_are_estimated_by_no_less_than_they_are(name, scale, K0, count, monkeypatch):
    net = ft.ResidualNetwork(depth=3, activation=name, branch_scale=scale)
    s, layers = ft.solve(net, K0), layer_coefficients(net)
    at_nodes = finite_width.Neurons.of(net, layers.weights[1:], s.kernels[:-1], None)
    known = first_order(at_nodes.layers(20, 1))
    few = replace(finite_width._SETTINGS, nodes=count, fewer_nodes=int(0.8 * count))
    monkeypatch.setattr(finite_width, "_SETTINGS", few)
    monkeypatch.setattr(fourier_basis, "spectrum_of", lambda *_: None)
    ones = np.ones((2, 4))
    found, errors, what = at_nodes.compared(first_order, lambda _: ones, 1)
    wrong = np.abs(np.stack(found) - np.stack(known))
    assert what == "quadrature nodes"
    assert (wrong <= errors + 1e-12 * np.abs(known)).all()
