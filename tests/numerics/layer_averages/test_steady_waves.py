"""Pairs of inputs of powers times waves, against Wick's theorem for shifted signals with mpmath."""

import numpy as np
import pytest
from mpmath import mp, mpf

import fieldtheory as ft
from fieldtheory.numerics.overflow.decorrelations import decorrelations
from tests.numerics.overflow.test_logarithms import layers, logs, network
from tests.oracles import deep_kernels
from tests.tables import crossed


@pytest.fixture(autouse=True)
def many_digits():
    with mp.workdps(80):
        yield


def sine_times_h():
    """φ = h sin(h): ⟨x y e^{i(x ± y)}⟩ = (t − (a ± t)(±b + t)) e^{−(a + b ± 2t)/2}."""

    def pair(a, b, t):
        minus = (t + (a - t) * (b - t)) * mp.exp(-(a + b - 2 * t) / 2)
        plus = (t - (a + t) * (b + t)) * mp.exp(-(a + b + 2 * t) / 2)
        # d/dt of both is ⟨φ'φ'⟩.
        rise = (1 - (a - t) - (b - t)) * mp.exp(-(a + b - 2 * t) / 2) + minus
        fall = (1 - (a + t) - (b + t)) * mp.exp(-(a + b + 2 * t) / 2) - plus
        return (minus - plus) / 2, (rise - fall) / 2

    def moment(K):
        return (K - (K - 4 * K**2) * mp.exp(-2 * K)) / 2

    def slope(K):
        return (1 - (1 - 8 * K - 2 * (K - 4 * K**2)) * mp.exp(-2 * K)) / 2

    return deep_kernels.Phi(moment, slope, pair)


def sine_of_the_square_times_h():
    """φ = h sin(h²): ⟨x y e^{i(px² + qy²)}⟩ = t Δ^{-3/2}, Δ = 1 − 2i(pa + qb) − 4pq(ab − t²)."""

    def pair(a, b, t):
        moment, slope = mpf(0), mpf(0)
        for sign in (-1, 1):
            delta = 1 - 2j * (a + sign * b) - 4 * sign * (a * b - t**2)
            root = mp.sqrt(delta)
            moment -= sign * (t / root**3).real / 2
            slope -= sign * (1 / root**3 - 12 * sign * t**2 / root**5).real / 2
        return moment, slope

    def moment(K):
        return (K - (K / mp.sqrt(1 - 4j * K) ** 3).real) / 2

    def slope(K):
        root = mp.sqrt(1 - 4j * K)
        return (1 - (1 / root**3 + 6j * K / root**5).real) / 2

    return deep_kernels.Phi(moment, slope, pair)


PHI = {"h*sin(h)": sine_times_h(), "h*sin(h**2)": sine_of_the_square_times_h()}


@pytest.mark.parametrize("name", PHI)
@pytest.mark.parametrize(("c", "skip"), crossed([0.3, -0.9, 0.9999, 1 - 1e-9], [0.7, 1.0, 2.0]))
def test_deep_networks(name, c, skip):
    net = network(name, 40, skip_scale=skip, weight_variance=10.0)
    # So deep that kernels leave float64.
    solution = ft.solve(net.replace(depth=600), [[0.5, c], [c, 2.0]])
    given = mpf(0.5), mpf(2), mpf(c)
    kernels, responses = deep_kernels.two_inputs(PHI[name], layers(net), *given)
    found = solution.log_kernels[:41, [0, 1, 0], [0, 1, 1]]
    np.testing.assert_allclose(found, [logs(K) for K in kernels[:41]], rtol=1e-11, atol=1e-11)
    found = solution.log_response[:41, 0, 1]
    np.testing.assert_allclose(found, logs(responses), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", PHI)
@pytest.mark.parametrize("delta", [1e-30, 1e-12, 1e-3])
def test_decorrelations(name, delta):
    net = network(name, 12, weight_variance=10.0, bias_variance=0.0)
    found = decorrelations(net, [2.0, 2.0], delta)
    kernels, _ = deep_kernels.two_inputs(
        PHI[name], layers(net), mpf(2), mpf(2), 2 * (1 - mpf(delta))
    )
    expected = [float(deep_kernels.decorrelation(*K)) for K in kernels]
    np.testing.assert_allclose(found, expected, rtol=1e-11)


@pytest.mark.parametrize("K0", [[[0.5, 0.3], [0.3, 2.0]], [[1.0, 1 - 1e-9], [1 - 1e-9, 1.0]]])
def test_wide_nearly_parallel_waves_need_no_quadrature(K0):
    """At variances from 1e7 on no panels resolve h² sin(h) of two such signals."""
    solution = ft.solve(network("h**2*sin(h)", 60, skip_scale=0.7, weight_variance=10.0), K0)
    found = solution.log_kernels[:, 0, 1], solution.log_response[:, 0, 1]
    assert solution.log_kernels[10, 1, 1] > 100
    assert all(np.isfinite(values).all() for values in found)
    np.testing.assert_allclose(np.diff(found[1][20:]), 2 * np.log(0.7), rtol=1e-9)
