"""The linearised recursion, its closed forms and the scaling it leads to (F25 eqs. (62)-(68))."""

import mpmath
import numpy as np
import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.scaling import saturation
from fieldtheory.theory import linearised
from fieldtheory.theory import notation as sym
from fieldtheory.theory.linearised import DEPTH, INPUT, LAYER, RANGE, SCALE, SLOPE
from tests.tables import slow

GAIN = SCALE**2 * sym.WEIGHT**2 * SLOPE**2
NUMBERS = {
    SLOPE: sp.Rational(7, 6),
    sym.WEIGHT: sp.Rational(5, 4),
    sym.BIAS: sp.Rational(1, 5),
    SCALE: sp.Rational(1, 3),
    INPUT: sp.Rational(1, 20),
    RANGE: sp.Rational(3, 2),
}


def by_bisection(slope, weight, bias, K0, limit, depth):
    """ρ with K^(L) = limit, from the linear recursion in mpmath."""

    def end(rho):
        K = mpmath.mpf(K0)
        for _ in range(depth):
            K += rho**2 * (weight * slope**2 * K + bias)
        return K

    with mpmath.workdps(30):
        low, high = mpmath.mpf(0), mpmath.mpf(64)
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if end(middle) < limit else (low, middle)
        assert 0 < low < high < 64
        return float(low)


@pytest.mark.parametrize("depth", [1, 2, slow(5)])
def test_rows_of_the_saddle_point_are_the_printed_recursion(depth):
    # F25 eq. (62), and the readout layer.
    rows = linearised.linearised_rows(depth)
    assert len(rows) == depth + 2
    earlier = [INPUT, *(sym.kernel(l) for l in range(1, depth + 1))]
    for l in range(1, depth + 1):
        printed = GAIN * sum(earlier[:l]) + SCALE**2 * sym.BIAS**2
        assert sp.expand(rows[l] - printed) == 0
    readout = sym.READOUT_WEIGHT**2 * SLOPE**2 * sum(earlier) + sym.READOUT_BIAS**2
    assert sp.expand(rows[-1] - readout) == 0


def test_difference_of_rows_holds_from_the_second_layer_on():
    # F25 prints (63) without a condition on l.
    rows = linearised.linearised_rows(5)
    kernels = [INPUT, *(sym.kernel(l) for l in range(1, 6))]
    gaps = [
        sp.expand(rows[l].subs(kernels[l - 1], rows[l - 1]) - (1 + GAIN) * rows[l - 1])
        for l in range(1, 6)
    ]
    assert gaps[1:] == [0] * 4
    assert gaps[0] == sp.expand(SCALE**2 * sym.BIAS**2 - INPUT)


def test_closed_forms_are_the_printed_ones():
    start = GAIN * INPUT + SCALE**2 * sym.BIAS**2
    printed = (1 + GAIN) ** (LAYER - 1) * start
    assert sp.simplify(linearised.linearised_residual_kernel() - printed) == 0
    growth = (1 + GAIN) ** DEPTH
    printed = growth * INPUT + sym.BIAS**2 / (SLOPE * sym.WEIGHT) ** 2 * (growth - 1)
    assert sp.simplify(linearised.linearised_kernel() - printed) == 0
    printed = sym.READOUT_WEIGHT**2 * SLOPE**2 * growth
    assert sp.simplify(linearised.linearised_response() - printed) == 0


@pytest.mark.parametrize("depth", [1, 2, 3, slow(7)])
def test_closed_forms_solve_the_recursion_in_exact_numbers(depth):
    kernels = [NUMBERS[INPUT]]
    for row in linearised.linearised_rows(depth)[1:-1]:
        known = {sym.kernel(l): C for l, C in enumerate(kernels)}
        kernels.append(row.subs(known).subs(NUMBERS))
    solved = linearised.linearised_residual_kernel().subs(NUMBERS)
    assert [solved.subs(LAYER, l) for l in range(1, depth + 1)] == kernels[1:]
    assert linearised.linearised_kernel().subs(DEPTH, depth).subs(NUMBERS) == sum(kernels)


def test_formulas_for_the_scaling_are_the_printed_ones():
    gain = (sym.WEIGHT * SLOPE) ** 2
    ratio = (gain * (RANGE / 2) ** 2 + sym.BIAS**2) / (gain * INPUT + sym.BIAS**2)
    printed = sp.sqrt(ratio ** (1 / DEPTH) - 1) / (sym.WEIGHT * SLOPE)
    assert sp.simplify(linearised.saturation_formula().rhs - printed) == 0
    printed = sp.sqrt(sp.log(ratio) / DEPTH) / (sym.WEIGHT * SLOPE)
    assert sp.simplify(linearised.saturation_formula(large_depth=True).rhs - printed) == 0


def test_order_and_coefficient_of_the_neglected_term():
    # F25 states that (68) neglects terms of order 1/L.
    gap = linearised.saturation_formula().rhs - linearised.saturation_formula(True).rhs
    term = linearised.neglected_term()
    assert sp.simplify(sp.diff(sp.log(term), DEPTH) + sp.Rational(3, 2) / DEPTH) == 0
    relative = []
    with mpmath.workdps(60):
        for depth in (10**3, 10**4, 10**5):
            numbers = {**NUMBERS, DEPTH: depth}
            size = mpmath.mpf(term.subs(numbers).evalf(60))
            relative.append(mpmath.mpf(gap.subs(numbers).evalf(60)) / size - 1)
    assert 0 < relative[-1] < 1e-5
    # What is left is of order L^(-5/2).
    assert float(relative[0] / relative[1]) == pytest.approx(10, rel=1e-2)
    assert float(relative[1] / relative[2]) == pytest.approx(10, rel=1e-3)


@pytest.mark.slow_but(0, 2, 5, 10, 13, 18, 21, 23)
@pytest.mark.parametrize("bias", [0.0, 0.05, 2.0])
@pytest.mark.parametrize("depth", [1, 10, 300])
@pytest.mark.parametrize("weight", [0.01, 1.25, 30.0])
def test_numbers_against_bisection(depth, weight, bias):
    network = ft.ResidualNetwork(depth=depth, weight_variance=weight, bias_variance=bias)
    found = saturation.scaling(network, np.array(0.05), "saturation", 1.2)
    with mpmath.workdps(30):
        slope, limit = 2 / mpmath.sqrt(mpmath.pi), mpmath.mpf(1.2) ** 2 / 4
    expected = by_bisection(slope, weight, bias, 0.05, limit, depth)
    assert found == pytest.approx(expected, rel=1e-15)


def test_no_digits_are_lost_in_deep_networks():
    network = ft.ResidualNetwork(depth=10**7, weight_variance=1e-6)
    exact, leading = (
        saturation.scaling(network, np.array(0.05), method, 1.0)
        for method in ("saturation", "large_depth")
    )
    assert exact == pytest.approx(leading, rel=1e-12)


@pytest.mark.parametrize("slope", [None, 1.0, 0.3])
def test_solved_linear_network_ends_at_the_edge_of_the_dynamic_range(slope):
    network = ft.ResidualNetwork(depth=30, bias_variance=0.1)
    rho = saturation.scaling(network, np.array(0.05), "saturation", 1.4, slope)
    h = sp.Symbol("h")
    line = (2 / sp.sqrt(sp.pi) if slope is None else sp.Float(slope)) * h
    solution = ft.solve(network.replace(activation=line, branch_scale=rho), 0.05)
    assert solution.kernels[-2] == pytest.approx(0.7**2, rel=1e-12)


@pytest.mark.parametrize("method", ["saturation", "large_depth"])
@pytest.mark.parametrize("K0", [0.25, 0.3, 100.0])
def test_input_that_fills_the_range_has_its_optimum_at_zero(method, K0):
    network = ft.ResidualNetwork(depth=4)
    assert saturation.scaling(network, np.array(K0), method, 1.0) == 0
    assert saturation.scaling(network, np.array(0.999 * 0.25), method, 1.0) > 0


def test_without_bias_only_the_ratio_of_range_and_input_counts():
    network = ft.ResidualNetwork(depth=6, bias_variance=0.0)
    first = saturation.scaling(network, np.array(0.05), "saturation", 1.0)
    second = saturation.scaling(network, np.array(0.0005), "saturation", 0.1)
    assert first == pytest.approx(second, rel=1e-14)
    with pytest.raises(ValueError, match="K0 must be > 0 without biases"):
        saturation.scaling(network, np.array(0.0), "saturation", 1.0)


@pytest.mark.parametrize(
    ("parameters", "slope", "match"),
    [
        ({"weight_variance": 0.0}, None, "network must have weight_variance > 0"),
        slow({"activation": sp.Symbol("x") ** 2}, None, "network must have φ'\\(0\\) ≠ 0"),
        ({"skip_scale": 0.5}, None, "network must have skip_scale=1"),
        ({}, 0.0, "slope must be > 0, got 0.0"),
        ({}, -1.0, "slope must be a finite real number >= 0, got -1.0"),
        ({}, float("inf"), "slope must be a finite real number"),
    ],
)
def test_networks_without_an_answer(parameters, slope, match):
    network = ft.ResidualNetwork(depth=3, **parameters)
    with pytest.raises(ValueError, match=match):
        saturation.scaling(network, np.array(0.05), "saturation", 1.0, slope)


def test_a_falling_activation_has_the_scaling_of_the_rising_one():
    h = sp.Symbol("h")
    rising, falling = (
        saturation.scaling(
            ft.ResidualNetwork(depth=5, activation=phi), np.array(0.05), "saturation", 1.0
        )
        for phi in (sp.tanh(h), -sp.tanh(h))
    )
    assert rising == falling > 0


def test_a_slope_of_ones_choice_takes_the_place_of_a_vanishing_one():
    network = ft.ResidualNetwork(depth=5, activation=sp.erf(sp.Symbol("h") ** 3))
    assert saturation.scaling(network, np.array(0.05), "saturation", 1.0, slope=0.5) > 0
