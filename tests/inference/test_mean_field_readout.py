"""`readout_scale`: linear networks in closed form, others by chains of weights."""

import numpy as np
import pytest
from scipy.special import erf

import fieldtheory as ft
from fieldtheory.inference import tilting
from tests.oracles import mean_field
from tests.oracles import neuron_chains as chains

PHI = {"erf": erf, "relu": lambda h: np.maximum(h, 0)}
SLOPE = {
    "erf": lambda h: 2 / np.sqrt(np.pi) * np.exp(-(h**2)),
    "relu": lambda h: (h > 0).astype(float),
}
X = np.random.default_rng(3).standard_normal((7, 10))
K0, Y = X @ X.T / 10, np.sign(X[:5, 0])


def linear(depth):
    return ft.FeedForwardNetwork(
        depth=depth, activation="linear", weight_variance=1.0, bias_variance=0.0, width=30
    )


def one_hidden_layer(name, depth=1, branch_scale=0.0, width=100):
    a = 2.0 if name == "relu" else 1.0
    return ft.ResidualNetwork(
        depth=depth, activation=name, branch_scale=branch_scale, weight_variance=a,
        bias_variance=0.0, width=width,
    )  # fmt: skip


@pytest.mark.slow_but(0, 3, 4, 7, 9, 12, 13, 16)
@pytest.mark.parametrize("depth", [1, 3, 9])
@pytest.mark.parametrize("scale", [10.0, 1.0, 0.3])
@pytest.mark.parametrize("noise", [0.01, 1.0])
def test_linear_networks_have_the_closed_solution(depth, scale, noise):
    found = ft.tilted_posterior(linear(depth), K0, Y, noise, readout_scale=scale)
    t, _, eigenvalues = mean_field.linear_scale(K0[:5, :5], Y, noise, scale, depth + 1)
    assert eigenvalues[0] > 0
    kernel = t ** (depth + 1) * K0
    v = np.linalg.solve(kernel[:5, :5] + noise * np.eye(5), Y)
    np.testing.assert_allclose(found.mean, kernel[:, :5] @ v, atol=1e-12)
    np.testing.assert_allclose(
        found.conjugate_kernels[-1, :5, :5], np.outer(v, v) / (2 * scale**2), atol=1e-11
    )
    # Without skips layers are independent Gaussians: C^(l+1) = (1/C^(l) − 2 C̃^(l+1))⁻¹ and
    # C̃^(l) = ½ (C^(l+1) − C^(l)) between two inverses of C^(l).
    C, tilts = found.residual_kernels, found.conjugate_kernels
    for l in range(depth + 1):
        inverse = np.linalg.inv(C[l])
        np.testing.assert_allclose(
            C[l + 1], np.linalg.inv(inverse - 2 * tilts[l + 1]), rtol=1e-7, atol=1e-9
        )
        np.testing.assert_allclose(
            tilts[l], inverse @ (C[l + 1] - C[l]) @ inverse / 2, atol=1e-7 * abs(tilts).max()
        )
    assert not found.variance.any() and found.readout_scale == scale


def test_deep_linear_networks_jump_to_the_lowest_minimum():
    """Ten layers and much noise: two minima, of which the lowest changes near s = 0.63."""
    jumps = []
    for scale in (0.7, 0.645, 0.62, 0.58):
        found = ft.tilted_posterior(linear(9), [[0.01]], [1.0], 1.0, readout_scale=scale)
        t, several, eigenvalues = mean_field.linear_scale(
            np.array([[0.01]]), np.array([1.0]), 1.0, scale, 10
        )
        assert eigenvalues[0] > 0
        np.testing.assert_allclose(found.mean, 0.01 * t**10 / (1 + 0.01 * t**10), rtol=1e-10)
        jumps.append((several, bool(found.mean[0] > 0.5)))
    assert jumps[1:3] == [(True, False), (True, True)], jumps


def test_limits_of_the_scale_and_of_the_width():
    net = ft.ResidualNetwork(depth=3, activation="linear", branch_scale=0.6, width=10**6)
    lazy = ft.tilted_posterior(net, K0, Y, 0.1, readout_scale=1e5)
    s = ft.solve(net, K0)
    np.testing.assert_allclose(lazy.residual_kernels, s.residual_kernels, atol=1e-8)
    # With skips, biases and two outputs, the limit of labels that grow as √N.
    outputs = np.stack([Y, X[:5, 1]], axis=1)
    limit = ft.tilted_posterior(net, K0, outputs, 0.1, readout_scale=0.8)
    wide = ft.tilted_posterior(net, K0, 1e3 / 0.8 * outputs, 0.1)
    size = abs(limit.residual_kernels).max()
    np.testing.assert_allclose(limit.residual_kernels, wide.residual_kernels, atol=1e-4 * size)
    np.testing.assert_allclose(limit.mean, wide.mean * 0.8 / 1e3, atol=1e-5)
    assert abs(limit.residual_kernels - s.residual_kernels).max() > 0.1 * size


@pytest.mark.slow
@pytest.mark.parametrize("name, branch_scale", [("erf", 0.0), ("relu", 0.0), ("erf", 1.0)])
def test_chains_of_weights_extrapolated_in_the_width(name, branch_scale):
    """Hamiltonian Monte Carlo of all weights at three widths up to 400, lines in 1/N."""
    inputs, labels = np.array([[1.0, 0.5], [-0.5, 1.0], [0.3, -1.2]]), np.array([0.8, -0.6, 0.3])
    noise, scale, a = 0.2, 0.7, 2.0 if name == "relu" else 1.0
    depth = int(branch_scale > 0)
    widths = np.array([50, 100, 200] if depth else [100, 200, 400])
    sizes, errors = [], []
    for N in widths:
        net = chains.Net(PHI[name], depth, 1.0, a, 0.0, a, 0.0, int(N))
        C, C_error, f, f_error, rate = chains.hamiltonian(
            net, 1.5**0.5 * inputs, N**0.5 / scale * labels[:, None], noise,
            1500 if depth else 2500, 8, 0.12, SLOPE[name], 1,
        )  # fmt: skip
        assert rate > 0.6
        f, f_error = (scale / N**0.5 * each for each in (f, f_error))
        sizes.append(np.concatenate([C[np.triu_indices(3)], f]))
        errors.append(np.concatenate([C_error[np.triu_indices(3)], f_error]))
    K = 0.75 * inputs @ inputs.T
    net = one_hidden_layer(name, branch_scale=branch_scale)
    found = ft.tilted_posterior(net, K, labels, noise, readout_scale=scale, samples=200_000)
    line = np.stack([np.ones(3), 1 / widths], axis=1)
    scores = []
    for number, (values, error) in enumerate(
        zip(np.array(sizes).T, np.array(errors).T, strict=True)
    ):
        covariance = np.linalg.inv(line.T / error**2 @ line)
        limit = (covariance @ line.T @ (values / error**2))[0]
        own, own_error = (
            np.concatenate([matrix[-1][np.triu_indices(3)], mean])[number]
            for matrix, mean in (
                (found.residual_kernels, found.mean),
                (found.residual_kernels_error, found.mean_error),
            )
        )
        scores.append((own - limit) / np.hypot(own_error, covariance[0, 0] ** 0.5))
    assert np.abs(scores).max() < 4, scores


@pytest.mark.slow
def test_tilts_that_paths_do_not_follow_are_an_error(monkeypatch):
    monkeypatch.setattr(tilting, "RUNS", 2)
    net = ft.ResidualNetwork(depth=3, activation="relu", weight_variance=2.0, width=10)
    with pytest.raises(ArithmeticError, match=r"noise_variance=0.1 and readout_scale=0.01: "):
        ft.tilted_posterior(net, K0, Y, 0.1, readout_scale=0.01, samples=40_000)
