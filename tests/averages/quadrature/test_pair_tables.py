"""Tables of averages of pairs against the averages themselves."""

import numpy as np
import pytest

from fieldtheory.averages.quadrature.pair_tables import PairTables
from fieldtheory.averages.quadrature.panelled_functions import Function
from fieldtheory.averages.quadrature.two_variables import PairAverages
from tests.tables import crossed

FUNCTIONS = {
    "tanh": Function(np.tanh, lambda h: 1 / np.cosh(h) ** 2),
    "hard tanh": Function(
        lambda h: np.clip(h, -1, 1), lambda h: 1.0 * (np.abs(h) < 1), (-1.0, 1.0)
    ),
    "steep": Function(lambda h: np.tanh(5 * h - 3), lambda h: 5 / np.cosh(5 * h - 3) ** 2),
    "jump": Function(lambda h: (h > 1) * np.tanh(h), lambda h: (h > 1) / np.cosh(h) ** 2, (1.0,)),
}


@pytest.mark.slow_but(0, 7, 14, 24, 28, 35, 38, 55)
@pytest.mark.parametrize(
    ("variance", "c"), crossed([0.3, 5.0, 300.0, 3e4], [-0.97, -0.2, 0.01, 0.6, 0.95, 0.9999])
)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_cell_gives_the_averages(name, variance, c):
    function, some = FUNCTIONS[name], np.random.default_rng(0)
    K = variance * np.exp(some.uniform(-0.05, 0.05, 9))
    t = c * K * (1 + some.uniform(-1e-5, 1e-5, 9))
    exact, _ = PairAverages(function)(K, K, t)
    size = np.maximum(PairAverages(function)(K, K, K, kinds=1)[0].value, exact.value)
    slopes = np.maximum(size, K * np.abs(exact.by_t))
    for rough, tolerance in ((False, 2e-12), (True, 1e-4)):
        value, slope = PairTables(function, rough)(K, K, t, 1)
        known = ~np.isnan(value)
        assert known.any() or rough or (name == "jump" and variance == 0.3)
        assert (np.abs(value - exact.value) <= tolerance * size)[known].all()
        assert (np.abs(slope - exact.by_t) * K <= tolerance * slopes)[known].all()


@pytest.mark.slow_but(32, 48)
@pytest.mark.parametrize(("apart", "c"), crossed([1e-3, 0.1, 1.0, 8.0], [-0.9, 0.5, 0.95, 0.9999]))
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_cell_of_different_variances_gives_the_averages(name, apart, c):
    function, some = FUNCTIONS[name], np.random.default_rng(0)
    # The variances differ in units of the width of what signals do not share.
    b = 12.0 * np.exp(some.uniform(-0.05, 0.05, 5))
    a = b * (1 + 2 * apart * np.sqrt(1 - c**2))
    t = c * np.sqrt(a * b)
    exact, _ = PairAverages(function)(a, b, t)
    size = np.sqrt([PairAverages(function)(K, K, K, kinds=1)[0].value for K in (a, b)])
    size = np.maximum(size.prod(axis=0), np.sqrt(a * b) * np.abs(exact.by_t))
    for rough, tolerance in ((False, 2e-12), (True, 1e-4)):
        value, slope = PairTables(function, rough)(a, b, t, 1)
        known = ~np.isnan(value)
        # Far apart κ reaches one, and steep features take more nodes.
        assert known.all() == (c > 0 or function.parity != 0) or apart > 0.1
        assert (np.abs(value - exact.value) <= tolerance * size)[known].all()
        errors = np.abs(slope - exact.by_t) * np.sqrt(a * b)
        assert (errors <= tolerance * size)[known].all()


def test_few_pairs_and_parallel_signals_are_in_no_cell():
    table, one, many = PairTables(FUNCTIONS["tanh"]), np.ones(9), np.ones(200)
    assert np.isnan(table(one, one, one / 2)).all()
    assert np.isnan(table(many, many, many)).all()
    assert np.isnan(table(1e7 * many, 1e7 * many, 0 * many)).all()
