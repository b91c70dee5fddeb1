"""Orders 1/N and 1/N² of 20 and 100 layers against simulation, and what the closure of V misses.

Kernels are of order one in all layers: for γ = 1 ρ√L is 2 (erf), 3 (tanh) or 1, else ρ² = 1 − γ².
Simulated are up to 192 neurons without weights, whose law is that of explicit weights. Beside every
layer stands the average over the deeper half: where layers forget one another, it is known better.
"""

import numpy as np
import pytest

from tests.montecarlo.comparison import p_value
from tests.numerics.neurons.test_finite_width import PHI, largest, panels
from tests.numerics.test_narrow_networks import K0, drawn, fits, orders
from tests.oracles import neurons, sampling, weights
from tests.oracles.recursion import Net
from tests.tables import slow, some

NAMES, SKIPS, DEPTHS = ("erf", "tanh", "relu", "gelu"), (0.0, 0.7, 1.0), (20, 100)
SCALES = {"erf": 2, "tanh": 3, "relu": 1, "gelu": 1}  # ρ √L where γ = 1
WIDTHS = np.array([12, 16, 24, 48, 96, 192])
# Of ReLU for γ = 0.7 and GELU for γ < 1, whose kernels are far from Gaussian at N = 12.
WIDER = np.array([32, 48, 64, 96, 128, 192])
FAR = [("relu", 0.7), ("gelu", 0.0), ("gelu", 0.7)]
CASES = [(name, skip, depth) for depth in DEPTHS for name in NAMES for skip in SKIPS]
QUICK = [("tanh", 0.0, 20)]
SAMPLES = {case: 1500 for case in CASES} | {
    ("erf", 0.7, 20): 6000,
    ("erf", 1.0, 20): 3000,
    ("tanh", 0.7, 20): 9000,
    ("tanh", 1.0, 20): 2000,
    ("relu", 0.7, 20): 25_000,
    ("relu", 1.0, 20): 3500,
    ("gelu", 0.7, 20): 9000,
    ("gelu", 1.0, 20): 5000,
    ("erf", 1.0, 100): 2500,
    ("tanh", 0.7, 100): 4000,
    ("tanh", 1.0, 100): 2500,
    ("relu", 0.7, 100): 3500,
    ("relu", 1.0, 100): 3500,
    ("gelu", 0.0, 100): 3000,
    ("gelu", 1.0, 100): 3500,
}


def deep(name, skip, depth):
    scale = SCALES[name] * depth**-0.5 if skip == 1 else (1 - skip**2) ** 0.5
    return Net((scale,) * depth, (skip,) * depth, 1.25, 0.05, 1.25, 0.05)


def with_average(values):
    """Behind all layers (..., n) their average from the middle on."""
    if np.ndim(values) == 0:
        return values
    middle = values.shape[-1] // 2
    average = values[..., middle:].mean(axis=-1, keepdims=True)
    return np.concatenate([values, average], axis=-1)


def averaged(found):
    return sampling.Sampled(*(sampling.Estimate(*map(with_average, x)) for x in found))


def fitted_orders(case):
    """Fits of 1/N and of 1/N², and by how many standard errors the closure of V is off."""
    name, skip, _ = case
    net, widths = deep(*case), WIDER if (name, skip) in FAR else WIDTHS
    known = {field: tuple(map(with_average, x)) for field, x in orders(net, name).items()}
    found = [averaged(x) for x in drawn(net, name, widths, SAMPLES[case], CASES.index(case))]
    first, second = (list(fits(known, found, widths, order)) for order in (1, 2))
    closed = with_average(neurons.closure(net, K0, PHI[name][0], panels(name, K0)))
    off = [abs(closed[x.layer] - x.value) / x.error for x in first if x.field == "vertex"]
    return first, second, max(off)


def seen_deep(rows, *fields):
    """By how many standard errors a term is seen in the output or the deeper half."""
    last = {field: max(row.layer for row in rows if row.field == field) for field in fields}
    return max(row.seen for row in rows if row.layer >= last.get(row.field, np.inf) - 1)


@pytest.mark.parametrize("case", some(CASES, QUICK))
def test_both_orders_of_deep_networks(case):
    first, second, closure_off = fitted_orders(case)
    for row in first + second:
        assert abs(row.z) < 4, row
        assert row.p_value > 1e-4, row
    assert seen_deep(first, "mean", "variance") > 10
    assert seen_deep(second, "variance", "third") > 10
    # Without skip connections the closure is exact.
    _, skip, _ = case
    assert closure_off > 10 if skip else closure_off < 4


@pytest.mark.parametrize(
    ("name", "skip", "depth", "N"),
    [("relu", 0.7, 20, 8), slow("erf", 1.0, 100, 8), slow("gelu", 0.0, 100, 8)],
)
def test_networks_without_weights_have_the_law_of_explicit_weights(name, skip, depth, N):
    net, phi, count = deep(name, skip, depth), PHI[name][0], 3000
    chain = sampling.Chain(net, K0, phi, panels(name, K0))
    targets, _ = chain.draw(np.random.default_rng(1), N, count)
    without = chain.C[1:] + targets[:, :, 0].T
    explicit = weights.sample(net, phi, N, count, seed=2, K0=K0)[:, 1:, 0, 0]
    assert p_value(without, explicit) > 1e-3
    other = weights.sample(net, phi, N - 2, count, seed=3, K0=K0)[:, 1:, 0, 0]
    assert p_value(without, other) < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(("name", "skip"), [("erf", 1.0), ("tanh", 0.7)])
def test_explicit_weights_of_deep_networks(name, skip):
    """Plain averages over networks of 20 layers see the shift of the mean."""
    N, count, net = 32, 20_000, deep(name, skip, 20)
    C = weights.sample(net, PHI[name][0], N, count, seed=4, K0=K0)[:, 2:, 0, 0]
    known = orders(net, name)
    for quantity, found in (("mean", C), ("variance", (C - C.mean(axis=0)) ** 2)):
        terms = [np.broadcast_to(x, 22)[2:] / N**k for k, x in enumerate(known[quantity])]
        rest, error = found.mean(axis=0) - sum(terms), found.std(axis=0) / count**0.5
        assert largest(rest / error) < 4, quantity
        if quantity == "mean":
            assert largest((rest + terms[1]) / error) > 10
