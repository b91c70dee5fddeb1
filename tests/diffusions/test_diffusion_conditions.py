"""The conditions of the limit for given φ and ψ: a table of cases, and the growth of functions."""

import pytest
import sympy as sp

from fieldtheory.diffusions.diffusion_limit.diffusion_conditions import (
    diffusion_conditions,
    first_break,
    growth_power,
)
from fieldtheory.diffusions.diffusion_network import DiffusionNetwork
from fieldtheory.networks.activations import as_activation, h

ZERO, SMOOTH, NOISE, TAILS, INPUT, GROWTH = "zero", "smooth", "noise", "tails", "input", "growth"
ORDER = (ZERO, SMOOTH, NOISE, TAILS, "bounded", INPUT, GROWTH)
# φ, ψ, what fails, and whether there is a limit.
CASES = [
    ("tanh", "linear", set(), True),
    ("erf", "tanh", set(), True),
    ("sin", "linear", set(), True),
    ("x/(1 + x**2)", "linear", set(), True),
    ("swish", "linear", {GROWTH}, True),
    ("gelu", "softplus", {GROWTH}, True),
    ("swish", "tanh", set(), True),
    ("swish", "sqrt(sqrt(1 + x**2))", set(), True),
    ("swish", "(1 + x**2)**(3/10)", {GROWTH}, True),
    ("gelu", "relu", {INPUT, GROWTH}, True),
    ("tanh", "relu", {INPUT}, True),
    ("tanh", "squared_relu", {INPUT, GROWTH}, True),
    ("tanh", "sign", {INPUT}, True),
    ("tanh", "sqrt(abs(x))", {INPUT}, True),
    ("tanh", "x**2", {GROWTH}, True),
    ("tanh", "x*log(1 + x**2)", {GROWTH}, True),
    ("tanh", "exp", {GROWTH}, True),
    ("tanh", "sinh", {GROWTH}, True),
    ("tanh", "x*sin(x)", set(), True),
    ("linear", "linear", set(), True),
    ("sinh", "linear", set(), True),
    ("exp(x) - 1", "tanh", set(), True),
    ("x**2", "linear", {NOISE, GROWTH}, True),
    ("x**3", "linear", {NOISE}, True),
    ("relu", "linear", {SMOOTH}, False),
    ("abs", "tanh", {SMOOTH}, False),
    ("leaky_relu", "linear", {SMOOTH}, False),
    ("sign(x)*sqrt(abs(x))", "linear", {SMOOTH}, False),
    ("sign", "linear", {SMOOTH, NOISE}, False),
    ("max(x, 0) + 1 + sign(x - 2)", "linear", {SMOOTH}, False),
    ("x + abs(x)**1.5", "linear", {SMOOTH}, False),
    ("softsign", "linear", {SMOOTH}, True),
    ("elu", "linear", {SMOOTH, GROWTH}, True),
    ("squared_relu", "tanh", {SMOOTH, NOISE}, True),
    ("hard_tanh", "linear", {SMOOTH}, True),
    ("hard_swish", "tanh", {SMOOTH}, True),
    ("softplus", "linear", {ZERO, GROWTH}, False),
    ("exp", "linear", {ZERO, GROWTH}, False),
    ("cos", "tanh", {ZERO, NOISE}, False),
]


def failing(found):
    return {name for name, c in zip(ORDER, found.conditions, strict=True) if not c.holds}


@pytest.mark.parametrize("phi, psi, fails, limit", CASES)
def test_what_fails_is_found(phi, psi, fails, limit):
    found = diffusion_conditions(as_activation(phi), as_activation(psi))
    assert failing(found) == fails
    assert found.has_limit == limit
    assert found.cannot_explode == (GROWTH not in fails)
    assert found.theorem_applies == fails.isdisjoint({ZERO, SMOOTH, TAILS, INPUT})
    # What follows is said of every failure.
    lines = str(found).splitlines()
    assert lines[0] == f"φ = {as_activation(phi).name}, ψ = {as_activation(psi).name}"
    assert len(lines) == 1 + len(ORDER) + len(fails)
    assert sum(line.startswith("    → ") for line in lines) == len(found.failing)
    assert all(c.consequence and c.found for c in found.failing)


@pytest.mark.parametrize("phi", [phi for phi, psi, fails, limit in CASES if not limit])
def test_networks_without_a_limit_have_no_drift(phi):
    """The same refusal as that of the network's own derivatives at 0."""
    with pytest.raises(ValueError, match="activation must"):
        _ = DiffusionNetwork(activation=phi).slopes


@pytest.mark.parametrize(
    "name, order, point",
    [
        ("softsign", 2, 0),
        ("elu", 2, 0),
        ("hard_tanh", 1, -1),
        ("hard_swish", 1, -3),
        ("squared_relu", 2, 0),
        ("x*abs(x)**3", 4, 0),
        ("abs(x)**3", 3, 0),
        ("sign", 0, 0),
        ("x**2*abs(x - 2)", 1, 2),
    ],
)
def test_kinks_are_located(name, order, point):
    assert first_break(as_activation(name), 4)[:2] == (order, point)


@pytest.mark.parametrize(
    "expression, power",
    [
        (h, 1),
        (sp.sqrt(1 + h**2), 1),
        (h**3 / (1 + h**2), 1),
        ((1 + h**2) ** sp.Rational(1, 3), sp.Rational(2, 3)),
        (sp.Max(0, h) ** 2, 2),
        (sp.Min(0, h), 1),
        (sp.tanh(h), 0),
        (h * sp.exp(-(h**2)), 0),
        (h * (1 + sp.tanh(h)) / 2, 1),
    ],
)
def test_powers_of_growth(expression, power):
    assert growth_power(expression) == pytest.approx(float(power), abs=1e-6)


def test_exponentials_are_faster_than_powers():
    assert growth_power(sp.exp(h)) is None and growth_power(sp.sinh(h)) is None


def test_where_a_kink_is_not_at_zero_the_limit_stands():
    (condition,) = diffusion_conditions(as_activation("hard_tanh"), as_activation("linear")).failing
    assert "near 0 alone" in condition.consequence
    one_at_zero = as_activation("x + max(x, 0)**3 + max(x - 1, 0)")
    (condition,) = diffusion_conditions(one_at_zero, as_activation("linear")).failing
    assert condition.found == "φ''' jumps at 0"
