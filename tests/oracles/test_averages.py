"""The Gaussian averages of the oracles: panels, mpmath and closed forms agree."""

import mpmath
import numpy as np
import pytest
from mpmath import mpf
from scipy.special import erf

from tests.oracles import exact, hessian, precise, quadrature
from tests.tables import crossed, slow

VARIANCES = [(1e-3, 1e-3), (1e-3, 30.0), (1.0, 1.0), (30.0, 30.0), (0.3, 5.0)]
CORRELATIONS = [1.0, 0.999, 0.5, 1e-3, 0.0, -0.5, -0.999, -1.0]


def relu(x):
    return np.maximum(x, 0.0)


def step(x):
    return np.where(x > 0, 1.0, 0.0)


def covariance(a, b, correlation):
    c = correlation * np.sqrt(a * b)
    return np.array([[a, c], [c, b]])


def mp_covariance(K):
    return [[mpf(x) for x in row] for row in K]


@pytest.mark.parametrize("K", [1e-3, 0.1, 1.0, 5.0, 30.0])
def test_average1_against_closed_forms(K):
    close = {"rel": 2e-14, "abs": 0}
    assert quadrature.average1(lambda h: erf(h) ** 2, K) == pytest.approx(
        float(exact.erf_average(K, K, K)), **close
    )
    assert quadrature.average1(lambda h: relu(h) ** 2, K) == pytest.approx(K / 2, **close)
    assert quadrature.average1(lambda h: h**8, K) == pytest.approx(105 * K**4, **close)
    with mpmath.workdps(20):
        tanh = precise.average1(lambda h: mpmath.tanh(h) ** 2, mpf(K))
    assert quadrature.average1(lambda h: np.tanh(h) ** 2, K) == pytest.approx(float(tanh), **close)


@pytest.mark.parametrize("r, variances", crossed(CORRELATIONS, VARIANCES))
def test_average2_against_closed_forms(variances, r):
    a, b = variances
    K = covariance(a, b, r)
    size = np.sqrt(a * b)
    with mpmath.workdps(30):
        c = mpf(r) * mpmath.sqrt(mpf(a) * b)
        erf_exact = float(exact.erf_average(mpf(a), mpf(b), c))
        relu_exact = [float(exact.relu_average(n, mpf(a), mpf(b), c)) for n in range(3)]
    both = quadrature.average2(lambda x, y: erf(x) * erf(y), K)
    assert both == pytest.approx(erf_exact, rel=1e-13, abs=1e-16)
    one = quadrature.average2(lambda x, y: relu(x) * relu(y), K)
    assert one == pytest.approx(relu_exact[1], rel=1e-13, abs=1e-15 * size)
    two = quadrature.average2(lambda x, y: relu(x) ** 2 * relu(y) ** 2, K)
    assert two == pytest.approx(relu_exact[2], rel=1e-13, abs=1e-15 * size**2)
    if abs(r) < 1:
        zero = quadrature.average2(lambda x, y: step(x) * step(y), K)
        assert zero == pytest.approx(relu_exact[0], rel=1e-13)
    power = quadrature.average2(lambda x, y: x**4 * y**4, K)
    assert power == pytest.approx(size**4 * (9 + 72 * r**2 + 24 * r**4), rel=1e-13)


@pytest.mark.parametrize(
    "r",
    [slow((0.5, 0.3, 0.2)), (0.9, 0.9, 0.999), slow((0.3, 0.9, -0.1)), slow((0.7, 0.1, 0.78))],
)
def test_average_of_three_variables(r):
    R = np.array([[1, r[0], r[1]], [r[0], 1, r[2]], [r[1], r[2], 1]])
    orthant = quadrature.average(lambda x, y, z: step(x) * step(y) * step(z), R)
    assert orthant == pytest.approx(1 / 8 + np.sum(np.arcsin(r)) / (4 * np.pi), rel=1e-13)
    scale = np.array([0.1, 1.0, 3.0])
    K = R * np.outer(scale, scale)
    wick = (
        np.prod(np.diag(K))
        + 2 * (K[0, 0] * K[1, 2] ** 2 + K[1, 1] * K[0, 2] ** 2 + K[2, 2] * K[0, 1] ** 2)
        + 8 * K[0, 1] * K[0, 2] * K[1, 2]
    )
    assert quadrature.average(lambda x, y, z: (x * y * z) ** 2, K) == pytest.approx(wick, rel=1e-13)


def test_smooth_rule_against_panels():
    K = np.array([[0.4, 0.2, 0.1], [0.2, 0.6, 0.3], [0.1, 0.3, 0.5]])

    def f(x, y, z):
        return erf(x) ** 2 * np.tanh(y) * erf(z)

    panels = quadrature.average(f, K)
    assert quadrature.average_smooth(f, K, 0.2) == pytest.approx(panels, rel=1e-12)
    assert quadrature.average_smooth(f, K, 0.4) == pytest.approx(panels, rel=1e-7)


def test_smooth_rule_in_four_dimensions():
    K = np.diag([0.3, 0.5, 0.4, 0.6])
    K[0, 1] = K[1, 0] = 0.2
    K[2, 3] = K[3, 2] = -0.3
    value = quadrature.average_smooth(lambda w, x, y, z: erf(w) * erf(x) * erf(y) * erf(z), K)
    product = exact.erf_average(0.3, 0.5, 0.2) * exact.erf_average(0.4, 0.6, -0.3)
    assert value == pytest.approx(float(product), rel=1e-8)


@pytest.mark.parametrize("K", ["0.001", slow("0.3"), "1", slow("5"), "30"])
def test_precise_average1(K):
    with mpmath.workdps(50):
        K = mpf(K)
        value = precise.average1(lambda h: mpmath.erf(h) ** 2, K)
        assert abs(value / exact.erf_average(K, K, K) - 1) < mpf(10) ** -48
        value = precise.average1(lambda h: max(h, mpf(0)) ** 2, K)
        assert abs(value / (K / 2) - 1) < mpf(10) ** -48


@pytest.mark.parametrize("digits", [15, slow(20)])
@pytest.mark.parametrize("r", [slow("0.5"), slow("0.999"), "-0.7", "1"])
def test_precise_average2(r, digits):
    with mpmath.workdps(digits):
        a, b = mpf("0.3"), mpf("0.9")
        c = mpf(r) * mpmath.sqrt(a * b)
        K = [[a, c], [c, b]]
        value = precise.average2(lambda x, y: mpmath.erf(x) * mpmath.erf(y), K)
        assert abs(value / exact.erf_average(a, b, c) - 1) < mpf(10) ** (2 - digits)
        value = precise.average2(lambda x, y: max(x, mpf(0)) * max(y, mpf(0)), K)
        assert abs(value / exact.relu_average(1, a, b, c) - 1) < mpf(10) ** (2 - digits)


@pytest.mark.parametrize(
    "dense, digits, closed",
    [
        (lambda x: erf(x) ** 2, lambda x: mpmath.erf(x) ** 2, exact.erf_connected),
        (lambda x: relu(x) ** 2, lambda x: max(x, mpf(0)) ** 2, exact.relu_connected),
    ],
    ids=["erf", "relu"],
)
def test_connected_correlators(dense, digits, closed):
    a, b, c = 0.4, 0.7, 0.35
    K = np.array([[a, c], [c, b]])
    expected = pytest.approx(float(closed(a, b, c)), rel=1e-13)
    assert hessian.connected2(dense, K) == expected
    assert float(precise.connected2(digits, digits, mp_covariance(K))) == expected


@pytest.mark.parametrize("digits", [20, slow(30)])
def test_price_one_variable(digits):
    with mpmath.workdps(digits):
        K = mpf("0.7")

        def f(h):
            return mpmath.erf(h) ** 2

        assert abs(precise.derivative1(f, K) / exact.erf_slope(K) - 1) < mpf(10) ** (3 - digits)
        assert abs(precise.score1(f, K) / exact.erf_slope(K) - 1) < mpf(10) ** (3 - digits)


@pytest.mark.parametrize("entry", [slow((0, 0)), slow((1, 1)), (0, 1)])
def test_difference_and_score_agree_for_a_kink(entry):
    K = mp_covariance([[0.5, 0.25], [0.25, 0.75]])

    def f(x, y):
        return max(x, mpf(0)) * max(y, mpf(0))

    score = precise.score2(f, K, entry)
    if entry == (0, 1):
        assert abs(score / exact.relu_average(0, K[0][0], K[1][1], K[0][1]) - 1) < 1e-13
    with mpmath.workdps(8):
        assert abs(precise.derivative2(f, K, entry) / score - 1) < 1e-7
