"""Output kernels and responses of many inputs, against the recursion over the layers."""

import tracemalloc
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import sympy as sp

import fieldtheory as ft
from fieldtheory.averages.routes import SETTINGS
from fieldtheory.numerics.infinite_width import kernels
from fieldtheory.numerics.pair_maps import pair_map, pair_pieces, pair_recursions
from tests.rounding import assert_same, same
from tests.tables import crossed, slow

x = sp.Symbol("x", real=True)
KINDS = ["one norm", "clusters", "many norms", "doubtful"]


def inputs(kind, count=200):
    """Kernels of inputs: of one norm, in clusters, of many norms, or with doubtful members."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((count, 30))
    if kind == "clusters":
        X = 0.3 * X + rng.standard_normal((3, 30))[rng.integers(0, 3, count)]
    X /= np.linalg.norm(X, axis=1)[:, None] / np.sqrt(30)
    if kind == "many norms":
        X *= rng.uniform(0.9, 1.1, count)[:, None]
    if kind == "doubtful":
        X[1], X[2], X[3], X[4] = X[0], -X[0], 0, X[0] * (1 + 1e-9)
        X[5] = X[0] + 1e-7 * rng.standard_normal(30)
    return 0.4 * X @ X.T / 30


class Compared:
    """Pairs by the map and by the recursion, and how many the map sent through the recursion."""

    def __init__(self, net, K0, monkeypatch):
        self.sent = 0

        def counting(*arguments):
            self.sent += len(arguments[3][0])
            return kernels.output_covariances(*arguments)

        pairs = np.triu_indices(len(K0), 1)
        K = kernels.variances(net, np.diagonal(K0), 1)[1]
        self.count = len(pairs[0])
        self.recursion = kernels.output_covariances(net, K, K0[pairs], pairs)
        self.scale = np.sqrt(K[-1][pairs[0]] * K[-1][pairs[1]])
        with monkeypatch.context() as patch:
            patch.setattr(pair_recursions, "output_covariances", counting)
            recursion = partial(pair_recursions.OutputRecursion, rows=(0, 1), layer=net.depth + 1)
            self.map = pair_map.output_matrices(recursion, net, K, K0)[:, *pairs]

    def require_agreement(self):
        # Covariances cross zero, where no more than digits of the variances can be right.
        errors = np.abs(self.map[0] - self.recursion[0])
        assert (errors <= 1e-12 * np.abs(self.recursion[0]) + 1e-14 * self.scale).all()
        np.testing.assert_allclose(self.map[1], self.recursion[1], rtol=1e-12)


BIASES_AND_SCALES = [(0.0, 0.1), (0.05, 0.1), (0.05, 1.0), (0.0, 1.0)]


@pytest.mark.parametrize(
    ("kind", "name", "rates"), crossed(KINDS, ["erf", "relu"], BIASES_AND_SCALES)
)
def test_against_the_recursion(name, kind, rates, monkeypatch):
    bias, rho = rates
    net = ft.ResidualNetwork(depth=60, activation=name, branch_scale=rho, bias_variance=bias)
    found = Compared(net, inputs(kind), monkeypatch)
    found.require_agreement()
    assert found.sent < found.count * (0.5 if kind == "many norms" else 0.1)


@pytest.mark.parametrize(
    "activation",
    ["tanh", "gelu", slow("sin"), "linear", "leaky_relu", sp.cos(x)],
    ids=str,
)
def test_other_activations(activation, monkeypatch):
    net = ft.ResidualNetwork(depth=4, activation=activation, branch_scale=0.4)
    found = Compared(net, inputs("clusters", 40), monkeypatch)
    found.require_agreement()
    assert found.sent < found.count / 2


@pytest.mark.parametrize("bias", [0.0, 0.05])
def test_orthogonal_inputs(bias, monkeypatch):
    net = ft.ResidualNetwork(depth=10, bias_variance=bias)
    found = Compared(net, np.diag(np.full(100, 0.4)), monkeypatch)
    found.require_agreement()
    assert found.sent < 100 and (bias > 0 or not found.map[0].any())


def test_layers_of_their_own(monkeypatch):
    net = ft.ResidualNetwork(
        depth=3, branch_scale=[0.2, 1.5, 0.7], skip_scale=[0.0, 1.1, 0.4], readout_weight_variance=3
    )
    found = Compared(net, inputs("one norm"), monkeypatch)
    found.require_agreement()
    assert found.sent < found.count / 10


@pytest.mark.parametrize("kind", ["one norm", "many norms"])
def test_erf_by_the_formula(kind):
    """C. Williams (1998), typed here, without anything of the package."""
    depth, rho2 = 40, 0.3**2
    K, chi = (K0 := inputs(kind)).copy(), np.ones_like(K0)
    for layer in range(depth + 1):
        skip, gain = (0, 1) if layer == depth else (1, rho2)
        spread = 1 + 2 * np.diagonal(K)
        norm = np.sqrt(np.outer(spread, spread))
        slope = 4 / np.pi / np.sqrt(norm**2 - 4 * K**2)
        chi = (skip + gain * 1.25 * slope) * chi
        K = skip * K + gain * (1.25 * 2 / np.pi * np.arcsin(2 * K / norm) + 0.05)
    s = ft.solve(ft.ResidualNetwork(depth=depth, branch_scale=0.3), K0)
    off = ~np.eye(len(K0), dtype=bool)
    np.testing.assert_allclose(s.output_kernel, K, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(s.output_response[off], chi[off], rtol=1e-12)


@pytest.mark.parametrize("member", [{"error": 0.0}, {"decay": 0.0}, {"norms": 8}])
def test_pairs_the_map_does_not_serve(member, monkeypatch):
    monkeypatch.setattr(pair_pieces, "MAPS", replace(pair_pieces.MAPS, **member))
    net = ft.ResidualNetwork(depth=20, branch_scale=0.3)
    found = Compared(net, inputs("many norms", 150), monkeypatch)
    assert found.sent > found.count
    np.testing.assert_allclose(found.map, found.recursion, rtol=1e-14)


def test_too_few_nodes_are_noticed(monkeypatch):
    monkeypatch.setattr(pair_pieces, "MAPS", replace(pair_pieces.MAPS, decades=8.0))
    net = ft.ResidualNetwork(depth=20, branch_scale=0.3)
    found = Compared(net, inputs("many norms"), monkeypatch)
    found.require_agreement()
    assert found.sent < found.count / 2


def test_a_wrong_map_is_noticed(monkeypatch):
    right = pair_pieces._Piece.of

    def wrong(number, d):
        return right(number, d * (1 + 1e-11 * (number == 0)))

    monkeypatch.setattr(pair_pieces._Piece, "of", wrong)
    net = ft.ResidualNetwork(depth=20, branch_scale=0.3)
    found = Compared(net, inputs("one norm"), monkeypatch)
    found.require_agreement()
    assert found.sent > 0.9 * found.count


@pytest.mark.parametrize("kind", ["one norm", slow("doubtful")])
def test_fields_of_the_output(kind):
    K0 = inputs(kind)
    s, layers = (ft.solve(ft.ResidualNetwork(depth=10), K0) for _ in range(2))
    expected = layers.kernels[-1]
    np.testing.assert_allclose(s.output_kernel, expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(np.diagonal(s.output_kernel), np.diagonal(expected))
    np.testing.assert_array_equal(layers.output_kernel, expected)
    _ = layers.response
    np.testing.assert_allclose(s.output_response, layers.output_response, rtol=1e-12)
    diagonals = np.diagonal(s.output_response), np.diagonal(layers.output_response)
    assert_same(*diagonals)
    for field in (s.output_kernel, s.output_response):
        np.testing.assert_array_equal(field, field.T)
    assert "kernels" not in vars(s) and "response" not in vars(s)


@pytest.mark.parametrize("count", [20, 80])
def test_batch(count):
    """Few pairs go through the layers for the whole batch, many through a map for each member."""
    K0 = np.stack([inputs("one norm", count), 2 * inputs("clusters", count)])
    net = ft.ResidualNetwork(depth=5, branch_scale=[[[0.3]], [[0.6]]], skip_scale=[0.9])
    s = ft.solve(net, K0)
    assert s.output_kernel.shape == s.output_response.shape == (2, 2, count, count)
    for i, j in np.ndindex(2, 2):
        one = ft.solve(net.replace(branch_scale=[0.3, 0.6][i]), K0[j])
        np.testing.assert_allclose(s.output_kernel[i, j], one.kernels[-1], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(s.output_response[i, j], one.output_response, rtol=1e-12)


@pytest.mark.slow_but(0)
@pytest.mark.parametrize("kind", ["one norm", "many norms"])
@pytest.mark.parametrize("fewest", [SETTINGS.map_pairs, np.inf], ids=["map", "recursion"])
def test_memory(kind, fewest, monkeypatch):
    """No array of all layers and pairs: that alone would be 42 matrices."""
    monkeypatch.setattr(pair_map, "SETTINGS", replace(SETTINGS, map_pairs=fewest))
    K0 = inputs(kind, 500)
    s = ft.solve(ft.ResidualNetwork(depth=40), K0)
    tracemalloc.start()
    try:
        _ = s.output_kernel, s.output_response
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10 * K0.nbytes


@pytest.mark.slow_but(0, 1, 3, 5, 6, 8, 9)
@pytest.mark.parametrize("name", ["erf", "relu", "tanh", "gelu", x**3 / 9])
@pytest.mark.parametrize("bias", [0.0, 0.05])
def test_identical_inputs_have_identical_entries(name, bias):
    net = ft.ResidualNetwork(depth=6, activation=name, branch_scale=0.7, bias_variance=bias)
    K0 = np.array([[0.3, 0.3, 0.1], [0.3, 0.3, 0.1], [0.1, 0.1, 0.6]])
    for batch in (K0, np.stack([K0, 2 * K0]), np.stack([K0, np.eye(3)])):
        s, output = ft.solve(net, batch), ft.solve(net, batch).output_kernel
        for field in (s.kernels, s.residual_kernels, output):
            same = field if field.shape == batch.shape else field[..., 0:, :, :]
            same = same if batch is K0 else same[:1]
            np.testing.assert_array_equal(same[..., 0, 1], same[..., 0, 0])
            np.testing.assert_array_equal(same[..., 0, 1], same[..., 1, 1])


def test_identical_inputs_among_many():
    K0 = inputs("doubtful")
    s = ft.solve(ft.ResidualNetwork(depth=100), K0)
    assert K0[0, 0] == K0[1, 1] == K0[0, 1]
    assert s.output_kernel[0, 1] == s.output_kernel[0, 0] == s.output_kernel[1, 1]
    # The response of a covariance is ⟨φ'φ'⟩, not ⟨φ'² + φφ''⟩.
    pair = ft.solve(s.network, K0[:2, :2])
    assert s.output_response[0, 1] == same(pair.output_response[0, 1])
    assert s.output_response[0, 1] > s.output_response[0, 0]


def test_response_that_overflows():
    """A tiny input of a saturating network: that of the covariance alone, and not the kernels."""
    K0 = 1e-306 * np.array([[1.0, 0.5], [0.5, 1.0]])
    net = ft.ResidualNetwork(depth=150, weight_variance=100.0, bias_variance=0.0)
    s = ft.solve(net, K0)
    assert np.isfinite(ft.solve(net, 1e-306).output_response)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(s.output_kernel).all()
        with pytest.raises(OverflowError, match=r"response exceeds the range .* in layer 1\d\d;"):
            _ = s.output_response


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_correlations_up_to_one_beside_pieces_at_the_end(sign):
    """Angles from 1e-12 to 1, so that pieces at either end of v are made, and v is infinite."""
    net = ft.ResidualNetwork(depth=2, activation="relu", branch_scale=0.5, bias_variance=0.0)
    angles = np.concatenate([np.geomspace(1e-12, 1, 600), np.geomspace(1e-7, 3e-7, 300)])
    points = np.stack([sign * np.cos(angles), np.sin(angles)], axis=1)
    block = ft.kernel(net)(np.array([[1.0, 0.0]]), points)
    one_by_one = [ft.kernel(net)([[1.0, 0.0]], [point])[0, 0] for point in points[::50]]
    np.testing.assert_allclose(block[0, ::50], one_by_one, rtol=0, atol=1e-12 * block.max())
