"""The oracles agree with each other: recursion, Hessian, action, closed forms, weights."""

import itertools

import mpmath
import numpy as np
import pytest
from mpmath import mpf
from scipy.special import erf

from tests.oracles import exact, hessian, mixture, precise, quadrature, recursion, weights
from tests.tables import slow

DEPTH_3 = recursion.Net((0.5, 0.9, 1.1), (1.0, 0.5, 0.8), 1.25, 0.05, 1.4, 0.1)
DEPTH_2 = recursion.Net((0.5, 0.9), (1.0, 0.7), 1.25, 0.05, 1.4, 0.1)
K0_PAIR = np.array([[0.4, 0.15], [0.15, 0.6]])


def relu(x):
    return np.maximum(x, 0.0)


def identity(x):
    return x


def moment(phi):
    return recursion.moment_of(phi, quadrature.average1, quadrature.average2)


def to_mp(net):
    return recursion.Net(*(tuple(map(mpf, x)) if isinstance(x, tuple) else mpf(x) for x in net))


@pytest.mark.parametrize("phi", [erf, relu, np.tanh, identity], ids=["erf", "relu", "tanh", "id"])
@pytest.mark.parametrize("gamma", [(0.0,) * 3, (1.0,) * 3, (1.0, 0.5, 0.8)])
def test_response_is_the_inverse_of_the_hessian(phi, gamma):
    net = DEPTH_3._replace(gamma=gamma)
    H = hessian.hessian(hessian.S21(net, 0.4, phi), hessian.S22(net, 0.4, phi))
    G11, G12, G21, G22 = hessian.propagator(H)
    np.testing.assert_allclose(G12, recursion.response(net, 0.4, moment(phi)), rtol=0, atol=2e-12)
    np.testing.assert_allclose(G21, G12.T, rtol=0, atol=1e-14)
    assert np.all(G22 == 0)
    assert np.all(np.linalg.eigvalsh(G11) > -1e-12)


def test_float_response_against_thirty_digits():
    with mpmath.workdps(30):
        precise_response = recursion.response(to_mp(DEPTH_3), mpf(0.4), exact.erf_average)
    dense = recursion.response(DEPTH_3, 0.4, moment(erf))
    np.testing.assert_allclose(dense, precise_response.astype(float), rtol=0, atol=2e-12)


def test_mp_response_from_integrals():
    net = to_mp(DEPTH_2)
    by_integral = recursion.response(
        net, mpf(0.4), recursion.moment_of(mpmath.erf, precise.average1, precise.average2)
    )
    closed = recursion.response(net, mpf(0.4), exact.erf_average)
    assert np.max(np.abs(by_integral - closed)) < 1e-13


def test_S22_against_closed_forms():
    A, a = recursion.skip_matrix(DEPTH_3), recursion.weight_terms(DEPTH_3)
    for phi, connected in [(erf, exact.erf_connected), (relu, exact.relu_connected)]:
        _, K = recursion.kernels(DEPTH_3, 0.4, moment(phi))
        S22 = hessian.S22(DEPTH_3, 0.4, phi)
        assert np.all(S22[0] == 0)
        for k, m in itertools.combinations_with_replacement(range(1, 5), 2):
            cross = A[m - 1, k - 1] * K[k - 1]
            expected = a[k] * a[m] * connected(K[k - 1], K[m - 1], cross)
            assert S22[k, m] == pytest.approx(float(expected), rel=1e-12)
            assert S22[m, k] == S22[k, m]


def relu_moment(*K):
    return float(exact.relu_average(1, *K))


def erf_moment(*K):
    return float(exact.erf_average(*K))


@pytest.mark.parametrize("phi, moment", [(erf, erf_moment), (relu, relu_moment)])
def test_response_of_a_pair(phi, moment):
    S21 = hessian.S21(DEPTH_2, K0_PAIR, phi)
    size = S21.shape[0] * S21.shape[1]
    G12 = -np.linalg.inv(S21.reshape(size, size)).reshape(S21.shape)
    response = recursion.response(DEPTH_2, K0_PAIR, moment)
    np.testing.assert_allclose(G12, response, rtol=0, atol=2e-12)
    single = recursion.response(DEPTH_2, K0_PAIR[1, 1], moment)
    np.testing.assert_allclose(response[:, 1, :, 1], single, rtol=0, atol=2e-12)
    assert np.all(np.abs(response[3, 2, 0, :]) > 1e-3)
    np.testing.assert_array_equal(response[:, :2, :, 2], 0)


def test_every_pair_closes_on_itself():
    with mpmath.workdps(20):
        net = to_mp(DEPTH_2)
        K0 = np.array([[0.4, 0.15, 0.1], [0.15, 0.6, -0.2], [0.1, -0.2, 0.5]])
        K0 = np.array([[mpf(x) for x in row] for row in K0])
        triple = recursion.response(net, K0, exact.erf_average)
        pairs = recursion.entries(3)
        for p, (i, j) in enumerate(pairs[3:], start=3):
            pair = recursion.response(net, K0[np.ix_([i, j], [i, j])], exact.erf_average)
            inside = [i, j, p]
            part = triple[np.ix_(range(4), inside, range(4), inside)]
            assert np.max(np.abs(part - pair)) < mpf(10) ** -17
            outside = [q for q in range(6) if q not in inside]
            assert np.all(triple[:, p][:, :, outside] == 0)


def test_S22_of_a_pair():
    S22 = hessian.S22(DEPTH_2, K0_PAIR, erf)
    for i in range(2):
        one = hessian.S22(DEPTH_2, K0_PAIR[i, i], erf)
        np.testing.assert_allclose(S22[:, i, :, i], one, rtol=0, atol=5e-9)
    a, (_, K) = recursion.weight_terms(DEPTH_2), recursion.kernels(DEPTH_2, K0_PAIR, moment(erf))
    for k in range(1, 4):
        expected = a[k] ** 2 * exact.erf_connected(*K[k - 1][[0, 1, 0], [0, 1, 1]])
        assert S22[k, 0, k, 1] == pytest.approx(float(expected), abs=1e-8)
        square = quadrature.average2(lambda x, y: (erf(x) * erf(y)) ** 2, K[k - 1])
        mean = quadrature.average2(lambda x, y: erf(x) * erf(y), K[k - 1])
        assert S22[k, 2, k, 2] == pytest.approx(a[k] ** 2 * (square - mean**2), abs=1e-8)


def test_S22_of_a_linear_pair_is_wicks():
    S22 = hessian.S22(DEPTH_2, K0_PAIR, identity)
    a, A = recursion.weight_terms(DEPTH_2), recursion.skip_matrix(DEPTH_2)
    _, K = recursion.kernels(DEPTH_2, K0_PAIR, moment(identity))
    for k, m in itertools.combinations_with_replacement(range(1, 4), 2):
        cross = A[m - 1, k - 1] * K[k - 1]
        for (p, (i, j)), (q, (s, t)) in itertools.product(
            enumerate(recursion.entries(2)), repeat=2
        ):
            wick = a[k] * a[m] * (cross[i, s] * cross[j, t] + cross[i, t] * cross[j, s])
            assert S22[k, p, m, q] == pytest.approx(wick, rel=1e-7)


@pytest.mark.parametrize("gamma", [(0.0,) * 3, (1.0, 0.5, 0.8)])
def test_linear_network(gamma):
    net = DEPTH_3._replace(gamma=gamma)
    C, K, chi = exact.linear_kernels(net, 0.4)
    by_quadrature = recursion.kernels(net, 0.4, moment(identity))
    np.testing.assert_allclose(by_quadrature, (C, K), rtol=1e-13)
    S21, S22 = hessian.S21(net, 0.4, identity), hessian.S22(net, 0.4, identity)
    np.testing.assert_allclose(S22, exact.linear_S22(net, 0.4), rtol=1e-12, atol=1e-15)
    G11, G12, _, _ = hessian.propagator(hessian.hessian(S21, S22))
    A = np.array(recursion.skip_matrix(net), dtype=float)
    np.testing.assert_allclose(A**2 @ G12[:-1, 0], chi[:-1], rtol=1e-12)
    assert G12[-1, 0] == pytest.approx(chi[-1], rel=1e-12)
    with mpmath.workdps(40):
        N = mpf(10) ** 18
        mean, cov = exact.linear_moments(to_mp(net), mpf(0.4), N)
        limit = (N * cov).astype(float)
    np.testing.assert_allclose(G11, limit, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(mean.astype(float), C, rtol=1e-14)


def test_linear_feedforward_at_finite_width():
    net = DEPTH_3._replace(gamma=(0.0,) * 3, bias_variance=0.0, readout_bias_variance=0.0)
    with mpmath.workdps(30):
        mean, cov = exact.linear_moments(to_mp(net), mpf(1), mpf(7))
        product = exact.linear_feedforward_covariance(mean, mpf(7))
        assert np.max(np.abs(cov - product)) < mpf(10) ** -27
        assert cov[-1, -1] > mpf("0.1")


def scores(values, theory):
    """z-scores of the mean of values (samples, ...) against theory (...)."""
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return (values.mean(axis=0) - theory) / error


def test_weights_linear_network_at_small_width():
    N = 24
    C = weights.sample(DEPTH_3, identity, N, 40_000, seed=2, K0=0.4)[:, :, 0, 0]
    mean, cov = exact.linear_moments(DEPTH_3, 0.4, N)
    np.testing.assert_array_equal(C[:, 0], 0.4)
    z = scores(C[:, 1:], mean[1:])
    assert np.max(np.abs(z)) < 4
    assert np.min(np.abs(scores(C[:, 1:], 1.02 * mean[1:]))) > 6
    products = (C - mean)[:, 1:, None] * (C - mean)[:, None, 1:]
    assert np.max(np.abs(scores(products, cov[1:, 1:]))) < 4
    assert np.min(np.abs(scores(products, 1.2 * cov[1:, 1:]))) > 6


def test_weights_with_given_inputs():
    X = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]])
    C = weights.sample(DEPTH_2, erf, 300, 300, seed=3, X=X, readin=(0.5, 0.1))
    K0 = 0.5 * X @ X.T / 3 + 0.1
    np.testing.assert_allclose(C[:, 0], np.broadcast_to(K0, (300, 2, 2)), rtol=1e-14)
    theory, _ = recursion.kernels(DEPTH_2, K0, moment(erf))
    rows, columns = np.triu_indices(2)
    draws, expected = C[:, 1:, rows, columns], theory[1:, rows, columns]
    assert np.max(np.abs(scores(draws, expected))) < 4
    diagonal = [0, 2]
    assert np.min(np.abs(scores(draws, 1.02 * expected)[:, diagonal])) > 6


@pytest.mark.parametrize("a,b,c", [("0.7", "1.3", "0.6"), slow("2", "0.3", "-0.5")])
def test_mixtures_of_error_functions_are_the_integrals(a, b, c):
    with mpmath.workdps(16):
        K = tuple(map(mpf, (a, b, c)))
        matrix = [[K[0], K[2]], [K[2], K[1]]]
        tanh, sech = mpmath.tanh, mpmath.sech

        def swish(h):
            return h * (1 + tanh(h / 2)) / 2

        pairs = [
            (mixture.tanh_tanh(*K), precise.average2(lambda x, y: tanh(x) * tanh(y), matrix)),
            (
                mixture.slope_slope(*K),
                precise.average2(lambda x, y: sech(x) ** 2 * sech(y) ** 2, matrix),
            ),
            (
                mixture.half_curvature(*K),
                precise.average2(lambda x, y: -tanh(x) * sech(x) ** 2 * tanh(y), matrix),
            ),
            (
                mixture.squares(*K),
                precise.connected2(lambda h: tanh(h) ** 2, lambda h: tanh(h) ** 2, matrix),
            ),
            (mixture.swish_swish(*K), precise.average2(lambda x, y: swish(x) * swish(y), matrix)),
        ]
        for value, integral in pairs:
            assert abs(value / integral - 1) < mpf(10) ** -12
