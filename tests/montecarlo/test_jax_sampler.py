"""Explicit weights of JAX: the law of those of NumPy, and of exact results."""

import numpy as np
import pytest

from fieldtheory.montecarlo.draws import Inputs
from fieldtheory.montecarlo.simulation import simulate
from tests.examples import K0_PAIR, network
from tests.montecarlo.comparison import linear_statistics, p_value, z_between, z_scores
from tests.tables import slow

jax = pytest.importorskip("jax", reason="JAX is not installed (the extra jax)")
from fieldtheory.montecarlo import jax_sampler  # noqa: E402

FIELDS = ("mean", "covariance", "kernel_mean", "four_point", "output_kurtosis", "cross_covariance")


@pytest.fixture(autouse=True)
def float64():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def ensemble(net, backend, K0=K0_PAIR, **arguments):
    options = {"samples": 3000, "keep": True, "cross_inputs": True, "method": "weights"}
    return simulate(net, K0, backend=backend, **options | arguments)


@pytest.mark.parametrize(("activation", "gamma"), [slow("erf", 0.7), ("relu", 0.0)])
def test_law_is_that_of_numpy(activation, gamma):
    net = network(3, activation, gamma, width=16)
    ours, other = ensemble(net, "jax"), ensemble(net, "numpy")
    for name in FIELDS:
        assert np.abs(z_between(ours, other, name)).max() < 4.5, name
    rows, columns = np.triu_indices(2)
    draws = [e.residual_kernels[:, 1:, rows, columns] for e in (ours, other)]
    assert p_value(*draws) > 1e-3
    wrong = ensemble(net.replace(bias_variance=0.06), "jax").residual_kernels
    assert p_value(wrong[:, 1:, rows, columns], draws[1]) < 1e-4


def test_exact_linear_networks():
    net = network(3, "linear", (1.0, 0.5, 0.8), width=16)
    found = ensemble(net, "jax", 0.4, samples=8192)
    for name, expected in linear_statistics(net, 0.4).items():
        assert np.abs(z_scores(found, name, expected)).max() < 4.5, name


def test_inputs_themselves_give_their_kernel():
    net = network(2, "erf", 0.7, width=16, readin_weight_variance=2.0)
    X = np.random.default_rng(0).standard_normal((2, 5))
    draws = [
        simulate(net, X=X, method="weights", backend=backend, samples=3000, keep=True)
        for backend in ("jax", "numpy")
    ]
    assert np.abs(z_between(*draws, "kernel_mean")).max() < 4.5
    assert p_value(*(e.residual_kernels[:, 1:, 0, 1] for e in draws)) > 1e-3


def test_identical_inputs_stay_identical():
    found = ensemble(network(3, width=16), "jax", np.full((2, 2), 0.4), samples=1000)
    C = found.residual_kernels
    np.testing.assert_allclose(C[:, :, 0, 1], C[:, :, 0, 0], rtol=1e-12)


def test_numbers_depend_on_the_seed_alone(monkeypatch):
    net = network(3, width=16)
    inputs = Inputs(K0_PAIR)

    def drawn(seed):
        return jax_sampler.draw_weights(net, inputs, np.random.default_rng(seed), 1000).residual

    whole = drawn(1)
    np.testing.assert_array_equal(drawn(1), whole)
    assert (drawn(2) != whole).all()
    # Tiles have numbers of their own.
    monkeypatch.setattr(jax_sampler, "TILE_JAX", 16 * 16 * 256)
    tiles = drawn(1)
    assert tiles.shape == whole.shape
    assert len(np.unique(tiles[:, -1, 0, 0])) == 1000


def test_float32_is_refused():
    jax.config.update("jax_enable_x64", False)
    with pytest.raises(ValueError, match="^the JAX backend needs float64"):
        ensemble(network(2, width=16), "jax", samples=20)


def test_kernels_that_overflow_are_refused():
    net = network(3, "relu", 0.0, width=16, weight_variance=1e300)
    with pytest.raises(OverflowError, match="a kernel"):
        ensemble(net, "jax", samples=1000)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"backend": "torch"}, "backend must be one of numpy, jax, got 'torch'"),
        ({"backend": "jax"}, "backend 'jax' is for method 'weights', got method 'kernel'"),
    ],
)
def test_bad_input(arguments, words):
    with pytest.raises(ValueError, match=f"^{words}"):
        simulate(network(2), 0.3, **arguments)
