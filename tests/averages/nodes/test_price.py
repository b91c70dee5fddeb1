"""Price's theorem of nodes whose functions have kinks and jumps, against differences in numbers."""

import numpy as np
import pytest
import sympy as sp

from fieldtheory.averages import GaussianAverage
from fieldtheory.compiling.functions import lambdify
from fieldtheory.networks.activations import as_activation
from tests.tables import crossed, slow

x, y = sp.symbols("x y", real=True)
a, b = sp.symbols("a b", positive=True)
c = sp.Symbol("c", real=True)
STEP = 1e-4
# Kinks that cancel, jumps between branches that are no polynomials, roots that are irrational.
ACTIVATIONS = [
    "where(h>1,tanh(h),0)",
    "max(0,1-abs(h))",
    "sign(h)*min(abs(h),1)",
    "clip(tanh(h),-1,1)",
    *map(slow, ("hardshrink", "where(h>1,exp(-h),0)", "where(abs(h)>0.5,tanh(h),0)")),
    *map(slow, ("max(0,h**2-h-1)", "clip(h**2-h,-0.1,1)")),
]


def difference(function, place):
    near, far = (function(place + k * STEP) - function(place - k * STEP) for k in (1, 2))
    return (8 * near - far) / (12 * STEP)


@pytest.mark.slow_but(2)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_derivatives_are_differences(name):
    phi = as_activation(name)
    moment = GaussianAverage(phi(x) ** 2, x, a)
    M, slope, curvature = (lambdify([a], e) for e in (moment, moment.diff(a), moment.diff(a, 2)))
    assert slope(0.7) == pytest.approx(difference(M, 0.7), rel=2e-9)
    assert curvature(0.7) == pytest.approx(difference(slope, 0.7), rel=2e-9)
    pair = GaussianAverage(phi(x) * phi(y), (x, y), [[a, c], [c, b]])
    values, by_c, by_a = (lambdify([a, b, c], e) for e in (pair, pair.diff(c), pair.diff(a)))
    K = (0.7, 0.5, 0.3)
    assert by_c(*K) == pytest.approx(difference(lambda s: values(0.7, 0.5, s), 0.3), rel=2e-9)
    assert by_a(*K) == pytest.approx(difference(lambda s: values(s, 0.5, 0.3), 0.7), rel=2e-9)


@pytest.mark.slow_but(4)
@pytest.mark.parametrize(
    ("name", "off"),
    crossed(["hardshrink", "softshrink", "heaviside(h-1)*tanh(h)"], [1e-3, 1e-9]),
)
def test_derivatives_of_nearly_parallel_signals(name, off):
    """∂/∂K_xy + ∂/∂K_xx along equal variances is the derivative of what they have in common."""
    phi = as_activation(name)
    pair = GaussianAverage(phi(x) * phi(y), (x, y), [[a, c], [c, b]])
    values, by_c, by_a = (lambdify([a, b, c], e) for e in (pair, pair.diff(c), pair.diff(a)))
    K = np.array([0.7, 0.7, 0.7 * (1 - off)])
    # All entries by one factor: kinks stay where they are, the correlation too.
    slope = 2 * K[0] * by_a(*K) + K[2] * by_c(*K)
    expected = difference(lambda s: values(*(K * s)), 1.0)
    size = K[2] * abs(by_c(*K))
    assert slope == pytest.approx(expected, abs=2e-9 * size + 2e-9 * values(*K))
