"""φ that oscillate, beside kinks and at signals whose oscillations float64 cannot resolve."""

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import fieldtheory as ft
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.numerics.layer_averages.entries import network_entries


def averages(activation):
    return network_entries(ft.ResidualNetwork(depth=1, activation=activation))


# ⟨φ²⟩, in which all but the products of waves and ramps are elementary.
MOMENTS = {
    "relu(h)+sin(h)": lambda K: K / 2 + waves(K) + K * mpmath.exp(-K / 2),
    "abs(h)+cos(h)": lambda K: (
        K + 1 - waves(K) + 2 * mpmath.sqrt(2 * K / mpmath.pi) * mpmath.hyp1f1(1, 0.5, -K / 2)
    ),
    "heaviside(h)*sin(h)": lambda K: waves(K) / 2,
    "relu(h)*sin(h)": lambda K: K / 4 * (1 - (1 - 4 * K) * mpmath.exp(-2 * K)),
    "abs(h)*sin(h)": lambda K: K / 2 * (1 - (1 - 4 * K) * mpmath.exp(-2 * K)),
}


def waves(K):
    """⟨sin²⟩."""
    return -mpmath.expm1(-2 * K) / 2


@pytest.mark.parametrize("activation", MOMENTS)
@pytest.mark.parametrize("variance", [1e-4, 0.5, 30.0])
def test_waves_beside_kinks(activation, variance):
    with mpmath.workdps(40):
        K = mpf(variance)
        found = averages(activation)
        assert found.second_moment(variance) == pytest.approx(
            float(MOMENTS[activation](K)), rel=1e-12
        )
        slope = float(mpmath.diff(MOMENTS[activation], K))
        assert found.susceptibility(variance) == pytest.approx(slope, rel=1e-12)
        # The same input twice.
        assert found.covariance(variance, variance, variance) == pytest.approx(
            float(MOMENTS[activation](K)), rel=1e-12
        )


@pytest.mark.parametrize("activation", ["h+sin(sqrt(1+h**2))", "h+tanh(h)*sin(h)", "h+sin(sin(h))"])
@pytest.mark.parametrize("exponent", range(4, 140, 8))
def test_derivatives_of_moments_of_waves_are_right_or_raise(activation, exponent):
    """M = K + o(1), which a difference of terms of the size of √K told by chance."""
    K = 2.0**exponent
    found = averages(activation)
    try:
        assert found.susceptibility(K) == pytest.approx(1, rel=np.exp(-K / 2) + 2 / K + 1e-12)
    except QuadratureError:
        assert K > 1e3
    try:
        # ⟨(h⁴ − 6 K h² + 3 K²) sin²(...)⟩/(4 K⁴) is of the order of K^(-5/2) at most.
        assert abs(found.curvature(K)) < K**-2 + np.exp(-K / 2)
    except QuadratureError:
        assert K > 1e3
