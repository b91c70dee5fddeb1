"""The saddle point is the NNGP recursion with vanishing conjugates."""

import pytest
import sympy as sp

from fieldtheory.averages import GaussianAverage
from fieldtheory.theory import notation as sym
from tests.examples import derivation


def variance(layer, pair=(0, 0), inputs=1):
    """K^(l) = Σ_m A²_lm C^(m)."""
    gamma = [sym.skip_scale(l) for l in range(layer + 1)]
    return sp.Add(
        *[sp.Mul(*gamma[m + 1 :]) ** 2 * sym.kernel(m, pair, inputs) for m in range(layer + 1)]
    )


def coefficients(layer, depth):
    if layer == depth + 1:
        return sym.READOUT_WEIGHT**2, sym.READOUT_BIAS**2
    rho = sym.branch_scale(layer)
    return rho**2 * sym.WEIGHT**2, rho**2 * sym.BIAS**2


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_one_input(depth):
    found = derivation(depth).saddle_point
    assert list(found.kernels) == [sym.kernel(l) for l in range(depth + 2)]
    assert found.kernels[sym.kernel(0)] == sym.data_kernel()
    for l in range(1, depth + 2):
        a, c = coefficients(l, depth)
        h = sym.signal(l - 1)
        typed = a * GaussianAverage(sym.phi(h) ** 2, h, variance(l - 1)) + c
        assert sp.expand(found.kernels[sym.kernel(l)] - typed) == 0


def test_conjugates_vanish():
    found = derivation(3).saddle_point
    assert found.conjugates == {sym.conjugate(l): 0 for l in range(5)}


@pytest.mark.parametrize("depth", [1, 2])
def test_two_inputs(depth):
    found = derivation(depth, 2).saddle_point
    assert list(found.kernels) == [
        sym.kernel(l, pair, 2) for l in range(depth + 2) for pair in sym.pairs(2)
    ]
    for l in range(1, depth + 2):
        a, c = coefficients(l, depth)
        x, y = (sym.signal(l - 1, sample, 2) for sample in range(2))
        xx, xy, yy = (variance(l - 1, pair, 2) for pair in sym.pairs(2))
        averages = [
            GaussianAverage(sym.phi(x) ** 2, x, xx),
            GaussianAverage(sym.phi(x) * sym.phi(y), (x, y), [[xx, xy], [xy, yy]]),
            GaussianAverage(sym.phi(y) ** 2, y, yy),
        ]
        for pair, average in zip(sym.pairs(2), averages, strict=True):
            typed = a * average + c
            assert sp.expand(found.kernels[sym.kernel(l, pair, 2)] - typed) == 0
