"""`simulate` for Gram chains: explicit weights, exact draws of Gram matrices, bad input."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.montecarlo.sampling.gram_chain import next_gram
from tests.oracles.gram_products import gram_moments
from tests.rounding import assert_same

K0 = {
    1: 0.7,
    2: [[1.0, 0.3], [0.3, 0.5]],
    3: [[1.0, 0.4, -0.2], [0.4, 0.8, 0.3], [-0.2, 0.3, 0.6]],
}
KINKED = "max(x, 0) - max(x-1,0)/2"
WITH_BIASES = {"inner_bias_variance": 0.1, "outer_bias_variance": 0.05}
FIELDS = (
    "mean",
    "covariance",
    "kernel_mean",
    "kernel_covariance",
    "kernel_variance",
    "four_point",
    "output_kurtosis",
    "cross_covariance",
    "cross_four_point",
)
# Chance exceeds it in a table of some hundred correlated entries once in a few hundred seeds.
MOST = 4.2


def scores(first, second, name):
    """Differences of two ensembles in standard errors, of all entries that fluctuate."""
    values = [getattr(e, name) for e in (first, second)]
    errors = [getattr(e, f"{name}_error") for e in (first, second)]
    error = np.hypot(*errors)
    # What a norm without ε fixes fluctuates by rounding.
    fluctuates = error > 1e-12
    same = ~fluctuates
    np.testing.assert_allclose(values[0][same], values[1][same], rtol=1e-9, atol=1e-9)
    return (values[0] - values[1])[fluctuates] / error[fluctuates]


def net(**changes):
    defaults = {"depth": 3, "branch_scale": 0.7, "expansion": 2, "width": 24}
    return ft.BlockNetwork(**defaults | changes)


@pytest.mark.slow_but(0)
@pytest.mark.parametrize(
    ("inputs", "changes"),
    [
        (1, {"normalization": None, "activation": "tanh", "expansion": 0.5, **WITH_BIASES}),
        (2, {"normalization": None, "activation": "relu", "skip_scale": 0.8}),
        (3, {"normalization": None, "activation": KINKED, "gated": True}),
        (1, {"activation": "gelu", "expansion": 4.0, **WITH_BIASES}),
        (2, {"activation": "tanh", "epsilon": 0.1, "skip_scale": [0.9, 0.0, 1.0]}),
        (3, {"activation": "relu", "gated": True, "expansion": 0.5}),
        (2, {"normalization": "layer", "activation": KINKED, **WITH_BIASES}),
        (3, {"normalization": "layer", "activation": "tanh", "epsilon": 0.1}),
        (1, {"norm_position": "post", "activation": "gelu", **WITH_BIASES}),
        (2, {"norm_position": "post", "activation": "gelu", "epsilon": 0.1, "gated": True}),
        (3, {"norm_position": "post", "activation": "tanh", "expansion": 0.5}),
        (2, {"norm_position": "post", "normalization": "layer", "activation": "relu"}),
    ],
)
def test_gram_matrices_are_those_of_the_weights(inputs, changes):
    network = net(**changes)
    weights = ft.simulate(network, K0[inputs], samples=1600, method="weights", cross_inputs=True)
    kernels = ft.simulate(network, K0[inputs], samples=6000, cross_inputs=True)
    for name in FIELDS[: 9 if inputs > 1 else 7]:
        z = scores(weights, kernels, name)
        assert np.abs(z).max(initial=0.0) < MOST, (name, z)


@pytest.mark.slow_but(0)
@pytest.mark.parametrize("method", ["kernel", "weights"])
@pytest.mark.parametrize(
    ("inputs", "width", "hidden", "skip"), [(1, 4, 2, 0.0), (2, 4, 6, 0.5), (3, 3, 12, 1.0)]
)
def test_products_of_wishart_matrices(method, inputs, width, hidden, skip):
    """Deep linear networks, which fluctuate by as much as their kernels."""
    network = net(
        activation="linear",
        normalization=None,
        depth=2,
        width=width,
        expansion=hidden / width,
        skip_scale=skip,
        inner_weight_variance=0.8,
        outer_weight_variance=0.9,
        readout_weight_variance=1.5,
    )
    kernel = np.atleast_2d(K0[inputs])
    e = ft.simulate(network, kernel, samples=20_000, seed=3, method=method)
    R, C, var_R, var_C = gram_moments(kernel, 2, 0.7**2 * 0.8 * 0.9, skip, width, hidden)
    layers = np.arange(4)
    # The readout is linear in R^(L).
    for name, exact, of_readout in (
        ("kernel_mean", R, 1.5 * R[2]),
        ("mean", C, 1.5 * R[2]),
        ("kernel_covariance", var_R, 1.5**2 * var_R[2]),
        ("covariance", var_C, 1.5**2 * var_R[2]),
    ):
        value, error = getattr(e, name), getattr(e, f"{name}_error")
        if "covariance" in name:
            value, error = value[layers, layers], error[layers, layers]
        difference = np.abs(value - np.concatenate([exact, of_readout[None]]))
        assert np.all(difference <= MOST * error + 1e-12), name
    # ⟨R'⟩ given R is proportional to R.
    a = skip**2 + 0.7**2 * 0.8 * 0.9
    z = (e.kernel_covariance[0, 2] - a**2 * var_R[0]) / e.kernel_covariance_error[0, 2]
    assert np.abs(z).max() < MOST


def test_the_vertex_is_that_of_two_units():
    """V = N Cov(h_i², h_j²), i != j, from the units of networks that numpy draws here."""
    network = net(depth=1, activation="relu", width=6, normalization="layer", expansion=1.0)
    rng, size, N = np.random.default_rng(5), 40_000, 6
    x = np.sqrt(0.7) * rng.standard_normal((size, N))
    c = x - x.mean(axis=1, keepdims=True)
    n = c / np.sqrt((c**2).mean(axis=1, keepdims=True))
    a = np.maximum(np.einsum("nij,nj->ni", rng.standard_normal((size, N, N)), n) / np.sqrt(N), 0)
    outer = np.sqrt(network.parameters["outer_weight_variance"][0])
    f = outer * np.einsum("nij,nj->ni", rng.standard_normal((size, N, N)), a) / np.sqrt(N)
    x = x + 0.7 * f
    squares = (x - x.mean(axis=1, keepdims=True)) ** 2
    batches = squares.reshape(40, -1, N)
    each = np.array(
        [np.cov(batch, rowvar=False)[~np.eye(N, dtype=bool)].mean() for batch in batches]
    )
    expected, error = N * each.mean(), N * each.std(ddof=1) / np.sqrt(40)
    for method in ("kernel", "weights"):
        e = ft.simulate(network, 0.7, samples=8000, method=method, seed=2)
        assert abs(e.four_point[1] - expected) < MOST * np.hypot(error, e.four_point_error[1])


def test_a_norm_of_one_input_leaves_nothing_to_chance():
    """Without ε, n(x)² = 1: after a norm behind the sum, and for the output."""
    e = ft.simulate(net(norm_position="post"), 0.3, samples=200)
    np.testing.assert_allclose(e.kernel_mean, 1.0, rtol=1e-12)
    assert e.kernel_variance.max() < 1e-24 and e.covariance[-1, -1] < 1e-24
    e = ft.simulate(net(), 0.3, samples=200)
    np.testing.assert_allclose(e.mean[-1], 1.0, rtol=1e-12)


def test_as_many_inputs_as_units():
    C = np.diag([1.0, 2.0, 0.0])
    for independent in (3, 4, 5, 9):
        rng = np.random.default_rng(0)
        X = next_gram(0.5 * np.eye(3), C**0.5, 9, independent, rng, 4000)
        expected = 0.25 * np.eye(3) + C * independent / 9
        error = X.std(axis=0) / np.sqrt(len(X))
        assert np.all(np.abs(X.mean(axis=0) - expected) <= MOST * error + 1e-12), independent


def test_inputs_themselves():
    X = np.random.default_rng(0).standard_normal((2, 5))
    network = net(input_dim=5, readin_weight_variance=1.3, readin_bias_variance=0.2)
    kernel = ft.input_kernel(X, network)
    drawn = [
        ft.simulate(network, X=X, samples=1500, method="weights"),
        ft.simulate(network, X=X, samples=4000),
        ft.simulate(network, kernel, samples=4000),
    ]
    assert_same(drawn[1].kernel_mean, drawn[2].kernel_mean)
    for name in FIELDS[:6]:
        assert np.abs(scores(drawn[0], drawn[1], name)).max() < MOST
