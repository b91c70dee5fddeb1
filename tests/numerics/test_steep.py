"""G11 of functions that are steep, or that act in the far tail of the signals only."""

import mpmath
import pytest

import fieldtheory as ft
from tests.tables import slow


def variance_of_square(slope, shift, K):
    """Var erf²(slope h − shift), from erf² − 1 = −erfc(|u|) (2 − erfc(|u|)), which keeps digits."""
    with mpmath.workdps(25):
        deviation = mpmath.sqrt(K)

        def below_one(h):
            tail = mpmath.erfc(abs(slope * h - shift))
            return -tail * (2 - tail)

        points = {deviation * t for t in range(-14, 15)}
        points |= {mpmath.mpf(shift) / slope + mpmath.mpf(j) / (2 * slope) for j in range(-6, 7)}

        def mean(f):
            return mpmath.quad(lambda h: f(h) * mpmath.npdf(h, 0, deviation), sorted(points))

        return mean(lambda h: below_one(h) ** 2) - mean(below_one) ** 2


@pytest.mark.parametrize(("slope", "shift"), [slow(1, 10), (10, 15)])
def test_fluctuations_of_a_distant_step(slope, shift):
    net = ft.ResidualNetwork(depth=1, activation=f"erf({slope}*h - {shift})", branch_scale=0.5)
    found = ft.solve(net, 0.05).G11[1, 1] * net.width
    expected = (0.25 * 1.25) ** 2 * float(variance_of_square(slope, shift, 0.05))
    assert found == pytest.approx(expected, rel=2e-12)


def test_one_kink_near_perfect_correlation_alone():
    """Price's integral of a single pair, which shares no panels with others."""
    net = ft.ResidualNetwork(depth=1, activation="max(0, h) + 1")
    tiny = net.replace(branch_scale=1e-5)
    # The correlation of two layers tends to one, and the correlator to the variance.
    G11 = ft.solve(tiny, 0.6).G11 * net.width
    assert G11[1, 2] / 1e-10 == pytest.approx(G11[2, 2], rel=1e-9)


def test_tolerance_that_rounding_allows():
    """A function whose integrals are right to eight digits: they are refused, or asked for."""
    net = ft.ResidualNetwork(depth=3, activation="sin(1000*h)/h", branch_scale=0.5)
    with pytest.raises(ArithmeticError, match=r"relative tolerance 1e-12.*\(rtol=\)"):
        _ = ft.solve(net, 0.05).output_response
    loose, tight = (ft.solve(net, 0.05, rtol=r).output_response for r in (1e-5, 1e-8))
    assert loose == pytest.approx(tight, rel=1e-5)
