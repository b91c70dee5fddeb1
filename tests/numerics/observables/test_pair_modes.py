"""Coefficients of functions of two signals against two-dimensional quadrature."""

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermeval
from scipy.special import erf, expit, gammaln

from fieldtheory.numerics.observables.pair_modes import (
    coefficients,
    packed_size,
    triangle,
    unit_row,
)
from fieldtheory.numerics.observables.pair_powers import block

KERNELS = [
    [[0.4, 0.1], [0.1, 0.5]],
    [[0.4, 0.4], [0.4, 0.4]],
    [[0.4, -0.39999], [-0.39999, 0.4]],
    [[0.3, 0.0], [0.0, 0.2]],
    [[0.0, 0.0], [0.0, 0.5]],
    [[0.5, 0.0], [0.0, 0.0]],
    [[1e-8, 1e-5], [1e-5, 0.5]],
    [[3.0, 1.0], [1.0, 2.0]],
]


def projected(f, g, K, count):
    """⟨f(x) g(y) h_i(z_1) h_j(z_2)⟩ on a square grid."""
    z = np.arange(-14, 14, 0.1)
    (a, _), (b, c) = triangle(np.diag(K), K[0, 1])
    n = np.arange(count)
    gauss = 0.1 * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    h = np.stack([hermeval(z, np.eye(count)[k]) for k in n]) * np.exp(-gammaln(n + 1) / 2)[:, None]
    values = f(a * z)[:, None] * g(b * z[:, None] + c * z)
    return (h * gauss) @ values @ (h * gauss).T


@pytest.mark.parametrize("K", KERNELS)
@pytest.mark.parametrize(
    ("f", "g"),
    [(np.tanh, np.tanh), (erf, lambda x: x**2), (lambda x: x * expit(x), erf), (np.cos, np.exp)],
)
@pytest.mark.parametrize("count", [1, 2, 12, 40])
def test_products_of_two_signals(K, f, g, count):
    K = np.array(K)
    expected = projected(f, g, K, 40)
    R = triangle(np.diag(K), K[0, 1])[:, :, None]
    (found,) = coefficients(f, g, np.sqrt(np.diag(K))[:, None], *unit_row(R), count)
    assert found.shape == (packed_size(count),)
    for n in range(count):
        i = np.arange(n + 1)
        np.testing.assert_allclose(
            found[block(n)], expected[i, n - i], rtol=0, atol=1e-12 * np.abs(expected).max()
        )


def test_pairs_at_once_are_those_alone():
    K = np.array([each for each in KERNELS if each[0][0] == 0.4]).transpose(1, 2, 0)
    own = np.sqrt(np.stack([K[0, 0], K[1, 1]]))
    turn = unit_row(triangle(own**2, K[0, 1]))
    found = coefficients(np.tanh, np.tanh, own, *turn, 20)
    for n, row in enumerate(found):
        one = slice(n, n + 1)
        (alone,) = coefficients(np.tanh, np.tanh, own[:, one], *(t[one] for t in turn), 20)
        np.testing.assert_allclose(row, alone, rtol=0, atol=1e-15)
