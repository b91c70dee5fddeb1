"""Tables of averages of pairs of one variance against the averages themselves."""

import numpy as np
import pytest

from fieldtheory.averages.quadrature.equal_variances import EqualVariances
from fieldtheory.averages.quadrature.panelled_functions import Function
from fieldtheory.averages.quadrature.two_variables import PairAverages

FUNCTIONS = {
    "tanh": Function(np.tanh, lambda h: 1 / np.cosh(h) ** 2),
    "hard tanh": Function(
        lambda h: np.clip(h, -1, 1), lambda h: 1.0 * (np.abs(h) < 1), (-1.0, 1.0)
    ),
    "steep": Function(lambda h: np.tanh(5 * h - 3), lambda h: 5 / np.cosh(5 * h - 3) ** 2),
    "jump": Function(lambda h: (h > 1) * np.tanh(h), lambda h: (h > 1) / np.cosh(h) ** 2, (1.0,)),
}


@pytest.mark.parametrize("c", [-0.97, -0.2, 0.01, 0.6, 0.95, 0.9999])
@pytest.mark.parametrize("variance", [0.3, 5.0, 300.0, 3e4])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_cell_gives_the_averages(name, variance, c):
    function, some = FUNCTIONS[name], np.random.default_rng(0)
    K = variance * np.exp(some.uniform(-0.05, 0.05, 9))
    t = c * K * (1 + some.uniform(-1e-5, 1e-5, 9))
    exact, _ = PairAverages(function)(K, K, t)
    size = np.maximum(PairAverages(function, slopes=False)(K, K, K)[0].value, exact.value)
    slopes = np.maximum(size, K * np.abs(exact.by_t))
    for rough, tolerance in ((False, 2e-12), (True, 1e-4)):
        value, slope = EqualVariances(function, rough)(K, t, 1)
        known = ~np.isnan(value)
        assert known.any() or rough or (name == "jump" and variance == 0.3)
        assert (np.abs(value - exact.value) <= tolerance * size)[known].all()
        assert (np.abs(slope - exact.by_t) * K <= tolerance * slopes)[known].all()


def test_few_pairs_and_parallel_signals_are_in_no_cell():
    table = EqualVariances(FUNCTIONS["tanh"])
    assert np.isnan(table(np.ones(9), np.full(9, 0.5))).all()
    assert np.isnan(table(np.ones(200), np.ones(200))).all()
    assert np.isnan(table(np.full(200, 1e7), np.zeros(200))).all()
