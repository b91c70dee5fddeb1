"""What the claims of PF rest on, from weights, integrals and paths written out here."""

import numpy as np
import pytest
import sympy as sp
from scipy import integrate

from fieldtheory.diffusions.pf_claims import pf_experiments, pf_limits, pf_properties
from fieldtheory.theory import notation as sym


def test_the_time_to_infinity():
    """Feller's integral for dx = √(1 + x²)/2 dB + (1 + x²)/4 dt, done by quadrature."""

    def beyond(y):
        return integrate.quad(lambda x: np.exp(-2 * (x - y)), y, np.inf)[0]

    found = integrate.quad(lambda y: beyond(y) * 8 / (1 + y**2), 0, np.inf)[0]
    assert float(pf_properties.time_to_infinity("swish")) == pytest.approx(found, rel=1e-8)
    assert pf_properties.time_to_infinity("tanh") == sp.oo


@pytest.mark.parametrize("variance", [0.2, 1.0])
def test_the_edge_of_chaos(variance):
    """One layer keeps the variance, and a small distance of two inputs, by Gauss and Hermite."""
    weight, bias = pf_experiments.edge_of_chaos(variance)
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    weights = weights / weights.sum()
    phi = np.tanh(np.sqrt(variance) * nodes)
    assert bias + weight * weights @ phi**2 == pytest.approx(variance, rel=1e-9)
    assert weight * weights @ (1 - phi**2) ** 2 == pytest.approx(1, rel=1e-9)


def test_growth_from_the_definition():
    """|μ_x| and |σ_x| of three neurons for swish and ψ(x) = x."""
    x = 1000 * np.array([2.0, -1.0, 2.0]) / 3
    S = 1 + x @ x / 3
    size = np.sqrt(3) * (S / 4 + np.sqrt(S) / 2)
    found = pf_properties.growth("swish", "linear")["|x| = 1000"]
    assert found == pytest.approx(size / 1001, rel=1e-12)


def test_what_is_not_regular():
    """φ(0) = 1/2, and a kink."""
    found = pf_limits.irregularities(("tanh", "logistic", "relu"))
    assert found["tanh"] == 0
    assert found["logistic"] > 0
    assert found["relu"] > 0


def test_variances_of_independent_parameters():
    """σ_b² + σ_w² |ψ|²/D, written out."""
    known = {pf_limits.ONE[0]: 3, pf_limits.ONE[1]: 4, sym.WEIGHT: 2, sym.BIAS: 1}
    known |= {pf_limits.FIRST: 1}
    variance = pf_limits.covariation(pf_limits.independent(), pf_limits.ONE, pf_limits.ONE)
    assert variance.subs(known) == sp.diag(51, 51)
