"""Gradients of finite networks, against finite differences, exact networks, theory and bounds."""

import numpy as np
import pytest

import fieldtheory as ft
from tests.examples import PHI, network, oracle
from tests.montecarlo.statistics_of_draws import z_scores
from tests.montecarlo.test_family import family
from tests.oracles import gradients, quadrature, recursion
from tests.rounding import assert_same

LARGEST_Z = 4.5
METHODS = ["kernel", "weights"]
SLOPE = {
    "linear": np.ones_like,
    "relu": lambda h: (h > 0).astype(float),
    "tanh": lambda h: 1 / np.cosh(h) ** 2,
    "erf": lambda h: 2 / np.sqrt(np.pi) * np.exp(-(h**2)),
}
RELU = ft.ResidualNetwork(
    depth=10, activation="relu", weight_variance=2.0, bias_variance=0.3, width=500
)


def in_words(net, own, K0):
    """The g_l for N → ∞ from the recursion of K and averages by quadrature, all of the oracles."""
    known, name = oracle(net), net.activation.name
    kernels = [K0]
    a, c = recursion.weight_terms(known), recursion.bias_terms(known)
    squares = [own]
    for l in range(1, net.depth + 2):
        moment = float(quadrature.average1(lambda h: PHI[name](h) ** 2, kernels[-1]))
        slope = float(quadrature.average1(lambda h: SLOPE[name](h) ** 2, kernels[-1]))
        gamma, rho = (known.gamma[l - 1], known.rho[l - 1]) if l <= net.depth else (0.0, 1.0)
        squares = [g * (gamma**2 + a[l] * slope) for g in squares] + [rho**2 * moment]
        kernels.append(gamma**2 * kernels[-1] + a[l] * moment + c[l])
    return np.array(squares), kernels[-1]


@pytest.mark.parametrize("name", ["tanh", "relu"])
def test_squares_are_those_of_finite_differences_of_a_loss(name):
    net = network(2, name, width=2, bias_variance=0.3, weight_variance=2.5)
    x, readin = np.array([[1.0, -0.5]]), net.readin_variances
    rng = np.random.default_rng(1)
    weights = gradients.draw(oracle(net), 2, 2, 1, 20_000, rng, readin)
    loss = {"loss_slope": "x - 1", "samples": 60_000, "X": x[0]}
    expected = gradients.squares_by_differences(
        oracle(net), PHI[name], lambda y: (y - 1) ** 2 / 2, weights, x
    )
    mean, error = expected.mean(axis=0), expected.std(axis=0) / 20_000**0.5
    for method in METHODS:
        found = ft.simulate_gradients(net, method=method, **loss)
        z = (found.gradients - mean) / np.hypot(found.gradients_error, error)
        assert np.abs(z).max() < LARGEST_Z, (method, z)
        # At this width the theory is another, which the numbers can tell.
        assert np.abs(z_scores(found, "gradients", found.theory)).max() > LARGEST_Z


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "net",
    [
        network(3, "linear", width=4, bias_variance=0.2),
        network(2, "linear", width=1),
        ft.FeedForwardNetwork(depth=3, activation="linear", width=5),
        family("linear"),
    ],
    ids=["residual", "width 1", "feed-forward", "two features"],
)
def test_linear_networks_have_the_theory_at_every_width(net, method):
    found = ft.simulate_gradients(net, 0.7, samples=10_000, seed=3, method=method)
    assert np.abs(z_scores(found, "gradients", found.theory)).max() < LARGEST_Z


@pytest.mark.parametrize("changes", [{"weight_variance": 1.3}, {"bias_variance": 0.4}], ids=str)
def test_a_theory_that_is_a_little_wrong_fails(changes):
    net = network(3, "linear", bias_variance=0.2, width=40)
    found = ft.simulate_gradients(net, 0.7, samples=20_000)
    wrong = ft.simulate_gradients(net.replace(**changes), 0.7, samples=20).theory
    assert np.abs(z_scores(found, "gradients", wrong)).max() > 2 * LARGEST_Z


@pytest.mark.parametrize(
    "net",
    [
        RELU.replace(branch_scale="uniform"),
        RELU.replace(branch_scale="decreasing", activation="leaky_relu"),
        RELU.replace(depth=4),
        network(5, "erf", gamma=[1.0, 0.5, -0.9, 1.1, 0.0]),
        network(4, "gelu", branch_scale=lambda l, L: l / L),
        network(3, "x/(1 + abs(x))"),
        ft.FeedForwardNetwork(depth=4, activation="tanh"),
        family("relu"),
    ],
    ids=lambda net: f"{type(net).__name__} {net.activation.name}",
)
def test_wide_networks_have_the_theory(net):
    wide = net.replace(width=4000)
    found = ft.simulate_gradients(wide, 0.5, samples=60, seed=1)
    assert np.abs(z_scores(found, "gradients", found.theory)).max() < LARGEST_Z
    assert (found.gradients_error < 0.04 * found.theory).all()


@pytest.mark.parametrize("name", ["relu", "erf", "tanh"])
def test_theory_by_quadrature(name):
    net = network(4, name, readin_weight_variance=1.3, readin_bias_variance=0.1)
    found = ft.simulate_gradients(net, 0.5, samples=20, loss_slope="x**2")
    expected, K = in_words(net, 0.4 / 1.3, 0.5)
    np.testing.assert_allclose(found.theory, expected * 3 * K**2, rtol=1e-10)


@pytest.mark.parametrize("depth", [1, 40])
@pytest.mark.parametrize("scale", ["none", "uniform", "decreasing", 0.3, lambda l, L: 2 / l])
@pytest.mark.parametrize("name", ["relu", "leaky_relu"])
def test_the_theory_lies_within_the_bounds(name, scale, depth):
    net = RELU.replace(depth=depth, branch_scale=scale, activation=name, width=20)
    found = ft.simulate_gradients(net, [0.31, 1.0, 7.0], samples=20, loss_slope="x - 1")
    assert (found.theory <= found.upper_bound[:, None] * (1 + 1e-12)).all()
    assert (found.theory[:, 1:-1] >= found.lower_bound[:, None] * (1 - 1e-12)).all()


def test_the_bounds_of_one_layer_by_hand():
    """v = 1/2, |x|²/d = 1/2, Q = K^(0) = 1: g = 2, 1/2, 1 times 1/2, and C = 1/2."""
    net = ft.ResidualNetwork(depth=1, activation="relu", weight_variance=2.0, bias_variance=0.0)
    found = ft.simulate_gradients(net, 1.0, samples=20)
    np.testing.assert_allclose(found.theory, [1.0, 0.5, 1.0])
    np.testing.assert_allclose([found.upper_bound, found.lower_bound], [np.e / 2, 0.5])


@pytest.mark.parametrize(
    "changes",
    [{"activation": "erf"}, {"skip_scale": 0.9}, {"weight_variance": 0.0}, {"activation": "elu"}],
    ids=str,
)
def test_other_networks_have_no_bounds(changes):
    net = RELU.replace(depth=2, width=20, readin_weight_variance=1.0, **changes)
    found = ft.simulate_gradients(net, 0.5, samples=20)
    assert found.upper_bound is None and found.lower_bound is None
    assert "upper_bound" not in found.to_xarray()


def test_inputs_and_shapes():
    X = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0], [0.0, 0.0, 0.0]])
    net = network(3, "tanh", width=20)
    several = ft.simulate_gradients(net, X=X, samples=20)
    assert several.gradients.shape == (3, 5) and several.input_kernel.shape == (3,)
    one = ft.simulate_gradients(net, X=X[0], samples=20)
    assert one.gradients.shape == (5,) and one.input_kernel.shape == ()
    assert_same(one.gradients, several.gradients[0])
    of_kernel = ft.simulate_gradients(net, one.input_kernel, samples=20)
    assert_same(of_kernel.gradients, one.gradients)
    # The weights of a zero input have no gradient, those behind its biases have.
    np.testing.assert_allclose(several.gradients[2, 0], 0.0, atol=1e-15)
    assert (several.gradients[2, 1:] > 0).all()
    assert [row["layer"] for row in one.rows()] == [0, 1, 2, 3, 4]
    assert one.rows()[4]["theory"] == one.theory[4]
    assert (ft.simulate_gradients(net, 0.5, samples=20, seed=1).gradients != one.gradients).all()


@pytest.mark.parametrize("method", METHODS)
def test_signals_that_vanish_have_no_gradient_but_that_of_nothing(method):
    net = RELU.replace(bias_variance=0.0, depth=2, width=10)
    found = ft.simulate_gradients(net, 0.0, samples=20, method=method)
    np.testing.assert_array_equal(found.gradients, 0.0)
    np.testing.assert_array_equal(found.theory, 0.0)


def test_tiles_do_not_change_what_is_estimated(monkeypatch):
    net = network(2, "linear", width=4)
    monkeypatch.setattr("fieldtheory.montecarlo.sampling.backward.TILE_KEPT", 1000)
    for method in METHODS:
        found = ft.simulate_gradients(net, 0.5, samples=4000, method=method)
        assert np.abs(z_scores(found, "gradients", found.theory)).max() < LARGEST_Z
