"""The deep limit of one input: its symbols, its numbers by mpmath, and how fast it is reached."""

import math

import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize

import fieldtheory as ft
from fieldtheory.numerics.infinite_width.layer_functions import layer_functions
from fieldtheory.scaling import deep_limit, output_variance
from fieldtheory.scaling.deep_limit import END, START, correction
from fieldtheory.theory import linearised
from fieldtheory.theory import notation as sym
from fieldtheory.theory.depth_flow import KERNEL, STEP
from tests.tables import crossed, slow

K, h = KERNEL, STEP


def M(k):
    return 2 / mpmath.pi * mpmath.asin(2 * k / (1 + 2 * k))


def gain(k):
    return 4 / mpmath.pi / ((1 + 2 * k) * mpmath.sqrt(1 + 4 * k))


def log_response(k, ratio):
    return mpmath.log(gain(k) * (M(k) + ratio))


def erf_network(depth=1, **parameters):
    return ft.ResidualNetwork(depth=depth, **parameters)


def limit(network, K0):
    """c*."""
    return ft.optimal_scaling(network, K0, method="deep_limit") * math.sqrt(network.depth)


def test_response_solves_its_equation_of_motion():
    # d/dt ∂K/∂K_0 = F'(K) ∂K/∂K_0 along dK/dt = F(K).
    F = deep_limit.flow_rate()
    chi = F / F.subs(K, START)
    assert sp.simplify(sp.diff(chi, K) * F - sp.diff(F, K) * chi) == 0
    out = deep_limit.output_response()
    assert sp.simplify(out * sym.WEIGHT**2 / (sp.diff(F, K) * chi)) == 1


def test_flow_and_limit_of_erf_have_their_closed_forms():
    F = deep_limit.flow_rate().replace(sym.phi, sp.erf).doit()
    closed = sym.WEIGHT**2 * 2 / sp.pi * sp.asin(2 * K / (1 + 2 * K)) + sym.BIAS**2
    values = {sym.WEIGHT: 1.3, sym.BIAS: 0.2}
    for k in (0.01, 0.3, 4.0):
        assert float(F.subs(values).subs(K, k)) == pytest.approx(
            float(closed.subs(values).subs(K, k)), rel=1e-14
        )
    found = deep_limit.limit_scaling()
    # The L of the saturation argument, so that the two can be compared.
    assert {START, END, sym.DEPTH} <= found.rhs.free_symbols
    assert sym.DEPTH in linearised.saturation_formula().rhs.free_symbols
    (integral,) = found.rhs.atoms(sp.Integral)
    assert integral.limits[0][1:] == (START, END)


def test_correction_has_the_printed_form():
    found = correction()
    F0, dF0 = found.start
    F1, dF1, ddF1 = found.end
    shift = (found.T0 * ddF1 / 2 + (dF1 - dF0) / (2 * F1)) / found.curvature
    assert sp.simplify(found.shift - shift) == 0
    time = shift / F1 + found.T0 / 2 * (sp.log(F1) - sp.log(F0))
    assert sp.simplify(sp.expand_log(found.time - time, force=True)) == 0


@pytest.mark.parametrize("ratio", [0.0, 0.0409, 0.2, 0.31])
def test_output_variance_is_where_the_response_is_largest(ratio):
    network = erf_network(weight_variance=1.7, bias_variance=1.7 * ratio)
    found = ft.optimal_output_variance(network)
    with mpmath.workdps(40):
        root = mpmath.findroot(
            lambda k: mpmath.diff(lambda x: log_response(x, mpmath.mpf(1.7 * ratio) / 1.7), k),
            found,
        )
    assert found == pytest.approx(float(root), rel=1e-11)
    scan = np.geomspace(1e-4, 50, 400)
    assert (
        log_response(mpmath.mpf(found), ratio) >= max(log_response(k, ratio) for k in scan)
    ) == 1


def test_output_variances_of_erf_are_those_of_the_theory():
    values = [
        ft.optimal_output_variance(erf_network(weight_variance=1.0, bias_variance=ratio))
        for ratio in (0.0, 0.0409, 0.1, 0.2, 0.3, 1 / math.pi + 1e-6)
    ]
    assert values[0] == pytest.approx(0.3054, abs=5e-5)
    assert values[1] == pytest.approx(0.25, abs=2e-4)
    assert (np.diff(values) < 0).all()
    assert values[-1] == 0
    # It falls to zero linearly: at 1/π the slope at K = 0 changes its sign.
    near = [
        ft.optimal_output_variance(erf_network(weight_variance=1.0, bias_variance=1 / math.pi - d))
        for d in (1e-3, 1e-4)
    ]
    assert near[0] / near[1] == pytest.approx(10, rel=0.05)


@given(ratio=st.floats(0, 0.3), weight=st.floats(0.01, 100), depth=st.integers(1, 50))
@settings(max_examples=20, deadline=None)
def test_output_variance_depends_on_the_ratio_of_the_variances_alone(ratio, weight, depth):
    found = ft.optimal_output_variance(
        erf_network(depth, weight_variance=weight, bias_variance=weight * ratio)
    )
    other = ft.optimal_output_variance(erf_network(weight_variance=1.0, bias_variance=ratio))
    assert found == pytest.approx(other, rel=1e-9)


@pytest.mark.parametrize("activation", [slow("tanh"), slow("sin"), "erf"])
def test_deep_networks_end_at_the_optimal_output_variance(activation):
    network = ft.ResidualNetwork(depth=1500, activation=activation)
    end = ft.optimal_output_variance(network)
    for K0 in (0.001, 0.05):
        rho = ft.optimal_scaling(network, K0, method="deep_limit", order=2)
        # K^(L) is off by δ/L.
        out = ft.solve(network.replace(branch_scale=rho), K0).kernels[-2]
        assert out == pytest.approx(end, rel=2 / network.depth)


@pytest.mark.parametrize(
    ("weight", "bias", "K0"),
    [
        (1.25, 0.05, 0.05),
        (2.0, 0.0, 0.02),
        (1.0, 0.3, 1e-3),
        slow(1.0, 0.3, 0.0),
        slow(1.0, 0.0, 1e-10),
        slow(1.0, 1e-9, 1e-12),
        (50.0, 0.05, 0.1),
    ],
)
def test_limit_is_the_integral_by_mpmath(weight, bias, K0):
    network = erf_network(3, weight_variance=weight, bias_variance=bias)
    end = mpmath.mpf(ft.optimal_output_variance(network))
    with mpmath.workdps(30):
        decades = [10**n * end for n in range(-16, 1) if 10**n * end > K0]
        points = [mpmath.mpf(K0), *decades]
        time = mpmath.quad(lambda k: 1 / (weight * M(k) + bias), points)
    # The end is known to 1e-11, where the response is flat; it adds to the time by dK/F.
    assert limit(network, K0) == pytest.approx(float(mpmath.sqrt(time)), rel=2e-11)


def test_limit_of_tanh_is_that_of_a_general_quadrature():
    network = ft.ResidualNetwork(depth=1, activation="tanh")
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    weights = weights / math.sqrt(2 * math.pi)

    def F(k):
        return 1.25 * (weights * np.tanh(math.sqrt(k) * nodes) ** 2).sum() + 0.05

    def slope(k):
        return (F(k * (1 + 1e-5)) - F(k * (1 - 1e-5))) / (2e-5 * k)

    end = optimize.minimize_scalar(
        lambda k: -slope(k) * F(k), bounds=(0.05, 1), method="bounded", options={"xatol": 1e-9}
    ).x
    time = integrate.quad(lambda k: 1 / F(k), 0.05, end, epsabs=1e-12)[0]
    assert limit(network, 0.05) == pytest.approx(math.sqrt(time), rel=1e-5)


@pytest.mark.parametrize("parameters", [{}, slow({"bias_variance": 0.0, "weight_variance": 2.0})])
def test_orders_converge_as_they_should(parameters):
    gaps = {1: [], 2: []}
    depths = (100, 200, 400)
    for depth in depths:
        network = erf_network(depth, **parameters)
        exact = ft.optimal_scaling(network, 0.02)
        for order in gaps:
            found = ft.optimal_scaling(network, 0.02, method="deep_limit", order=order)
            gaps[order].append(abs(found - exact))
    for order, power in ((1, 1.5), (2, 2.5)):
        rates = np.log2(np.array(gaps[order][:-1]) / gaps[order][1:])
        np.testing.assert_allclose(rates, power, atol=0.02)
    assert gaps[2][0] < 0.05 * gaps[1][0]


@pytest.mark.parametrize(("depth", "K0"), crossed([1, 2, 10, 300], [0.2511321, 0.3, 5.0]))
def test_inputs_above_the_output_variance_need_no_branch_at_any_depth(K0, depth):
    network = erf_network(depth)
    assert ft.optimal_output_variance(network) < K0
    assert ft.optimal_scaling(network, K0, method="deep_limit") == 0
    assert ft.optimal_scaling(network, K0) == 0
    below = 0.999 * ft.optimal_output_variance(network)
    assert ft.optimal_scaling(network, below) > 0
    assert ft.optimal_scaling(network, below, method="deep_limit") > 0


@pytest.mark.parametrize("activation", ["linear", "relu", "leaky_relu", "gelu", "swish"])
def test_responses_that_grow_without_bound_have_no_optimum(activation):
    network = ft.ResidualNetwork(depth=5, activation=activation)
    with pytest.raises(ValueError, match="must have a response with a maximum"):
        ft.optimal_output_variance(network)
    with pytest.raises(ValueError, match="must have a response with a maximum"):
        ft.optimal_scaling(network, 0.05, method="deep_limit")


@pytest.mark.slow
def test_of_several_maxima_the_highest_that_is_ahead_counts():
    # Two saturating parts of very different scale: two maxima of M'F.
    x = sp.Symbol("x")
    step = sp.erf(x) + 12 * sp.erf(x / 40)
    network = ft.ResidualNetwork(depth=400, activation=step, bias_variance=0.0)
    grid = np.geomspace(1e-3, 1e5, 4000)
    average = layer_functions(network.activation)
    values = average.susceptibility(grid) * average.second_moment(grid)
    tops = np.flatnonzero((values[1:-1] > values[:-2]) & (values[1:-1] > values[2:])) + 1
    assert len(tops) == 2
    low, high = grid[tops]
    best = grid[tops[np.argmax(values[tops])]]
    assert ft.optimal_output_variance(network) == pytest.approx(best, rel=0.01)
    # From beyond the first maximum the second is ahead if it is higher than the input.
    start = math.sqrt(low * high)
    found = ft.optimal_scaling(network, start, method="deep_limit", order=2)
    assert found == pytest.approx(ft.optimal_scaling(network, start), rel=1e-2)
    assert found > 0
    assert ft.optimal_scaling(network, 10 * high, method="deep_limit") == 0


def test_a_constant_that_acts_as_a_bias_leaves_no_maximum_at_positive_variance():
    found = ft.optimal_output_variance(ft.ResidualNetwork(depth=1, activation="logistic"))
    # M'' is known to 1e-12 M/K².
    assert 0 <= found < 1e-9


@pytest.mark.parametrize(
    ("parameters", "K0", "match"),
    [
        ({"weight_variance": 0.0}, 0.05, "weight variances > 0"),
        ({"skip_scale": 0.9}, 0.05, "skip_scale=1 for the method deep_limit"),
        ({"bias_variance": 0.0}, 0.0, "K0 must be > 0 without biases"),
    ],
)
def test_networks_without_a_deep_limit(parameters, K0, match):
    with pytest.raises(ValueError, match=match):
        ft.optimal_scaling(erf_network(3, **parameters), K0, method="deep_limit")
    with pytest.raises(ValueError, match="weight_variance > 0"):
        ft.optimal_output_variance(erf_network(weight_variance=0.0))


def test_output_variance_is_that_of_a_network():
    with pytest.raises(TypeError, match="network must be a ResidualNetwork or of .*, got 0.05"):
        ft.optimal_output_variance(0.05)


def test_order_is_checked():
    for order in (0, 3, 1.5, 2.0, "1", True):
        with pytest.raises(ValueError, match="order must be 1 or 2, got"):
            ft.optimal_scaling(erf_network(3), 0.05, method="deep_limit", order=order)


def test_several_networks_and_inputs_are_those_one_by_one():
    networks = [erf_network(L, weight_variance=w) for L, w in ((1, 1.0), (7, 2.0), (30, 1.25))]
    K0 = np.array([0.01, 0.1, 0.4])
    for options in ({}, {"method": "deep_limit", "order": 2}, {"method": "saturation"}):
        found = ft.optimal_scaling(networks, K0, **options)
        one = [[ft.optimal_scaling(net, k, **options) for k in K0] for net in networks]
        np.testing.assert_allclose(found, one, rtol=1e-9)


def test_a_correction_beyond_the_leading_order_is_an_error():
    time, change = np.array([2.0, 2.0]), np.array([1.0, -13.0])
    deep = output_variance.second_order(erf_network(4), time, change)
    np.testing.assert_allclose(deep, np.sqrt(0.5) * np.array([1 + 1 / 16, 1 - 13 / 16]))
    with pytest.raises(ValueError, match="must be deeper for order 2: at depth 3"):
        output_variance.second_order(erf_network(3), time, change)


@pytest.mark.parametrize(("activation", "edge"), [("tanh", 0.25), ("erf", 1 / math.pi)])
def test_output_variance_vanishes_on_both_sides_of_its_edge(activation, edge):
    for bias in (np.nextafter(edge, 0), edge * (1 - 1e-14), edge, np.nextafter(edge, 1)):
        network = ft.ResidualNetwork(
            depth=1, activation=activation, weight_variance=1.0, bias_variance=float(bias)
        )
        # M'' of tanh, without closed form, is known to 1e-12 M/K².
        digits = 1e-11 if activation == "erf" else 1e-7
        assert 0 <= ft.optimal_output_variance(network) < digits
