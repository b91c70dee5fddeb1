"""Networks linearised about infinite width against G11 and the mean shift of `solve`."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.montecarlo.sampling.linear_networks import linear_networks
from tests.examples import K0_TRIPLE, network

BATCHES = 40


@pytest.mark.parametrize(
    "activation, gamma, networks",
    [("tanh", 0.7, 2500), pytest.param("gelu", 1.0, 40_000, marks=pytest.mark.slow)],
)
@pytest.mark.filterwarnings("ignore::fieldtheory.ValidityWarning")
def test_second_moments_and_shifts(activation, gamma, networks):
    net = network(3, activation, gamma).replace(width=1)
    s = ft.solve(net, K0_TRIPLE)
    sizes = np.full(BATCHES, networks)
    batches = list(linear_networks(net, s.chain.pairs, s.chain.shift_of_variances, sizes, 1))
    first, second = np.triu_indices(3)
    outputs = np.stack([batch.outputs[:, first, second] for batch in batches])
    moments = np.einsum("bnp,bnq->bpq", outputs, outputs) / networks
    shifts = np.stack([batch.shift for batch in batches])[:, 2:, *np.triu_indices(3, 1)]
    exact = s.G11[-1, -1], s.mean_shift[2:, *np.triu_indices(3, 1)]
    for found, expected in zip((moments, shifts), exact, strict=True):
        error = found.std(axis=0, ddof=1) / BATCHES**0.5
        z = (found.mean(axis=0) - expected) / error
        assert np.abs(z).max() < 4
        # A theory that is 2 % off fails.
        assert np.abs(z - 0.02 * expected / error).max() > 4
