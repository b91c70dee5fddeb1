"""Finite networks against `solve`: means and fluctuations, extrapolated to infinite width."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.montecarlo.simulation import simulate
from fieldtheory.networks.coefficients import layer_coefficients
from tests.examples import network
from tests.numerics.pair_examples import PHI
from tests.oracles import simulated_inputs
from tests.tables import crossed, slow


def ensembles(net, K0, samples):
    """Independent ensembles of the widths N and 2N."""
    return (
        simulate(net, K0, samples=samples, seed=1),
        simulate(net.replace(width=2 * net.width), K0, samples=samples, seed=2),
    )


def extrapolated(pair, name, power=0):
    """N^power times a field at N → ∞ and its error, from the widths N and 2N.

    The term of relative order 1/N is eliminated, one of order 1/N² remains.
    """
    narrow, wide = pair
    factors = -(narrow.network.width**power), 2 * wide.network.width**power
    values = [factor * getattr(e, name) for factor, e in zip(factors, pair, strict=True)]
    errors = [f * getattr(e, f"{name}_error") for f, e in zip(factors, pair, strict=True)]
    return sum(values), np.hypot(*errors)


@pytest.mark.slow_but(4)
@pytest.mark.parametrize(("activation", "gamma"), crossed(["erf", "relu", "tanh"], [0.0, 1.0]))
def test_means_are_those_of_the_theory(activation, gamma):
    net = network(4, activation, gamma, width=100)
    pair = ensembles(net, 0.4, samples=16_000)
    for name, field in (("mean", "residual_kernels"), ("kernel_mean", "kernels")):
        value, error = extrapolated(pair, name)
        theory = getattr(ft.solve(net, 0.4), field)
        z = (value - theory)[1:] / error[1:]
        assert np.abs(z).max() < 4
        for wrong in (0.98, 1.02):
            z = np.abs((value - wrong * theory)[1:] / error[1:])
            assert z.min() > 3 and z.max() > 6


def check_fluctuations(net, samples, distortion):
    pair = ensembles(net, 0.4, samples)
    value, error = extrapolated(pair, "covariance", power=1)
    theory = net.width * ft.solve(net, 0.4).G11
    assert np.abs((value - theory)[1:, 1:] / error[1:, 1:]).max() < 4
    for wrong in (2 - distortion, distortion):
        z = (value - wrong * theory)[1:, 1:] / error[1:, 1:]
        assert np.abs(np.diag(z)).min() > 4
    value, error = extrapolated(pair, "kernel_variance", power=1)
    theory = net.width * ft.solve(net, 0.4).kernel_variance
    assert np.abs((value - theory)[1:] / error[1:]).max() < 4
    assert np.abs((value - distortion * theory)[1:] / error[1:]).min() > 4


@pytest.mark.slow_but(3)
@pytest.mark.parametrize(("activation", "gamma"), crossed(["erf", "relu"], [0.0, 0.7]))
def test_fluctuations_are_those_of_the_theory(activation, gamma):
    check_fluctuations(network(3, activation, gamma, width=50), samples=20_000, distortion=1.2)


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["erf", "relu"])
def test_fluctuations_that_are_two_percent_off_are_found(activation):
    check_fluctuations(network(2, activation, 0.7, width=64), samples=1_600_000, distortion=1.02)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("activation", "gamma", "widths", "samples", "seen"),
    [
        ("softsign", 0.7, (8, 40), 200_000, (0.02, 0.02, 0.02)),
        slow("softsign", 0.7, (8, 40), 400_000, (0.02, 0.02, 0.02)),
        slow("relu", 0.7, (20, 40), 240_000, (0.06, 0.02, 0.06)),
        slow("cos", 0.0, (20, 40), 240_000, (0.06, 0.02, 0.06)),
    ],
)
def test_three_inputs_of_different_norms(activation, gamma, widths, samples, seen):
    """Every entry, and the factor that all have in common of mean shift, G11 and vertex.

    A theory that is off by what is ``seen`` of a factor would fail.
    """
    norms = np.sqrt([0.6, 1.0, 1.5])
    K0 = np.outer(norms, norms) * [[1, 0.7, -0.4], [0.7, 1, 0.1], [-0.4, 0.1, 1]]
    net = network(2, activation, gamma, width=50, branch_scale=1.0, weight_variance=1.3)
    s, layers = ft.solve(net, K0), layer_coefficients(net)
    found = simulated_inputs.coefficients(
        PHI[activation],
        s.residual_kernels,
        layers.weights,
        layers.biases,
        gamma,
        widths=widths,
        samples=samples,
        seed=1,
    )
    pairs = np.triu_indices(3)
    theory = (
        net.width * s.mean_shift[1:, *pairs],
        net.width * s.G11[1:, 1:].transpose(0, 2, 1, 3),
        s.four_point[-1],
    )
    for estimates, known, resolved in zip(found, theory, seen, strict=True):
        error = estimates.std(axis=0, ddof=1) / np.sqrt(len(estimates))
        # What is exact in every draw, such as the mean of the first layer, has no error.
        drawn = error > 1e-9
        np.testing.assert_allclose(estimates.mean(axis=0)[~drawn], known[~drawn], atol=1e-9)
        z = (estimates.mean(axis=0) - known)[drawn] / error[drawn]
        assert np.abs(z).max() < 4
        apart, allowed = common_factor(estimates[:, drawn], known[drawn], error[drawn])
        assert allowed < resolved
        assert abs(apart) < allowed
        for wrong in (1 - resolved, 1 + resolved):
            apart, allowed = common_factor(estimates[:, drawn], wrong * known[drawn], error[drawn])
            assert abs(apart) > allowed


def common_factor(estimates, known, error):
    """By how much all entries together differ from what is known, and four standard errors."""
    weights = known / error**2
    factors = estimates @ weights / (known @ weights)
    return factors.mean() - 1, 4 * factors.std(ddof=1) / np.sqrt(len(factors))
