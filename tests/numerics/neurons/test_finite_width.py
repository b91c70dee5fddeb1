"""Orders 1/N and 1/N² of `solve` against other derivations, exact networks and simulation."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erf, ndtr

import fieldtheory as ft
from fieldtheory.averages.errors import QuadratureError
from tests.oracles import finite_width, neurons, sampling
from tests.oracles.recursion import Net
from tests.rounding import assert_same
from tests.tables import crossed, slow


def relu(h):
    return np.maximum(h, 0.0)


def leaky_relu(h):
    return np.where(h > 0, h, 0.01 * h)


PHI = {
    "erf": (erf, ()),
    "tanh": (np.tanh, ()),
    "gelu": (lambda h: h * ndtr(h), ()),
    "relu": (relu, ()),
    "leaky_relu": (leaky_relu, ()),
    "hard_tanh": (lambda h: np.clip(h, -1, 1), (-1.0, 1.0)),
}
BIAS = (0.05, 0.1)


def uniform(depth, skip, bias=BIAS, scale=0.9, weights=(1.25, 1.4)):
    return Net((scale,) * depth, (skip,) * depth, weights[0], bias[0], weights[1], bias[1])


def solved(net, name, K0, N, **options):
    network = ft.ResidualNetwork(
        depth=len(net.gamma),
        activation=name,
        branch_scale=net.rho,
        skip_scale=net.gamma,
        weight_variance=net.weight_variance,
        bias_variance=net.bias_variance,
        readout_weight_variance=net.readout_weight_variance,
        readout_bias_variance=net.readout_bias_variance,
        width=N,
    )
    return ft.solve(network, K0, order=2, **options)


def coefficients(net, name, K0, N=10**4, **options):
    """Mean, covariance, vertex at order 1/N, then mean, variance, third cumulant at 1/N²."""
    s = solved(net, name, K0, N, **options)
    first = N * s.mean_shift, N * s.G11, s.four_point
    return *first, *(N**2 * x for x in (s.mean_shift_2, s.variance_2, s.third_cumulant))


def of_oracle(o):
    return o.mean_1, o.covariance_1, o.V_1, o.mean_2, o.variance_2, o.third_2


def natural_sizes(o):
    """What the coefficients are if kernels fluctuate by their size: sums that vanish have one."""
    C, q = o.C, o.variance_1
    spread = np.sqrt(q)
    return q / C, np.outer(spread, spread), o.kernels**2, q**2 / C**3, q**2 / C**2, q**2 / C


def assert_agree(found, expected, natural, rtol):
    for k, (x, y, size) in enumerate(zip(found, expected, natural, strict=True)):
        assert np.all(np.abs(x - y) <= rtol * (np.abs(y) + 0.01 * size)), (k, x, y)


def panels(name, K0, density=4.0):
    return neurons.panel_nodes(density, kinks=PHI[name][1], scale=0.5 if K0 > 10 else None)


def assert_agrees_with_neurons(name, net, K0, rtol, density=4.0):
    o = neurons.orders(net, K0, PHI[name][0], panels(name, K0, density))
    assert_agree(coefficients(net, name, K0), of_oracle(o), natural_sizes(o), rtol)


SETTINGS = [
    (skip, bias, K0)
    for K0 in (1e-6, 1e-2, 1.0)
    for skip in (0.0, 0.7, 1.0)
    for bias in (BIAS, (0.0, 0.0))
]


@pytest.mark.slow_but(0)
@pytest.mark.parametrize(("name", "setting"), crossed(list(PHI), SETTINGS))
def test_neurons_on_nodes(name, setting):
    skip, bias, K0 = setting
    assert_agrees_with_neurons(name, uniform(3, skip, bias), K0, 1e-8)


def test_scales_that_differ_from_layer_to_layer():
    net = Net((0.5, 1.1, 0.7, 1.3), (1.0, -0.5, 0.0, 0.8), 1.25, 0.05, 1.4, 0.1)
    assert_agrees_with_neurons("tanh", net, 0.4, 1e-9)


@pytest.mark.parametrize(
    ("name", "skip"),
    [
        slow("relu", 0.0),
        slow("leaky_relu", 0.7),
        slow("gelu", 0.0),
        slow("hard_tanh", 0.0),
        slow("erf", 0.0),
        ("tanh", 0.0),
        slow("tanh", 0.7),
        slow("erf", 0.7),
    ],
)
def test_wide_signals(name, skip):
    assert_agrees_with_neurons(name, uniform(2, skip), 50.0, 1e-7, density=3.5)


@pytest.mark.slow_but(5)
@pytest.mark.parametrize("K0", [1e-6, 0.4, 50.0])
@pytest.mark.parametrize("gamma", [(0.0,) * 4, (1.0, 0.5, -0.8, 0.9), (1.0,) * 4])
def test_deep_linear_networks(gamma, K0):
    net = Net((0.5, 0.9, 1.1, 0.7), gamma, 1.25, 0.05, 1.4, 0.1)
    C, V = (x.astype(float) for x in finite_width.linear_orders(net, K0))
    mean, G11, vertex, mean_2, variance_2, third = coefficients(net, "linear", K0)
    scale = C[:, 0, 0]
    np.testing.assert_allclose(mean / scale, 0, atol=1e-12)
    np.testing.assert_allclose(mean_2 / scale, 0, atol=1e-11)
    np.testing.assert_allclose(np.diagonal(G11), C[:, 1, 1], rtol=1e-12)
    np.testing.assert_allclose(vertex, V[:, 1], rtol=1e-12, atol=1e-14 * scale.max() ** 2)
    size = scale**2
    np.testing.assert_allclose(variance_2 / size, C[:, 1, 2] / size, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(third, C[:, 2, 2], rtol=1e-12)


@pytest.mark.parametrize(("name", "slopes"), [("relu", (0, 1)), slow("leaky_relu", (0.01, 1))])
def test_independent_factors(name, slopes):
    net = uniform(5, 0.0, bias=(0.0, 0.0))
    C, V = (x.astype(float) for x in finite_width.homogeneous_orders(net, 0.4, slopes))
    mean, G11, vertex, mean_2, variance_2, third = coefficients(net, name, 0.4)
    # What vanishes does so as a sum of terms of this size.
    scale, natural = C[:, 0, 0], 1 + C[:, 1, 1] ** 2 / C[:, 0, 0] ** 4
    np.testing.assert_allclose(mean / scale, 0, atol=1e-12)
    np.testing.assert_allclose(mean_2 / scale / natural, 0, atol=1e-13)
    np.testing.assert_allclose(np.diagonal(G11), C[:, 1, 1], rtol=1e-12)
    np.testing.assert_allclose(vertex, V[:, 1], rtol=1e-12)
    np.testing.assert_allclose(variance_2, C[:, 1, 2], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(third, C[:, 2, 2], rtol=1e-12)


def scores(net, name, K0, N, samples, seed):
    """z-scores of mean, variance, vertex; of two without 1/N²; of the closure; of the third."""
    phi, nodes = PHI[name][0], panels(name, K0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ft.ValidityWarning)
        s = solved(net, name, K0, N)
        mean = s.residual_kernels + s.mean_shift
        variance = np.diagonal(s.G11)
        mean_2, variance_2, vertex = s.mean_shift_2, s.variance_2, s.four_point
        third = s.third_cumulant
    found = sampling.estimate(net, K0, phi, nodes, N, samples, seed)
    # Few digits do: it is the next order of the vertex.
    rough = neurons.panel_nodes(2.0) if name in ("erf", "tanh") else nodes
    remainder = neurons.orders(net, K0, phi, rough).V_2 / N**2
    closed = neurons.closure(net, K0, phi, nodes)
    return (
        found.mean.scores(mean + mean_2),
        found.variance.scores(variance + variance_2),
        found.vertex.scores(vertex / N + remainder)[1:],
        found.mean.scores(mean),
        found.variance.scores(variance),
        found.vertex.scores(closed / N + remainder)[1:],
        found.third.scores(third),
    )


def largest(z):
    return float(np.max(np.abs(z)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "skip", "N", "samples"),
    [
        ("erf", 1.0, 32, 6e4),
        slow("relu", 0.7, 64, 1e5),
        slow("tanh", 1.0, 32, 5e5),
        slow("gelu", 0.7, 192, 5e5),
        slow("erf", 0.0, 64, 5e5),
        slow("relu", 1.0, 128, 5e5),
    ],
)
def test_simulation_sees_the_second_order(name, skip, N, samples):
    """At widths where 1/N³ stays below the errors: of gelu's variance it is about 30/N³.

    The third cumulant begins at 1/N², so that its next order shows unless φ is bounded.
    """
    mean, variance, vertex, mean_1, variance_1, _, third = scores(
        uniform(3, skip), name, 0.4, N, samples, seed=7
    )
    assert max(map(largest, (mean, variance, vertex))) < 4
    assert name not in ("erf", "tanh") or largest(third) < 4
    assert max(largest(mean_1), largest(variance_1)) > 10


@pytest.mark.slow
@given(
    name=st.sampled_from(["erf", "relu", "tanh", "linear"]),
    depth=st.integers(1, 4),
    skip=st.floats(0, 1),
    scale=st.floats(0.1, 1),
    K0=st.floats(1e-3, 3),
    N=st.integers(10**4, 10**6),
)
@settings(max_examples=25, deadline=None)
def test_orders_are_powers_of_the_width(name, depth, skip, scale, K0, N):
    net = uniform(depth, skip, scale=scale)
    one, two = solved(net, name, K0, N), solved(net, name, K0, 4 * N)
    for field, power in [
        ("mean_shift", 1),
        ("G11", 1),
        ("kernel_variance", 1),
        ("four_point", 0),
        ("mean_shift_2", 2),
        ("kernel_shift", 1),
        ("kernel_shift_2", 2),
        ("variance_2", 2),
        ("third_cumulant", 2),
    ]:
        x, y = getattr(one, field), getattr(two, field)
        assert np.all(np.isfinite(x))
        np.testing.assert_allclose(x, 4**power * y, rtol=1e-14)
    for field in ("mean_shift", "mean_shift_2", "variance_2", "third_cumulant"):
        assert getattr(one, field)[0] == 0
    assert one.variance_2[1] == pytest.approx(0, abs=1e-10 / N**2)


def test_shifts_of_the_signals_are_sums_over_the_layers_before():
    """⟨K^(l)⟩ = Σ_m Π_{m<k<=l} γ_k² ⟨C^(m)⟩, of one and of two inputs; the readout has no skip."""
    skip = np.array([0.5, 1.0, 0.8])
    options = {"skip_scale": skip, "branch_scale": 0.9, "weight_variance": 1.5}
    net = ft.ResidualNetwork(depth=3, activation="tanh", width=50, **options)
    for K0 in (0.7, np.array([[0.7, 0.2], [0.2, 1.1]])):
        s = ft.solve(net, K0, order=2 if np.ndim(K0) == 0 else 1)
        for name in ("", "_2")[: s.order]:
            shift, total = (getattr(s, f"{kind}_shift{name}") for kind in ("mean", "kernel"))
            for l in range(4):
                weights = [np.prod(skip[m:l] ** 2) for m in range(l + 1)]
                expected = np.tensordot(weights, shift[: l + 1], 1)
                np.testing.assert_allclose(total[l], expected, rtol=1e-14, atol=0)
            assert_same(total[-1], shift[-1])
            assert np.abs(total[2:]).min() > 0


@pytest.mark.slow_but(0)
@pytest.mark.parametrize("name", ["tanh", "relu", "h**2", "softsign"])
def test_input_that_vanishes(name):
    """The biases of the first layer are the input of a network with a layer less."""
    net = uniform(3, 0.7, scale=0.5)
    whole = coefficients(net, name, 0.0)
    rest = coefficients(uniform(2, 0.7, scale=0.5), name, 0.5**2 * net.bias_variance)
    for k, (x, y) in enumerate(zip(whole, rest, strict=True)):
        found = x[1:, 1:] if x.ndim == 2 else x[1:]
        assert x.flat[0] == 0
        np.testing.assert_allclose(found, y, rtol=1e-9, atol=1e-9 * np.abs(y).max(), err_msg=k)


@pytest.mark.parametrize(
    ("name", "skip", "K0"),
    [("relu", 1.0, 0.0), ("h**2", 1.0, 0.0), ("softsign", 1.0, 0.0), ("sign(h)", 0.7, 0.4)],
)
def test_kernels_that_do_not_fluctuate(name, skip, K0):
    found = coefficients(uniform(3, skip, bias=(0.0, 0.0)), name, K0)
    for values in (*found[:2], *found[3:]):
        np.testing.assert_array_equal(values, 0)


@pytest.mark.slow
def test_what_is_not_resolved_is_named():
    net = ft.ResidualNetwork(depth=3, activation="sin(50*h)", branch_scale=0.3, width=400)
    solution = ft.solve(net, 100.0, order=2)
    with pytest.raises(QuadratureError, match="nodes are needed, allowed are"):
        _ = solution.mean_shift_2
    with pytest.warns(UserWarning, match="mean_shift_2 is left out"):
        assert "four_point" in solution.to_xarray()


@pytest.mark.parametrize("gamma", [0.0, 0.7])
@pytest.mark.parametrize("name", ["sign", "sign(h)*cosh(h)/(1+cosh(h))"])
def test_squares_of_functions_that_jump_but_do_not(name, gamma):
    """φ² is smooth where φ changes its sign alone: of sign(h) nothing fluctuates."""
    scale = 1e-3 if gamma else 1e-2
    net = ft.ResidualNetwork(depth=2, activation=name, skip_scale=gamma, branch_scale=scale)
    s = ft.solve(net, 1.0, order=2)
    fields = s.mean_shift_2, s.variance_2, s.third_cumulant
    if name == "sign":
        assert np.abs(fields).max() < 1e-40
        return
    smooth = net.replace(activation="cosh(h)/(1+cosh(h))")
    expected = ft.solve(smooth, 1.0, order=2)
    others = expected.mean_shift_2, expected.variance_2, expected.third_cumulant
    np.testing.assert_allclose(fields, others, rtol=1e-8)
