"""`variance_reduction`: unbiased against exact networks and plain sampling, and worth its cost."""

import numpy as np
import pytest
import sympy as sp
from scipy import stats

import fieldtheory as ft
from fieldtheory.montecarlo import estimators, plan
from fieldtheory.montecarlo.ensemble import Ensemble
from fieldtheory.montecarlo.estimators import reduced_samples
from fieldtheory.montecarlo.simulation import simulate
from tests.montecarlo.comparison import linear_statistics, p_value, z_between, z_scores
from tests.networks import network

NAMES = (
    "mean",
    "covariance",
    "kernel_mean",
    "kernel_covariance",
    "kernel_variance",
    "four_point",
    "output_kurtosis",
)


def gains(plain, reduced, name):
    """How much smaller the variance of an estimate is, for one and the same number of networks."""
    errors = getattr(plain, f"{name}_error"), getattr(reduced, f"{name}_error")
    with np.errstate(divide="ignore", invalid="ignore"):
        return plain.samples / reduced.samples * (errors[0] / errors[1]) ** 2


@pytest.mark.parametrize("width", [5, 40])
@pytest.mark.parametrize("gamma", [0.0, 0.7, 1.0])
def test_linear_networks_have_their_exact_statistics(gamma, width):
    net = network(3, "linear", gamma, width=width, branch_scale=0.5)
    exact = linear_statistics(net, 0.4)
    exact["four_point"][0] = 0.0
    found = simulate(net, 0.4, samples=20_000, seed=3, variance_reduction=True)
    for name in NAMES:
        z = z_scores(found, name, exact[name])
        assert np.abs(z).max() < 4, name
    # Errors so small that a bias of a few percent in the 1/N terms is found.
    covariance = np.diag(found.covariance_error)[1:] / np.diag(exact["covariance"])[1:]
    assert covariance.max() < 0.05
    assert (found.four_point_error / exact["four_point"].max()).max() < 0.08


@pytest.mark.parametrize("gamma", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("activation", ["erf", "relu", "gelu"])
def test_plain_sampling_gives_the_same(activation, gamma):
    net = network(3, activation, gamma, width=16)
    plain = simulate(net, 0.4, samples=20_000, seed=1)
    reduced = simulate(net, 0.4, samples=6000, seed=2, variance_reduction=True)
    for name in NAMES:
        assert np.abs(z_between(plain, reduced, name)).max() < 4, name


@pytest.mark.parametrize("gamma", [0.0, 0.7, 1.0])
def test_coefficients_that_are_wrong_leave_no_bias(gamma, monkeypatch):
    net = network(3, "linear", gamma, width=20, branch_scale=0.5)
    exact, original = linear_statistics(net, 0.4), estimators._expansion
    exact["four_point"][0] = 0.0

    def wrong(*arguments):
        point = original(*arguments)
        return point._replace(gains=0.5 * point.gains, curvatures=point.curvatures + 0.3)

    right = simulate(net, 0.4, samples=10_000, variance_reduction=True)
    monkeypatch.setattr(estimators, "_expansion", wrong)
    monkeypatch.setattr(estimators, "_slope", lambda activation: np.cos)
    found = simulate(net, 0.4, samples=10_000, variance_reduction=True)
    for name in NAMES:
        assert np.abs(z_scores(found, name, exact[name])).max() < 4, name
    assert gains(found, right, "kernel_mean")[-1] > 2


def test_networks_follow_the_same_law():
    net = network(3, "erf", 0.7, width=6)
    plain = simulate(net, 0.4, samples=4000, seed=1, keep=True).residual_kernels
    reduced = simulate(net, 0.4, samples=4000, seed=2, keep=True, variance_reduction=True)
    assert reduced.residual_kernels.shape == plain.shape == (4000, 5)
    assert p_value(plain, reduced.residual_kernels) > 1e-3


def test_estimates_are_those_of_the_samples():
    net, n = network(3, "erf", 0.7, width=12), 300
    seed = np.random.SeedSequence(4, spawn_key=(0, 0))
    draws = reduced_samples(net, 0.4, np.random.default_rng(seed), n)
    found = simulate(net, 0.4, samples=n, seed=4, variance_reduction=True, keep=True)
    np.testing.assert_array_equal(found.residual_kernels[:, 1:], draws["residual"])
    theory = ft.solve(net, 0.4)
    mean = draws["rest"].mean(axis=0)
    np.testing.assert_allclose(found.mean[1:], theory.residual_kernels[1:] + mean, rtol=1e-13)
    squares = np.outer(mean, mean) - np.cov(draws["rest"], rowvar=False) / n
    covariance = draws["product"].mean(axis=0) - squares
    np.testing.assert_allclose(found.covariance[1:, 1:], covariance, rtol=1e-10, atol=1e-15)
    A = np.array([[0.49 ** (l - m) if m <= l else 0 for m in range(1, 4)] for l in range(4)])
    vertex = draws["vertex"].mean(axis=0) - np.diag(A @ squares[:3, :3] @ A.T)
    np.testing.assert_allclose(found.four_point, 12 * vertex, rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("gamma", [0.0, 0.7, 1.0])
def test_the_noise_falls_with_the_width(gamma):
    net = network(6, "erf", gamma, branch_scale=0.5)
    found = {}
    for width in (32, 128):
        wide = net.replace(width=width)
        plain = simulate(wide, 0.4, samples=1000)
        reduced = simulate(wide, 0.4, samples=1000, variance_reduction=True)
        found[width] = [gains(plain, reduced, name)[-1] for name in ("kernel_mean", "four_point")]
        found[width].append(gains(plain, reduced, "covariance")[-1, -1])
    # Variances: by N² for the mean and N for the others.
    ratio = np.array(found[128]) / found[32]
    assert 6 < ratio[0] < 40 and (ratio[1:] > 1.6).all()
    assert found[128][0] > 1000 and min(found[128][1:]) > 4


def test_the_shift_and_the_vertex_are_those_of_one_over_the_width():
    net = network(4, "erf", 0.7, branch_scale=0.5)
    theory = ft.solve(net, 0.4)
    shifts, vertices = [], []
    for width in (100, 200):
        e = simulate(net.replace(width=width), 0.4, samples=1000, variance_reduction=True)
        shifts.append(width * (e.kernel_mean - theory.kernels)[1:])
        vertices.append(e.four_point[1:])
        assert (np.abs(shifts[-1]) > 50 * width * e.kernel_mean_error[1:])[1:].all()
        np.testing.assert_allclose(e.covariance, e.covariance.T, rtol=1e-12)
        z = (e.covariance - theory.G11 * 200 / width)[1:, 1:] * width
        assert np.abs(z).max() < 0.1 * 200 * theory.G11.max()
    np.testing.assert_allclose(shifts[0][1:], shifts[1][1:], rtol=0.1)
    np.testing.assert_allclose(vertices[0], vertices[1], rtol=0.1)


def coverage(samples, repetitions):
    """How often the 95 % intervals of the entries of every field hold the exact value."""
    net = network(2, "linear", 0.7, width=60)
    exact, inside = linear_statistics(net, 0.4), {name: [] for name in NAMES}
    for seed in range(repetitions):
        found = simulate(net, 0.4, samples=samples, seed=seed, variance_reduction=True)
        quantile = stats.t.ppf(0.975, found.batches - 1)
        for name in NAMES:
            error = getattr(found, f"{name}_error")
            hit = np.abs(getattr(found, name) - exact[name]) <= quantile * error
            inside[name].append(hit[error > 1e-14 * np.abs(exact[name])])
    return {name: np.mean(hits) for name, hits in inside.items()}


def test_intervals_cover_about_as_often_as_they_say():
    # Entries of one field are correlated; the binomial error of each is 1.8 %.
    for name, rate in coverage(200, 150).items():
        assert 0.89 < rate < 0.99, name


@pytest.mark.slow
def test_intervals_cover_93_to_97_percent_of_the_time():
    for name, rate in coverage(1000, 2000).items():
        assert 0.93 < rate < 0.97, name


@pytest.mark.filterwarnings("ignore::fieldtheory.ValidityWarning")
def test_activations_with_jumps_and_networks_of_width_one_stay_unbiased():
    x = sp.Symbol("x", real=True)
    step = network(2, sp.Heaviside(x, sp.Rational(1, 2)) + x / 2, 0.7, width=10)
    one = network(2, "erf", 0.7, width=1)
    for net, samples in ((step, 4000), (one, 20_000)):
        plain = simulate(net, 0.4, samples=4 * samples, seed=1)
        reduced = simulate(net, 0.4, samples=samples, seed=2, variance_reduction=True)
        assert (reduced.four_point is None) == (net.width == 1)
        for name in ("mean", "covariance", "kernel_variance"):
            assert np.abs(z_between(plain, reduced, name)).max() < 4, name


def test_same_seed_same_numbers_whatever_workers_chunks_and_resumption(tmp_path, monkeypatch):
    net = network(3, "erf", 0.7, width=300)
    arguments = {"samples": 1500, "seed": 5, "variance_reduction": True}
    one = simulate(net, 0.4, **arguments)
    others = [
        simulate(net, 0.4, jobs=2, **arguments),
        simulate(net, 0.4, chunk=10_000, directory=tmp_path, **arguments),
        simulate(net, 0.4, chunk=10_000, directory=tmp_path, **arguments),
    ]
    plain = simulate(net, 0.4, samples=1500, seed=5, chunk=10_000, directory=tmp_path)
    for name in NAMES:
        for other in others:
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert len(list(tmp_path.iterdir())) == 2 and isinstance(plain, Ensemble)
    assert not np.array_equal(plain.four_point, one.four_point)


def test_a_matrix_or_data_of_one_input_has_the_axes_of_a_matrix():
    net = network(2, "erf", 0.7, width=20)
    options = {"samples": 50, "variance_reduction": True}
    one = simulate(net, 0.4, **options)
    for other in (
        simulate(net, [[0.4]], **options),
        simulate(
            net.replace(readin_weight_variance=0.4, readin_bias_variance=0.0), X=[[1.0]], **options
        ),
    ):
        for name in NAMES:
            value = getattr(one, name)
            shape = (1,) if name == "output_kurtosis" else (*value.shape, 1, 1)
            assert getattr(other, name).shape == shape
            np.testing.assert_allclose(getattr(other, name).reshape(value.shape), value, rtol=1e-12)


def test_the_memory_that_is_needed_is_about_that_used():
    import tracemalloc

    net = network(40, "erf", 1.0, width=200, branch_scale=0.2)
    run = plan.checked_run(net, 0.4, None, 1000, 0, "kernel", False, False, True)
    simulate(net, 0.4, samples=20, variance_reduction=True)
    tracemalloc.start()
    simulate(net, 0.4, samples=1000, variance_reduction=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.4 < plan.memory_needed(run, 1) / peak < 2.5


@pytest.mark.parametrize(
    "changes",
    [
        {"K0": np.eye(2)},
        {"method": "weights"},
        {"cross_inputs": True},
        {"K0": None, "X": np.eye(3)},
    ],
    ids=str,
)
def test_several_inputs_or_explicit_weights_are_not_allowed(changes):
    arguments = {"K0": 0.4, "samples": 20, "variance_reduction": True} | changes
    with pytest.raises(ValueError, match="variance_reduction is for one input") as caught:
        simulate(network(2, width=5), **arguments)
    assert "\n" not in str(caught.value)


def test_a_kernel_that_overflows_is_named():
    net = network(3, "linear", 1.0, width=5, branch_scale=1e120)
    with pytest.raises(OverflowError, match="exceeds the range of float64"):
        simulate(net, 0.4, samples=20, variance_reduction=True)
