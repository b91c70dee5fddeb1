"""ρ* of many pairs by interpolation, against the optima themselves and against plain functions."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.scaling import exact
from fieldtheory.scaling.interpolated_pairs import in_blocks
from tests.tables import slow


def kernel_of(inputs, one_norm, scale=0.05):
    samples = np.random.default_rng(3).normal(size=(inputs, 12))
    if one_norm:
        samples /= np.linalg.norm(samples, axis=1, keepdims=True) / 12**0.5
    return scale * samples @ samples.T / 12


def pairs_of(kernel):
    first, second = np.triu_indices(len(kernel), 1)
    return kernel[first, first], kernel[second, second], kernel[first, second]


class Counted:
    """A function of pairs that counts what it is asked."""

    def __init__(self, function):
        self.function, self.asked = function, 0

    def __call__(self, p, q, r):
        self.asked += len(p)
        return np.atleast_2d(self.function(p, q, r))


def found(function, pairs, size=1024):
    counted, count = Counted(function), len(pairs[0])
    values, times = None, np.zeros(count, dtype=int)
    for index, part in in_blocks(counted, *pairs, size):
        values = np.full((len(part), count), np.nan) if values is None else values
        values[:, index] = part
        times[index] += 1
    assert (times == 1).all()
    return values, counted.asked


def correlation(p, q, r):
    return r / np.sqrt(p * q)


@pytest.mark.parametrize("activation", ["erf", "cos", *map(slow, ("tanh", "hard_tanh", "sech"))])
@pytest.mark.parametrize("depth", [3, 50])
def test_scalings_of_inputs_of_one_norm(activation, depth):
    """At depth 3 another maximum is the highest for sech below c = −0.65."""
    network = ft.ResidualNetwork(depth=depth, activation=activation)
    kernel = kernel_of(40, one_norm=True)
    pairs = pairs_of(kernel)
    exactly = exact.optima([network], *pairs)
    values, asked = found(lambda *K: exact.optima([network], *K), pairs)
    np.testing.assert_allclose(values, exactly, rtol=1e-9)
    assert asked < (0.2 if (activation, depth) != ("sech", 3) else 1.2) * len(pairs[0])
    at = np.triu_indices(40, 1)
    np.testing.assert_allclose(ft.optimal_scaling(network, kernel)[at], exactly[0], rtol=1e-9)


@pytest.mark.parametrize("activation", ["erf", *map(slow, ("tanh", "x/(1+Abs(x))", "sech"))])
def test_scalings_of_inputs_of_different_norms(activation):
    networks = [ft.ResidualNetwork(depth=depth, activation=activation) for depth in (5, 20)]
    pairs = pairs_of(kernel_of(260, one_norm=False))
    values, asked = found(lambda *K: exact.optima(networks, *K), pairs, size=2048)
    some = np.random.default_rng(4).choice(len(pairs[0]), 150, replace=False)
    exactly = exact.optima(networks, *(k[some] for k in pairs))
    np.testing.assert_allclose(values[:, some], exactly, rtol=1e-9)
    # Of shallow networks with sech another maximum becomes the highest.
    assert asked < (0.5 if activation != "sech" else 1.5) * len(pairs[0])


def test_pairs_of_one_correlation_and_different_norms():
    norms = np.geomspace(0.02, 0.09, 60)
    first, second = np.triu_indices(60, 1)
    p, q = norms[first], norms[second]
    values, asked = found(lambda p, q, r: np.sqrt(1 + p + q + r), (p, q, 0.3 * np.sqrt(p * q)))
    np.testing.assert_allclose(values[0], np.sqrt(1 + p + q + 0.3 * np.sqrt(p * q)), rtol=1e-9)
    assert asked < 0.2 * len(p)


@pytest.mark.slow
def test_deep_limit_is_interpolated_too():
    network = ft.ResidualNetwork(depth=50, activation="erf")
    kernel = kernel_of(24, one_norm=True)
    values = ft.optimal_scaling(network, kernel, method="deep_limit")
    for i, j in ((0, 1), (10, 20)):
        pair = kernel[np.ix_([i, j], [i, j])]
        alone = ft.optimal_scaling(network, pair, method="deep_limit")
        assert values[i, j] == pytest.approx(alone[0, 1], rel=1e-9)


def jumping(p, q, r):
    c = correlation(p, q, r)
    return np.where(c > 0.3, 2.0 + c, np.maximum(-c, 0.0))


def steep(p, q, r):
    return 1.0 + 1.0 / (1.0 + 1e6 * (correlation(p, q, r) - 0.1) ** 2)


def logarithmic(p, q, r):
    c = correlation(p, q, r)
    with np.errstate(all="ignore"):
        return np.where(np.abs(c) < 1, 30.0 - np.log1p(-c), 99.0)


@pytest.mark.parametrize("function", [jumping, steep, logarithmic])
@pytest.mark.parametrize("one_norm", [True, False])
def test_what_is_not_smooth_is_computed(function, one_norm):
    """Jumps, zeros, peaks, and pairs nearly parallel, opposite or without an input."""
    p, q, r = pairs_of(kernel_of(120, one_norm))
    ugly = np.array([1 - 1e-9, -1 + 1e-9, 1 - 1e-15, 1.0, -1.0, 0.0, 1e-300, 0.3, 0.3 + 1e-12])
    if one_norm:
        r[: len(ugly)] = ugly * np.sqrt(p * q)[: len(ugly)]
    else:
        p[:3], q[3:6], r[:6] = 0.0, 1e-30, 0.0
    with np.errstate(all="ignore"):
        exactly = function(p, q, r)
        values, _ = found(function, (p, q, r))
    np.testing.assert_allclose(values[0], exactly, rtol=1e-9, atol=1e-300)


def test_where_the_nodes_have_no_optimum_pairs_are_computed():
    p, q, r = pairs_of(kernel_of(300, one_norm=False))
    known = set(zip(p, q, strict=True))

    def only_pairs(p, q, r):
        if not set(zip(p, q, strict=True)) <= known:
            raise ValueError("network must have a response with a maximum in ρ")
        return correlation(p, q, r) + 2

    values, _ = found(only_pairs, (p, q, r))
    np.testing.assert_array_equal(values[0], correlation(p, q, r) + 2)


def test_an_error_of_the_pairs_themselves_is_theirs():
    network = ft.ResidualNetwork(depth=4, activation="relu")
    with pytest.raises(ValueError, match="maximum in ρ; that of relu has none"):
        ft.optimal_scaling(network, kernel_of(40, one_norm=True))


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_few_pairs_are_computed(count):
    p = np.full(count, 0.05)
    c = np.linspace(-0.5, 0.5, count)
    values, asked = found(lambda p, q, r: r + 1.0, (p, p, c * p)) if count else (None, 0)
    assert asked == count
    assert list(in_blocks(Counted(lambda *K: K[0]), p[:0], p[:0], p[:0], 5)) == []
    if count:
        np.testing.assert_array_equal(values[0], c * p + 1)


def test_blocks_are_no_larger_than_asked():
    sizes = []

    def rough(p, q, r):
        sizes.append(len(p))
        return np.where(np.arange(len(p)) % 2, 1.0, 2.0)[None]

    p = np.full(1000, 0.05)
    for _ in in_blocks(rough, p, p, np.linspace(-0.04, 0.04, 1000), 64):
        pass
    assert max(sizes) <= 64
