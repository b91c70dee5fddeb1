"""Kernels of layers that have reached a fixed point."""

import numpy as np

from fieldtheory.averages.pair_rules import once


def test_equal_pairs_share_an_average():
    taken = []

    def rule(*K):
        taken.append(len(K[0]))
        return K[0] + 10 * K[1] + 100 * K[2]

    K = np.array([[1.0, 2, 1, 2], [3, 4, 3, 4], [5, 6, 5, 7]])
    np.testing.assert_array_equal(once(rule, *K), rule(*K))
    assert taken == [3, 4]
