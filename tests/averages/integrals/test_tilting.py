"""Error functions under a tilted Gaussian: what is recognised, and its value."""

import numpy as np
import pytest
import sympy as sp
from scipy.special import erf

from fieldtheory.averages.integrals import tilting
from tests.oracles import quadrature as oracle

x, y, z = sp.symbols("x y z", real=True)
K = np.array([[1.0, 0.5, 0.3], [0.5, 1.2, -0.25], [0.3, -0.25, 0.8]])


@pytest.mark.parametrize(
    "F",
    [
        sp.erf(x) * sp.erf(y),
        2 * sp.erf(x / 2) * sp.erf(3 * y) * sp.exp(-(z**2)) - sp.exp(-(x**2) - y**2 / 3),
        sp.erf(x) ** 2 * sp.exp(-((x + y - z) ** 2)),
        sp.erf(x) * sp.erf(-z) * sp.exp(-x * y / 5 - x**2 - y**2),
        sp.S(3),
    ],
)
def test_against_the_oracle(F):
    terms = tilting.terms_of(F, (x, y, z))
    f = sp.lambdify([x, y, z], F, ["scipy", "numpy"])
    expected = oracle.average_smooth(lambda u, v, s: f(u, v, s) + 0 * u, K, 0.2, 9.0)
    assert float(tilting.averaged(terms)(K[None])[0]) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "F",
    [
        sp.tanh(x),
        x * sp.erf(x),
        sp.erf(x - 1),
        sp.erf(x + y),
        sp.erf(x) ** 4,
        sp.exp(x),
        sp.exp(-(x**4)),
        sp.exp(sp.I * x**2),
    ],
)
def test_what_is_not_of_the_kind(F):
    assert tilting.terms_of(F, (x, y, z)) is None


def test_odd_terms_average_to_zero():
    assert tilting.terms_of(sp.erf(x) ** 3 + sp.erf(y) * sp.exp(-(x**2)), (x, y)) == ()


def test_path_of_equal_variables():
    """F and G of the same variable: the variance of erf(x) erf(y)."""
    F = sp.erf(x) * sp.erf(y)
    path = tilting.path_of(F, F, (x, y))
    value = tilting.connected(path)(K[:2, :2])
    mean = oracle.average2(lambda u, v: erf(u) * erf(v), K[:2, :2])
    expected = oracle.average2(lambda u, v: (erf(u) * erf(v) - mean) ** 2, K[:2, :2])
    assert value == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("coupling", [1e-3, 1e-8])
def test_weak_coupling_keeps_its_digits(coupling):
    """⟨erf x erf y;erf z⟩-like pairs are linear in the coupling; ⟨FG⟩ − ⟨F⟩⟨G⟩ would lose them."""
    apart = np.array([[1.0, 0.5, coupling], [0.5, 1.2, coupling], [coupling, coupling, 0.8]])
    path = tilting.path_of(sp.erf(x) * sp.erf(y), sp.erf(z) ** 2, (x, y, z))
    once, twice = (tilting.connected(path)(apart + s * (apart - apart * (abs(apart) > 0.1)))
                   for s in (0, 1))  # fmt: skip
    assert twice / once == pytest.approx(4, rel=20 * coupling**2 + 1e-12)


def test_halves():
    assert tilting.halves_of(sp.erf(x) ** 2 * sp.erf(y) * sp.erf(z), (x, y, z)) is not None
    assert tilting.halves_of(sp.erf(x) ** 3 * sp.erf(y) ** 3, (x, y)) is None
    assert tilting.halves_of(sp.erf(x + y) * sp.erf(z), (x, y, z)) is None
    assert tilting.halves_of(sp.erf(x) + sp.erf(y), (x, y)) is None
