"""ν(γ) exact and as printed, and what follows for depth, width and skip scale."""

import numpy as np
import pytest
import sympy as sp
from mpmath import mp

from fieldtheory.criticality import (
    closure_deficit,
    closure_four_point,
    critical_network,
    critical_point,
    optimal_aspect_ratio,
    optimal_skip_scale,
    vertex_growth,
    vertex_slope,
)
from tests.oracles.four_point import four_point
from tests.tables import slow

H = sp.Symbol("h")


def relu(h):
    return np.maximum(h, 0)


def leaky(h):
    return np.where(h > 0, h, -h / 2)


def selu(h):
    return 1.0507009873554805 * np.where(h > 0, h, 1.6732632423543772 * np.expm1(h))


def printed(gamma, up, down):
    """(B.29)."""
    A2, A4 = (up**2 + down**2) / 2, (up**4 + down**4) / 2
    return (1 - gamma**2) * ((1 - gamma**2) * (3 * A4 / A2**2 - 1) + 4 * gamma**2)


def exact(gamma, up, down):
    """(B.29), and ⟨z|z| w|w|⟩ of correlation γ^s for the first Hermite component of φ²."""
    ratio, gamma = ((up**2 - down**2) / (up**2 + down**2)) ** 2, mp.mpf(gamma)

    def odd(c):
        return 2 / mp.pi * ((1 + 2 * c**2) * mp.asin(c) + 3 * c * mp.sqrt(1 - c**2))

    count = int(45 / -mp.log(abs(gamma))) + 2
    total = mp.fsum(odd(gamma**s) for s in range(1, count))
    return printed(gamma, up, down) + 2 * (1 - gamma**2) ** 2 * ratio * total


@pytest.mark.parametrize("gamma", [0.0, 0.3, 0.5, 0.9, 1.0, -0.6])
@pytest.mark.parametrize(
    ("activation", "slopes"),
    [("relu", (1, 0)), (sp.Max(0, H) - sp.Min(0, H) / 2, (1, -0.5)), ("abs", (1, -1))],
    ids=str,
)
def test_as_printed(activation, slopes, gamma):
    found = vertex_slope(activation, gamma, closure=True)
    assert found == pytest.approx(printed(gamma, *slopes), rel=1e-13, abs=1e-15)


@pytest.mark.slow_but(0, 1, 3, 5, 7)
@pytest.mark.parametrize("gamma", [0.3, 0.5**0.5, 0.99, -0.6])
@pytest.mark.parametrize(("activation", "slopes"), [("relu", (1, 0)), ("leaky_relu", (1, 0.01))])
def test_exact(activation, slopes, gamma):
    assert vertex_slope(activation, gamma) == pytest.approx(float(exact(gamma, *slopes)), rel=1e-12)


@pytest.mark.parametrize("gamma", [0.998, -0.998])
def test_tail_of_a_slow_sum(gamma, monkeypatch):
    whole = vertex_slope("relu", gamma)
    monkeypatch.setattr(vertex_growth, "_TERMS", 300)
    assert vertex_slope("relu", gamma) == pytest.approx(whole, rel=1e-11)


@pytest.mark.slow_but(0)
@pytest.mark.parametrize(
    ("activation", "phi", "gamma"),
    [
        ("relu", relu, 0.5**0.5),
        ("relu", relu, -0.5),
        (sp.Max(0, H) - sp.Min(0, H) / 2, leaky, 0.8),
    ],
    ids=["relu", "relu, negative", "leaky"],
)
def test_vertex_grows_by_it_in_every_layer(activation, phi, gamma):
    weight = critical_point(activation, gamma).weight_variance
    _, V = four_point(phi, gamma, weight, 0.0, 1.0, 90)
    assert V[90] - V[89] == pytest.approx(vertex_slope(activation, gamma), rel=1e-7)
    assert abs(V[90] - V[89] - vertex_slope(activation, gamma, closure=True)) > 0.05


@pytest.mark.parametrize(("activation", "phi"), [("tanh", np.tanh), slow("selu", selu)])
def test_class_of_vanishing_kernels(activation, phi):
    gamma = 0.6
    weight = critical_point(activation, gamma).weight_variance
    K, V = four_point(phi, gamma, weight, 0.0, 0.3, 160)
    ratio = V / K**2
    growth = np.array([ratio[80] - ratio[40], (ratio[160] - ratio[80]) / 2]) / 40
    expected = vertex_slope(activation, gamma)
    # Corrections fall off as 1/l.
    assert abs(growth[1] / expected - 1) < min(0.03, 0.7 * abs(growth[0] / expected - 1))
    if activation == "tanh":
        assert expected == pytest.approx(2 / 3 * (1 - gamma**4), rel=1e-14)
        assert vertex_slope("tanh", gamma, closure=True) == pytest.approx(expected, rel=1e-14)
    else:
        assert vertex_slope("selu", gamma, closure=True) < 0.8 * expected


@pytest.mark.slow_but(0)
@pytest.mark.parametrize("gamma", [0.5, pytest.param(-0.4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("curvature", [0.0, 0.5])
def test_what_the_closure_misses_where_kernels_vanish(curvature, gamma):
    """Terms of relative order K for φ''(0) ≠ 0, else K²."""
    phi = sp.tanh(H) + sp.Rational(curvature) * H**2 / 2
    network = critical_network(phi, gamma, depth=160)
    K, V = four_point(
        lambda h: np.tanh(h) + curvature * h**2 / 2, gamma, network.weight_variance, 0.0, 0.2, 160
    )
    missing = (V - closure_four_point(network, 0.2)) / K**2
    limit = closure_deficit(phi, gamma)
    if curvature:
        # Corrections fall off as ln(l)/l.
        assert abs(missing[160] / limit - 1) < min(0.15, abs(missing[80] / limit - 1))
    else:
        assert limit == 0.0
        assert missing[160] == pytest.approx(missing[80] / 2, rel=0.1)
        assert 0 < abs(missing[160]) < 0.01


def test_rises_before_it_falls_for_relu_alone():
    gamma = np.linspace(0, 1, 101)
    for activation, rises in (("relu", True), ("abs", False), ("tanh", False)):
        steps = np.diff(vertex_slope(activation, gamma))
        assert (steps[:40] > 0).all() if rises else (steps <= 1e-12).all()
        assert (np.diff(vertex_slope(activation, gamma, closure=True)) < 1e-12).all()
    assert vertex_slope("relu", 0.56**0.5) == pytest.approx(5.0, abs=0.02)
    assert vertex_slope("relu", [[0.0, 1.0]]).shape == (1, 2)


def test_aspect_ratio_is_its_inverse():
    gamma = np.array([0.0, 0.5, 0.9])
    found = optimal_aspect_ratio("relu", gamma, outputs=10)
    np.testing.assert_allclose(found, 4 / 50 / vertex_slope("relu", gamma), rtol=1e-14)
    assert found[1] < found[0] < found[2]
    assert optimal_aspect_ratio("tanh", 1.0) == np.inf
    assert optimal_aspect_ratio("tanh", 0.5, closure=True) == optimal_aspect_ratio("tanh", 0.5)


@pytest.mark.slow_but(1, 3)
@pytest.mark.parametrize("closure", [False, True])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_skip_scale_of_deep_networks(activation, closure):
    for ratio in (0.5, 5.0, 500.0):
        gamma = optimal_skip_scale(activation, ratio, outputs=2, closure=closure)
        assert optimal_aspect_ratio(activation, gamma, 2, closure) == pytest.approx(ratio, rel=1e-9)
    # 1 − γ*² falls off as 1/r.
    found = [1 - optimal_skip_scale(activation, r, closure=closure) ** 2 for r in (1e3, 1e4)]
    assert found[0] / found[1] == pytest.approx(10, rel=2e-3)


def test_skip_scale_of_shallow_networks():
    shallow = 0.5 * optimal_aspect_ratio("relu", 0.0)
    assert optimal_skip_scale("relu", shallow, closure=True) == 0.0
    assert optimal_skip_scale("tanh", 0.5 * optimal_aspect_ratio("tanh", 0.0)) == 0.0
    gamma = optimal_skip_scale("relu", shallow)
    values = vertex_slope("relu", [0.9 * gamma, gamma, 1.1 * gamma, 0.0])
    assert values.argmax() == 1 and values[1] > 1.3 * values[3]
    # Below the threshold of a network without skip connections, but above that of the best one.
    between = 0.9 * optimal_aspect_ratio("relu", 0.0)
    assert optimal_aspect_ratio("relu", optimal_skip_scale("relu", between)) == pytest.approx(
        between, rel=1e-10
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: vertex_slope("relu", 1.1), "skip_scale must be a number from -1 to 1, got 1.1"),
        (lambda: vertex_slope("relu", "x"), "skip_scale must be a real number"),
        (lambda: vertex_slope("softplus", 0.5), "must have a critical point"),
        (lambda: closure_deficit("relu", 0.5), "must be smooth at zero"),
        (lambda: closure_deficit("elu", 0.5), "must be smooth at zero"),
        (lambda: optimal_aspect_ratio("relu", 0.5, outputs=0), "outputs must be"),
        (lambda: optimal_skip_scale("relu", 0.0), "aspect_ratio must be a finite real number > 0"),
        (lambda: optimal_skip_scale("relu", -1.0), "aspect_ratio must be"),
        (lambda: optimal_skip_scale("relu", np.inf), "aspect_ratio must be"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call()
