"""What the claims of PF rest on, from weights, integrals and paths written out here."""

import numpy as np
import pytest
import sympy as sp
from scipy import integrate

from fieldtheory.literature import pf_experiments, pf_limits, pf_properties
from fieldtheory.theory import notation as sym


def numbers(matrices, seed):
    """Random numbers for the symbols of matrices."""
    rng = np.random.default_rng(seed)
    return {s: float(rng.normal()) for matrix in matrices for s in matrix}


@pytest.mark.parametrize("law", ["full", "matrix_normal"])
def test_rates_of_explicit_weights(law):
    """Moments of u + u²/2, at a small Δt, of 400,000 layers that are drawn here."""
    one, other = pf_limits.ONE, pf_limits.OTHER
    drawn = [pf_limits._WEIGHT_MEANS, pf_limits._BIAS_MEANS, pf_limits._BIASES, one, other]
    drawn += [pf_limits._ALL_WEIGHTS, pf_limits._ROWS, pf_limits._COLUMNS]
    values = numbers(drawn, 3)
    put = [np.array(matrix.subs(values), dtype=float) for matrix in drawn]
    means, bias_means, biases, x, y, entries, rows, columns = put
    rng = np.random.default_rng(4)
    count, step = 400_000, 1e-4
    normals = rng.standard_normal((count, 2, 2))
    if law == "full":
        # vec has columns one below the other.
        stacked = np.concatenate([normals[:, :, 0], normals[:, :, 1]], axis=1) @ entries.T
        noise = np.stack([stacked[:, :2], stacked[:, 2:]], axis=2)
    else:
        noise = rows @ normals @ columns
    noise_b = rng.standard_normal((count, 2)) @ biases.T

    def increment(psi):
        u = (noise @ psi[:, 0] + noise_b) * step**0.5 + (means @ psi + bias_means)[:, 0] * step
        return u + u**2 / 2

    def found(expression):
        known = values | {pf_limits.FIRST: 1, pf_limits.SECOND: 1}
        return np.array(expression.subs(known), dtype=float)

    first, second = increment(x), increment(y)
    covariance = first.T @ second / count / step
    parameters = getattr(pf_limits, law)()
    size = np.sqrt((first**2).mean(axis=0)[:, None] * (second**2).mean(axis=0)) / step
    assert np.abs((covariance - found(pf_limits.covariation(parameters))) / size).max() < 0.02
    # The odd part of an increment has the drift of its noise taken out by its mirror image.
    mirrored = ((-noise @ x[:, 0] - noise_b) * step**0.5) + (means @ x + bias_means)[:, 0] * step
    mean = ((first + mirrored + mirrored**2 / 2) / 2 / step).mean(axis=0)
    assert mean == pytest.approx(found(pf_limits.drift(parameters))[:, 0], rel=0.02)


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
