"""Kernels of layers that have reached a fixed point."""

import numpy as np

import fieldtheory as ft
from fieldtheory.averages.pair_rules import once
from fieldtheory.numerics import kernels


def test_layers_at_a_fixed_point_are_averaged_once(monkeypatch):
    taken, covariance_of = [], kernels.covariance_of

    def counted(network):
        average = covariance_of(network)
        return lambda *K: taken.append(K) or average(*K)

    monkeypatch.setattr(kernels, "covariance_of", counted)
    variances = {"weight_variance": 1.0, "bias_variance": 0.1}
    net = ft.ResidualNetwork(depth=400, activation="swish", skip_scale=0.7, **variances)
    found = ft.solve(net, [[1.0, 0.3], [0.3, 1.0]]).kernels[:, 0, 1]
    fixed = np.argmax(found == found[-2])
    assert fixed < 300 and len(taken) <= fixed + 5
    assert (found[fixed:-1] == found[fixed]).all()


def test_equal_pairs_share_an_average():
    taken = []

    def rule(*K):
        taken.append(len(K[0]))
        return K[0] + 10 * K[1] + 100 * K[2]

    K = np.array([[1.0, 2, 1, 2], [3, 4, 3, 4], [5, 6, 5, 7]])
    np.testing.assert_array_equal(once(rule, *K), rule(*K))
    assert taken == [3, 4]
