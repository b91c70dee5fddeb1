"""The two samplers: one law, that of the definition and of exact results."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.montecarlo.sampling.plan import checked_run
from fieldtheory.montecarlo.sampling.samplers import draw
from fieldtheory.montecarlo.simulation import simulate
from tests.examples import K0_PAIR, K0_TRIPLE, PHI, network, oracle
from tests.montecarlo.statistics_of_draws import (
    linear_second_moments,
    linear_statistics,
    p_value,
    z_between,
    z_scores,
)
from tests.oracles import weights
from tests.rounding import assert_same
from tests.tables import slow

WIDTH = 16
DRAWS = 4000
FIELDS = (
    "mean",
    "covariance",
    "kernel_mean",
    "kernel_covariance",
    "four_point",
    "output_kurtosis",
    "cross_covariance",
)
# One million random numbers lie within 5; a field has at most some hundred entries.
LARGEST_Z = 4.5


def small(activation, gamma, **changes):
    return network(3, activation, gamma, width=WIDTH, **changes)


def ensemble(net, method, seed=0, **arguments):
    options = {"samples": DRAWS, "keep": True, "cross_inputs": True} | arguments
    return simulate(net, K0_PAIR, method=method, seed=seed, **options)


@pytest.mark.slow_but(3)
@pytest.mark.parametrize("gamma", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("activation", ["erf", "relu"])
def test_both_samplers_follow_the_law_of_explicit_weights(activation, gamma):
    net = small(activation, gamma)
    by_kernel, by_weights = ensemble(net, "kernel"), ensemble(net, "weights")
    reference = weights.sample(oracle(net), PHI[activation], WIDTH, DRAWS, seed=3, K0=K0_PAIR)
    for name in FIELDS:
        assert np.abs(z_between(by_kernel, by_weights, name)).max() < LARGEST_Z, name
    rows, columns = np.triu_indices(2)
    draws = [d[:, 1:, rows, columns] for d in (by_kernel.residual_kernels, reference)]
    assert p_value(draws[0], by_weights.residual_kernels[:, 1:, rows, columns]) > 1e-3
    assert p_value(*draws) > 1e-3


@pytest.mark.parametrize(
    "changes",
    [slow({"width": 2 * WIDTH}), slow({"branch_scale": [0.53, 0.8, 1.1]}), {"skip_scale": 0.75}],
    ids=["width", "branch", "skip"],
)
def test_the_two_sample_test_tells_similar_laws_apart(changes):
    first = ensemble(small("erf", 0.7), "kernel").residual_kernels
    other = ensemble(small("erf", 0.7).replace(**changes), "weights").residual_kernels
    assert p_value(first, other) < 1e-6


@pytest.mark.slow_but(2)
@pytest.mark.parametrize("method", ["kernel", "weights"])
@pytest.mark.parametrize("gamma", [0.0, 0.7, (1.0, 0.5, 0.8)])
def test_exact_linear_networks(method, gamma):
    net = small("linear", gamma)
    found = simulate(net, 0.4, samples=20_000, seed=5, method=method)
    exact = linear_statistics(net, 0.4)
    for name, values in exact.items():
        assert np.abs(z_scores(found, name, values)).max() < LARGEST_Z, name
    wider = linear_statistics(net.replace(width=WIDTH + 4), 0.4)
    for name in ("covariance", "kernel_variance", "output_kurtosis"):
        assert np.abs(z_scores(found, name, wider[name])).max() > 6, name
    assert np.abs(z_scores(found, "four_point", 1.2 * exact["four_point"])).max() > 6


@pytest.mark.parametrize("method", ["kernel", slow("weights")])
def test_exact_covariances_between_inputs(method):
    net = small("linear", 0.0, bias_variance=0.0, readout_bias_variance=0.0, branch_scale=1.1)
    e = simulate(net, K0_TRIPLE, samples=20_000, seed=2, method=method, cross_inputs=True)
    found, error = e.cross_covariance, e.cross_covariance_error
    a = [0, *[1.21 * net.weight_variance] * 3, net.readout_weight_variance]
    moments = linear_second_moments(a, K0_TRIPLE, WIDTH)
    mean = K0_TRIPLE
    for l in range(1, 5):
        mean = a[l] * mean
        expected = moments[l] - np.einsum("ab,cd->abcd", mean, mean)
        for later in range(l, 5):
            growth = np.prod(a[l + 1 : later + 1])
            z = (found[l, later] - growth * expected) / error[l, later]
            assert np.abs(z).max() < LARGEST_Z
        assert np.abs((found[l, l] - 1.2 * expected) / error[l, l]).max() > 6


@pytest.mark.parametrize("method", ["kernel", slow("weights")])
def test_outputs_that_are_drawn_have_the_kurtosis(method):
    net, samples = network(2, "relu", 0.7, width=6), 40_000
    found = simulate(net, 0.5, samples=samples, seed=1, method=method, keep=True)
    C = found.residual_kernels[:, -1]
    y = np.sqrt(C) * np.random.default_rng(0).standard_normal((50, samples))
    by_outputs = (y**4).mean() / (y**2).mean() ** 2 - 3
    assert found.output_kurtosis > 20 * found.output_kurtosis_error
    assert abs(by_outputs - found.output_kurtosis) < 0.05 * found.output_kurtosis


@pytest.mark.parametrize("method", ["kernel", slow("weights")])
def test_the_four_point_vertex_is_that_of_pairs_of_neurons(method):
    net, samples = network(2, "erf", 0.7, width=2, branch_scale=1.0), 30_000
    found = simulate(net, K0_PAIR, samples=samples, seed=0, method=method)
    # At width 2 the neurons themselves follow from one layer of weights each.
    rng = np.random.default_rng(7)
    h = np.linalg.cholesky(K0_PAIR) @ rng.standard_normal((samples, 2, 2))
    for l in range(3):
        if l:
            W = rng.standard_normal((samples, 2, 2)) * np.sqrt(net.weight_variance / 2)
            b = rng.standard_normal((samples, 1, 2)) * np.sqrt(net.bias_variance)
            h = 0.7 * h + PHI["erf"](h) @ W + b
        products = h[:, :, None, :] * h[:, None, :, :]
        x, y = (products[..., i] - products.mean(axis=(0, 3)) for i in (0, 1))
        expected, error = 2 * (x * y).mean(axis=0), 2 * (x * y).std(axis=0) / np.sqrt(samples)
        z = (found.four_point[l] - expected) / np.hypot(found.four_point_error[l], error)
        assert np.abs(z).max() < LARGEST_Z
    assert np.abs(z_scores(found, "four_point", 0.0)[2:]).max() > 10


def test_given_inputs_have_the_law_of_their_kernel():
    net = small("erf", 0.7, readin_weight_variance=0.5, readin_bias_variance=0.1)
    X = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]])
    arguments = {"samples": DRAWS, "keep": True}
    by_weights = simulate(net, X=X, method="weights", **arguments)
    assert_same(by_weights.input_kernel, ft.input_kernel(X, net))
    by_kernel = simulate(net, ft.input_kernel(X, net), seed=1, **arguments)
    reference = weights.sample(oracle(net), PHI["erf"], WIDTH, DRAWS, 2, X=X, readin=(0.5, 0.1))
    assert p_value(by_weights.residual_kernels, by_kernel.residual_kernels) > 1e-3
    assert p_value(by_weights.residual_kernels, reference) > 1e-3
    for name in ("mean", "covariance", "four_point"):
        assert np.abs(z_between(by_weights, by_kernel, name)).max() < LARGEST_Z
    with_kernel = simulate(net, X=X, samples=100)
    assert_same(with_kernel.mean, simulate(net, ft.input_kernel(X, net), samples=100).mean)


def test_more_inputs_than_neurons():
    net = network(2, "erf", 0.7, width=3, bias_variance=0.0)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6, 10))
    by_kernel, by_weights = (
        simulate(net, X=X, samples=DRAWS, seed=4, method=m) for m in ("kernel", "weights")
    )
    for name in ("mean", "covariance", "four_point"):
        assert np.abs(z_between(by_kernel, by_weights, name)).max() < LARGEST_Z


def drawn(net, K0, samples, method="kernel"):
    run = checked_run(net, K0, None, 20, 0, method, False, False)
    return draw(run, np.random.default_rng(0), samples)


@pytest.mark.parametrize("method", ["kernel", "weights"])
def test_identical_and_opposite_inputs_stay_so(method):
    K0 = 0.4 * np.outer([1, 1, -1], [1, 1, -1])
    net = small("erf", 0.7, bias_variance=0.0)
    draws = drawn(net, K0, 50, method)
    for kernels in (draws.residual[:, :-1], draws.second):
        expected = kernels[:, :, :1, :1] * np.outer([1, 1, -1], [1, 1, -1])
        np.testing.assert_allclose(kernels, expected, rtol=1e-12)


@pytest.mark.parametrize("method", ["kernel", "weights"])
def test_an_input_without_signal_has_no_kernel(method):
    net = small("erf", 0.7, bias_variance=0.0, readout_bias_variance=0.0)
    draws = drawn(net, np.zeros((2, 2)), 5, method)
    assert not draws.residual.any() and not draws.second.any()


@pytest.mark.parametrize("method", ["kernel", "weights"])
def test_kernels_that_overflow(method):
    net = ft.ResidualNetwork(depth=100, activation="linear", branch_scale=1e3, width=4)
    with pytest.raises(OverflowError, match="a kernel exceeds .* in layer"):
        simulate(net, 0.5, samples=20, method=method)
    with pytest.raises(OverflowError, match="covariance exceeds the range"):
        simulate(net.replace(depth=40), 0.5, samples=20, method=method)
