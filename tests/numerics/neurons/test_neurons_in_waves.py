"""Orders 1/N and 1/N² from waves, against modes, nodes, closed forms and sums over pairs."""

import numpy as np
import pytest
import sympy as sp
from mpmath import mp

import fieldtheory as ft
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.numerics.neurons import finite_width
from fieldtheory.numerics.neurons.interacting_neurons import first_order, second_order
from fieldtheory.numerics.neurons.neurons_in_modes import in_modes
from fieldtheory.numerics.neurons.neurons_in_waves import Grid, Waves, grids_of, in_waves
from fieldtheory.numerics.neurons.neurons_on_nodes import on_nodes
from fieldtheory.numerics.one_input.loop_sums import mean_at_one_loop
from tests.numerics.neurons.test_neurons_on_nodes import network, sizes
from tests.tables import slow

FINEST = 1e-16, 11.5


def chain(net, K0):
    s = ft.solve(net, K0)
    return net, layer_coefficients(net), (s.residual_kernels, s.kernels)


def waves(net, K0, order, limits=FINEST):
    net, layers, kernels = chain(net, K0)
    grids = grids_of(net, kernels, *limits)
    return (first_order, second_order)[order - 1](in_waves(net, layers, kernels, grids))


def assert_same(found, known, size, rtol=1e-9):
    for x, y, natural in zip(found[:3], known[:3], size, strict=True):
        np.testing.assert_array_less(np.abs(x - y), rtol * (np.abs(y) + 1e-5 * natural) + 1e-300)
    np.testing.assert_allclose(found.pairing, known.pairing, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("scale", "skip"),
    [
        (0.9, 0.7),
        (0.1, 1.0),
        # Signals that become wider by and by, and φ² that becomes narrower beside them.
        (0.8, (0.9, 0.3, -0.4, 0.8)),
        (0.5, (1.5, 1.2, -1.5, 1.1)),
        # Layers that add nothing: there is no noise in front of them.
        ((0.3, 0.0, 0.0, 0.2), (1.0, -0.7, 0.5, 1.0)),
    ],
)
@pytest.mark.parametrize("name", ["erf", "gelu"])
def test_waves_and_modes(name, scale, skip):
    net = network(name, scale, skip, 4, bias_variance=0.0)
    net, layers, kernels = chain(net, 0.5)
    known = second_order(in_modes(net, layers, kernels[1][:-1], 512))
    found = waves(net, 0.5, 2)
    assert_same(found, known, sizes(ft.solve(net, 0.5)))


@pytest.mark.parametrize(
    ("name", "scale", "K0"),
    [("tanh", 1.0, 1.0), ("swish", 0.3, 50.0), slow("tanh", 0.05, 100.0), slow("tanh", 0.05, 1e3)],
)
def test_waves_and_nodes_of_wide_signals(name, scale, K0):
    net, layers, kernels = chain(network(name, scale, depth=12), K0)
    known = second_order(on_nodes(net, layers, kernels, 4.0, 20))
    # Of order 1/N², nodes lose 1e-14 of its natural size to rounding.
    assert_same(waves(net, K0, 2), known, sizes(ft.solve(net, K0)), rtol=1e-8)


@pytest.mark.parametrize(("depth", "scale", "K0"), [(60, 1.0, 1.0), (20, 0.05, 1e4)])
def test_order_one_is_the_sum_over_pairs_of_layers(depth, scale, K0):
    """erf has closed forms of the averages over two layers."""
    net = network("erf", scale, depth=depth)
    s = ft.solve(net, K0)
    q, C = net.width * np.diagonal(s.G11)[1:], s.residual_kernels[1:]
    found, known = waves(net, K0, 1), mean_at_one_loop(net, K0)[1:]
    np.testing.assert_array_less(
        np.abs(found.shift - known), 1e-10 * (np.abs(known) + 1e-5 * q / C)
    )
    np.testing.assert_allclose(found.variance, q, rtol=1e-11)


@pytest.mark.parametrize("K0", [3e5, 1e6, 1e7])
def test_what_is_narrow_beside_the_signals_is_seen(K0):
    """Where modes and waves are few, erf² is 1 at all nodes."""
    net = network("erf", 0.05, depth=3)
    s = ft.solve(net, K0)
    known = mean_at_one_loop(net, K0)
    np.testing.assert_allclose(net.width * s.mean_shift[2:], known[2:], rtol=1e-9)


@pytest.mark.parametrize("K0", [100.0, 1e3, 1e4])
def test_one_hidden_layer_of_wide_signals(K0):
    """1/N² of ⟨C^(2)⟩ for exp(−h²) and γ = 1, from the moments of C^(1) given one neuron h.

    With F_k the derivatives by C of ⟨φ²(h + √C ξ)⟩ and C^(1) = C* + (1/N) Σ_j D(h_j) it is
    a_out ⟨F_2 (D² − q)/2 + F_3 (3 D q + κ)/6 + F_4 q²/8⟩, q = ⟨D²⟩, κ = ⟨D³⟩.
    """
    scale, readout = 0.05, 1.4
    net = network("exp(-h**2)", scale, depth=1, bias_variance=0.1, readout_weight_variance=readout)
    h, C = sp.symbols("h C", positive=True)
    F = sp.exp(-2 * h**2 / (1 + 4 * C)) / sp.sqrt(1 + 4 * C)
    with mp.workdps(40):
        K, a = mp.mpf(K0), mp.mpf(scale**2 * net.weight_variance)
        mean = [(1 + 4 * n * K) ** mp.mpf(-0.5) for n in range(4)]
        start = a * mean[1] + mp.mpf(scale**2 * net.bias_variance)
        q = a**2 * (mean[2] - mean[1] ** 2)
        kappa = a**3 * (mean[3] - 3 * mean[2] * mean[1] + 2 * mean[1] ** 3)
        slopes = [sp.lambdify([h, C], F.diff(C, k), "mpmath") for k in (2, 3, 4)]

        def integrand(x):
            D = a * (mp.exp(-2 * x**2) - mean[1])
            factors = (D**2 - q) / 2, (3 * D * q + kappa) / 6, q**2 / 8
            total = sum(slope(x, start) * y for slope, y in zip(slopes, factors, strict=True))
            return total * mp.exp(-(x**2) / (2 * K)) / mp.sqrt(2 * mp.pi * K)

        exact = readout * 2 * mp.quad(integrand, [0, 1, 2, 4, 8, 16])
    s = ft.solve(net, K0, order=2)
    assert net.width**2 * s.mean_shift_2[2] == pytest.approx(float(exact), rel=1e-11)


@pytest.mark.parametrize("even", [True, False])
def test_densities_on_a_wider_grid(even):
    """He_n of a Gaussian is the same density wherever it is written down."""
    narrow = Grid(15.0, 120, 60, even)
    wide = Grid(40.0, 200, 120, even)
    here, there = Waves.of(narrow, 1.3), Waves.of(wide, 1.3)
    for order in (0, 2, 4, 8):
        np.testing.assert_allclose(
            narrow.moved(here.unit(order), wide), there.unit(order), atol=1e-14
        )
    odd = [] if even else [x.project(np.sin(x.grid.x)) for x in (here, there)]
    if odd:
        np.testing.assert_allclose(narrow.moved(odd[0], wide), odd[1], atol=1e-14)


@pytest.mark.parametrize(
    ("name", "scale", "skip", "K0"),
    [
        ("tanh", 1.0, 1.0, 1.0),
        ("gelu", 0.05, 1.0, 1.0),
        ("tanh", 1.0, -0.9, 1.0),
        ("swish", 0.3, 1.0, 50.0),
    ],
)
def test_what_two_grids_differ_by_exceeds_the_error(name, scale, skip, K0):
    net = network(name, scale, skip, depth=12)
    natural = sizes(ft.solve(net, K0))
    tried = (1e-1, 6.0), (1e-4, 6.5), (1e-6, 7.5), *finite_width._WAVES
    found = [np.array(waves(net, K0, 2, limits)[:3]) for limits in tried]
    size = np.abs(found[-1]) + 1e-5 * natural
    rough, finer, best = np.array(found[:-2]), np.array(found[1:-1]), found[-1]
    estimates = (np.abs(finer - rough) / size).max(axis=(1, 2))
    errors = (np.abs(finer - best) / size).max(axis=(1, 2))
    assert (errors <= estimates + 1e-9).all()
    assert estimates[0] > 1e-8
