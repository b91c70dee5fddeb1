"""Averages whose closed forms are small differences: against the same integrals to 40 digits."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from fieldtheory.compiling.explanation import explain
from fieldtheory.networks.activations import as_activation
from fieldtheory.numerics.infinite_width.layer_functions import LayerFunctions, layer_functions
from fieldtheory.theory.elementary_averages import K_XX, K_XY
from tests.tables import crossed, slow

# Of each the functions of trigonometric and hyperbolic waves, (weight, frequency, phase): sums of
# weight cos(frequency h + phase), whose averages are elementary.
WAVES = {
    "1 - cos(h)": [(1, 0, 0), (-1, 1, 0)],
    "cos(h) - cos(2*h)": [(1, 1, 0), (-1, 2, 0)],
    "sin(h)**3": [(0.75, 1, -0.5), (-0.25, 3, -0.5)],
    "sin(h)*cos(2*h)": [(0.5, 3, -0.5), (-0.5, 1, -0.5)],
    "cosh(h) - 1": [(1, 1j, 0), (-1, 0, 0)],
    "sin(h) - sin(2*h)/2": [(1, 1, -0.5), (-0.5, 2, -0.5)],
}
VARIANCES = (1e-8, 1e-4, 0.6, 30.0)
CORRELATIONS = (1e-10, -1e-4, 0.3, -0.99)


def terms(waves: list, square: bool) -> list:
    """e^{i k h} with their weights, of φ or of φ²."""
    single = [
        (mpmath.mpf(w) / 2 * mpmath.expjpi(sign * phase), sign * mpmath.mpc(k))
        for w, k, phase in waves
        for sign in (1, -1)
    ]
    if not square:
        return single
    return [(a * b, k + m) for a, k in single for b, m in single]


def of_pair(parts: list, p: float, q: float, r: float, connected: bool = False) -> mpmath.mpf:
    """Σ a b e^{−(k²p + m²q)/2} e^{−kmr}, without the product of means if connected."""
    total = mpmath.mpf(0)
    for a, k in parts:
        for b, m in parts:
            mixed = mpmath.expm1(-k * m * r) if connected else mpmath.exp(-k * m * r)
            total += a * b * mpmath.exp(-(k * k * p + m * m * q) / 2) * mixed
    return total.real


def slope(parts: list) -> list:
    return [(a * 1j * k, k) for a, k in parts]


@pytest.fixture(autouse=True)
def digits():
    with mpmath.workdps(150):
        yield


def found(activation: str) -> LayerFunctions:
    return layer_functions(as_activation(activation))


@pytest.mark.parametrize("activation", WAVES)
@pytest.mark.parametrize("variance", VARIANCES)
def test_averages_of_one_variable(activation: str, variance: float) -> None:
    parts, averages = terms(WAVES[activation], False), found(activation)
    K = mpmath.mpf(variance)
    exact = of_pair(parts, K, K, K)
    assert averages.second_moment(variance) == pytest.approx(float(exact), rel=1e-12, abs=0)
    squares = terms(WAVES[activation], True)
    for order, name in ((1, "susceptibility"), (2, "curvature")):
        value = sum(a * (-k * k / 2) ** order * mpmath.exp(-k * k * K / 2) for a, k in squares)
        # Relative to the natural size M/Kⁿ.
        size = float(abs(exact) / K**order)
        got = getattr(averages, name)(variance)
        assert got == pytest.approx(float(value.real), rel=1e-12, abs=1e-12 * size)


@pytest.mark.slow_but(24)
@pytest.mark.parametrize("activation", WAVES)
@pytest.mark.parametrize(("variance", "ratio"), crossed(VARIANCES, (1.0, 1.7)))
def test_averages_of_pairs(activation: str, variance: float, ratio: float) -> None:
    p, q = variance, ratio * variance
    averages, first = found(activation), terms(WAVES[activation], False)
    square = terms(WAVES[activation], True)
    parts = {
        "covariance": (first, False),
        "covariance_susceptibility": (slope(first), False),
        "connected": (square, True),
    }
    for c in CORRELATIONS:
        r = c * float(np.sqrt(p * q))
        for name, (sums, connected) in parts.items():
            exact, one, other = (
                of_pair(sums, *K, connected) for K in ((p, q, r), (p,) * 3, (q,) * 3)
            )
            got = getattr(averages, name)(p, q, r)
            size = float(mpmath.sqrt(abs(one * other)))
            assert got == pytest.approx(float(exact), rel=0, abs=1e-12 * size), (name, c)


@pytest.mark.parametrize(
    "name",
    ("erf", "relu", slow("gelu"), "sin", "cos", slow("exp(-h**2)"), "exp", slow("sinh"), "sign"),
)
def test_usual_forms_stay_whole(name: str) -> None:
    averages = found(name).averages
    forms = [averages.moment, averages.moment.diff(K_XX)]
    forms += [averages.covariance, averages.covariance.diff(K_XY)]
    for row in explain(forms).rows:
        assert row.rule == "closed form" and "mpmath" not in row.reason


@pytest.mark.parametrize("deviations", [slow(4.0), 7.0])
def test_thresholds_far_from_the_signals(deviations: float) -> None:
    """⟨φ²⟩ of a ramp that begins so many deviations away."""
    s = mpmath.mpf(0.2 / deviations)
    at = mpmath.mpf(0.2) / s
    ramp = (s**2 + mpmath.mpf(0.2) ** 2) * mpmath.ncdf(-at) - mpmath.mpf(0.2) * s * mpmath.npdf(at)
    assert found("clip(h-0.2,0,1)").second_moment(float(s) ** 2) == pytest.approx(
        float(ramp), rel=1e-11
    )
