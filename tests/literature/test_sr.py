"""What the claims of SR rest on, from recursions and networks written out here."""

import math

import numpy as np
import pytest
import sympy as sp

from fieldtheory.inference import power_coefficients
from fieldtheory.literature import sr_kernels, sr_limits, sr_tangent, sr_universality
from fieldtheory.networks.residual import input_kernel
from fieldtheory.numerics.solution import solve
from fieldtheory.theory import notation as sym


@pytest.mark.slow
def test_limits_of_the_collapse_are_told_from_others_of_the_same_size(monkeypatch):
    """36π²/σ_w² is the limit at σ_w² = 2 alone."""
    found = sr_kernels._collapsed()
    assert list(found.values()) == pytest.approx([1, 1, 1], abs=5e-5)
    other = 36 * sp.pi**2 / sym.WEIGHT**2
    monkeypatch.setattr(sr_kernels, "collapse", lambda: (-2, other))
    seen = sr_kernels._collapsed()
    assert seen["σ_w² = 2"] == pytest.approx(found["σ_w² = 2"])
    assert all(abs(seen[name] - 1) > 0.1 for name in ("σ_w² = 0.5", "σ_w² = 1"))


def test_the_collapse_of_a_standard_resnet():
    """L² (1 − C_L) and Θ_L(x, x')/Θ_L(x, x) from recursions in the angle, to L = 60,000.

    C' = (C + s (C + f))/(1 + s), and in units of Q_L both Θ grow by s/(1 + s) times what the slopes
    ⟨φφ⟩ and ⟨φ'φ'⟩ leave of it.
    """
    power, limit = sr_kernels.collapse()
    weight, layers = 0.7, 60_000
    r = weight / (weight + 2)
    angle, own, both = 1.0, 1.0, math.cos(1.0)
    for _ in range(layers):
        gain = r * (math.sin(angle) - angle * math.cos(angle)) / math.pi
        both = both * (1 - r * angle / math.pi) + r * math.cos(angle) + gain
        angle = 2 * math.asin(math.sqrt(math.sin(angle / 2) ** 2 - gain / 2))
        own += r
    expected = 4.5 * math.pi**2 * (1 + 2 / weight) ** 2
    assert float(limit.subs(sym.WEIGHT, sp.sqrt(weight))) == pytest.approx(expected, rel=1e-12)
    assert layers**2 * (1 - math.cos(angle)) == pytest.approx(expected, rel=5e-3)
    assert both / own == pytest.approx(float(sr_tangent.remaining_correlation()), rel=5e-3)
    assert power == -2


def test_gradients_of_explicit_weights():
    """One weight and all weights of layer 1, both of y_L^1 in a ReLU network without scaling."""
    depth, width, draws = 5, 64, 500
    rng = np.random.default_rng(1)
    h = rng.standard_normal((draws, width))
    activity = np.maximum(h, 0)
    slopes = []
    for _ in range(depth):
        W = rng.standard_normal((draws, width, width)) * np.sqrt(2 / width)
        slopes.append(np.eye(width) + W * (h > 0)[:, None, :])
        h = h + np.einsum("sij,sj->si", W, np.maximum(h, 0))
    behind = np.zeros((draws, width))
    behind[:, 0] = 1
    for slope in slopes[:0:-1]:
        behind = np.einsum("si,sij->sj", behind, slope)
    entry = behind[:, 0] ** 2 * activity[:, 0] ** 2
    # The parameters w of W = σ_w w/√N with σ_w² = 2.
    layer = 2 / width * (behind**2).sum(axis=1) * (activity**2).sum(axis=1)
    values = {"\\sigma_{w}": sp.sqrt(2), "N": width, "l": 1, "L": depth, "s_0": 1}
    for found, derived in (
        (entry, sr_tangent.entry_gradient()),
        (layer, sr_tangent.layer_gradient()),
    ):
        expected = derived.subs({symbol: values[symbol.name] for symbol in derived.free_symbols})
        assert abs(found.mean() - float(expected)) < 4 * found.std() / np.sqrt(draws)
    assert layer.mean() > 10 * entry.mean()


@pytest.mark.slow
def test_the_rate_of_convergence_with_the_sum_after_the_layer():
    """Proposition 7 holds for every schedule if the sum starts at k > L."""
    low, high = sr_limits._between()
    for found in (sr_limits.tail_ratios(1), sr_limits.fast_tail_ratios(1)):
        assert len(found) == 3
        assert all(low < ratio < high for ratio in found.values())


def test_why_two_layers_are_universal_and_one_is_not():
    """At variance one ⟨φφ⟩ has the powers 0, 1 and all even ones of the correlation C."""
    C = sp.Symbol("C", real=True)
    ones = {sr_kernels.OWN: 1, sr_kernels.OTHER: 1, sr_kernels.PAIR: C}
    plain = {sym.BIAS: 0, sym.WEIGHT: 1, sr_kernels.SCALE: 1}
    average = (sr_kernels.relu_step() - sr_kernels.PAIR).subs(plain | ones)
    for value in (-0.9, 0.2, 0.7):
        curvature = average.diff(C, 2).subs(C, value)
        assert float(curvature) == pytest.approx(0.5 / math.pi / math.sqrt(1 - value**2), rel=1e-12)
    assert [float(average.diff(C, n).subs(C, 0)) for n in (0, 1, 3, 5)] == pytest.approx(
        [0.5 / math.pi, 0.25, 0, 0], abs=1e-15
    )


def test_coefficients_of_the_second_layer():
    """The part Ψ_1 of Q_2 on the circle, from its values at 64 angles."""
    network = sr_kernels.stable_network("none", 2)
    angles = 2 * np.pi * np.arange(64) / 64
    X = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    layers = solve(network, input_kernel(X, network)).kernels
    mu = np.fft.fft((layers[2] - layers[1])[0]).real / 64
    assert mu.min() > 0
    assert sr_universality.least_coefficient("none", 2, sr_kernels.UNBIASED) > 0
    # Without bias one layer lacks odd degrees from 3 on; Ψ_1 of a layer that adds nothing is Ψ_0.
    biased, unbiased = (
        power_coefficients(sr_kernels.stable_network([0.0], 1, **parameters), count=10)
        for parameters in (sr_kernels.BIASED, sr_kernels.UNBIASED)
    )
    assert biased.min() > 0
    assert [n for n, b in enumerate(unbiased) if b == 0] == [3, 5, 7, 9]
    assert np.abs(np.fft.fft((layers[1] - layers[0])[0]).real[3:32:2]).max() < 1e-12
