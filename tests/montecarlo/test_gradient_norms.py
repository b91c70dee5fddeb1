"""Gradients of finite networks, against finite differences, exact networks, theory and bounds."""

import numpy as np
import pytest

import fieldtheory as ft
from tests.examples import PHI, network, oracle
from tests.montecarlo.statistics_of_draws import z_between, z_scores
from tests.montecarlo.test_family import family
from tests.oracles import gradients, quadrature, recursion

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


def test_both_methods_follow_one_law_in_narrow_networks():
    net = network(4, "tanh", width=4, bias_variance=0.2)
    found = [ft.simulate_gradients(net, 0.6, samples=20_000, method=m) for m in METHODS]
    assert np.abs(z_between(*found, "gradients")).max() < LARGEST_Z
    other = ft.simulate_gradients(net.replace(width=8), 0.6, samples=20_000)
    assert np.abs(z_between(found[1], other, "gradients")).max() > LARGEST_Z


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


def test_stable_schedules_have_bounded_gradients_and_standard_networks_have_not():
    """SR Proposition 1; exp(σ_w² Σ λ²/2) is e for the uniform schedule at every depth."""
    largest = {}
    for name in ("none", "uniform", "decreasing"):
        for depth in (10, 40):
            net = RELU.replace(depth=depth, branch_scale=name, bias_variance=0.0, width=1000)
            found = ft.simulate_gradients(net, 1.0, samples=30)
            first, error = found.gradients[1] * depth, found.gradients_error[1] * depth
            assert abs(first - found.theory[1] * depth) < LARGEST_Z * error + 0.05 * first
            largest[name, depth] = found.gradients[0], found.theory[0]
    for i in range(2):
        assert largest["none", 40][i] > 2**29 * largest["none", 10][i]
        assert largest["uniform", 40][i] < 1.2 * largest["uniform", 10][i] < 1.8
        assert largest["decreasing", 40][i] < 1.5 * largest["decreasing", 10][i]


def test_no_constant_bounds_squared_loss_at_all_depths():
    """⟨ℓ'²⟩ grows as K^(L+1), so that the gradient grows as 4^L and not as e^L."""
    options = {"K0": 1.0, "samples": 20}
    net = RELU.replace(bias_variance=0.0, width=20)
    squared = [
        ft.simulate_gradients(net.replace(depth=L), loss_slope="x", **options) for L in (10, 20)
    ]
    plain = [ft.simulate_gradients(net.replace(depth=L), **options) for L in (10, 20)]
    np.testing.assert_allclose(squared[1].theory[1] / squared[0].theory[1], 4.0**10)
    assert squared[1].theory[1] / plain[1].upper_bound > 40 * (
        squared[0].theory[1] / plain[0].upper_bound
    )


def test_one_neuron_of_a_residual_network_hears_itself():
    """SR's loss of y_L^1: E(∂y_L^1/∂W_l^11)² = λ² ⟨φ²⟩ (1 + (2^(L-l) − 1)/N) for σ_w² = 2."""
    N, L, samples = 40, 6, 3000
    rng = np.random.default_rng(0)
    h = [np.sqrt(2) * rng.standard_normal((samples, N))]
    weights = []
    for _ in range(L):
        weights.append(rng.standard_normal((samples, N, N)) * np.sqrt(2 / N))
        h.append(h[-1] + (weights[-1] @ np.maximum(h[-1], 0)[..., None])[..., 0])
    delta = np.zeros((samples, N))
    delta[:, 0] = 1.0
    for l in range(L, 0, -1):
        moment = (np.maximum(h[l - 1], 0) ** 2).mean(axis=1)
        of_one, of_all = delta[:, 0] ** 2 * moment, (delta**2).sum(axis=1) * moment
        kernel = 2.0**l
        rest = (2.0 ** (L - l) - 1) / N
        for values, expected in ((of_one, 1 + rest), (of_all, 2.0 ** (L - l))):
            error = values.std() / samples**0.5
            # Signals and gradients are not independent at finite N.
            assert abs(values.mean() * 2 / kernel - expected) < LARGEST_Z * error + 0.1 * expected
        back = (delta[:, None] @ weights[l - 1])[:, 0]
        delta = delta + (h[l - 1] > 0) * back


def test_inputs_and_shapes():
    X = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0], [0.0, 0.0, 0.0]])
    net = network(3, "tanh", width=20)
    several = ft.simulate_gradients(net, X=X, samples=20)
    assert several.gradients.shape == (3, 5) and several.input_kernel.shape == (3,)
    one = ft.simulate_gradients(net, X=X[0], samples=20)
    assert one.gradients.shape == (5,) and one.input_kernel.shape == ()
    np.testing.assert_array_equal(one.gradients, several.gradients[0])
    of_kernel = ft.simulate_gradients(net, one.input_kernel, samples=20)
    np.testing.assert_array_equal(of_kernel.gradients, one.gradients)
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


@pytest.mark.parametrize(
    ("changes", "arguments", "message"),
    [
        ({}, {"K0": np.eye(2)}, r"K0 must be a variance or variances \(P,\).*shape \(2, 2\)"),
        ({}, {"K0": 0.2}, "K0 must have variances of at least readin_bias_variance=0.3"),
        ({}, {"X": [[[1.0]]]}, r"X must have shape \(P, d\)"),
        ({}, {"K0": 0.5, "loss_slope": "y - z"}, "loss_slope must be an expression"),
        ({"readin_weight_variance": 0.0}, {"K0": 0.5}, "readin_weight_variance must be positive"),
        ({"activation": "heaviside"}, {"K0": 0.5}, "activation must have no jumps"),
    ],
    ids=str,
)
def test_bad_input_has_one_clear_error(changes, arguments, message):
    with pytest.raises(ValueError, match=message):
        ft.simulate_gradients(RELU.replace(width=10, **changes), **arguments)


def test_what_overflows_is_said():
    with pytest.raises(OverflowError, match="exceeds the range of float64"):
        ft.simulate_gradients(RELU.replace(depth=1100, width=5), 0.5, samples=20)
    with pytest.raises(TypeError, match="network must be"):
        ft.simulate_gradients("relu", 0.5)
