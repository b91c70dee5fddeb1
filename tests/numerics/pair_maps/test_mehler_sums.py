"""Mehler's series of many pairs against polynomials of NumPy."""

import itertools

import numpy as np
import pytest
import sympy as sp
from numpy.polynomial import polynomial

from fieldtheory.numerics.hermite_coefficients import coefficients_of
from fieldtheory.numerics.pair_maps import mehler_sums

x = sp.Symbol("x", real=True)


@pytest.mark.parametrize("parity", [None, 0, 1])
@pytest.mark.parametrize("order", [2, 3, 8])
# More pairs than are summed at once, and few.
@pytest.mark.parametrize("pairs", [5000, 256, 3])
def test_sums_and_their_derivatives_are_those_of_the_polynomial(parity, order, pairs):
    rng = np.random.default_rng(order)
    f, g = rng.normal(size=(2, order, 5))
    if parity is not None:
        f[1 - parity :: 2] = 0
    at, c = rng.integers(0, 5, size=(2, pairs)), rng.uniform(-1, 1, pairs)
    c[:2] = 0, 1
    terms = f[:, at[0]] * g[:, at[1]]
    for derivatives in range(3):
        found, _ = mehler_sums.polynomials(f.T, g.T, at, c, derivatives, parity)
        for k, values in enumerate(found):
            known = polynomial.polyval(c, polynomial.polyder(terms, k), tensor=False)
            np.testing.assert_allclose(values, known, rtol=1e-12, atol=1e-12)


def test_few_pairs_have_the_sums_and_rests_of_many():
    rng = np.random.default_rng(3)
    table, at = rng.normal(size=(4, 60)) / np.arange(1.0, 61.0), rng.integers(0, 4, size=(2, 600))
    c = rng.uniform(-0.99, 0.99, 600)
    many = mehler_sums.polynomials(table, table, at, c, 2)
    few = [
        mehler_sums.polynomials(table, table, at[:, p], c[p], 2)
        for p in np.arange(600).reshape(3, -1)
    ]
    for k, values in enumerate(many):
        found = np.concatenate([one[k] for one in few], axis=-1)
        np.testing.assert_allclose(found, values, rtol=1e-12, atol=1e-14 * np.abs(values).max())


def test_what_the_series_misses_is_about_its_rest():
    f = np.sqrt(0.9 ** np.arange(400.0))[None]
    at, c = np.zeros((2, 1), dtype=int), np.array([0.8])
    (few, estimate), (many, _) = (
        mehler_sums.polynomials(f[:, :n], f[:, :n], at, c, 1) for n in (40, 400)
    )
    missed = many[1] - few[1]
    assert 0.1 * missed < estimate < 1000 * missed


@pytest.mark.parametrize("K", [3.0, 20.0, 100.0])
@pytest.mark.parametrize("phi", [sp.Min(sp.Max(x, 0), 6), x / (1 + sp.Abs(x)), sp.tanh(x)])
def test_rests_bound_what_series_of_kinks_and_poles_miss(phi, K):
    coefficients = coefficients_of(phi, x)
    f, _ = coefficients(np.array([K]), 1536)
    c, at = np.array([0.3, 0.8, 0.9, 0.95]), np.zeros((2, 4), dtype=int)
    parity = coefficients.parity
    whole, _ = mehler_sums.polynomials(f, f, at, c, 2, parity)
    for order, derivatives in itertools.product((16, 64, 96, 224, 512), (1, 2)):
        some = f[:, :order]
        found, rest = mehler_sums.polynomials(some, some, at, c, derivatives, parity)
        missed = np.abs(whole[derivatives] - found[derivatives])
        assert (rest >= 0.7 * missed - 1e-13 * np.abs(whole[derivatives])).all()
