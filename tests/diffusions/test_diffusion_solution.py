"""Means and covariances of wide diffusion networks against dense quadrature and exact cases."""

import mpmath
import numpy as np
import pytest
from scipy import special
from scipy.special import erf, expit

import fieldtheory as ft
from fieldtheory.averages.quadrature.compiled import function_of
from fieldtheory.diffusions.feature_averages import Starts, feature_gram
from fieldtheory.diffusions.wide_limit import WideNetwork
from fieldtheory.networks.activations import as_activation, h
from tests.oracles import wide_diffusions as oracle
from tests.tables import crossed, slow

Z = np.array([0.0, 1.0, -1.5])
# φ, φ'(0), φ''(0).
PHI = {
    "tanh": (np.tanh, 1.0, 0.0),
    "erf": (erf, 2 / np.sqrt(np.pi), 0.0),
    "swish": (lambda x: x * expit(x), 0.5, 0.5),
    "gelu": (lambda x: x * (1 + erf(x / np.sqrt(2))) / 2, 0.5, np.sqrt(2 / np.pi)),
    "sin": (np.sin, 1.0, 0.0),
    "x**3": (lambda x: x**3, 0.0, 0.0),
    "x + x**2": (lambda x: x + x**2, 1.0, 2.0),
}


def network(**changes):
    return ft.DiffusionNetwork(**{"depth": None, "width": 500, **changes})


@pytest.mark.parametrize("name, depth", crossed(PHI, [1, 5]))
def test_layers_are_those_of_dense_quadrature(name, depth):
    net = network(depth=depth, activation=name, weight_variance=0.7, bias_variance=0.4)
    mean, covariance = oracle.layers(PHI[name][0], Z[None], depth, 1.0, 0.7, 0.4)
    found = ft.solve(net, Z)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize(
    "name, sigma_b", crossed(["tanh", "erf", "softsign", "x**3"], [0.0, 0.3, 2.0])
)
def test_the_linear_limit_has_its_closed_form(name, sigma_b):
    net = network(activation=name, weight_variance=0.8, bias_variance=sigma_b, horizon=1.7)
    found = ft.solve(net, Z)
    growth = np.expm1(net.slopes[0] ** 2 * 0.8 * found.times)[:, None, None]
    np.testing.assert_allclose(
        found.covariance, (np.outer(Z, Z) + sigma_b / 0.8) * growth, rtol=1e-11, atol=1e-14
    )
    assert found.is_exact
    np.testing.assert_array_equal(found.mean, np.broadcast_to(Z, found.mean.shape))


@pytest.mark.parametrize("name, psi, function", [
    slow("tanh", "tanh", np.tanh),
    ("swish", "x**2/(1+x**2)", lambda x: x**2 / (1 + x**2)),
    slow("swish", "tanh", np.tanh),
    slow("tanh", "sin", np.sin),
    slow("swish", "sin", np.sin),
    slow("tanh", "x**2/(1+x**2)", lambda x: x**2 / (1 + x**2)),
])  # fmt: skip
def test_the_flow_is_that_of_runge_kutta_steps(name, psi, function):
    _, slope, curvature = PHI[name]
    net = network(activation=name, input_activation=psi, horizon=0.5)
    found = ft.solve(net, Z[:2])
    mean, covariance = oracle.flow(function, slope, curvature, Z[None, :2], 0.5, 1.0, 1.0, 12)
    # Runge-Kutta's error at 12 steps.
    np.testing.assert_allclose(found.mean[-1], mean, rtol=1e-6)
    np.testing.assert_allclose(found.covariance[-1], covariance, rtol=1e-6)


def test_layers_of_different_neurons_are_averaged():
    rng = np.random.default_rng(1)
    layers = rng.normal(size=(2, 4))
    for psi, function in (("linear", lambda x: x), ("tanh", np.tanh)):
        net = network(width=4, activation="swish", input_activation=psi, horizon=0.4)
        found = ft.solve(net, layers)
        mean, covariance = oracle.flow(function, 0.5, 0.5, layers.T, 0.4, 1.0, 1.0, steps=10)
        np.testing.assert_allclose(found.mean[-1], mean, rtol=1e-7)
        np.testing.assert_allclose(found.covariance[-1], covariance, rtol=1e-7)


@pytest.mark.slow_but(1)
@pytest.mark.parametrize("name, phi, psi, function", [
    ("gelu", lambda u: u * special.ndtr(u), "tanh", np.tanh),
    ("swish", lambda u: u * special.expit(u), "sin", np.sin),
    ("tanh", np.tanh, "x**2/(1+x**2)", lambda x: x**2 / (1 + x**2)),
    ("gelu", lambda u: u * special.ndtr(u), "softplus", lambda x: np.logaddexp(0, x)),
    ("tanh", np.tanh, "exp(h)", np.exp),
    ("gelu", lambda u: u * special.ndtr(u), "relu", lambda x: np.maximum(x, 0)),
])  # fmt: skip
@pytest.mark.parametrize("variance", [1.0, 4.0])
def test_shallow_networks_are_exact_for_any_feature(name, phi, psi, function, variance):
    net = network(depth=2, activation=name, input_activation=psi)
    net = net.replace(weight_variance=variance, bias_variance=variance)
    z = np.array([0.5, -0.2])
    found = ft.solve(net, z)
    covariance, grams = oracle.two_layers(phi, function, z, 1.0, 2, variance, variance)
    rtol = 1e-9
    if psi == "relu":
        # The trapezoidal rule of the oracle meets kinks, too.
        rtol = 1e-4
        assert (np.abs(found.gram[1] - grams[0]) <= found.gram_error[1] + 1e-5).all()
    else:
        assert found.gram_error.max() < 1e-10 * max(1.0, found.gram.max())
    np.testing.assert_allclose(found.covariance[-1], covariance, rtol=rtol)
    np.testing.assert_allclose(found.gram[1], grams[0], rtol=rtol)
    # As far as the nodes of four increments resolve it.
    coarse = 1e-2 if psi == "exp(h)" else 3e-5 * variance**2
    np.testing.assert_allclose(found.gram[2], grams[1], rtol=max(coarse, rtol))


@pytest.mark.parametrize("psi, rtol", [slow("relu", 3e-4), slow("hard_tanh", 3e-4), ("tanh", 3e-6)])
@pytest.mark.filterwarnings("ignore:averages over input_activation")
def test_parallel_inputs_and_kinks_of_features(psi, rtol):
    net = network(depth=4, activation="hard_tanh", input_activation=psi)
    found = ft.solve(net, [0.5, 0.5])
    each = np.broadcast_to(found.gram[:, :1, :1], found.gram.shape)
    np.testing.assert_allclose(found.gram, each, rtol=rtol)
    assert (np.abs(found.gram - each) <= found.gram_error + 1e-11).all()


@pytest.mark.parametrize("case", [
    slow({"activation": "tanh"}),
    slow({"activation": "swish"}),
    {"activation": "x + x**2", "weight_variance": 0.3},
    slow({"activation": "swish", "input_activation": "tanh"}),
    pytest.param({"activation": "x - x**3/3", "input_activation": "sin"}, marks=pytest.mark.slow),
    pytest.param(
        {"activation": "x + x**2/4", "input_activation": "x**2/(1+x**2)"}, marks=pytest.mark.slow
    ),
])  # fmt: skip
def test_deep_networks_approach_the_limit(case):
    """What a depth L adds falls as 1/L."""
    # One input in the quick case of averages over features.
    inputs = Z[1:2] if case.get("input_activation") == "tanh" else Z[:2]
    limit = ft.solve(network(**case), inputs)
    left = []
    for depth in (100, 200):
        found = ft.solve(network(**(case | {"depth": depth})), inputs)
        left.append([
            np.abs(getattr(found, name)[-1] - getattr(limit, name)[-1]).max()
            for name in ("mean", "covariance")
        ])  # fmt: skip
    for before, after in np.transpose(left):
        assert after < 1e-12 or before / after == pytest.approx(2, rel=0.1)


@pytest.mark.parametrize("horizon", [1e-300, 1e-9, 9e-4, 1.1e-3])
def test_small_horizons_keep_their_digits(horizon):
    for changes, rate in (({}, 1.0), ({"activation": "swish"}, 0.25)):
        found = ft.solve(network(horizon=horizon, bias_variance=0.0, **changes), [2.0])
        expected = 4 * np.expm1(rate * found.times)
        # For swish the mean adds a term of the next order.
        rtol = 1e-11 if not changes else 4 * horizon + 1e-11
        np.testing.assert_allclose(found.covariance[:, 0, 0], expected, rtol=rtol)
        place = found.at(found.times[7]).covariance
        np.testing.assert_allclose(place, found.covariance[7], rtol=1e-9)


def test_half_of_the_residual_family_has_the_same_limit():
    net = network(activation="erf", weight_variance=0.9, bias_variance=0.2)
    K0 = np.outer(Z, Z)
    kernels = ft.depth_limit(net.residual_network, K0).kernels
    np.testing.assert_allclose(ft.solve(net, Z).gram, kernels, rtol=1e-12, atol=1e-14)
    # φ = id at a finite depth.
    linear = network(depth=7, activation="linear", weight_variance=0.9, bias_variance=0.2)
    kernels = ft.solve(linear.residual_network, K0).kernels[:-1]
    found = ft.solve(linear, Z)
    np.testing.assert_allclose(found.gram, kernels, rtol=1e-12)
    assert found.is_exact


def test_the_gram_is_log_normal_without_biases():
    net = network(bias_variance=0.0, width=7, weight_variance=0.6, activation="erf")
    found = ft.solve(net, [0.8])
    a = net.slopes[0] ** 2 * 0.6 * found.times
    mean, variance = np.log(0.64) + a * (1 - 2 / 7), 4 * a / 7
    expected = np.exp(2 * mean + variance) * np.expm1(variance)
    np.testing.assert_allclose(found.gram_variance[:, 0, 0], expected, rtol=1e-11, atol=1e-15)


def test_kurtosis_of_a_single_neuron_alone():
    # D = 1 and z = 0: dx² = (σ_b² + σ_w² x²) dt + 2 x √(σ_b² + σ_w² x²) dB, solved by moments.
    net = network(width=1, weight_variance=0.5, bias_variance=1.0)
    t, a, b = 1.0, mpmath.mpf(1) / 2, 1
    second = b / a * mpmath.expm1(a * t)
    # m4' = 6 (b m2 + a m4).
    source = lambda s: 6 * b * b / a * mpmath.expm1(a * s)  # noqa: E731
    fourth = mpmath.quad(lambda s: mpmath.exp(6 * a * (t - s)) * source(s), [0, t])
    found = ft.solve(net, [0.0])
    assert found.covariance[-1, 0, 0] == pytest.approx(float(second), rel=1e-12)
    assert found.kurtosis[-1, 0] == pytest.approx(float(fourth / second**2 - 3), rel=1e-11)
    # Of order 1/D.
    wide, wider = (ft.solve(net.replace(width=D), [0.0]).kurtosis[-1, 0] for D in (5000, 10000))
    assert wide / wider == pytest.approx(2, rel=1e-3)


@pytest.mark.parametrize(
    "z, swish", [slow(0.0, 4.836798), (2.0, 1.721636), (-3.0, None), slow(-0.5, None)]
)
def test_explosion(z, swish):
    net = network(activation="swish")
    T = float(ft.solve(net.replace(horizon=0.1), [z]).explosion_time[0])
    if swish:
        assert pytest.approx(swish, rel=1e-6) == T
    # The Riccati equation itself, until the mean is huge.
    with mpmath.workdps(20):
        a, b, c = 0.25, 2 * z + 1, z * z + 1
        time = mpmath.quad(lambda m: 1 / (a * (m * m + b * m + c)), [0, 1, 10, mpmath.inf])
    assert pytest.approx(float(time), rel=1e-12) == T
    with pytest.raises(ValueError, match=r"horizon must be below the explosion time"):
        ft.solve(net.replace(horizon=1.01 * T), [z])
    with pytest.warns(ft.ValidityWarning, match="close to the explosion time"):
        ft.solve(net.replace(horizon=0.95 * T), [z])
    assert np.isfinite(ft.solve(net.replace(horizon=1.01 * T, depth=50), [z]).mean).all()


@pytest.mark.parametrize("changes, time", [
    ({}, np.inf),
    ({"depth": 1}, np.inf),
    ({"depth": 1, "activation": "swish", "weight_variance": 0.0}, np.inf),
    slow({"depth": 1, "activation": "swish", "input_activation": "tanh"}, np.inf),
    slow({"depth": 1, "activation": "swish", "input_activation": "relu"}, None),
    slow({"depth": 1, "input_activation": "x**2"}, None),
    ({"depth": 1, "activation": "relu"}, None),
])  # fmt: skip
def test_what_does_not_explode_and_what_is_not_known(changes, time):
    found = ft.solve(network(**changes), Z[:1]).explosion_time
    assert found is None if time is None else (found == [time]).all()


def test_covariances_are_positive_semidefinite():
    found = ft.solve(network(activation="gelu", horizon=0.5), np.linspace(-2, 2, 9))
    for covariance in found.covariance:
        assert np.linalg.eigvalsh(covariance).min() >= -1e-12 * np.trace(covariance)


FEATURES = {
    "tanh": (np.tanh, ()),
    "relu": (lambda x: np.maximum(x, 0), (0.0,)),
    "hard_tanh": (lambda x: np.clip(x, -1, 1), (-1.0, 1.0)),
    "x**3": (lambda x: x**3, ()),
}


NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)


def integral(f, cuts):
    """∫ f N(x; 0, 1) dx by Gauss-Legendre panels split at the cuts."""
    edges = np.unique([*np.linspace(-10, 10, 11), *np.clip(cuts, -10, 10)])
    nodes, weights = NODES, WEIGHTS
    half = np.diff(edges)[:, None] / 2
    x = (edges[:-1, None] + half * (1 + nodes)).ravel()
    return (half * weights).ravel() @ (f(x) * np.exp(-(x**2) / 2)) / np.sqrt(2 * np.pi)


def feature_average(psi, kinks, means, variances, c):
    """⟨ψ(x)ψ(y)⟩ by two integrals, one inside the other."""
    (a, b), (s, t) = means, np.sqrt(variances)
    apart = np.sqrt(1 - c**2)

    def conditional(x):
        cuts = [((k - b) / t - c * x) / apart for k in kinks]
        return integral(lambda y: psi(b + t * (c * x + apart * y)), cuts)

    crossed = [(k - b) / t / c for k in kinks] if c else []
    steps = (-8, -3, -1, 0, 1, 3, 8)
    cuts = [(k - a) / s for k in kinks] + [x + d * apart for x in crossed for d in steps]
    return integral(lambda x: psi(a + s * x) * np.vectorize(conditional)(x), cuts)


@pytest.mark.parametrize(
    ("name", "c", "size"), crossed(["tanh", "gelu", "softplus"], [0.3, 0.99999], [0.0, 1e-3, 2.0])
)
def test_many_neurons_are_averaged_over_once(name, c, size):
    """By polynomials through at most 256 nodes: the averages over all neurons, term by term."""
    rng, psi = np.random.default_rng(2), function_of(as_activation(name).expression, h)
    x = rng.normal(size=(1500, 2)) @ np.array([[1.0, 0.6], [0.0, 0.8]])
    starts = Starts(x, rng.dirichlet(np.ones(len(x))))
    nodes = starts.interpolated(psi)
    assert len(nodes.values) <= 256
    covariance, mean = size * np.array([[1.0, c], [c, 1.0]]), np.array([0.2, -0.3])
    found, expected = (
        feature_gram(psi, of.shifted(mean), covariance) for of in (nodes, starts.neurons)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)


def test_neurons_of_features_with_kinks_are_all_kept():
    starts = Starts(np.linspace(-1, 1, 4000)[:, None], np.full(4000, 1 / 4000))
    net = ft.DiffusionNetwork(depth=None, activation="tanh", input_activation="relu")
    assert len(WideNetwork(net, starts).neurons.values) == 4000
    assert len(starts.interpolated(lambda x: np.tanh(200 * x)).values) == 4000


@pytest.mark.parametrize(
    "name, c, variances",
    crossed(FEATURES, [-0.99999, -0.6, 0.0, 0.5, 0.9, 0.999, 0.7], [(0.3, 1.2), (1e-6, 2.0)]),
)
def test_feature_averages(name, c, variances):
    psi, kinks = FEATURES[name]
    means, (v, w) = (0.4, -0.7), variances
    expected = feature_average(psi, kinks, means, variances, c)
    covariance = np.array([[v, c * np.sqrt(v * w)], [c * np.sqrt(v * w), w]])
    function = function_of(as_activation(name).expression, h)
    neurons = Starts(np.array([means]), np.ones(1)).neurons
    found = feature_gram(function, neurons, covariance)[0, 1]
    assert found == pytest.approx(expected, rel=1e-11, abs=1e-13)


def test_features_far_from_their_kink_keep_their_digits():
    relu, neurons = (
        function_of(as_activation("relu").expression, h),
        Starts(np.full((1, 1), -1.5), np.ones(1)),
    )
    found = feature_gram(relu, neurons.neurons, np.array([[0.0125]]))[0, 0]
    with mpmath.workdps(60):
        m, s = mpmath.mpf(-1.5), mpmath.sqrt(0.0125)
        exact = (m**2 + s**2) * mpmath.ncdf(m / s) + m * s * mpmath.npdf(m / s)
    assert found == pytest.approx(float(exact), rel=1e-12, abs=0)


def test_files_and_views(tmp_path):
    limit = ft.solve(network(activation="swish", horizon=0.1), Z[:1])
    for name in ("limit.npz", "limit.nc"):
        limit.save(tmp_path / name)
        loaded = ft.DiffusionSolution.load(tmp_path / name)
        assert loaded.network == limit.network
        np.testing.assert_array_equal(loaded.covariance, limit.covariance)
    law = ft.ParameterLaw(row_covariance=np.eye(2), column_covariance=np.eye(2))
    net = ft.DiffusionNetwork(width=2, parameter_law=law)
    assert net == net.replace()
    labelled = ft.solve(network(), Z).to_xarray()
    assert {"mean", "covariance", "gram", "gram_variance", "kurtosis"} <= set(labelled)
    assert "infinite" in limit._repr_html_()
    assert len(limit.plot().axes) == 3


def test_at_a_time_between():
    for case in ({}, {"activation": "swish"}, {"input_activation": "tanh"}):
        inputs = Z[1:2] if "input_activation" in case else Z
        limit = ft.solve(network(**case), inputs)
        half = ft.solve(network(horizon=0.535, **case), inputs)
        found = limit.at(0.535)
        np.testing.assert_allclose(found.covariance, half.covariance[-1], rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(found.mean, half.mean[-1], rtol=1e-10)


def test_limits_have_what_layers_lack():
    finite = ft.solve(network(depth=3), Z)
    assert finite.gram_variance is None and finite.kurtosis is None and not finite.is_exact
