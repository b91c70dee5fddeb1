"""Pairs of inputs with one in common: the same as the powers of all correlations give."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.numerics.observables import shared_signals
from fieldtheory.numerics.observables.pair_powers import correlated

KERNELS = {
    "usual": np.diag([0.4, 0.2, 0.8, 0.3]) + np.outer([0.7, 0.4, -0.3, 0.1], [0.7, 0.4, -0.3, 0.1]),
    "hardly correlated": np.diag([0.5, 1.0, 0.8]) + 1e-9,
    "nearly parallel": [[1.0, 0.999, 0.1], [0.999, 1.0, 0.1], [0.1, 0.1, 0.4]],
    "parallel": [[1.0, 1.0, 0.1], [1.0, 1.0, 0.1], [0.1, 0.1, 0.4]],
    "opposite": [[1.0, -1.0, 0.1], [-1.0, 1.0, -0.1], [0.1, -0.1, 0.4]],
    "one that vanishes": [[0.5, 0.0, 0.2], [0.0, 0.0, 0.0], [0.2, 0.0, 0.7]],
    "very different": np.diag([1e-6, 0.7, 2.0]) + 1e-7,
}


def signals_of(K0, activation):
    net = ft.ResidualNetwork(depth=3, activation=activation, branch_scale=0.4)
    return ft.solve(net, K0).pair_theory.signals


@pytest.mark.parametrize("activation", ["erf", "gelu"])
@pytest.mark.parametrize("K0", KERNELS.values(), ids=KERNELS)
def test_of_all_pairs(K0, activation):
    signals = signals_of(K0, activation)
    every = np.arange(len(signals.pairs[0]))
    p = len(every)
    for k in (0, 2):
        later = signals.brought_back(signals.observables[k:], k, every)
        chosen = shared_signals.meetings(signals, k)
        found = np.full((p, p, len(later)), np.nan)
        shared_signals.fill(signals, k, later, chosen, found)
        rows, columns = np.nonzero(chosen)
        X = signals.between(k, rows, k, columns)
        seen = correlated(X, later[0, rows].T, signals.count).T
        expected = np.einsum("qn,lqn->ql", seen, later[:, columns])
        sizes = np.sqrt(np.einsum("lqn,lqn->ql", later[..., 1:], later[..., 1:]))
        allowed = 1e-13 * sizes[rows, :1] * sizes[columns]
        assert (np.abs(found[rows, columns] - expected) <= allowed).all()
        assert np.isnan(found[~chosen]).all()


@pytest.mark.parametrize("activation", ["tanh", "softplus"])
def test_many_inputs_fluctuate_as_two_of_them(activation):
    """Which are too few for the route of shared signals."""
    inputs = np.random.default_rng(0).standard_normal((7, 9)) / 3
    net = ft.ResidualNetwork(depth=3, activation=activation, branch_scale=0.4)
    K0, two = inputs @ inputs.T, [1, 4]
    found = ft.solve(net, K0).G11
    expected = ft.solve(net, K0[np.ix_(two, two)]).G11
    alpha, beta = np.triu_indices(7)
    (chosen,) = np.nonzero(np.isin(alpha, two) & np.isin(beta, two))
    part = found[:, :, chosen[:, None], chosen]
    size = np.sqrt(np.einsum("llee->le", expected))
    assert (np.abs(part - expected) <= 1e-9 * size[:, None, :, None] * size[None, :, None]).all()
