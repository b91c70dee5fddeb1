"""`data_variability`: closed forms, averages over digits, and networks drawn for each of them."""

import numpy as np
import pytest
from scipy.special import erf

import fieldtheory as ft
from fieldtheory.data import load_digits
from tests.oracles import weighted_prior
from tests.tables import slow

DIGITS = load_digits(tuple(range(10)), 40).samples / 16
PAIR = ~np.eye(len(DIGITS), dtype=bool)


def averages(net, inputs):
    """Mean and variance of K^(l) at infinite width over the digits, or over pairs of them."""
    K0 = ft.input_kernel(DIGITS, net)
    if inputs == 1:
        kernels = ft.solve(net, np.diagonal(K0).copy()).kernels[:, : net.depth + 1].T
    else:
        kernels = ft.solve(net, K0).kernels[: net.depth + 1, PAIR]
    return kernels.mean(axis=1), kernels.var(axis=1)


FAMILIES = {
    "erf": ft.ResidualNetwork(depth=6, branch_scale=0.4, bias_variance=0.1),
    "relu": ft.ResidualNetwork(depth=5, activation="relu", branch_scale=0.4, skip_scale=0.8),
    "tanh": ft.FeedForwardNetwork(depth=3, activation="tanh"),
    "blocks": ft.BlockNetwork(depth=3, width=100),
    "rms": ft.BlockNetwork(depth=2, width=100, normalization="rms"),
}


@pytest.mark.slow_but(0)
@pytest.mark.parametrize("name, inputs", [
    ("erf", 1), ("erf", 2), ("relu", 2), slow("tanh", 1), slow("tanh", 2), slow("relu", 1),
    ("blocks", 2), slow("rms", 2),
])  # fmt: skip
def test_orders_approach_averages_over_digits(name, inputs):
    net = FAMILIES[name]
    found = ft.data_variability(net, X=DIGITS, inputs=inputs)
    mean, variance = averages(net, inputs)
    entry = (slice(None), 0, 1) if inputs == 2 else slice(None)
    data, second, kernels, correction = (
        getattr(found, each)[entry]
        for each in ("data_variance", "data_variance_2", "kernels", "mean_correction")
    )
    np.testing.assert_allclose(data, variance, rtol=0.06)
    np.testing.assert_allclose(data + second, variance, rtol=5e-3)
    assert abs(data + second - variance).max() <= 0.4 * abs(data - variance).max() + 1e-12
    assert abs(kernels + correction - mean).max() <= 0.3 * abs(kernels - mean).max() + 1e-12
    assert found.input_kernel.shape == found.kernels.shape[1:] and found.samples == (
        len(DIGITS) if inputs == 1 else PAIR.sum()
    )
    weights = ft.solve(net, found.input_kernel).kernel_variance
    np.testing.assert_allclose(found.network_variance, weights, rtol=1e-12)
    np.testing.assert_allclose(found.data_share[entry], data / (data + weights[entry]), rtol=1e-12)


@pytest.mark.parametrize("inputs", [1, 2])
def test_linear_networks_multiply_all_variances_by_one_factor(inputs):
    net = ft.ResidualNetwork(
        depth=3,
        activation="linear",
        branch_scale=0.5,
        skip_scale=0.9,
        weight_variance=1.4,
        width=50,
    )
    found = ft.data_variability(net, X=DIGITS, inputs=inputs)
    growth = (0.81 + 0.25 * 1.4) ** np.arange(4)
    spread = found.data_variance[0]
    expected = np.multiply.outer(growth**2, spread)
    np.testing.assert_allclose(found.data_variance, expected, rtol=1e-12)
    assert abs(found.data_variance_2).max() < 1e-8 * expected.max()
    assert abs(found.mean_correction).max() < 1e-8 * found.kernels.max()
    if inputs == 2:
        covariance = found.input_covariance[[0, 1, 2], [0, 1, 2]]
        np.testing.assert_allclose(spread[[0, 0, 1], [0, 1, 1]], covariance, rtol=1e-12)


def test_orders_are_powers_of_the_spread():
    """A law of two kernels at ±ε: what the second order leaves falls as ε⁶."""
    net, mean = FAMILIES["erf"], np.array([[0.4, 0.1], [0.1, 0.3]])
    step = np.array([[0.1, 0.03], [0.03, -0.05]])
    left = []
    for size in (1.0, 0.5):
        law = np.stack([mean + size * step, mean - size * step, mean + 0.5 * size * step])
        found, kernels = ft.data_variability(net, law), ft.solve(net, law).kernels[:, :-1]
        left.append(found.data_variance + found.data_variance_2 - kernels.var(axis=0))
        assert abs(left[-1]).max() < 0.2 * abs(found.data_variance - kernels.var(axis=0)).max()
    assert abs(left[1]).max() < abs(left[0]).max() / 20


@pytest.mark.parametrize("inputs", [1, slow(2)])
def test_networks_drawn_for_digits_have_both_variances(inputs):
    """2000 networks of width 40, each with a digit or a pair of its own."""
    a, c, gamma, width, count = 1.25 * 0.36, 0.36 * 0.05, 1.0, 40, 2000
    net = ft.ResidualNetwork(depth=3, branch_scale=0.6, width=width)
    found = ft.data_variability(net, X=DIGITS, inputs=inputs)
    rng, K0 = np.random.default_rng(5), ft.input_kernel(DIGITS, net)
    kernels = []
    for number in range(count):
        chosen = rng.choice(len(DIGITS), inputs, replace=False)
        K = K0[np.ix_(chosen, chosen)]
        C = weighted_prior.prior_kernels(erf, K, width, [(gamma, a, c)] * 3, 1, number)[0]
        kernels.append(K + np.cumsum(C, axis=0))
    drawn = np.array(kernels)[:, :, 0, -1]
    entry = (slice(1, None), 0, 1) if inputs == 2 else slice(1, None)
    parts = ("data_variance", "data_variance_2", "network_variance")
    expected = sum(getattr(found, part)[entry] for part in parts)
    squares = (drawn - drawn.mean(axis=0)) ** 2
    errors = squares.std(axis=0) / count**0.5
    # Beyond the scatter, terms of order Σ/N.
    assert (abs(squares.mean(axis=0) - expected) < 3.5 * errors + expected / width).all()
    # Neither part alone explains it in the last layer.
    for part in parts[::2]:
        assert getattr(found, part)[entry][-1] < expected[-1] - 6 * errors[-1]


def test_large_spreads_are_said():
    with pytest.warns(ft.ValidityWarning, match="second order changes variances over the data by"):
        ft.data_variability(ft.FeedForwardNetwork(depth=4), [0.01, 0.02, 3.0])


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"K0": 0.3}, r"K0 must have shape \(n,\) or \(n, 2, 2\).*got \(\)"),
        ({"K0": [0.3]}, "n >= 2 samples"),
        ({"K0": np.ones((3, 3, 3))}, r"got \(3, 3, 3\)"),
        ({"K0": np.ones((3, 2, 2))}, "positive definite"),
        ({"K0": [0.0, 0.0]}, "positive definite"),
        ({}, "one of K0 and X"),
        ({"K0": [0.1, 0.2], "X": [[1.0], [2.0]]}, "one of K0 and X"),
        ({"X": [[1.0], [2.0]], "inputs": 3}, "inputs must be 1 or 2, got 3"),
    ],
)
def test_bad_input_is_named(changes, message):
    with pytest.raises(ValueError, match=message):
        ft.data_variability(ft.ResidualNetwork(depth=1), **changes)
