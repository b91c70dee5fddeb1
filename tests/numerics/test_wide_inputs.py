"""Several inputs whose signals are too wide for modes: averages, how long they take, errors."""

import numpy as np
import pytest

import fieldtheory as ft
from tests.numerics.pair_examples import of_pairs
from tests.tables import slow


@pytest.mark.parametrize(("name", "depth"), [("erf", 5), slow("erf", 14), slow("tanh", 14)])
def test_wide_signals(name, depth):
    """Deep networks whose signals grow: what is known of single inputs, and nothing impossible."""
    net, K0 = ft.ResidualNetwork(depth=depth, activation=name), [[0.05, 0.03], [0.03, 0.05]]
    s, one = ft.solve(net, K0), ft.solve(net, 0.05)
    for at in (0, 2):
        np.testing.assert_allclose(s.G11[:, :, at, at], one.G11, rtol=1e-8, atol=1e-16)
    assert np.linalg.eigvalsh(of_pairs(s.G11)).min() > -1e-9 * s.G11.max()
    np.testing.assert_allclose(s.mean_shift[:, 0, 0], one.mean_shift, rtol=1e-9, atol=1e-16)
