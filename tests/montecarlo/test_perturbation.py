"""`simulate_response`: exact linear networks, explicit weights, the theory, and bad input."""

from functools import partial

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.montecarlo.perturbation import simulate_response
from tests.examples import K0_PAIR, K0_TRIPLE, PHI, network, oracle
from tests.montecarlo import statistics_of_draws
from tests.oracles import exact, weights
from tests.rounding import assert_same
from tests.tables import slow

FIELDS = ("residual_response", "response", "output_response")
z_scores = partial(statistics_of_draws.z_scores, rounding=1e-11)


def exact_linear(net):
    """η, χ and χ^out of φ = id, the same at every width and for variances and covariances."""
    _, _, chi = exact.linear_kernels(oracle(net), 0.4)
    a = [0, *(net.branch_scales**2 * net.weight_variance), net.readout_variances[0]]
    eta = np.array([1.0, *(a[l] * chi[l - 1] for l in range(1, net.depth + 2))])
    return {"residual_response": eta[:-1], "response": chi[:-1], "output_response": chi[-1]}


@pytest.mark.parametrize("gamma", [slow(0.0), slow(0.7), 1.0])
def test_linear_networks_respond_as_they_do_exactly(gamma):
    net = network(4, "linear", gamma, width=200)
    found = simulate_response(net, K0_PAIR, samples=4000)
    for name, values in exact_linear(net).items():
        expected = values[..., None, None] * np.ones((2, 2))
        z = z_scores(found, name, expected)
        assert z.size and np.abs(z).max() < 4, name
        for wrong in (0.98, 1.02):
            error = getattr(found, f"{name}_error")[-1]
            z = (getattr(found, name) - wrong * expected)[-1] / error
            assert np.abs(z).min() > 4, name


@pytest.mark.parametrize("layer", [1, slow(3)])
def test_a_perturbed_layer_is_a_column_of_the_propagator(layer):
    net = network(4, "linear", [0.7, 0.0, 1.0, 0.5], width=50)
    column = net.width * ft.solve(net, 0.4).G12[:, layer]
    found = simulate_response(net, 0.4, samples=2000, layer=layer)
    assert np.abs(z_scores(found, "residual_response", column[:-1])).max() < 4
    assert np.abs(z_scores(found, "output_response", column[-1])) < 4
    assert not found.residual_response[:layer].any() and found.residual_response[layer] == 1
    pair = simulate_response(net, K0_PAIR, samples=2000, layer=layer)
    assert np.abs(z_scores(pair, "residual_response", column[:-1, None, None])).max() < 4
    np.testing.assert_array_equal(pair.response[layer], np.ones((2, 2)))


def test_the_step_leaves_no_bias():
    net = network(3, "erf", 0.7, width=30)
    slopes = {}
    for step in (1e-5, 1e-4, 0.05, 0.1):
        found = simulate_response(net, K0_PAIR, samples=200, relative_step=step)
        slopes[step] = np.concatenate([found.response, found.output_response[None]])[1:]
    # Common random numbers: what is left is the bias, which grows as the square of the step.
    bias = [np.abs(slopes[step] - slopes[1e-5]).max() for step in (1e-4, 0.05, 0.1)]
    assert bias[0] < 1e-6 * slopes[1e-5].min()
    np.testing.assert_allclose(bias[2] / bias[1], 4, rtol=0.1)
    assert found.response_error[1:].min() > 1e4 * bias[0]


def test_the_step_is_a_fraction_of_the_distance_to_the_limit():
    net = network(2, "erf", 0.7)
    steps = simulate_response(net, K0_PAIR, samples=20, relative_step=1e-3).step
    limit = np.sqrt(0.4 * 0.6) - 0.15
    np.testing.assert_allclose(steps, 1e-3 * np.array([[0.4, limit], [limit, 0.6]]))
    one = simulate_response(net, 0.4, samples=20, layer=2)
    np.testing.assert_allclose(one.step, 1e-4 * ft.solve(net, 0.4).residual_kernels[2])


@pytest.mark.slow_but(3)
@pytest.mark.parametrize("activation", ["erf", "relu"])
@pytest.mark.parametrize("gamma", [0.0, 1.0])
def test_explicit_weights_that_are_common_respond_the_same(activation, gamma):
    net = network(2, activation, gamma, width=20)
    found = simulate_response(net, K0_PAIR, samples=4000)
    for (i, j), step in (((0, 0), 1e-4), ((0, 1), 1e-4)):
        shift = np.zeros((2, 2))
        shift[i, j] = shift[j, i] = step

        def sampled(sign, shift=shift):
            K0 = K0_PAIR + sign * shift
            return weights.sample(oracle(net), PHI[activation], 20, 4000, 7, K0=K0)

        slopes = ((sampled(1) - sampled(-1)) / (2 * step))[:, 1:, i, j]
        error = slopes.std(axis=0, ddof=1) / np.sqrt(len(slopes))
        mine = [*found.residual_response[1:, i, j], found.output_response[i, j]]
        own = [*found.residual_response_error[1:, i, j], found.output_response_error[i, j]]
        z = (slopes.mean(axis=0) - mine) / np.hypot(error, own)
        assert np.abs(z).max() < 4
        if i == j and gamma == 0:
            # Explicit weights turn the direction of h as well, and scatter more.
            assert (error[1:] > 1.05 * np.array(own)[1:]).all()


def extrapolated(net, K0, samples, names):
    """Responses at N → ∞ from the widths N and 2N, each with its error."""
    wide = net.replace(width=2 * net.width)
    first = simulate_response(net, K0, samples=samples, seed=1)
    second = simulate_response(wide, K0, samples=samples, seed=2)
    for name in names:
        errors = getattr(first, f"{name}_error"), 2 * getattr(second, f"{name}_error")
        yield name, 2 * getattr(second, name) - getattr(first, name), np.hypot(*errors)


@pytest.mark.slow
@pytest.mark.parametrize(("activation", "gamma"), [("erf", 1.0), slow("tanh", 0.0)])
def test_the_theory_is_confirmed_and_one_off_by_two_percent_is_not(activation, gamma):
    net = network(4, activation, gamma, width=100)
    theory = ft.solve(net, K0_PAIR)
    for name, value, error in extrapolated(net, K0_PAIR, 6000, ("response", "output_response")):
        value, error, expected = (
            x.reshape(-1, 4)[-4:] for x in (value, error, getattr(theory, name))
        )
        moves = error > 0
        assert np.abs((value - expected)[moves] / error[moves]).max() < 4
        for wrong in (0.98, 1.02):
            z = (value - wrong * expected)[-1] / error[-1]
            assert np.abs(z[[0, 3]]).min() > 4
        # Covariances scatter more; the next test finds 2 % in them.
        for wrong in (0.95, 1.05):
            assert abs((value - wrong * expected)[-1, 1] / error[-1, 1]) > 4


@pytest.mark.parametrize(("activation", "width"), [("relu", 20), slow("tanh", 20)])
def test_narrow_networks_show_the_next_order(activation, width):
    """Variances and covariances are off without ``response_shift``, with it within chance."""
    net = network(3, activation, 1.0, width=width).replace(branch_scale=0.8)
    K0 = np.array([[0.8, 0.3], [0.3, 0.5]])
    theory, found = ft.solve(net, K0), simulate_response(net, K0, samples=20_000, seed=1)
    z, next_z = [], []
    for name in ("response", "output_response"):
        error = getattr(found, f"{name}_error")
        apart = getattr(found, name) - getattr(theory, name)
        moves = error > 0
        z.append(np.abs(apart[moves] / error[moves]).max())
        apart -= getattr(theory, f"{name}_shift")
        next_z.append(np.abs(apart[moves] / error[moves]).max())
    assert z[-1] > 5 and max(next_z) < 4


@pytest.mark.parametrize("K0", [0.6, np.array([[0.6, 0.2], [0.2, 0.8]])])
@pytest.mark.parametrize(
    "options",
    [
        {"normalization": "layer", "epsilon": 0.2},
        {"norm_position": "post", "epsilon": 0.1, "gated": True, "activation": "tanh"},
        slow({"normalization": None, "activation": "relu"}),
    ],
)
def test_blocks_respond_as_predicted_with_the_next_order(options, K0):
    common = {"depth": 2, "activation": "gelu", "branch_scale": 0.8, "expansion": 2, "width": 64}
    net = ft.BlockNetwork(**common | options)
    theory, found = ft.solve(net, K0), simulate_response(net, K0, samples=8000, seed=1)
    for name in FIELDS:
        predicted = getattr(theory, name) + getattr(theory, f"{name}_shift")
        z = z_scores(found, name, predicted)
        assert z.size and np.abs(z).max() < 4, name
    predicted = theory.response + theory.response_shift
    for wrong in (0.98, 1.02):
        z = (found.response - wrong * predicted) / found.response_error
        assert np.abs(z[-1]).min() > 4


@pytest.mark.parametrize("layer", [1, 2])
def test_a_perturbed_layer_of_linear_blocks(layer):
    """⟨R'⟩ = γ² R + C and ⟨C⟩ = a R at every width."""
    net = ft.BlockNetwork(
        depth=3,
        activation="linear",
        normalization=None,
        skip_scale=[0.9, 0.5, 1.0],
        inner_weight_variance=0.8,
        outer_weight_variance=0.9,
        expansion=1.5,
        width=6,
    )
    stream, residual = np.zeros(4), np.zeros(4)
    stream[layer] = residual[layer] = 1.0
    for l in range(layer + 1, 4):
        residual[l] = 0.72 * stream[l - 1]
        stream[l] = net.skip_scale[l - 1] ** 2 * stream[l - 1] + residual[l]
    for K0 in (0.4, K0_PAIR):
        found = simulate_response(net, K0, samples=4000, layer=layer)
        assert not found.response[:layer].any() and (found.residual_response[layer] == 1).all()
        for name, expected in (
            ("residual_response", residual),
            ("response", stream),
            ("output_response", stream[-1]),
        ):
            shape = np.shape(expected) + np.ndim(K0) * (1,)
            assert np.abs(z_scores(found, name, np.reshape(expected, shape))).max() < 4, name


def test_blocks_respond_as_means_of_simulations_differ():
    net = ft.BlockNetwork(depth=2, branch_scale=0.9, epsilon=0.2, width=16, expansion=2)
    found, K0, step = simulate_response(net, 0.6, samples=4000), 0.6, 0.02
    slopes = []
    for seed in range(10):
        up, down = (ft.simulate(net, K0 + x, samples=400, seed=seed) for x in (step, -step))
        slopes.append((up.kernel_mean - down.kernel_mean) / (2 * step))
    error = np.std(slopes, axis=0, ddof=1) / np.sqrt(10)
    mine = np.append(found.response, found.output_response)
    own = np.append(found.response_error, found.output_response_error)
    # Within chance of Student's distribution of 9 degrees of freedom.
    assert (np.abs(np.mean(slopes, axis=0) - mine) < 4 * np.hypot(error, own)).all()
    assert (4 * np.hypot(error, own) < 0.1 * mine).all()


def test_a_matrix_has_the_responses_of_its_pairs():
    net = network(2, "erf", 0.7, width=40)
    found = simulate_response(net, K0_TRIPLE, samples=500)
    assert found.response.shape == (3, 3, 3) and found.output_response.shape == (3, 3)
    for name in FIELDS:
        values = getattr(found, name)
        np.testing.assert_array_equal(values, values.swapaxes(-1, -2))
    for pair in ((0, 1), (0, 2), (1, 2)):
        alone = simulate_response(net, K0_TRIPLE[np.ix_(pair, pair)], samples=500, seed=1)
        for name in FIELDS:
            error = np.hypot(
                getattr(found, f"{name}_error")[..., *pair],
                getattr(alone, f"{name}_error")[..., 0, 1],
            )
            difference = getattr(found, name)[..., *pair] - getattr(alone, name)[..., 0, 1]
            assert (np.abs(difference) <= 4 * error).all()


class TestRandomInputs:
    K0 = np.random.default_rng(0).uniform(0.2, 0.6, size=12)
    net = network(3, "erf", 1.0, width=50)

    def test_every_input_of_a_batch_has_its_response(self):
        found = simulate_response(self.net, self.K0, samples=400)
        theory = ft.solve(self.net, self.K0)
        assert found.response.shape == theory.response.shape == (12, 4)
        assert found.output_response.shape == (12,)
        z = (found.response - theory.response)[:, 1:] / found.response_error[:, 1:]
        # Large enough a width for the 1/N shift to be below the errors.
        assert np.abs(z).max() < 5 and 0.5 < z[:, 0].std() < 1.6
        one = simulate_response(self.net, self.K0[:1], samples=400)
        assert_same(one.response[0], found.response[0])

    def test_the_average_has_the_error_of_the_networks_or_of_the_inputs_as_well(self):
        found = simulate_response(self.net, self.K0, samples=400)
        fixed, free = found.input_average("fixed"), found.input_average()
        theory = ft.solve(self.net, self.K0)
        for name in FIELDS:
            values, errors = getattr(found, name), getattr(found, f"{name}_error")
            assert_same(fixed[name], values.mean(axis=0))
            assert_same(free[name], fixed[name])
            np.testing.assert_allclose(fixed[f"{name}_error"] ** 2, (errors**2).sum(axis=0) / 144)
            larger = free[f"{name}_error"] > 1.2 * fixed[f"{name}_error"]
            assert np.atleast_1d(larger)[-1]
        name = "response"
        z = (fixed[name] - getattr(theory, name).mean(axis=0))[1:] / fixed[f"{name}_error"][1:]
        assert np.abs(z).max() < 4
        # The average over the distribution of the inputs, K0 uniform between 0.2 and 0.6.
        grid = ft.solve(self.net, 0.2 + 0.4 * (np.arange(400) + 0.5) / 400).response.mean(axis=0)
        z = (free[name] - grid)[1:] / free[f"{name}_error"][1:]
        assert np.abs(z).max() < 3.5

    def test_needs_several_inputs_one_by_one(self):
        for K0 in (0.4, [0.4], K0_PAIR):
            found = simulate_response(self.net, K0, samples=20)
            with pytest.raises(ValueError, match="K0 of shape"):
                found.input_average()
        found = simulate_response(self.net, [0.4, 0.5], samples=20)
        with pytest.raises(ValueError, match="inputs must be one of random, fixed"):
            found.input_average("all")


@pytest.mark.slow
def test_errors_are_those_of_repetitions():
    net = network(2, "linear", 0.7, width=30)
    expected, z = exact_linear(net), []
    for seed in range(300):
        found = simulate_response(net, 0.4, samples=40, seed=seed)
        z.append(
            (found.output_response - expected["output_response"]) / found.output_response_error
        )
    # Student's distribution of 39 degrees of freedom has a standard deviation of 1.03.
    assert 0.93 < np.std(z) < 1.13 and abs(np.mean(z)) < 0.25


def test_a_folder_gives_back_its_own_networks_and_no_others(small_blocks, tmp_path):
    """Chunks and their files are those of `simulate`, whose tests interrupt it."""
    net, arguments = network(2, "erf", 0.7, width=12), {"samples": 96, "seed": 2}
    for options in ({}, {"layer": 1}, {}, {"seed": 3}):
        options = arguments | options
        found = simulate_response(net, K0_PAIR, directory=tmp_path, **options)
        alone = simulate_response(net, K0_PAIR, **options)
        for name in FIELDS:
            assert_same(getattr(found, name), getattr(alone, name))
            assert_same(getattr(found, f"{name}_error"), getattr(alone, f"{name}_error"))
