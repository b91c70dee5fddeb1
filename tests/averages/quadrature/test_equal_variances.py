"""Tables of averages of pairs of one variance against the averages themselves."""

import numpy as np
import pytest

from fieldtheory.averages.quadrature.equal_variances import EqualVariances
from fieldtheory.averages.quadrature.panelled_functions import Function

TANH = Function(np.tanh, lambda h: 1 / np.cosh(h) ** 2)
HARD = Function(lambda h: np.clip(h, -1, 1), lambda h: 1.0 * (np.abs(h) < 1), (-1.0, 1.0))


@pytest.mark.parametrize(("function", "tolerance"), [(TANH, 2e-13), (HARD, 1e-12)])
@pytest.mark.parametrize("row", [-6, 3])
@pytest.mark.parametrize("column", [-4, 0, 5])
def test_a_cell_gives_the_averages(function, tolerance, row, column):
    table, some = EqualVariances(function), np.random.default_rng(0)
    K = 2 ** (row + some.uniform(size=100))
    c = np.tanh((column + some.uniform(size=100)) / 2)
    found = table(K, c)
    exact = table.pairs(K[:9], K[:9], c[:9] * K[:9])[0]
    size = table.pairs(K[:9], K[:9], K[:9])[0].value
    assert (np.abs(found[0, :9] - exact.value) <= tolerance * size).all()
    assert (np.abs(found[1, :9] - exact.by_t) <= tolerance * size / K[:9]).all()


def test_few_pairs_and_parallel_signals_are_in_no_cell():
    table = EqualVariances(TANH)
    assert np.isnan(table(np.ones(9), np.full(9, 0.5))).all()
    assert np.isnan(table(np.ones(200), np.ones(200))).all()
    assert np.isnan(table(np.full(200, 1e7), np.zeros(200))).all()
