"""φ that is a power of its argument, and pairs of its signals, against hypergeometric functions."""

import warnings

import numpy as np
import pytest
from mpmath import mp, mpf

import fieldtheory as ft
from fieldtheory.numerics.layer_averages.entries import network_entries
from fieldtheory.numerics.layer_averages.large_variances import at_angles, pair_averages
from fieldtheory.numerics.layer_averages.powers import Powers
from tests.numerics.overflow.test_logarithms import layers, logs, network
from tests.oracles import deep_kernels
from tests.tables import crossed

POWERS = [(1, 1, 1.5), (1, -1, 1.5), (1, 0, 3), (1, 1, 2), (1, 0.25, 2.75), (1, 0, 1.25)]
DELTAS = [1e-35, 1e-18, 1e-8, 1e-3, 0.1, 0.9, 1 - 1e-9, 1.4, 1.99]


@pytest.fixture(autouse=True)
def eighty_digits():
    with mp.workdps(80):
        yield


def power(up, down, p):
    """φ = up h^p for h > 0 and down |h|^p for h < 0.

    With κ = cos²(θ/2), A_p(θ) = κ^{p+1/2} B(1/2, p+1) 2F1(1/2, 1/2; p + 3/2; κ).
    """
    up, down, p = map(mpf, (up, down, p))

    def sector(p, k):
        last = mp.hyp2f1(mpf(1) / 2, mpf(1) / 2, p + mpf(3) / 2, k)
        return k ** (p + mpf(1) / 2) * mp.beta(mpf(1) / 2, p + 1) * last

    def average(up, down, p, delta):
        k = 1 - delta / 2
        both = (up**2 + down**2) * sector(p, k) + 2 * up * down * sector(p, 1 - k)
        return 2**p * mp.gamma(p + 1) / (2 * mp.pi) * both

    def pair(q, r, t):
        size, delta = mp.sqrt(q * r), 1 - t / mp.sqrt(q * r)
        slope = p**2 * average(up, -down, p - 1, delta) * size ** (p - 1)
        return average(up, down, p, delta) * size**p, slope

    own = (up**2 + down**2) / 2 * 2**p * mp.gamma(p + mpf(1) / 2) / mp.sqrt(mp.pi)
    return deep_kernels.Phi(lambda K: own * K**p, lambda K: own * p * K ** (p - 1), pair)


@pytest.mark.parametrize("given", POWERS)
def test_averages_at_all_angles(given):
    form, phi = Powers(*map(float, given)), power(*given)
    for delta in DELTAS:
        c = 1 - mpf(delta)
        average, slope = phi.pair(mpf(1), mpf(1), c)
        K, d = np.ones(1), np.array([delta])
        assert form.covariance(K, K, 1 - d)[0] / average == pytest.approx(1, rel=1e-13)
        assert form.slope(K, K, 1 - d, d)[0] / slope == pytest.approx(1, rel=1e-13)
        apart = 1 - average / phi.M(mpf(1))
        assert form.decorrelation(d)[0] / apart == pytest.approx(1, rel=1e-13)


DEEP = {
    "abs(h)**1.5": (1, 1, 1.5),
    "h*sqrt(abs(h))": (1, -1, 1.5),
    "relu(h)**2.5": (1, 0, 2.5),
}


@pytest.mark.parametrize(("name", "c"), crossed(DEEP, [0.3, 0.9999, 1 - 1e-9, -0.9999]))
def test_deep_networks(name, c):
    net = network(name, 12, weight_variance=1.5, bias_variance=0.0)
    phi = power(*DEEP[name])
    solution = ft.solve(net, [[1.0, c], [c, 2.0]])
    given = mpf(1), mpf(2), mpf(c)
    kernels, responses = deep_kernels.two_inputs(phi, layers(net), *given)
    found = solution.log_kernels[:, [0, 1, 0], [0, 1, 1]]
    np.testing.assert_allclose(found, [logs(K) for K in kernels], rtol=1e-12, atol=1e-12)
    found = solution.log_response[:, 0, 1]
    np.testing.assert_allclose(found, logs(responses), rtol=1e-12, atol=1e-12)
    theta = deep_kernels.tangents(phi, layers(net), *given)
    found = solution.log_tangent_kernels[:, 0, 1]
    np.testing.assert_allclose(found, logs(theta), rtol=1e-12, atol=1e-12)


def quintic():
    """φ = h^5 − h, by Wick's theorem."""

    def pair(p, q, r):
        fifth = 225 * p**2 * q**2 * r + 600 * p * q * r**3 + 120 * r**5
        mixed = 15 * r * (p**2 + q**2)
        slope = 225 * p**2 * q**2 + 1800 * p * q * r**2 + 600 * r**4
        return fifth - mixed + r, slope - 15 * (p**2 + q**2) + 1

    return deep_kernels.Phi(
        lambda K: 945 * K**5 - 30 * K**3 + K, lambda K: 4725 * K**4 - 90 * K**2 + 1, pair
    )


@pytest.mark.parametrize("c", [0.3, -0.9, 1 - 1e-9])
def test_moments_whose_product_exceeds_float64(c):
    """⟨φ²⟩ of h^5 where signals are halved is 1e180."""
    net = network("h**5-h", 7)
    solution = ft.solve(net, [[1.0, c], [c, 2.0]])
    kernels, responses = deep_kernels.two_inputs(quintic(), layers(net), mpf(1), mpf(2), mpf(c))
    found = solution.log_kernels[:, [0, 1, 0], [0, 1, 1]]
    np.testing.assert_allclose(found, [logs(K) for K in kernels], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(solution.log_response[:, 0, 1], logs(responses), rtol=1e-12)


def test_kernels_whose_exponents_exceed_float64():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = ft.solve(network("h**5-h", 600), [[1.0, 0.3], [0.3, 1.0]]).log_kernels
    assert not np.isnan(found).any() and np.isposinf(found[-2:]).all()


@pytest.mark.parametrize("name", ["gelu(h)**3", "h**3+h", "softplus(h)**2"])
@pytest.mark.parametrize("K", [1e9, 1e15, 1e21])
def test_functions_become_powers(name, K):
    net = network(name, 1)
    averages, c = network_entries(net), np.array([0.3, 0.99, -0.5])
    x = np.full(3, K)
    found = pair_averages(net, "covariance", x, x, c)
    np.testing.assert_allclose(found, averages.covariance(x, x, c * K), rtol=1e-13)
    found = pair_averages(net, "slope", x, x, c)
    np.testing.assert_allclose(found, averages.covariance_susceptibility(x, x, c * K), rtol=1e-13)


@pytest.mark.parametrize("name", ["gelu(h)**3", "softplus(h)**2"])
def test_opposite_signals_of_one_side(name):
    """φ(h) φ(−h) has weight near zero alone, where φ is no power."""
    net = network(name, 1)
    K, averages = np.array([1e15]), network_entries(net)
    found = pair_averages(net, "covariance", K, K, np.array([-1.0]))
    np.testing.assert_allclose(found, averages.covariance(K, K, -K), rtol=1e-12)


@pytest.mark.parametrize("name", ["h**2*sin(h)", "exp(h)", "sqrt(abs(h))", "h*log(1+abs(h))"])
def test_others_are_no_powers(name):
    K = np.array([1e40])
    net = network(name, 1)
    assert not at_angles(net, K, K)[1].any()
