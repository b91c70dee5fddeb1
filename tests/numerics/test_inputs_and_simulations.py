"""Fluctuations and mean shifts of several inputs against finite networks drawn at random."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.montecarlo.extrapolation import extrapolation_weights
from fieldtheory.networks.coefficients import layer_coefficients
from tests.numerics.pair_examples import OFFSET, PHI, THREE, TWO, network, of_pairs, upper
from tests.oracles import coupled_networks
from tests.tables import slow


@pytest.mark.parametrize(
    ("name", "gamma", "samples"),
    [
        slow("erf", 1.0, 30_000),
        ("relu", 1.0, 12_000),
        slow("tanh", 0.7, 30_000),
        slow("gelu", 0.0, 30_000),
        slow("hard_tanh", 1.0, 30_000),
    ],
)
def test_against_finite_networks(name, gamma, samples):
    """Coefficients of 1/N from three widths, beyond chance nowhere; 1/N² and 1/N³ are left free."""
    widths = np.array([40.0, 80.0, 160.0])
    net = network(name, gamma, 3)
    drawn = [
        ft.simulate(net.replace(width=int(N)), TWO, samples=samples, seed=int(N), cross_inputs=True)
        for N in widths
    ]
    s = ft.solve(net, TWO)
    i, j = np.triu_indices(2)
    weights = extrapolation_weights(widths)

    def z(values, errors, theory):
        found = np.tensordot(weights, values, 1)
        error = np.sqrt(np.tensordot(weights**2, np.square(errors), 1))
        chance = error > 1e-12 * np.abs(theory).max()
        error, theory, found = error[chance], theory[chance], found[chance]
        return (found - theory) / error, (np.abs(theory) / error).max()

    N = widths[:, None, None, None]
    cross = [e.cross_covariance[:, :, i, j][..., i, j] for e in drawn]
    errors = [e.cross_covariance_error[:, :, i, j][..., i, j] for e in drawn]
    means, of_means = [e.mean for e in drawn], [e.mean_error for e in drawn]
    vertices = [e.four_point for e in drawn], [e.four_point_error for e in drawn]
    own = np.zeros((4, 2, 2))
    own[:, i, j] = own[:, j, i] = np.diagonal(s.four_point, axis1=1, axis2=2)
    shifts = N * (means - s.residual_kernels), N * of_means
    found = {
        "G11": z(N[..., None] * cross, N[..., None] * errors, net.width * s.G11),
        "mean_shift": z(*shifts, net.width * s.mean_shift),
        "four_point": z(*vertices, own),
    }
    for field, (deviations, seen) in found.items():
        assert np.abs(deviations).max() < 4, field
        # Without control variates errors of the means are larger than their shifts.
        assert field == "mean_shift" or seen > 10, field


def factors(drawn, theory):
    """What simulated values are of the theory, with its error, and z-scores of all entries.

    Terms beyond those extrapolated count as 0.2 %.
    """
    drawn, theory = drawn.reshape(len(drawn), -1), theory.ravel()
    count = np.sqrt(len(drawn))
    mean, error = drawn.mean(axis=0), drawn.std(axis=0, ddof=1) / count
    scores = (mean - theory) / (error + 2e-3 * np.abs(theory))
    # One factor for all entries has most power.
    weighted = theory / error**2
    of_batches = drawn @ weighted / (theory @ weighted)
    return of_batches.mean(), of_batches.std(ddof=1) / count, scores


@pytest.mark.parametrize(
    ("name", "K0", "depth", "bias", "explicit", "samples", "seen"),
    [
        ("elu", 4 * TWO, 1, 0.0, False, (6_000, 6_000), (0.4, 0.06, 0.08)),
        slow("softsign", 4 * TWO, 2, 0.3, True, (50_000, 100_000), (0.02, 0.02, 0.02)),
        slow("elu", 4 * TWO, 1, 0.0, True, (15_000, 15_000), (0.2, 0.04, 0.05)),
        slow("elu", 4 * TWO, 1, 0.0, False, (150_000, 200_000), (0.04, 0.02, 0.02)),
        slow(OFFSET, 4 * TWO, 3, 0.3, False, (40_000, 40_000), (0.03, 0.02, 0.06)),
        slow("hard_tanh", 1.5 * THREE + 0.8, 1, 0.3, False, (80_000, 120_000), (0.04, 0.02, 0.04)),
        slow("relu6", 1.5 * THREE + 0.8, 1, 0.3, False, (120_000, 160_000), (0.03, 0.02, 0.02)),
    ],
)
def test_against_networks_beside_their_limit(name, K0, depth, bias, explicit, samples, seen):
    """Explicit weights, or residuals of their law; a theory that is off by what is seen fails.

    Of the mean shift, G11 and the vertex.
    """
    net = network(name, 0.7, depth, bias_variance=bias, branch_scale=1.2)
    s, layers, N = ft.solve(net, K0), layer_coefficients(net), net.width
    widths = (32, 96)
    given = PHI[name], layers.weights, layers.biases, 0.7, s.residual_kernels
    drawn = coupled_networks.extrapolated(
        *(
            coupled_networks.coefficients(*given, width, count, 7 * width, explicit)
            for width, count in zip(widths, samples, strict=True)
        ),
        *widths,
    )
    # The first layer is not shifted.
    theory = N * upper(s.mean_shift)[2:], N * of_pairs(s.G11[1:, 1:]), s.four_point[1:]
    compared = zip((drawn[0][:, 1:], *drawn[1:]), theory, seen, strict=True)
    for values, known, wrong in compared:
        factor, error, scores = factors(values, known)
        assert np.abs(scores).max() < 4.5
        assert abs(factor - 1) < 4 * error + 2e-3
        off, of_off, _ = factors(values, (1 + wrong) * known)
        assert abs(off - 1) > 4 * of_off + 2e-3, (wrong, error)
