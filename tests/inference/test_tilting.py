"""The tilted saddle point: linear networks exactly, others by sampled paths, against chains."""

import re

import numpy as np
import pytest
from scipy.special import erf

import fieldtheory as ft
from fieldtheory.inference import tilting
from tests.oracles import block_networks, labelled_pair, weighted_prior
from tests.oracles import neuron_chains as chains
from tests.tables import slow

PHI = {"linear": lambda h: h, "erf": erf, "relu": lambda h: np.maximum(h, 0)}
FEW = 20_000


def task(training, test=3, dim=20, outputs=1, seed=0):
    """K0 and labels: signs of linear functions, noise-free, one output as (P, 1)."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((training + test, dim))
    return X @ X.T / dim, np.sign(X @ rng.standard_normal((dim, outputs)))[:training]


def network(net, name):
    """The same network for the package."""
    return ft.ResidualNetwork(
        depth=net.depth,
        activation=name,
        skip_scale=net.gamma,
        branch_scale=1.0,
        weight_variance=net.a,
        bias_variance=net.c,
        readout_weight_variance=net.a_out,
        readout_bias_variance=net.c_out,
        width=net.width,
    )


def distance(found, expected):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


@pytest.mark.parametrize("depth", [1, 4])
def test_feed_forward_linear_networks_have_one_renormalised_kernel(depth):
    """Li and Sompolinsky (2021), without noise: also C̃ = U/N of that kernel."""
    X = np.random.default_rng(3).standard_normal((20, 40))
    y, K = X @ np.ones(40) / 4, X @ X.T / 40
    net = ft.FeedForwardNetwork(
        depth=depth, activation="linear", weight_variance=1.0, bias_variance=0.0, width=30
    )
    found = ft.tilted_posterior(net, K, y, 1e-9)
    G = np.linalg.inv(K) / chains.renormalisation(K, y, depth + 1, 30) ** (depth + 1)
    U = (np.outer(G @ y, G @ y) - G) / 2
    np.testing.assert_allclose(30 * found.conjugate_kernels[-1], U, atol=1e-7 * abs(U).max())
    np.testing.assert_allclose(found.mean, y, atol=1e-6)
    assert not found.residual_kernels_error.any() and found.samples is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "depth, gamma, a, c, outputs",
    [
        pytest.param(1, 0.0, 1.0, 0.0, 1, id="feed-forward"),
        pytest.param(2, 0.7, 0.5, 0.3, 1, id="skips-biases"),
        pytest.param(1, 1.0, 1.0, 0.1, 2, id="two-outputs"),
    ],
)
def test_linear_networks_of_finite_width_have_the_exact_saddle_point(depth, gamma, a, c, outputs):
    net = chains.Net(PHI["linear"], depth, gamma, a, c, 1.0, c, 40)
    K0, Y = task(24, dim=60, outputs=outputs)
    exact = chains.elliptical(net, K0, Y, 0.1, 2000, 1)
    found = ft.tilted_posterior(network(net, "linear"), K0, Y, 0.1)
    # Beyond the scatter of a chain of correlated networks, terms of order 1/N.
    for level in range(1, depth + 2):
        scatter = np.linalg.norm(exact.kernels_error[level - 1])
        allowed = 1.5 * scatter / np.linalg.norm(exact.kernels[level - 1]) + 1 / 40
        assert distance(found.residual_kernels[level], exact.kernels[level - 1]) < allowed
    assert abs(found.mean - exact.mean).max() < 4 * exact.mean_error.max() + 1 / 40
    assert distance(found.variance, exact.variance) < 0.25


def test_linear_networks_with_large_labels():
    """Ten times the outputs: Newton's method left the physical domain, its mean was -26 Y."""
    net = chains.Net(PHI["linear"], 1, 1.0, 1.0, 0.0, 1.0, 0.0, 10)
    K0, Y = np.array([[1.0, 0.1], [0.1, 1.0]]), np.array([[10.0], [-10.0]])
    exact = chains.elliptical(net, K0, Y, 0.01, 2000, 1)
    found = ft.tilted_posterior(network(net, "linear"), K0, Y, 0.01)
    assert distance(found.mean, exact.mean) < 1e-3
    assert distance(found.residual_kernels[-1], exact.kernels[-1]) < 1 / 10


def test_small_tilts_are_covariances_with_the_derivative_of_the_likelihood():
    """C − C* = Cov(C, tr UC) to order 1/N, and C̃ is U traced back to the inputs."""
    K0, Y = task(3, test=1)
    net = network(chains.Net(PHI["linear"], 3, 0.8, 0.7, 0.2, 1.0, 0.1, 10**4), "linear")
    found, s = ft.tilted_posterior(net, K0, 0.3 * Y, 0.5), ft.solve(net, K0)
    A = np.linalg.inv(s.residual_kernels[-1][:3, :3] + 0.5 * np.eye(3))
    U = np.zeros((4, 4))
    U[:3, :3] = (0.09 * A @ Y @ Y.T @ A - A) / 2
    size = abs(U).max()
    np.testing.assert_allclose(1e4 * found.conjugate_kernels[-1], U, atol=2e-3 * size)
    change, expected = found.residual_kernels - s.residual_kernels, ft.covariance_with(s, U).values
    np.testing.assert_allclose(change, expected, atol=2e-3 * abs(expected).max())


def output_of(features, Y, noise, c, N):
    """r, r_b, u and G by plain iteration."""
    r = bulk = 1.0
    for _ in range(200):
        u = np.linalg.solve(noise * np.eye(len(Y)) + c + r * features, Y)
        G = np.linalg.inv(noise * np.eye(len(Y)) + c + bulk * features)
        r = 1 / (1 + np.trace(features @ G) / N)
        bulk = r * (1 + r * np.trace(u.T @ features @ u) / Y.shape[1] / N)
    return r, bulk, u, G


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, depth, gamma, outputs",
    [slow("erf", 2, 1.0, 1), ("relu", 1, 0.5, 2), slow("tanh", 1, 0.0, 1)],
)
def test_sampled_saddle_points_solve_their_equations(name, depth, gamma, outputs):
    """Averages by importance sampling: C and C̃ = ½ C⁻¹(⟨f fᵀ⟩ − C)C⁻¹, and the output's."""
    phi = PHI.get(name, np.tanh)
    N = 20 if name == "relu" else 5
    net = chains.Net(phi, depth, gamma, 1.3, 0.1, 1.5, 0.1, N)
    K0, Y = task(4, test=1, outputs=outputs)
    Y, noise = 1.5 * Y, 0.2
    found = ft.tilted_posterior(network(net, name), K0, Y, noise, samples=20 * FEW, seed=2)
    C, tilts = found.residual_kernels, found.conjugate_kernels
    rng, count = np.random.default_rng(0), 400_000
    f = [chains.root(kernel) @ rng.standard_normal((5, count)) for kernel in C[:-1]]
    h, exponent, features = f[0], 0.0, []
    for level in range(depth + 1):
        h = gamma * h + f[level] if level else h
        features.append(phi(h))
        a = 1.5 if level == depth else 1.3
        if level == depth:
            r, _, u, G = output_of(C[-1][:4, :4] - 0.1, Y, noise, 0.1, N)
            a *= r
        exponent += a * np.einsum("in,ij,jn->n", features[-1], tilts[level + 1], features[-1])
    weights = np.exp(exponent)
    weights /= weights.sum()
    assert 1 / (weights**2).sum() > 0.1 * count
    for level in range(depth + 1):
        a = 1.5 if level == depth else 1.3
        own = a * (features[level] * weights) @ features[level].T + 0.1
        scale = np.sqrt(np.outer(np.diag(own), np.diag(own)))
        errors = found.residual_kernels_error[level + 1] + 0.004 * scale
        assert (abs(C[level + 1] - own) / errors).max() < 5
        inverse = np.linalg.inv(C[level][:4, :4])
        spread = (f[level][:4] * weights) @ f[level][:4].T - C[level][:4, :4]
        answer = inverse @ spread @ inverse / 2
        errors = found.conjugate_kernels_error[level, :4, :4] + 0.004 * abs(inverse).max()
        assert (abs(answer - tilts[level, :4, :4]) / errors).max() < 5
    goal = (u @ u.T - outputs * G) / (2 * N)
    errors = found.conjugate_kernels_error[-1, :4, :4] + 0.01 * abs(goal).max()
    assert (abs(goal - tilts[-1, :4, :4]) / errors).max() < 5
    np.testing.assert_allclose(
        found.mean, (r * (C[-1][:, :4] - 0.1) + 0.1) @ u, atol=0.02 * abs(Y).max()
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["erf", "relu"])
@pytest.mark.parametrize("gamma", [0.0, 1.0])
def test_sampled_saddle_points_describe_posteriors_of_finite_networks(name, gamma):
    """P = N = 30: much nearer to the posterior than infinite width, for kernels and outputs."""
    a = 2.0 if name == "relu" else 1.0
    net = chains.Net(PHI[name], 1, gamma, a, 0.0, a, 0.0, 30)
    K0, Y = task(30)
    exact = chains.elliptical(net, K0, Y, 0.1, 8000, 1)
    found = ft.tilted_posterior(network(net, name), K0, Y, 0.1, samples=200_000)
    prior = ft.solve(network(net, name), K0).residual_kernels
    along = [
        (Y.T @ C[:30, :30] @ Y).item()
        for C in (found.residual_kernels[-1], prior[-1], exact.kernels[-1])
    ]
    assert abs(along[0] - along[2]) < 0.4 * abs(along[1] - along[2])
    C = prior[-1]
    wide = C[:, :30] @ np.linalg.solve(C[:30, :30] + 0.1 * np.eye(30), Y)
    scatter = np.linalg.norm(exact.mean_error) / np.linalg.norm(exact.mean)
    assert distance(found.mean, exact.mean) < 0.5 * distance(wide, exact.mean) + 1.5 * scatter
    assert distance(found.variance, exact.variance) < 0.3


@pytest.mark.slow
def test_test_inputs_change_nothing_and_identical_inputs_stay_identical():
    K0, Y = task(6, test=0)
    twice = np.array([*range(6), 0, 5])
    net = ft.ResidualNetwork(depth=1, activation="erf", width=12)
    linear = net.replace(activation="linear")
    alone, more = (ft.tilted_posterior(linear, K, Y, 0.1) for K in (K0, K0[np.ix_(twice, twice)]))
    np.testing.assert_allclose(more.residual_kernels[:, :6, :6], alone.residual_kernels, rtol=1e-9)
    np.testing.assert_allclose(more.mean[6:], alone.mean[[0, 5]], rtol=1e-9)
    assert not more.conjugate_kernels[:, 6:].any()
    # Identical training inputs, one of them labelled twice, make singular kernels.
    found = ft.tilted_posterior(net, K0[np.ix_(twice, twice)], Y[twice[:7]], 0.1, samples=FEW)
    C = found.residual_kernels
    np.testing.assert_allclose(C[:, 6], C[:, 0], atol=1e-9)
    np.testing.assert_allclose(C[:, 7], C[:, 5], atol=1e-6)
    np.testing.assert_allclose(found.mean[[6, 7]], found.mean[[0, 5]], atol=1e-6)


@pytest.mark.parametrize(
    "name, first, second",
    [
        slow("erf", 1.0, -0.7),
        slow("erf", 10.0, 7.0),
        slow("erf", 30.0, -21.0),
        ("erf", 100.0, -70.0),
        slow("erf", -100.0, -70.0),
        slow("tanh", 1.0, 0.7),
        slow("tanh", 100.0, -70.0),
        slow("relu", 1.0, -0.7),
    ],
)
def test_two_labels_of_any_size_have_the_saddle_point_on_a_grid(name, first, second):
    """u of the mean kernel had C_22 = 0.8791 +- 0.0008 for 0.7658 with erf and labels 100, -70."""
    K0, Y = np.array([[1.0, 0.3], [0.3, 0.6]]), [first, second]
    exact, residual = labelled_pair.kernel(PHI.get(name, np.tanh), K0, Y, 0.1, 1.0, 1.25)
    assert residual < 1e-9
    net = ft.ResidualNetwork(
        depth=1, activation=name, branch_scale=0.0, bias_variance=0.0, width=100,
        readout_weight_variance=1.25, readout_bias_variance=0.0,
    )  # fmt: skip
    found = ft.tilted_posterior(net, K0, Y, 0.1, readout_scale=1.0, samples=10 * FEW)
    C, errors = found.residual_kernels[-1], found.residual_kernels_error[-1]
    # Noise of the sampled tilts has a part of order 1/samples.
    allowed = 6 * errors + 3e-3 * np.sqrt(np.multiply.outer(np.diag(exact), np.diag(exact)))
    assert (abs(C - exact) < allowed).all(), (C, exact, errors)


# Activation, depth, outputs, size of the labels, what is said.
SIZES = [
    ("erf", 1, 1, 3.0, None),
    ("relu", 1, 1, 1e4, ArithmeticError),
    slow("tanh", 1, 1, 100.0, None),
    slow("erf", 3, 1, 100.0, None),
    slow("erf", 1, 2, 3.0, None),
    slow("gelu", 1, 1, 3.0, None),
    slow("gelu", 3, 1, 100.0, ArithmeticError),
    slow("relu", 3, 2, 1e4, ArithmeticError),
]


@pytest.mark.slow
@pytest.mark.parametrize("name, depth, outputs, size, said", SIZES)
def test_paths_have_the_tilted_law_or_an_error_names_the_labels(
    name, depth, outputs, size, said, monkeypatch
):
    """⟨ξ·ξ⟩ − dim ξ = ⟨ξ·∂W/∂ξ⟩ by integration by parts; kernels positive semidefinite."""
    balances, check = [], tilting._check
    monkeypatch.setattr(
        tilting,
        "_check",
        lambda runs, *rest: (balances.extend(b for _, b in runs), check(runs, *rest)),
    )
    monkeypatch.setattr(tilting, "RUNS", 4)
    K0, Y = task(6, test=1, outputs=outputs)
    net = ft.ResidualNetwork(
        depth=depth, activation=name, width=20, branch_scale=0.7,
        weight_variance=2.0 if name in ("relu", "gelu") else 1.0,
    )  # fmt: skip
    if said:
        with pytest.raises(
            said, match=rf"up to {re.escape(f'{size:.3g}')} with .*scale the labels"
        ):
            ft.tilted_posterior(net, K0, size * Y, 0.1, samples=FEW)
        return
    found = ft.tilted_posterior(net, K0, size * Y, 0.1, samples=2 * FEW)
    spread, force = (np.mean([getattr(b, x) for b in balances]) for x in ("spread", "force"))
    assert spread == pytest.approx(force, rel=0.2), (spread, force)
    for C in found.residual_kernels:
        assert np.linalg.eigvalsh(C)[0] > -1e-12 * abs(C).max()


GATED = {"norm_position": "post", "gated": True}
PAIR = [[0.3, 0.1], [0.1, 0.2]]
TRIPLE = np.array([[1.0, 0.3, 0.5], [0.3, 0.8, -0.2], [0.5, -0.2, 1.2]])


@pytest.mark.filterwarnings("ignore::fieldtheory.ValidityWarning")
@pytest.mark.parametrize(
    "options, written",
    [slow({"normalization": None}, {"norm": None}), slow(GATED, {"post": True, "gated": True})],
)
def test_networks_of_blocks_drawn_from_the_prior_and_weighted(options, written):
    """Large labels: the order 1/N learns 1.3 and 1.8 times too much."""
    N, noise, labels = 20, 0.3, np.array([4.0, -3.0])
    net = ft.BlockNetwork(
        depth=2, activation="tanh", width=N, expansion=1, branch_scale=0.7,
        outer_weight_variance=1.5, inner_bias_variance=0.1, readout_bias_variance=0.2, **options,
    )  # fmt: skip
    oracle = block_networks.Block(
        2, np.tanh, 0.7, outer=1.5, inner_bias=0.1, out_bias=0.2, **written
    )
    C, R, _ = block_networks.drawn(oracle, TRIPLE, N, N, 10_000, 1)
    expected = weighted_prior.of_kernels(np.concatenate([R, C[:, -1:]], axis=1), labels, noise)
    assert expected.effective > 500
    found = ft.tilted_posterior(net, TRIPLE, labels, noise, samples=60_000)
    first, s = ft.posterior(net, TRIPLE, labels, noise), ft.solve(net, TRIPLE)
    learned = expected.means["learned"][1:]
    assert distance((found.kernels - s.kernels)[1:], learned) < 0.12
    assert distance(first.kernel_shift[1:], learned) > 0.25
    assert abs(found.mean - expected.means["mean"]).max() < 0.06
    assert abs(first.mean - expected.means["mean"]).max() > 0.2


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.7, 2.0])
def test_linear_blocks_are_linear_networks_of_twice_the_layers(scale):
    """Without skip connections and norms, and of a readout of mean-field size: both are exact."""
    K0, Y = task(2, dim=6)
    layers = {"activation": "linear", "skip_scale": 0.0, "branch_scale": 1.0, "width": 100}
    weights = [f"{name}_weight_variance" for name in ("inner", "outer", "readout")]
    net = ft.BlockNetwork(
        depth=1, normalization=None, expansion=1, **layers, **dict.fromkeys(weights, 1.3)
    )
    twice = ft.ResidualNetwork(depth=2, weight_variance=1.3, bias_variance=0.0, **layers)
    found = ft.tilted_posterior(net, K0, Y, 0.2, readout_scale=scale, samples=100_000)
    exact = ft.tilted_posterior(twice, K0, Y, 0.2, readout_scale=scale)
    for level in (-2, -1):
        assert distance(found.residual_kernels[level], exact.residual_kernels[level]) < 0.03
    assert (abs(found.mean - exact.mean) < 5 * found.mean_error + 2e-3).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [GATED | {"normalization": "layer"}, {"gated": True}, {"normalization": None}]
)
def test_small_tilts_of_blocks_are_covariances(options):
    """Near the lazy limit, also those of the stream: left out are their squares."""
    net = ft.BlockNetwork(
        depth=2, activation="tanh", width=100, expansion=2, skip_scale=0.9, branch_scale=0.8,
        inner_bias_variance=0.1, readout_bias_variance=0.1, epsilon=0.1, **options,
    )  # fmt: skip
    labels, noise, scale, s = np.array([2.0, -1.5]), 0.2, 10.0, ft.solve(net, TRIPLE)
    alpha = np.zeros(3)
    alpha[:2] = np.linalg.solve(s.residual_kernels[-1][:2, :2] + noise * np.eye(2), labels)
    U = net.width / (2 * scale**2) * np.outer(alpha, alpha)
    _, expected = s.chain.covariances_with_output(U)
    found = ft.tilted_posterior(net, TRIPLE, labels, noise, readout_scale=scale)
    assert distance(found.kernels - s.kernels, expected) < 0.12
    # R^(0) is found without sampling.
    assert distance((found.kernels - s.kernels)[0], expected[0]) < 0.1


@pytest.mark.filterwarnings("ignore::fieldtheory.ValidityWarning")
def test_blocks_have_no_responses_beyond_order_one_over_N(monkeypatch):
    monkeypatch.setattr(tilting, "RUNS", 4)
    found = ft.tilted_posterior(ft.BlockNetwork(depth=1, width=9), PAIR, [0.5], 1.0, samples=24_000)
    with pytest.raises(TypeError, match="response after labels of tilted_posterior is not there"):
        found.response  # noqa: B018
    with pytest.raises(ValueError, match="must not jump, got sign"):
        ft.tilted_posterior(ft.BlockNetwork(depth=1, activation="sign"), PAIR, [0.5], 1.0)
