"""Critical weights and biases of every kind of activation."""

import numpy as np
import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.criticality import critical_network, critical_point, susceptibilities

H = sp.Symbol("h")
# Activation, class, C_W for γ = 0, power p and coefficient a_p of M(K) = A_2 (K + a_p K^p + ...).
CLASSES = [
    ("relu", "scale-invariant", 2.0, None, None),
    ("leaky_relu", "scale-invariant", 2 / (1 + 1e-4), None, None),
    ("linear", "scale-invariant", 1.0, None, None),
    ("abs", "scale-invariant", 1.0, None, None),
    (sp.sqrt(H**2) * 3 + H, "scale-invariant", 0.1, None, None),
    ("tanh", "K*=0", 1.0, 2.0, -2.0),
    ("erf", "K*=0", np.pi / 4, 2.0, -2.0),
    ("sin", "K*=0", 1.0, 2.0, -1.0),
    ("tanh(2*h) + h/10", "K*=0", 1 / 2.1**2, 2.0, -160 / 21),
    (sp.tanh(H) + H**2 / 4, "K*=0", 1.0, 2.0, 0.75 * 0.25 - 2),
    ("softsign", "K*=0", 1.0, 1.5, -4 * np.sqrt(2 / np.pi)),
    ("elu", "K*=0", 1.0, 1.5, -np.sqrt(2 / np.pi)),
    ("selu", "K*=0", 2 / (1.0507009873554805**2 * (1 + 1.6732632423543772**2)), 1.5, -1.17580887),
    ("hard_tanh", "K*=0", 1.0, np.inf, -1.0),
    ("relu6", "K*=0", 2.0, np.inf, -1.0),
]
# PDLT section 5.3.4 prints these digits.
HALF_STABLE = [
    ("swish", 14.32017362, 1.98800468, 0.55514317),
    ("gelu", (3 + np.sqrt(17)) / 2, 1.98305826, 0.17292239),
]
NONE = [
    ("logistic", r"φ\(0\) = 0.5 is not 0"),
    ("softplus", r"φ\(0\) = 0.693147 is not 0"),
    ("cos", r"φ\(0\) = 1 is not 0"),
    ("sign", "φ jumps at h = 0"),
    ("sign(h)*abs(h)**(1/3)", "has no derivative of order 1 on one side of h = 0"),
    ("square", r"φ'\(0\) = 0"),
    ("softshrink", r"φ'\(0\) = 0"),
    ("sinh", "M.K. bends above its tangent"),
    # φφ'' >= 0, whose average is below rounding at small variances.
    ("relu(h-0.5)**2", r"no K\* > 0 has ⟨φφ''⟩ = 0"),
    ("max(0,abs(h)-0.3)**2", r"no K\* > 0 has ⟨φφ''⟩ = 0"),
    ("max(0,h**2-1)", r"no K\* > 0 has ⟨φφ''⟩ = 0"),
]


@pytest.mark.parametrize(("activation", "kind", "weight", "power", "bend"), CLASSES, ids=str)
def test_classes(activation, kind, weight, power, bend):
    found = critical_point(activation)
    assert (found.kind, found.bias_variance) == (kind, 0.0)
    assert found.weight_variance == pytest.approx(weight, rel=1e-8)
    if power is None:
        assert found.kernel is None and found.small.scale_invariant
    else:
        assert found.kernel == 0.0
        assert float(found.small.power) == power
        assert float(found.small.bend) == pytest.approx(bend, rel=1e-8)
    assert kind in repr(found)


@pytest.mark.slow_but(1)
@pytest.mark.parametrize(("activation", "kernel", "weight", "bias"), HALF_STABLE)
def test_half_stable_points_are_those_of_the_book(activation, kernel, weight, bias):
    found = critical_point(activation)
    assert found.kind == "half-stable"
    expected = pytest.approx([kernel, weight, bias], rel=1e-8)
    assert [found.kernel, found.weight_variance, found.bias_variance] == expected


@pytest.mark.parametrize("gamma", [-0.9, 0.0, 0.999])
@pytest.mark.parametrize("activation", ["relu", "tanh", "elu", "selu", "gelu", "relu6"])
def test_both_susceptibilities_are_one(activation, gamma):
    """(B.19) at K*, or close to it where K* = 0."""
    point = critical_point(activation, gamma)
    near = {"relu": 3.0, "gelu": point.kernel}.get(activation, 1e-10)
    found = susceptibilities(critical_network(activation, gamma), near)
    tolerance = 1e-4 if activation in ("elu", "selu") else 1e-9
    assert found.parallel == pytest.approx(1.0, abs=tolerance)
    assert found.perpendicular == pytest.approx(1.0, abs=tolerance)


@pytest.mark.parametrize(("activation", "start"), [("relu", 0.3), ("gelu", None)])
def test_kernels_stay_at_the_fixed_point(activation, start):
    K0 = critical_point(activation).kernel if start is None else start
    net = critical_network(activation, skip_scale=0.8, depth=200)
    s = ft.solve(net, K0)
    np.testing.assert_allclose(s.kernels, K0, rtol=1e-10)
    np.testing.assert_allclose(s.response, 1.0, rtol=1e-9)


def test_read_in_and_readout_are_critical_without_skip_connection():
    net = critical_network("gelu", skip_scale=0.9, depth=3)
    feed_forward = critical_network("gelu", depth=3)
    for end in ("readin", "readout"):
        for kind in ("weight", "bias"):
            value = getattr(net, f"{end}_{kind}_variance")
            assert value == pytest.approx(getattr(feed_forward, f"{kind}_variance"), rel=1e-14)
    other = critical_network("relu", 0.5, depth=3, width=7, readout_weight_variance=1.0)
    assert (other.width, other.readout_weight_variance, other.branch_scale) == (7, 1.0, 1.0)


@pytest.mark.slow_but(1, 2, 3, 5)
@pytest.mark.parametrize(("activation", "why"), NONE)
def test_activations_without_a_critical_point_say_why(activation, why):
    with pytest.raises(ValueError, match=rf"^activation must have a critical point[^\n]*{why}"):
        critical_network(activation, 0.5)


@pytest.mark.parametrize("value", [1, -1, 1.0, 1.2, np.nan, True, "x", (0.5, 0.6)])
@pytest.mark.parametrize("door", [critical_point, critical_network])
def test_skip_scales_are_refused_in_the_same_words(door, value):
    with pytest.raises((TypeError, ValueError)) as caught:
        door("relu", value)
    assert str(caught.value) == (
        f"skip_scale must be a number between -1 and 1, got {value!r}: at γ² = 1 no weights are "
        "critical (PDLT-B, after (B.21))"
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: critical_point("nonsense"), "activation must be"),
        (lambda: critical_network("relu", 0.5, weight_variance=1.0), "weight_variance is fixed"),
        (lambda: critical_network("relu", 0.5, branch_scale=1.0), "branch_scale is fixed"),
        (lambda: critical_network("relu", 0.5, depth=0), "depth must be"),
        (lambda: critical_network("relu", 0.5, widht=5), "did you mean width"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call()


def test_no_critical_point():
    for text in ("Heaviside(h)*exp(h)", "h*Heaviside(h-1)"):
        with pytest.raises(ValueError, match="has a finite ⟨φ'²⟩: activation must have no jumps"):
            critical_point(text)
    with pytest.raises(ValueError, match=r"^activation must have a critical point, exp has none: "):
        critical_point("exp")
