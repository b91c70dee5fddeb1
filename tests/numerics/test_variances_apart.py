"""G11 of inputs whose variances are orders of magnitude apart."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import erf

import fieldtheory as ft
from tests.tables import slow

PHI = {
    "tanh": np.tanh,
    "softsign": lambda h: h / (1 + np.abs(h)),
    "erf": erf,
    "hard_tanh": lambda h: np.clip(h, -1, 1),
    "relu6": lambda h: np.clip(h, 0, 6),
}
APART = np.diag([1e-6, 1.0, 50.0]) + 5e-4 * (1 - np.eye(3))


def graded(first, end):
    """Ends of panels on both sides of zero that grow from there, and at ±1 and ±6."""
    cuts = np.minimum([0.0, 1.0, 6.0, *first * 2.2 ** np.arange(14)], end)
    return np.unique(np.concatenate([-cuts, cuts]))


def rule(K, count=14):
    """Three signals, and weights, by panels of each given those before."""
    x, w = np.polynomial.legendre.leggauss(count)
    L = np.linalg.cholesky(K)
    z, weights = np.zeros((3, 1)), np.ones(1)
    for i in range(3):
        mean, parts = L[i, :i] @ z[:i], []
        ends = graded(min(0.5, 2 * L[i, i]), 9 * L[i, i] + np.abs(mean).max())
        for low, high in pairwise(ends):
            cuts = [np.clip((end - mean) / L[i, i], -9.0, 9.0) for end in (low, high)]
            half = (cuts[1] - cuts[0]) / 2
            nodes = cuts[0] + half * (1 + x[:, None])
            parts.append((nodes, weights * half * w[:, None] * np.exp(-(nodes**2) / 2)))
        nodes, attached = (np.concatenate([p[k] for p in parts]) for k in (0, 1))
        used = attached > 1e-19
        z = np.repeat(z[:, None, :], len(nodes), axis=1)
        z[i] = nodes
        z, weights = z[:, used], attached[used] / np.sqrt(2 * np.pi)
    return L @ z, weights


WIDER = APART * np.outer([1.0, 1.0, 30.0], [1.0, 1.0, 30.0])


@pytest.mark.parametrize(
    ("name", "K0"),
    [
        ("erf", APART),
        slow("tanh", APART),
        slow("softsign", APART),
        slow("hard_tanh", WIDER),
        slow("relu6", WIDER),
    ],
)
def test_the_first_layer_by_panels(name, K0):
    """⟨φφ;φφ⟩ of three signals of which one is narrow and one is wide."""
    order = [2, 1, 0]
    net = ft.ResidualNetwork(
        depth=1, activation=name, bias_variance=0.0, weight_variance=1.0, readout_weight_variance=1
    )
    h, weights = rule(K0[np.ix_(order, order)])
    values = PHI[name](h[order])
    pairs = list(zip(*np.triu_indices(3), strict=True))
    products = np.array([values[i] * values[j] for i, j in pairs])
    means = products @ weights
    # Sums of what is left less the means, of parity even in all signals.
    expected = (products * weights) @ products.T - np.outer(means, means)
    found = ft.solve(net, K0).G11[1, 1] * net.width
    tolerance = 1e-8 if name in ("erf", "tanh") else 1e-6
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())
