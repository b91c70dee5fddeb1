"""The deep limit of two inputs: exact optima of deep networks, limits, and its edges."""

import math

import numpy as np
import pytest
import sympy as sp
from scipy import integrate

import fieldtheory as ft
from fieldtheory.scaling import deep_covariance
from fieldtheory.scaling.covariance_flow import P, Q, R, flow_rates
from fieldtheory.theory import notation as sym
from tests.tables import some

PAIRS = {
    "equal": (0.05, 0.05, 0.03),
    "different": (0.05, 0.12, -0.03),
    "opposite": (0.05, 0.05, -0.05),
    "near": (0.05, 0.05, 0.0495),
    "one saturated": (0.02, 0.6, 0.02),
}


def matrix(pair):
    p, q, r = pair
    return np.array([[p, r], [r, q]])


def scaling(network, pair, **options):
    return ft.optimal_scaling(network, matrix(pair), **options)[0, 1]


def test_rates_are_the_steps_of_the_recursion():
    values = {sym.WEIGHT: 1.1, sym.BIAS: 0.3, P: 0.05, Q: 0.12, R: -0.03}
    F_p, F_q, G, gain = (
        float(rate.replace(sym.phi, sp.erf).doit().subs(values)) for rate in flow_rates()
    )
    network = ft.ResidualNetwork(
        depth=1, branch_scale=1e-3, weight_variance=1.21, bias_variance=0.09
    )
    s = ft.solve(network, matrix(PAIRS["different"]))
    step = (s.kernels[1] - s.kernels[0]) / 1e-6
    np.testing.assert_allclose(step, [[F_p, G], [G, F_q]], rtol=1e-8)
    assert (s.response[1, 0, 1] - 1) / 1e-6 == pytest.approx(gain, rel=1e-8)


# The exact optima of 200 layers take seconds for each.
@pytest.mark.slow
@pytest.mark.parametrize("name", some(PAIRS, {"opposite"}))
def test_optima_of_deep_networks_converge_to_both_orders(name):
    pair, gaps = PAIRS[name], {1: [], 2: []}
    for depth in (100, 200):
        network = ft.ResidualNetwork(depth=depth)
        exact = scaling(network, pair)
        for order in gaps:
            found = scaling(network, pair, method="deep_limit", order=order)
            gaps[order].append(abs(found - exact))
    for order, power in ((1, 1.5), (2, 2.5)):
        assert math.log2(gaps[order][0] / gaps[order][1]) == pytest.approx(power, abs=0.1)
    assert gaps[2][1] < 0.05 * gaps[1][1]


def test_scaled_optima_depend_on_depth_only_through_the_root():
    shallow, deep = (
        scaling(ft.ResidualNetwork(depth=L), PAIRS["equal"], method="deep_limit") * math.sqrt(L)
        for L in (3, 300)
    )
    assert shallow == pytest.approx(deep, rel=1e-12)
    units = ft.ResidualNetwork(depth=3, weight_variance=1.25e6, bias_variance=0.05e6)
    found = scaling(units, PAIRS["equal"], method="deep_limit") * math.sqrt(3e6)
    assert found == pytest.approx(shallow, rel=1e-9)


@pytest.mark.slow
def test_matrices_hold_variances_and_covariances():
    X = np.random.default_rng(0).standard_normal((4, 12))
    K0 = 0.05 * X @ X.T / 12
    network = ft.ResidualNetwork(depth=30)
    found = ft.optimal_scaling(network, K0, method="deep_limit", order=2)
    assert (found == found.T).all()
    for i in range(4):
        own = ft.optimal_scaling(network, K0[i, i], method="deep_limit", order=2)
        assert found[i, i] == pytest.approx(own, rel=1e-12)
        for j in range(i):
            pair = K0[i, i], K0[j, j], K0[i, j]
            one = scaling(network, pair, method="deep_limit", order=2)
            assert found[i, j] == pytest.approx(one, rel=1e-9)


def test_saturated_pairs_need_no_branch():
    network = ft.ResidualNetwork(depth=20)
    pair = (3.0, 4.0, -0.5)
    assert scaling(network, pair) == 0
    assert scaling(network, pair, method="deep_limit", order=2) == 0


@pytest.mark.parametrize("activation", ["relu", "linear"])
def test_unbounded_responses_have_no_optimum(activation):
    network = ft.ResidualNetwork(depth=5, activation=activation)
    for options in ({}, {"method": "deep_limit"}):
        with pytest.raises(ValueError, match="must have a response with a maximum"):
            scaling(network, PAIRS["equal"], **options)


def test_flows_that_grow_without_bound_are_not_followed_to_overflow():
    # The covariances alone: the gain of φ = h falls nowhere.
    network = ft.ResidualNetwork(depth=5, activation="linear")
    found = deep_covariance.covariance_scaling(network, *np.array([[0.05], [0.05], [0.03]]), 1)
    assert np.isnan(found).all()


@pytest.mark.slow
def test_opposite_pairs_that_only_rounding_parts_have_none():
    # Opposite inputs stay so for an odd activation without biases.
    network = ft.ResidualNetwork(depth=5, bias_variance=0.0)
    for kernel in (matrix((0.05, 0.05, -0.05)), matrix((0.05, 0.05, 0.05 * (1 - 1e-13)))):
        with pytest.warns(UserWarning, match="1 of 1 pairs of inputs without ρ"):
            found = ft.optimal_scaling(network, kernel, method="deep_limit")
        assert np.isnan(found[0, 1]) and found[0, 0] > 0
    with pytest.warns(UserWarning, match="whose correlation is -1:"):
        assert np.isnan(scaling(network, PAIRS["opposite"]))
    with_biases = scaling(ft.ResidualNetwork(depth=300), PAIRS["opposite"])
    limit = scaling(ft.ResidualNetwork(depth=300), PAIRS["opposite"], method="deep_limit", order=2)
    assert limit == pytest.approx(with_biases, rel=1e-4)


def precise_limit(distance):
    """c* of erf for variances 0.05: the flow of the variance p and of d = p − r typed in.

    No difference of nearly equal numbers is taken:
    det(1 + 2K) = (1 + 2d)(1 + 4p − 2d), and asin(s) − asin(t) is one arcus sine.
    """
    w, b, p0 = 1.25, 0.05, 0.05

    def rates(t, y):
        p, d, _ = y
        det = (1 + 2 * d) * (1 + 4 * p - 2 * d)
        s, small = 2 * p / (1 + 2 * p), 2 * d / (1 + 2 * p)
        cosines = s * math.sqrt(det) + (s - small) * math.sqrt(1 + 4 * p)
        parted = math.asin(small * (2 * s - small) * (1 + 2 * p) / cosines)
        return [
            w * 2 / math.pi * math.asin(s) + b,
            w * 2 / math.pi * parted,
            w * 4 / math.pi / math.sqrt(det),
        ]

    def slope(t, y):
        p, d, _ = y
        dp, dd, gain = rates(t, y)
        return gain - dd / (1 + 2 * d) - (2 * dp - dd) / (1 + 4 * p - 2 * d)

    slope.direction, slope.terminal = -1, True
    d0 = p0 - p0 * (1 - distance)
    options = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-25, "events": slope}
    found = integrate.solve_ivp(rates, (0, 1000), [p0, d0, 0], **options)
    return math.sqrt(found.t_events[0][0])


@pytest.mark.slow_but(0)
@pytest.mark.parametrize(
    "distance, tolerance",
    [(0.4, 1e-9), (1e-3, 1e-10), (1e-6, 2e-10), (1e-9, 2e-7), (4e-12, 1e-4)],
)
def test_nearly_identical_inputs_lose_digits_as_stated(distance, tolerance):
    pair = (0.05, 0.05, 0.05 * (1 - distance))
    found = scaling(ft.ResidualNetwork(depth=1), pair, method="deep_limit")
    assert found == pytest.approx(precise_limit(distance), rel=tolerance)
