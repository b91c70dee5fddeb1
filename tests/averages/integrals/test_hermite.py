"""The Mehler series against integrals, on both sides of every change of its order and grid."""

import numpy as np
import pytest

from fieldtheory.averages.integrals import hermite, two_variables
from tests.oracles import quadrature as oracle
from tests.tables import crossed

CORRELATIONS = np.array([-1.0, -0.99, -0.5, -1e-3, 1e-6, 0.3, 0.9, 0.999, 1.0])


def square_of_tanh(h):
    return np.tanh(h) ** 2


def gaussian_bump(h):
    return np.exp(-h * h / 3) * (1 + h)


@pytest.mark.parametrize(
    ("f", "K"),
    crossed([np.tanh, square_of_tanh, gaussian_bump], [1e-6, 0.05, 0.6, 1.5, 4.0, 9.0, 30.0]),
)
def test_converged_values_agree_with_integrals(f, K):
    a, b = np.full(len(CORRELATIONS), K), np.full(len(CORRELATIONS), 0.7 * K)
    c = CORRELATIONS * np.sqrt(a * b)
    for lowest in (0, 1):
        values, converged = hermite.series(f, f, a, b, c, lowest)
        if lowest == 0:
            reference = two_variables.average_2d(lambda x, y: f(x) * f(y), a, b, c)
        else:
            reference = two_variables.connected_2d(f, f, a, b, c)
        # The integral is good to 1e-13 of ⟨|fg|⟩, which far exceeds a weak correlation.
        size = oracle.average1(lambda h: f(h) ** 2, K)
        np.testing.assert_allclose(
            values[converged], reference[converged], rtol=1e-12, atol=2e-14 * size
        )
        assert converged[np.abs(CORRELATIONS) < 0.95].all() or K > 10


def test_weak_correlation_keeps_its_digits():
    # ⟨h²;h²⟩ = 2c², sixteen orders below ⟨h²⟩⟨h²⟩.
    K = np.ones(3)
    c = np.array([1e-8, -1e-5, 1e-2])
    values, converged = hermite.series(np.square, np.square, K, K, c, lowest=1)
    assert converged.all()
    np.testing.assert_allclose(values, 2 * c**2, rtol=1e-13)


def test_order_grows_until_the_rest_is_small():
    # At full correlation the square of tanh takes all stages one after the other.
    variances = np.geomspace(0.01, 20, 60)
    values, converged = hermite.series(
        square_of_tanh, square_of_tanh, variances, variances, variances, lowest=0
    )
    fourth = np.array([oracle.average1(lambda h: np.tanh(h) ** 4, K) for K in variances])
    assert converged[variances < 1.5].all()
    np.testing.assert_allclose(values[converged], fourth[converged], rtol=1e-13)


@pytest.mark.parametrize("K", [1e4, 1e6])
def test_large_variances_take_graded_panels(K):
    K, c = np.full(2, K), np.array([0.3, -0.5]) * K
    values, converged = hermite.series(np.tanh, np.tanh, K, K, c, lowest=0)
    assert converged.all()
    expected = [
        two_variables.average_2d(lambda x, y: np.tanh(x) * np.tanh(y), K[0], K[0], v) for v in c
    ]
    np.testing.assert_allclose(values, expected, rtol=1e-12)


@pytest.mark.parametrize("K", [1.0, 1e4])
def test_what_the_nodes_do_not_resolve_is_reported(K):
    K = np.array([K])

    def steep(h):
        return np.tanh(300 * h)

    _, converged = hermite.series(steep, steep, K, K, 0.5 * K, lowest=0)
    assert not converged.any()


def test_both_parities_see_the_error_of_the_grid():
    # Mirror-image halves of the grid would agree on an even function whatever its error.
    def sharp(h):
        return 1 / (1 + 400 * h**2)

    K = np.array([0.2])
    values, converged = hermite.series(sharp, sharp, K, K, 0.5 * K, lowest=0)
    exact = two_variables.average_2d(lambda x, y: sharp(x) * sharp(y), K, K, 0.5 * K)
    assert not converged[0] or abs(values[0] / exact[0] - 1) < 1e-12


def test_zero_variance_is_left_to_the_integral():
    zero, one = np.zeros(1), np.ones(1)
    assert not hermite.series(np.cos, np.cos, zero, one, zero, lowest=0)[1].any()
