"""The blocks of the Hessian against the formulas, written down independently."""

import itertools

import pytest
import sympy as sp

from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.theory import notation as sym
from tests.examples import derivation
from tests.expanding import expand_averages
from tests.theory.test_saddle_point import coefficients, variance


def skip(l, m):
    """A_lm = γ_{m+1} ... γ_l for m <= l."""
    return sp.Mul(*[sym.skip_scale(j) for j in range(m + 1, l + 1)]) if m <= l else sp.S.Zero


def slope(layer):
    """M'(K^(l)) = ⟨φ'² + φφ''⟩."""
    h = sym.signal(layer)
    phi = sym.phi(h)
    return GaussianAverage(phi.diff(h) ** 2 + phi * phi.diff(h, 2), h, variance(layer))


def typed_S21(k, l, depth):
    diagonal = -(sym.INPUT_WIDTH if k == 0 else 1) if k == l else 0
    if l >= k:
        return sym.WIDTH * diagonal
    return sym.WIDTH * coefficients(k, depth)[0] * slope(k - 1) * skip(k - 1, l) ** 2


def typed_S22(k, l, depth):
    if min(k, l) == 0:
        return sp.S.Zero
    k, l = min(k, l), max(k, l)
    x, y = sym.signal(k - 1), sym.signal(l - 1)
    a = coefficients(k, depth)[0] * coefficients(l, depth)[0]
    if k == l:
        correlator = ConnectedCorrelator(sym.phi(x) ** 2, sym.phi(x) ** 2, x, variance(k - 1))
    else:
        cross = sp.expand(skip(l - 1, k - 1) * variance(k - 1))
        K = [[variance(k - 1), cross], [cross, variance(l - 1)]]
        correlator = ConnectedCorrelator(sym.phi(x) ** 2, sym.phi(y) ** 2, (x, y), K)
    return sym.WIDTH * a * correlator.rewrite(GaussianAverage)


@pytest.mark.slow_but(0, 1)
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_blocks_are_the_typed_formulas(depth):
    hessian = derivation(depth).hessian
    size = depth + 2
    assert hessian.S11 == sp.zeros(size, size)
    assert hessian.S12 == hessian.S21.T
    assert hessian.S21.is_lower
    for k, l in itertools.product(range(size), repeat=2):
        assert expand_averages(hessian.S21[k, l] - typed_S21(k, l, depth)) == 0
        S22 = hessian.S22[k, l].rewrite(GaussianAverage)
        assert expand_averages(S22 - typed_S22(k, l, depth)) == 0


def test_connected_correlators_are_gathered():
    S22 = derivation(3).hessian.S22
    for k, l in itertools.product(range(1, 5), repeat=2):
        assert len(S22[k, l].atoms(ConnectedCorrelator)) == 1
        assert not S22[k, l].atoms(GaussianAverage)


def test_covariance_responds_by_the_second_derivatives_of_its_average():
    """⟨φ'φ'⟩ and (1/2)⟨φ''φ⟩, (1/2)⟨φφ''⟩: the halves that F25 (116) leaves out."""
    S21 = derivation(1, 2).hessian.S21
    x, y = (sym.signal(0, sample, 2) for sample in range(2))
    K = [[sym.kernel(0, (min(i, j), max(i, j)), 2) for j in range(2)] for i in range(2)]
    f, g = sym.phi(x), sym.phi(y)
    a = sym.WIDTH * coefficients(1, 1)[0]
    expected = [
        f.diff(x, 2) * g / 2,
        f.diff(x) * g.diff(y),
        f * g.diff(y, 2) / 2,
    ]
    for column, integrand in enumerate(expected):
        assert expand_averages(S21[4, column] - a * GaussianAverage(integrand, (x, y), K)) == 0
