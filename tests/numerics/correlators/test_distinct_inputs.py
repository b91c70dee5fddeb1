"""Series in correlations of different inputs, given the one that two pairs have in common."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.averages.tolerance import relative_tolerance
from fieldtheory.numerics.correlators import distinct_pairs, wide_correlators
from fieldtheory.numerics.correlators.distinct_correlators import DistinctCorrelators
from fieldtheory.numerics.correlators.distinct_inputs import DistinctInputs
from fieldtheory.numerics.observables.two_layers import TwoLayers
from fieldtheory.numerics.several_inputs import pair_blocks, pair_fluctuations
from tests.numerics.correlators.test_wide_correlators import deviation
from tests.numerics.test_several_inputs import slow

K0 = np.array(
    [[1.3, 0.5, -0.3, 0.1], [0.5, 0.9, 0.2, 0.3], [-0.3, 0.2, 2.0, 0.4], [0.1, 0.3, 0.4, 1.1]]
)


def signals_of(name, K=K0, **setting):
    net = ft.ResidualNetwork(activation=name, **{"depth": 2, "branch_scale": 0.5, **setting})
    return ft.solve(net, K).pair_theory.signals


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("hardtanh", {}),
        ("relu6", {"skip_scale": 0.8, "branch_scale": 1.0}),
        ("tanh", {"branch_scale": 1.5}),
        ("hardtanh", {"skip_scale": -0.7}),
        slow("hard_swish", {"branch_scale": 1.0}),
        slow("softplus", {}),
    ],
)
def test_the_same_as_averages(name, setting):
    """Closed forms, or products of two planes."""
    signals = signals_of(name, **setting)
    series = DistinctCorrelators(signals)
    assert series.resolved
    found = series.values()
    expected = pair_fluctuations._pair_by_pair(signals_of(name, **setting))
    assert deviation(found, expected) < 1e-10
    np.testing.assert_allclose(found, found.transpose(2, 3, 0, 1), rtol=0, atol=1e-14)


def test_layers_without_a_branch_are_one():
    """Where closed forms of two equal signals have half of the digits."""
    found = DistinctCorrelators(signals_of("hardtanh", branch_scale=[0.0, 0.5])).values()
    np.testing.assert_allclose(found[0, :, 1], found[0, :, 0], rtol=0, atol=1e-15)
    np.testing.assert_allclose(found[1, :, 2], found[0, :, 2], rtol=0, atol=1e-15)
    usual = signals_of("hardtanh", depth=1)
    expected = pair_fluctuations._pair_by_pair(usual)
    assert deviation(found[1:, :, 1:], expected) < 1e-10


PHI = {
    "hardtanh": lambda h: np.clip(h, -1, 1),
    "softsign": lambda h: h / (1 + np.abs(h)),
    "relu6": lambda h: np.clip(h, 0, 6),
    "tanh": np.tanh,
}
KINKS = {"hardtanh": (-1, 1), "softsign": (0,), "relu6": (0, 6), "tanh": (0,)}


def dense_rule(kinks, deviation, count=16, panels=10, reach=8.0):
    """Nodes of a signal and their weights, in panels that end at its kinks."""
    inside = [kink / deviation for kink in kinks if abs(kink) < reach * deviation]
    ends = np.unique([*np.linspace(-reach, reach, panels + 1), *inside])
    x, w = np.polynomial.legendre.leggauss(count)
    half, middle = np.diff(ends)[:, None] / 2, (ends[1:] + ends[:-1])[:, None] / 2
    z = (middle + half * x).ravel()
    return deviation * z, (half * w).ravel() * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)


def dense_sum(phi, kinks, covariance):
    """⟨φ_a φ_b ; φ_a φ_c⟩ of three signals a, b and c by a rule for each of three variables.

    c, with the inner integrals, and b and a by panels that end at kinks.
    """
    (a, aw) = dense_rule(kinks, np.sqrt(covariance[0, 0]))
    rest = covariance[1:, 1:] - np.outer(covariance[0, 1:], covariance[0, 1:]) / covariance[0, 0]
    slope = covariance[0, 1:] / covariance[0, 0]
    joint = first = second = 0.0
    for x, weight in zip(a, aw, strict=True):
        means = slope * x
        b, bw = dense_rule([kink - means[0] for kink in kinks], np.sqrt(rest[0, 0]))
        along = means[1] + rest[0, 1] / rest[0, 0] * b
        noise = np.sqrt(rest[1, 1] - rest[0, 1] ** 2 / rest[0, 0])
        inner = np.empty_like(b)
        for n, centre in enumerate(along):
            c, cw = dense_rule([kink - centre for kink in kinks], noise, 12, 8)
            inner[n] = phi(centre + c) @ cw
        of_b = phi(means[0] + b)
        joint += weight * phi(x) ** 2 * (of_b * inner) @ bw
        first += weight * phi(x) * of_b @ bw
        second += weight * phi(x) * inner @ bw
    return joint - first * second


@pytest.mark.parametrize("name", ["hardtanh", slow("softsign"), slow("relu6"), slow("tanh")])
def test_a_dense_sum_over_three_signals(name):
    """Of pairs of a layer that have one input in common."""
    signals = signals_of(name, depth=1)
    inputs, two = DistinctInputs(signals), TwoLayers(signals, 0, 0)
    found = inputs.sharing(two, 0, inputs.later(two)[0])[1, 2]
    expected = dense_sum(PHI[name], KINKS[name], K0[:3, :3])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", ["hardtanh", "softsign", slow("hard_swish"), slow("tanh")])
def test_two_inputs_by_common_factors(name):
    """Correlators and slopes, by integrals over planes."""
    signals = signals_of(name, K0[:3, :3])
    with relative_tolerance(1e-11):
        pairs = np.flatnonzero(signals.pairs[0] != signals.pairs[1])
        used = np.ones((len(signals.K), len(pairs)), dtype=bool)
        correlators = pair_blocks.correlators(signals, pairs, "")
        slopes = pair_blocks.slopes(signals, pairs, used)
    inputs = DistinctInputs(signals_of(name, K0[:3, :3]))
    for two in inputs.layers:
        later = inputs.later(two)
        for found, expected in (
            (distinct_pairs.correlators(inputs, two, later), correlators[two.k, two.l]),
            *(
                [(distinct_pairs.slopes(inputs, two, later), slopes[two.k, two.l])]
                if two.k < two.l
                else []
            ),
        ):
            apart = np.abs(found - expected).max(axis=-1) / np.abs(expected).max(axis=-1)
            assert apart.max() < 1e-10


@pytest.mark.parametrize("name", ["swish", slow("softplus"), slow("mish")])
def test_wide_signals_see_smooth_functions_as_if_they_had_kinks(name):
    """Both series, each of panels, and two of the inputs alone, whose integrals are others'."""
    K = 700 * K0
    signals = signals_of(name, K, branch_scale=1.0)
    found, plan = DistinctCorrelators(signals), wide_correlators.orders(signals)
    assert found.resolved and plan.error <= signals.allowed
    values = found.values()
    assert deviation(wide_correlators.correlators(signals, plan), values) < 1e-11
    two = [0, 1]
    expected = pair_fluctuations._pair_by_pair(
        signals_of(name, K[np.ix_(two, two)], branch_scale=1.0)
    )
    alpha, beta = signals.pairs
    (chosen,) = np.nonzero((alpha < 2) & (beta < 2))
    assert deviation(values[:, chosen][:, :, :, chosen], expected) < 1e-10


def test_wide_signals_are_not_taken_for_resolved():
    """Panels see all of a steep φ, but series between layers take more orders than there are."""
    signals = signals_of("tanh", 1000 * K0, branch_scale=1.0)
    assert wide_correlators.orders(signals).error > signals.allowed


def test_nearly_parallel_inputs_are_left_to_others():
    K = np.array([[1.0, 0.999, 0.1], [0.999, 1.0, 0.11], [0.1, 0.11, 1.0]])
    assert not DistinctCorrelators(signals_of("hardtanh", K)).resolved
    assert not DistinctCorrelators(signals_of("sign", K0)).resolved
    assert not DistinctCorrelators(signals_of("hardtanh", np.diag([1.0, 0.0, 1.0]))).resolved


@pytest.mark.parametrize("name", ["hardtanh", slow("softsign")])
def test_fields_of_many_inputs_take_these_series(name, monkeypatch):
    """And their values are those of a part of the inputs, found by closed forms and planes."""
    X = np.random.default_rng(0).standard_normal((6, 30)) / 5
    net, two = ft.ResidualNetwork(depth=4, activation=name, branch_scale=0.5), [1, 3]
    K = X @ X.T
    s, few = ft.solve(net, K), ft.solve(net, K[np.ix_(two, two)])
    taken = []
    values = DistinctCorrelators.values

    def seen(self):
        taken.append(self.orders)
        return values(self)

    monkeypatch.setattr(DistinctCorrelators, "values", seen)
    for module in (pair_fluctuations, pair_blocks):
        monkeypatch.setattr(module, "_QUICK", 0.0)
    G11, shift = s.G11, s.mean_shift
    assert taken
    monkeypatch.undo()
    alpha, beta = np.triu_indices(6)
    (chosen,) = np.nonzero(np.isin(alpha, two) & np.isin(beta, two))
    scale = np.abs(few.G11).max()
    np.testing.assert_allclose(
        G11[:, :, chosen[:, None], chosen], few.G11, rtol=1e-8, atol=1e-10 * scale
    )
    np.testing.assert_allclose(shift[:, two][:, :, two], few.mean_shift, rtol=1e-8)


@pytest.mark.parametrize("second", [(0, 0), (0, 2), (1, 1), (1, 2)])
def test_dense_sums_over_signals_of_two_layers(second):
    """⟨φ_a φ_b in a layer ; φ_c φ_d in a later one⟩, by Gauss's rule for four narrow signals."""
    K = K0[:3, :3] / 20
    net = ft.ResidualNetwork(activation="tanh", depth=1, branch_scale=0.5, skip_scale=0.9)
    solution = ft.solve(net, K)
    found = DistinctCorrelators(solution.pair_theory.signals).values()
    first, later = solution.kernels[:2]
    covariance = np.block([[first, 0.9 * first], [0.9 * first, later]])
    nodes, weights = np.polynomial.hermite_e.hermegauss(32)
    z = np.stack(np.meshgrid(*[nodes] * 4, indexing="ij")).reshape(4, -1)
    w = np.prod(np.meshgrid(*[weights / weights.sum()] * 4, indexing="ij"), axis=0).ravel()
    pairs = list(zip(*np.triu_indices(3), strict=True))
    j = pairs.index(second)
    for i, (a, b) in enumerate(pairs):
        four = [a, b, 3 + second[0], 3 + second[1]]
        values, vectors = np.linalg.eigh(covariance[np.ix_(four, four)])
        phi = np.tanh(vectors * np.sqrt(np.maximum(values, 0.0)) @ z)
        one, other = phi[0] * phi[1], phi[2] * phi[3]
        expected = w @ (one * other) - (w @ one) * (w @ other)
        assert found[0, i, 1, j] == pytest.approx(expected, rel=1e-10, abs=1e-14), (i, j)


def test_functions_that_grow_are_left_to_others():
    """The nodes end where four of them are not yet small."""
    assert not DistinctCorrelators(signals_of("h - h**3/6")).resolved
    assert DistinctCorrelators(signals_of("relu")).resolved


def test_a_pair_that_hardly_correlates_is_left_to_others(monkeypatch):
    """What it leaves of odd φ is small; the other pairs take these series."""
    K = K0[:3, :3].copy()
    K[0, 1] = K[1, 0] = 3e-7
    net = ft.ResidualNetwork(depth=2, activation="softsign", branch_scale=0.5, bias_variance=0.0)
    expected = ft.solve(net, K).mean_shift
    monkeypatch.setattr(pair_blocks, "_QUICK", 0.0)
    found = ft.solve(net, K).mean_shift
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    assert 0 < abs(found[-1, 0, 1]) < 1e-6 * abs(found[-1, 0, 0])
