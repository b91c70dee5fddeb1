"""Enclosed optima against mpmath with the closed forms of erf, and their refusals."""

import mpmath
import pytest

import fieldtheory as ft
from fieldtheory.precision.balls import arb, ctx
from fieldtheory.scaling import enclosed_optima
from tests.tables import slow

WEIGHT, BIAS, K0 = (mpmath.mpf(value) for value in (1.25, 0.05, 0.05))


def moment(K):
    return 2 / mpmath.pi * mpmath.asin(2 * K / (1 + 2 * K))


def gain(K):
    return 4 / mpmath.pi / ((1 + 2 * K) * mpmath.sqrt(1 + 4 * K))


def rate(K):
    return WEIGHT * moment(K) + BIAS


def best_end():
    return mpmath.findroot(lambda K: mpmath.diff(lambda k: mpmath.log(gain(k) * rate(k)), K), 0.25)


def log_response(depth):
    def function(rho):
        K, total = K0, mpmath.mpf(0)
        for _ in range(depth):
            total += mpmath.log(1 + rho**2 * WEIGHT * gain(K))
            K += rho**2 * rate(K)
        return total + mpmath.log(gain(K))

    return function


def best_scaling(depth, start):
    return mpmath.findroot(lambda rho: mpmath.diff(log_response(depth), rho), start)


@pytest.fixture(autouse=True)
def precision():
    with mpmath.workdps(60):
        yield


def holds(ball, value, digits):
    middle, radius = mpmath.mpf(ball.mid()), mpmath.mpf(ball.rad())
    assert radius <= value * mpmath.mpf(10) ** -digits
    return abs(middle - value) <= radius


@pytest.mark.slow
@pytest.mark.parametrize("digits", [12, 25])
def test_erf_against_mpmath(digits):
    net = ft.ResidualNetwork(depth=6)
    end = best_end()
    assert holds(ft.optimal_output_variance(net, digits=digits, proven=True), end, digits)
    time = mpmath.quad(lambda K: 1 / rate(K), [K0, 0.1, end])
    deep = ft.optimal_scaling(net, 0.05, method="deep_limit", digits=digits, proven=True)
    assert holds(deep, mpmath.sqrt(time / 6), digits)
    assert not holds(deep, mpmath.sqrt(time / 6) * (1 + mpmath.mpf(10) ** (2 - digits)), digits - 1)
    found = ft.optimal_scaling(net, 0.05, digits=digits, proven=True)
    assert holds(found, best_scaling(6, mpmath.mpf(float(found))), digits)


def test_coarse_rules_and_wide_ends_are_widened():
    """Two nodes a panel, and an end between 0.24 and 0.26."""
    net = ft.ResidualNetwork(depth=6)
    with ctx.workprec(150):
        coarse = enclosed_optima._time(net, arb(0.05), arb(0.25), 0)
        wide = enclosed_optima._time(net, arb(0.05), arb(0.25, 0.01), 20)
        times = [enclosed_optima._time(net, arb(0.05), arb(end), 25) for end in (0.24, 0.25, 0.26)]
        assert coarse.contains(times[1]) and abs(coarse.mid() - times[1]) > 1e-12
        assert all(wide.contains(time) for time in times)


def test_the_error_of_a_rule_is_that_of_the_theorem():
    """Of a constant 1/F the rule is exact and the bound B = 1/F, on panels of any width."""
    net = ft.ResidualNetwork(depth=6, weight_variance=0.0, bias_variance=0.25)
    ellipse = 2 + mpmath.sqrt(3)
    bound = mpmath.mpf(0.2) / 2 / 0.25 * 64 / (15 * ellipse**2 * (1 - ellipse**-2))
    time = enclosed_optima._time(net, arb(0.05), arb(0.25), 0)
    assert mpmath.mpf(time.rad()) == pytest.approx(bound, rel=1e-3)


def test_signs_are_proven_inside_the_interval():
    places = []

    def slope(x):
        places.append(x)
        return 2 - x**2

    found = enclosed_optima._sign_change(lambda: (slope, None), 1.4, 10)
    low, high = (place.mid() - found.mid() for place in places[-2:])
    assert float(high) == pytest.approx(float(found.rad())) == pytest.approx(-float(low))


@pytest.mark.parametrize("name, skip", [slow("tanh", 1.0), ("sin", 0.9), slow("hard_tanh", 1.0)])
def test_float64_lies_in_the_interval(name, skip):
    net = ft.ResidualNetwork(depth=4, activation=name, skip_scale=skip, bias_variance=0.0)
    found = ft.optimal_scaling(net, 0.05, digits=15, proven=True)
    assert float(found) == pytest.approx(ft.optimal_scaling(net, 0.05), rel=1e-11)
    end = ft.optimal_output_variance(net, digits=15, proven=True)
    assert float(end) == pytest.approx(ft.optimal_output_variance(net), rel=1e-11)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"proven": True}, "digits and proven=True must be given together"),
        ({"digits": 20}, "digits and proven=True must be given together"),
        ({"digits": 0, "proven": True}, "digits must be an integer >= 1"),
        ({"digits": 20, "proven": True, "method": "saturation"}, "method='saturation'"),
        ({"digits": 20, "proven": True, "method": "deep_limit", "order": 2}, "order=2"),
        ({"digits": 20, "proven": True, "K0": [0.05, 0.1]}, "one variance K0 > 0"),
        ({"digits": 20, "proven": True, "K0": 0.0}, "one variance K0 > 0"),
    ],
)
def test_what_is_not_proven(arguments, words):
    with pytest.raises(ValueError, match=words):
        ft.optimal_scaling(ft.ResidualNetwork(depth=4), **{"K0": 0.05, **arguments})


@pytest.mark.filterwarnings("ignore:K0 has 1 of 1 entries")
def test_optima_at_zero_are_refused():
    net = ft.ResidualNetwork(depth=4)
    with pytest.raises(ValueError, match=r"where ρ\* = 0"):
        ft.optimal_scaling(net, 2.0, digits=20, proven=True)
    with pytest.raises(ValueError, match=r"where K\*_out = 0"):
        ft.optimal_output_variance(net.replace(bias_variance=1.0), digits=20, proven=True)
