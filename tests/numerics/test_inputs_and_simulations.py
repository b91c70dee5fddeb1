"""Fluctuations and mean shifts of several inputs against finite networks drawn at random."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.montecarlo.comparison.measured import extrapolation_weights
from tests.numerics.pair_examples import TWO, network
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
