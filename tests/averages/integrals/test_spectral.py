"""Averages by Fourier transforms against panels and against mixtures of error functions."""

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from fieldtheory.averages.integrals import quadrature, spectral, two_variables
from tests.oracles import mixture
from tests.tables import crossed


def slope(h):
    with np.errstate(over="ignore"):
        return 1 / np.cosh(h) ** 2


def swish(h):
    return h * (1 + np.tanh(h / 2)) / 2


@pytest.mark.parametrize("f,g", [(np.tanh, np.tanh), (slope, slope), (swish, np.tanh)])
@pytest.mark.parametrize("a,b", [(1e-6, 3.0), (0.4, 0.4), (60.0, 7.0), (2e3, 3e3)])
def test_products_agree_with_panels(f, g, a, b):
    correlations = np.array([1.0, -1.0, 0.999, -0.9, 0.5, 0.41])
    c = correlations * np.sqrt(a * b) * (1 - 1e-15)
    a, b = np.full(len(c), a), np.full(len(c), b)
    values, converged = spectral.average(f, g, a, b, c)
    assert converged.all()
    expected = two_variables.average_2d(lambda x, y: f(x) * g(y), a, b, c)
    size = two_variables.average_2d(lambda x, y: np.abs(f(x) * g(y)), a, b, c, ((0.0,), (0.0,)))
    np.testing.assert_array_less(np.abs(values - expected), 3e-13 * size)


@pytest.mark.parametrize(
    ("K", "correlation"), crossed([0.2, 5.0, 300.0, 1e6], [1.0, 0.5, 0.9, 1 - 1e-9])
)
def test_connected_squares_of_tanh_are_relative(K, correlation):
    a, b, c = np.array([K]), np.array([1.3 * K]), np.array([correlation * K])
    # tanh² = 1 − tanh'.
    means = quadrature.average_1d(slope, a), quadrature.average_1d(slope, b)
    values, converged = spectral.average(slope, slope, a, b, c, means)
    assert converged.all()
    with mpmath.workdps(25):
        exact = mixture.squares(mpf(a[0]), mpf(b[0]), mpf(c[0]))
        assert abs(values[0] / exact - 1) < 1e-12


@pytest.mark.parametrize("K", [4.0, 60.0, 5e3])
def test_rough_grids_have_four_digits_of_every_product(K):
    correlations = np.array([0.45, 0.9, 0.999, -0.8])
    a, b = np.full(4, K), np.full(4, 1.2 * K)
    c = correlations * np.sqrt(a * b)
    products = [(swish, swish), (slope, slope), (np.tanh, swish)]
    rough, converged = spectral.averages(products, a, b, c, spectral.ROUGH)
    assert converged.all()
    for row, (f, g) in zip(rough, products, strict=True):
        np.testing.assert_allclose(row, spectral.average(f, g, a, b, c)[0], rtol=1e-4)


def test_products_on_common_grids_converge_together():
    K = np.array([2.0, 9.0])
    products = [(np.tanh, np.tanh), (np.abs, np.abs)]
    assert not spectral.averages(products, K, K, 0.9 * K)[1].any()
    values, converged = spectral.averages(products[:1] * 2, K, K, 0.9 * K)
    assert converged.all()
    np.testing.assert_array_equal(*values)
    np.testing.assert_array_equal(values[0], spectral.average(*products[0], K, K, 0.9 * K)[0])


def test_swapping_the_variables_changes_nothing_but_rounding():
    a, b, c = np.array([3.0]), np.array([40.0]), np.array([9.0])
    one = spectral.average(np.tanh, swish, a, b, c)[0]
    other = spectral.average(swish, np.tanh, b, a, c)[0]
    np.testing.assert_allclose(one, other, rtol=1e-13)


def test_steeper_functions_take_finer_grids_or_are_reported():
    K = np.array([2.0])
    steep, converged = spectral.average(
        lambda h: np.tanh(3 * h), lambda h: np.tanh(3 * h), K, K, 0.9 * K
    )
    expected = spectral.average(np.tanh, np.tanh, 9 * K, 9 * K, 8.1 * K)[0]
    assert converged.all()
    np.testing.assert_allclose(steep, expected, rtol=1e-13)
    _, converged = spectral.average(np.abs, np.abs, K, K, 0.9 * K)
    assert not converged.any()


def test_weak_correlations_and_zero_variances_are_left_to_others():
    a = np.array([1.0, 0.0, 1.0])
    b = np.array([1.0, 1.0, 1.0])
    c = np.array([0.2, 0.0, 0.0])
    assert not spectral.average(np.tanh, np.tanh, a, b, c)[1].any()


@pytest.mark.parametrize("f", [np.tanh, slope, swish])
@pytest.mark.parametrize(
    "rests", [[1e-6, 0.02, 3.0], [0.5, 40.0], [300.0, 2e3]], ids=["narrow", "middle", "wide"]
)
def test_averages_of_shared_parts_agree_with_panels(f, rests):
    rests, shared = np.array(rests), np.array([0.7, 9.0, 600.0])[f is swish :]
    values = spectral.of_shared_parts([f, slope], rests, shared)
    own, common = (k.ravel() for k in np.broadcast_arrays(rests[:, None], shared))
    expected = two_variables.average_2d(
        lambda x, y: f(x) * f(y), own + common, own + common, common
    )
    np.testing.assert_allclose(values[0].ravel(), expected, rtol=1e-12)
    rough = spectral.of_shared_parts([f, slope], rests, shared, spectral.ROUGH)
    np.testing.assert_allclose(rough, values, rtol=1e-4)


@pytest.mark.parametrize("f", [np.abs, np.sign, np.exp, lambda h: np.exp(0.4 * h**2)])
def test_shared_parts_of_what_has_kinks_or_grows_are_not_resolved(f):
    assert spectral.of_shared_parts([np.tanh, f], np.array([1e-3, 30.0]), np.array([90.0])) is None
