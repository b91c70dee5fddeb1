"""G11 of functions that are steep, or that act in the far tail of the signals only."""

import pytest

import fieldtheory as ft


def test_tolerance_that_rounding_allows():
    """A function whose integrals are right to eight digits: they are refused, or asked for."""
    net = ft.ResidualNetwork(depth=3, activation="sin(1000*h)/h", branch_scale=0.5)
    with pytest.raises(ArithmeticError, match=r"relative tolerance 1e-12.*\(rtol=\)"):
        _ = ft.solve(net, 0.05).output_response
    loose, tight = (ft.solve(net, 0.05, rtol=r).output_response for r in (1e-5, 1e-8))
    assert loose == pytest.approx(tight, rel=1e-5)
