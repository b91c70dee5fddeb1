"""Fluctuations, vertices and mean shifts of several inputs: dense oracle, exact cases, symmetry."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erf, ndtr

import fieldtheory as ft
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.tolerance import relative_tolerance
from fieldtheory.montecarlo.extrapolation import extrapolation_weights
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.numerics import four_inputs, pair_observables
from fieldtheory.numerics.entries import network_entries
from fieldtheory.numerics.two_inputs import TwoInputs
from tests.oracles import coupled_networks
from tests.oracles.several_inputs import Dense, kinked_nodes, smooth_nodes
from tests.tables import slow

# Kinks at two places, one of them inside the denominator.
OFFSET = "abs(x-1)/(1+abs(x))"
STEPPED = "Heaviside(h)*cos(h)"
STEPS, STEP = "sign(h-1)+sign(h+1)", "Heaviside(h-1)"
SELU = (1.0507009873554804934193349852946, 1.6732632423543772848170429916717)
PHI = {
    "erf": erf,
    "tanh": np.tanh,
    "gelu": lambda h: h * ndtr(h),
    "relu": lambda h: np.maximum(h, 0),
    "leaky_relu": lambda h: np.where(h > 0, h, 0.01 * h),
    "abs": np.abs,
    "hard_tanh": lambda h: np.clip(h, -1, 1),
    "relu6": lambda h: np.clip(h, 0, 6),
    "elu": lambda h: np.where(h > 0, h, np.expm1(np.minimum(h, 0))),
    "selu": lambda h: SELU[0] * np.where(h > 0, h, SELU[1] * np.expm1(np.minimum(h, 0))),
    "softsign": lambda h: h / (1 + np.abs(h)),
    "sign": np.sign,
    "heaviside": lambda h: np.heaviside(h, 0.5),
    STEPPED: lambda h: np.heaviside(h, 0.5) * np.cos(h),
    "cos": np.cos,
    "exp(-h**2)": lambda h: np.exp(-(h**2)),
    OFFSET: lambda h: np.abs(h - 1) / (1 + np.abs(h)),
    STEPS: lambda h: np.sign(h - 1) + np.sign(h + 1),
    STEP: lambda h: np.heaviside(h - 1, 0.5),
}
ELSEWHERE = {
    "hard_tanh": (-1.0, 1.0),
    "relu6": (0.0, 6.0),
    OFFSET: (0.0, 1.0),
    STEPS: (-1.0, 1.0),
    STEP: (1.0,),
}
KINKED = ("relu", "leaky_relu", "abs", "elu", "selu", "softsign", "sign", "heaviside", STEPPED)
TWO = np.array([[0.3, 0.11], [0.11, 0.2]])
OPPOSED = TWO * [[1, -1], [-1, 1]]
THREE = np.array([[0.3, 0.1, -0.05], [0.1, 0.25, 0.12], [-0.05, 0.12, 0.4]])
FIELDS = ["G11", "kernel_variance", "mean_shift", "four_point", "output_kurtosis"]


def network(name, gamma, depth, **others):
    given = {"branch_scale": 0.6, "weight_variance": 1.3, "bias_variance": 0.07} | others
    return ft.ResidualNetwork(depth=depth, activation=name, skip_scale=gamma, **given)


def dense(net, K0, count):
    """The oracle, of the same coefficients."""
    layers, name = layer_coefficients(net), net.activation.name
    gammas = np.broadcast_to(net.skip_scale, net.depth)
    rule = kinked_nodes if name in KINKED else smooth_nodes
    if name in ELSEWHERE:
        rule = partial(kinked_nodes, kinks=ELSEWHERE[name])
    return Dense(PHI[name], layers.weights, layers.biases, gammas, K0, rule, count)


def of_pairs(G11):
    """(L + 2, L + 2, p, p) as one matrix of all fields."""
    layers, _, p, _ = G11.shape
    return G11.transpose(0, 2, 1, 3).reshape(layers * p, layers * p)


def upper(matrices):
    return matrices[..., *np.triu_indices(matrices.shape[-1])]


@pytest.mark.parametrize(
    ("name", "gamma", "K0", "depth", "count"),
    [
        ("erf", 0.7, TWO, 2, 32),
        slow("erf", 1.0, TWO, 1, 40),
        slow("tanh", 1.0, TWO / 2, 1, 38),
        slow("tanh", 0.7, TWO / 2, 1, 38),
        ("gelu", 0.0, TWO, 2, 26),
        slow("gelu", 0.7, TWO, 1, 32),
        ("relu", 0.0, TWO, 1, 24),
        slow("relu", 0.7, TWO, 1, 28),
        slow("abs", -0.7, TWO, 1, 32),
        slow("elu", 0.7, TWO, 1, 30),
        slow("softsign", 1.0, TWO, 1, 34),
        slow("softsign", 0.7, THREE, 1, 26),
        slow("elu", 1.0, THREE, 1, 26),
        slow("hard_tanh", 0.7, 2 * TWO, 1, 18),
        slow(OFFSET, 0.7, TWO, 1, 28),
        slow(STEPS, 0.0, 3 * TWO, 1, 24),
        slow(STEPS, 0.7, 3 * TWO, 1, 28),
        slow(STEPS, 1.0, 3 * OPPOSED, 1, 28),
        slow(STEP, 0.0, 3 * OPPOSED, 1, 28),
        slow(STEP, 0.7, 4 * TWO, 1, 44),
        slow("leaky_relu", 1.0, TWO, 1, 32),
        slow("relu", 1.0, TWO, 2, 34),
        slow("erf", 0.7, THREE, 1, 36),
        slow("tanh", 0.0, THREE / 2, 2, 38),
        slow("gelu", 1.0, THREE / 2, 1, 32),
        slow("relu", 1.0, THREE, 1, 32),
    ],
)
def test_against_dense_blocks(name, gamma, K0, depth, count):
    net = network(name, gamma, depth)
    s, known, N = ft.solve(net, K0), dense(net, K0, count), net.width
    np.testing.assert_allclose(N * of_pairs(s.G11), known.G11, rtol=0, atol=1e-9)
    np.testing.assert_allclose(s.four_point, known.vertex, rtol=0, atol=1e-9)
    sums = known.A**2
    variance = np.einsum("lk,lm,kmpp->lp", sums, sums, s.G11[:-1, :-1])
    np.testing.assert_allclose(upper(s.kernel_variance), variance, rtol=1e-12, atol=1e-18)
    shift = known.shift.reshape(depth + 2, -1)
    np.testing.assert_allclose(N * upper(s.mean_shift), shift, rtol=0, atol=1e-9)


@pytest.mark.parametrize("gamma", [0.0, 0.7, 1.0])
def test_linear_networks_are_exact(gamma):
    """N Cov of q = h hᵀ/N: what a layer adds to that of the layer before, times (γ² + a)²."""
    net = network("linear", gamma, 6)
    s, layers = ft.solve(net, THREE), layer_coefficients(net)
    i, j = np.triu_indices(3)

    def meeting(K, C):
        return K[np.ix_(i, i)] * C[np.ix_(j, j)] + K[np.ix_(i, j)] * C[np.ix_(j, i)]

    a, C, K, g2 = layers.weights, s.residual_kernels, s.kernels, gamma**2
    q, size = meeting(THREE, THREE), len(a)
    for l in range(size - 1):
        if l:
            q = (g2 + a[l]) ** 2 * q + meeting(C[l], C[l])
            q = q + g2 * (meeting(K[l - 1], C[l]) + meeting(C[l], K[l - 1]))
        onward = 1.0
        for m in range(l + 1, size):
            covariance = a[l + 1] * a[m] * onward * q / net.width
            np.testing.assert_allclose(s.G11[l + 1, m], covariance, rtol=1e-12, atol=1e-17)
            np.testing.assert_allclose(s.G11[m, l + 1], covariance.T, rtol=1e-12, atol=1e-17)
            onward *= g2 + a[m]
    np.testing.assert_allclose(s.mean_shift, 0, atol=1e-15)


@pytest.mark.parametrize(
    ("name", "gamma"), [("erf", 0.7), ("gelu", 1.0), ("relu", 0.0), (STEP, 0.7)]
)
def test_variances_are_those_of_single_inputs(name, gamma):
    net = network(name, gamma, 3)
    s, own = ft.solve(net, TWO), [0, 2]
    for i, at in enumerate(own):
        one = ft.solve(net, TWO[i, i])
        np.testing.assert_allclose(s.G11[:, :, at, at], one.G11, rtol=1e-8, atol=1e-16)
        np.testing.assert_allclose(s.kernel_variance[:, i, i], one.kernel_variance, rtol=1e-8)
        np.testing.assert_allclose(s.four_point[:, at, at], one.four_point, rtol=1e-8)
        np.testing.assert_allclose(s.output_kurtosis[i], one.output_kurtosis, rtol=1e-8)
        np.testing.assert_allclose(s.mean_shift[:, i, i], one.mean_shift, rtol=1e-9, atol=1e-16)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("off", [0.0, 1e-8, 1e-4])
def test_identical_and_opposite_inputs(sign, off):
    """For odd φ without bias a covariance fluctuates as the variance does, up to the sign."""
    net = network("tanh", 0.7, 3, bias_variance=0.0, readout_bias_variance=0.0)
    c = sign * (1 - off)
    s, one = ft.solve(net, [[0.3, 0.3 * c], [0.3 * c, 0.3]]), ft.solve(net, 0.3)
    signs = np.outer([1, sign, 1], [1, sign, 1])
    scale = np.abs(one.G11).max()
    difference = s.G11 * signs - one.G11[:, :, None, None]
    np.testing.assert_array_less(np.abs(difference), (1e-9 + 20 * off) * scale)
    shift = s.mean_shift * [[1, sign], [sign, 1]] - one.mean_shift[:, None, None]
    assert np.abs(shift).max() < (1e-9 + 20 * off) * np.abs(one.mean_shift).max()
    vertex = s.four_point * signs - one.four_point[:, None, None]
    assert np.abs(vertex).max() < (1e-9 + 20 * off) * one.four_point.max()


@pytest.mark.parametrize("gamma", [slow(0.7), 1.0])
@pytest.mark.parametrize("off", [0.0, 7e-9, 1e-8, 1e-4])
def test_nearly_identical_inputs_of_functions_with_kinks(gamma, off):
    """What fluctuates and shifts is that of one input, up to their distance."""
    net = network("relu", gamma, 2)
    s, one = ft.solve(net, [[0.3, 0.3 - off], [0.3 - off, 0.3]]), ft.solve(net, 0.3)
    shift = s.mean_shift - one.mean_shift[:, None, None]
    allowed = (1e-7 if off else 1e-11) + 6 * off
    assert net.width * np.abs(shift).max() < allowed
    assert net.width * np.abs(s.G11 - one.G11[..., None, None]).max() < allowed


def test_orthogonal_inputs():
    """Odd φ without bias: covariances fluctuate about zero, not shifted, apart from variances."""
    net = network("erf", 1.0, 3, bias_variance=0.0, readout_bias_variance=0.0)
    s = ft.solve(net, np.diag([0.3, 0.5]))
    np.testing.assert_allclose(s.G11[:, :, 1, [0, 2]], 0, atol=1e-17)
    np.testing.assert_allclose(s.G11[:, :, 0, 2], 0, atol=1e-17)
    np.testing.assert_allclose(s.mean_shift[:, 0, 1], 0, atol=1e-15)
    assert (np.diagonal(s.G11[1:, 1:, 1, 1]) > 0).all()


@pytest.mark.parametrize("bias", [0.0, 0.07])
def test_an_input_that_vanishes(bias):
    net = network("erf", 0.7, 2, bias_variance=bias, readout_bias_variance=bias)
    s, one = ft.solve(net, [[0.3, 0.0], [0.0, 0.0]]), ft.solve(net, 0.3)
    none = ft.solve(net, 0.0)
    np.testing.assert_allclose(s.G11[:, :, 0, 0], one.G11, rtol=1e-8, atol=1e-16)
    np.testing.assert_allclose(s.G11[:, :, 2, 2], none.G11, rtol=1e-8, atol=1e-16)
    # In the first layer it adds nothing that fluctuates.
    np.testing.assert_array_equal(s.G11[1, 1, 1:], 0)
    assert all(np.isfinite(getattr(s, name)).all() for name in FIELDS)
    if not bias:
        np.testing.assert_array_equal(s.G11[:, :, 1:], 0)


def test_one_input_as_a_matrix():
    net = network("gelu", 0.7, 4)
    s, one = ft.solve(net, [[0.3]]), ft.solve(net, 0.3)
    np.testing.assert_allclose(s.G11[:, :, 0, 0], one.G11, rtol=1e-8, atol=1e-16)
    np.testing.assert_allclose(s.mean_shift[:, 0, 0], one.mean_shift, rtol=1e-12, atol=1e-16)
    np.testing.assert_allclose(s.four_point[:, 0, 0], one.four_point, rtol=1e-8)
    assert s.kernel_variance.shape == (5, 1, 1) and s.output_kurtosis.shape == (1,)


def test_order_of_the_inputs():
    net, order = network("gelu", 0.7, 2), np.array([2, 0, 1])
    s, other = ft.solve(net, THREE), ft.solve(net, THREE[np.ix_(order, order)])
    place = np.zeros((3, 3), dtype=int)
    i, j = np.triu_indices(3)
    place[i, j] = place[j, i] = np.arange(6)
    to = place[order[i], order[j]]
    np.testing.assert_allclose(other.G11, s.G11[..., to[:, None], to], rtol=1e-8, atol=1e-14)
    np.testing.assert_allclose(other.four_point, s.four_point[:, to[:, None], to], atol=1e-10)
    expected = s.mean_shift[:, order[:, None], order]
    np.testing.assert_allclose(other.mean_shift, expected, rtol=1e-7, atol=1e-14)


@settings(max_examples=6, deadline=None, derandomize=True)
@given(
    root=st.lists(st.floats(-0.7, 0.7), min_size=6, max_size=6),
    gamma=st.sampled_from([0.0, 0.5, 1.0]),
    name=st.sampled_from(["erf", "gelu"]),
)
def test_covariances_are_positive_semidefinite(root, gamma, name):
    X = np.array(root).reshape(2, 3)
    G11 = of_pairs(ft.solve(network(name, gamma, 2), X @ X.T).G11)
    np.testing.assert_allclose(G11, G11.T, rtol=0, atol=1e-13 * np.abs(G11).max())
    assert np.linalg.eigvalsh(G11).min() > -1e-9 * np.abs(G11).max()


FEW = "fieldtheory.numerics.pair_observables._COUNTS"


@pytest.mark.parametrize(
    ("name", "gamma", "K0"),
    [
        ("tanh", 0.7, TWO),
        slow("gelu", -0.7, TWO),
        slow("logistic", 1.0, OPPOSED),
        ("erf", 1.0, THREE),
    ],
)
def test_signals_that_modes_do_not_resolve(name, gamma, K0, monkeypatch):
    """Factors that two inputs have in common, and averages, agree with modes."""
    net = network(name, gamma, 3)
    known = ft.solve(net, K0)
    G11, shift = known.G11, known.mean_shift
    monkeypatch.setattr(FEW, (12,))
    s = ft.solve(net, K0)
    np.testing.assert_allclose(s.mean_shift, shift, rtol=0, atol=1e-9 * np.abs(shift).max())
    np.testing.assert_allclose(s.G11, G11, rtol=0, atol=1e-9 * G11.max())
    # Without G11.
    alone = ft.solve(net, K0).mean_shift
    np.testing.assert_allclose(alone, s.mean_shift, rtol=1e-12, atol=1e-18)


@pytest.mark.parametrize("name", ["relu", slow("abs"), slow("hard_tanh"), slow("hard_swish")])
def test_kinks_by_two_routes(name, monkeypatch):
    """Factors that two inputs have in common agree with closed forms of four signals."""
    net = network(name, -0.7, 2)
    s = ft.solve(net, TWO)
    G11, shift = s.G11, s.mean_shift
    monkeypatch.setattr("fieldtheory.numerics.four_inputs.has_closed_form", lambda g: False)
    monkeypatch.setattr("fieldtheory.numerics.pair_blocks._has_orthants", lambda signals: False)
    other = ft.solve(net, TWO)
    np.testing.assert_allclose(other.G11, G11, rtol=0, atol=2e-10 * G11.max())
    np.testing.assert_allclose(other.mean_shift, shift, rtol=0, atol=1e-10 * np.abs(shift).max())


@pytest.mark.parametrize("name", [slow("hard_tanh"), slow("relu6"), slow("hard_swish"), "relu"])
@pytest.mark.parametrize("gamma", [1.0, slow(0.7)])
def test_three_inputs_hold_what_two_do(name, gamma):
    """Of every two of three inputs, strongly correlated and wide ones, also exchanged."""
    K0 = np.array([[2.0, 1.96, -0.5], [1.96, 2.1, -0.6], [-0.5, -0.6, 8.0]])
    net = network(name, gamma, 2, branch_scale=0.2)
    s, order = ft.solve(net, K0), [2, 0, 1]
    other = ft.solve(net, K0[np.ix_(order, order)])
    place = {pair: n for n, pair in enumerate(zip(*np.triu_indices(3), strict=True))}
    scale = s.G11.max()
    for pair in ([0, 1], [0, 2], [1, 2]):
        at = [place[pair[0], pair[0]], place[tuple(pair)], place[pair[1], pair[1]]]
        two = ft.solve(net, K0[np.ix_(pair, pair)]).G11
        np.testing.assert_allclose(s.G11[:, :, at][..., at], two, rtol=0, atol=1e-10 * scale)
    to = [place[tuple(sorted((order[i], order[j])))] for i, j in place]
    np.testing.assert_allclose(other.G11, s.G11[:, :, to][..., to], rtol=0, atol=1e-10 * scale)
    eigenvalues = np.linalg.eigvalsh(of_pairs(s.G11))
    assert eigenvalues.min() > -1e-10 * eigenvalues.max()


@pytest.mark.parametrize(
    ("name", "inputs"),
    [("relu", 5), ("hard_tanh", 3), slow("relu6", 4), slow("hard_tanh", 5)],
)
def test_inputs_on_a_line(name, inputs):
    """Fewer dimensions than inputs: covariances of four signals are singular."""
    points = np.linspace(-1.0, 1.2, inputs)
    K0 = 0.5 * np.outer(points, points) + 0.1
    net = network(name, 1.0, 1)
    s, two = ft.solve(net, K0), ft.solve(net, K0[:2, :2]).G11
    at = [0, 1, inputs]
    np.testing.assert_allclose(s.G11[:, :, at][..., at], two, rtol=0, atol=1e-10 * two.max())
    assert np.linalg.eigvalsh(of_pairs(s.G11)).min() > -1e-9 * s.G11.max()


@pytest.mark.parametrize("name", [slow("hard_tanh"), slow("relu6"), slow("softsign"), "sign"])
def test_kinks_elsewhere(name):
    """Of single inputs what is known; of equal ones, whose correlation is not 1, the same."""
    net = network(name, 0.7, 2)
    one = ft.solve(net, 0.3)
    s = ft.solve(net, [[0.3, 0.11], [0.11, 0.3]])
    for at in (0, 2):
        np.testing.assert_allclose(s.G11[:, :, at, at], one.G11, rtol=1e-9, atol=1e-16)
    assert np.linalg.eigvalsh(of_pairs(s.G11)).min() > -1e-12 * s.G11.max()
    np.testing.assert_allclose(s.G11[..., 0, 1], s.G11[..., 2, 1], rtol=1e-9, atol=1e-18)
    np.testing.assert_allclose(s.mean_shift[:, 0, 0], one.mean_shift, rtol=1e-9, atol=1e-16)


@pytest.mark.parametrize("name", [slow("tanh"), "erf"])
def test_wide_signals(name):
    """Deep networks whose signals grow: what is known of single inputs, and nothing impossible."""
    net, K0 = ft.ResidualNetwork(depth=14, activation=name), [[0.05, 0.03], [0.03, 0.05]]
    s, one = ft.solve(net, K0), ft.solve(net, 0.05)
    for at in (0, 2):
        np.testing.assert_allclose(s.G11[:, :, at, at], one.G11, rtol=1e-8, atol=1e-16)
    assert np.linalg.eigvalsh(of_pairs(s.G11)).min() > -1e-9 * s.G11.max()
    np.testing.assert_allclose(s.mean_shift[:, 0, 0], one.mean_shift, rtol=1e-9, atol=1e-16)


def test_steep_functions(monkeypatch):
    """Wide opposite signals: averages, and for many inputs an error that says so."""
    monkeypatch.setattr(FEW, (12, 56))
    net, K0 = ft.ResidualNetwork(depth=1, activation="tanh"), [[20.0, -19.0], [-19.0, 30.0]]
    s, one = ft.solve(net, K0), ft.solve(net, 20.0)
    np.testing.assert_allclose(s.G11[:, :, 0, 0], one.G11, rtol=1e-8, atol=1e-16)
    assert np.linalg.eigvalsh(of_pairs(s.G11)).min() > -1e-9 * s.G11.max()


@pytest.mark.parametrize(
    ("name", "scale", "off"),
    [
        ("tanh", 3.0, 1e-6),
        slow("tanh", 100.0, 1e-6),
        slow("tanh", 300.0, 0.0),
        slow("sin", 10.0, 1e-6),
        slow("arctan", 100.0, 0.0),
        slow("tanhshrink", 100.0, 1e-6),
    ],
)
def test_wide_inputs_and_the_opposite_of_one(name, scale, off, monkeypatch):
    """Odd φ: what four signals of which two are opposite do is known from those of two inputs."""
    monkeypatch.setattr(FEW, (12,))
    c = 1 - off
    K0 = scale * np.array([[1.0, c, -1.0], [c, 1.0, -c], [-1.0, -c, 1.0]])
    net = network(name, 0.7, 1, bias_variance=0.0, readout_bias_variance=0.0)
    s, two = ft.solve(net, K0), ft.solve(net, K0[:2, :2])
    # αα, αβ, ββ of every pair of the three, and the sign of its product.
    same = np.array([0, 1, 0, 2, 1, 0])
    signs = np.array([1, 1, -1, 1, -1, 1])
    expected = two.G11[:, :, same][..., same] * np.outer(signs, signs)
    np.testing.assert_allclose(s.G11, expected, rtol=0, atol=1e-9 * np.abs(two.G11).max())
    shift = two.mean_shift[:, [0, 0, 1], [1, 0, 1]]
    found = np.stack([s.mean_shift[:, 0, 1], -s.mean_shift[:, 0, 2], s.mean_shift[:, 1, 1]], axis=1)
    np.testing.assert_allclose(found, shift, rtol=0, atol=1e-8 * np.abs(shift).max())


@pytest.mark.parametrize("name", ["tanh", slow("softplus"), slow("mish"), slow("gaussian")])
def test_four_signals_on_grids_and_by_modes(name, monkeypatch):
    K0 = THREE + 0.2
    net = network(name, 0.7, 1)
    known = ft.solve(net, K0).G11
    monkeypatch.setattr(FEW, (12,))
    found = ft.solve(net, K0).G11
    np.testing.assert_allclose(found, known, rtol=0, atol=1e-9 * np.abs(known).max())


@pytest.mark.parametrize(
    ("name", "field", "instead"),
    [
        *((name, "G11", r"ft\.covariance_with") for name in ("tanh", "softsign")),
        *((name, "four_point", "rtol=") for name in ("tanh", "softsign")),
        ("softsign", "mean_shift", "its own two"),
    ],
)
def test_what_takes_too_long_says_so(name, field, instead, monkeypatch):
    """How long, and the way out."""
    monkeypatch.setattr(FEW, (12,))
    monkeypatch.setattr("fieldtheory.numerics.four_inputs.LONGEST", 1e-4)
    s = ft.solve(network(name, 0.7, 1), THREE)
    with pytest.raises(QuadratureError, match=f"of 3 inputs .* about .* hours.*{instead}"):
        getattr(s, field)


def test_layers_that_add_little():
    """The shift is of second order in the branch scale, also where derivatives lose digits."""
    s, twice = (ft.solve(network("elu", 1.0, 2, branch_scale=r), TWO) for r in (1e-3, 2e-3))
    np.testing.assert_allclose(4 * s.mean_shift[-1], twice.mean_shift[-1], rtol=1e-4)


@pytest.mark.parametrize("name", ["erf", slow("gelu")])
def test_many_wide_inputs(name):
    """Four inputs with signals of hundreds, nearly equal ones among them, in closed form."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(4, 3))
    X[3] = X[2] + 0.02 * X[1]
    net, K0 = network(name, 1.0, 2), 100 * X @ X.T
    s = ft.solve(net, K0)
    one = ft.solve(net, K0[2, 2])
    at = 7
    np.testing.assert_allclose(s.G11[:, :, at, at], one.G11, rtol=1e-8, atol=1e-16)
    assert np.linalg.eigvalsh(of_pairs(s.G11)).min() > -1e-9 * s.G11.max()


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("batch", ["scales", "kernels"])
def test_batches_are_refused(name, batch):
    scales = [[0.3], [0.4]] if batch == "scales" else 0.3
    net = ft.ResidualNetwork(depth=2, branch_scale=scales)
    K0 = TWO if batch == "scales" else np.stack([TWO, TWO])
    with pytest.raises(ValueError, match=f"{name} needs one "):
        getattr(ft.solve(net, K0), name)


@pytest.mark.parametrize(
    ("name", "gamma", "samples"),
    [
        slow("erf", 1.0, 30_000),
        ("relu", 1.0, 12_000),
        slow("tanh", 0.7, 30_000),
        slow("gelu", 0.0, 30_000),
        slow("hard_tanh", 1.0, 30_000),
    ],
)
def test_against_finite_networks(name, gamma, samples):
    """Coefficients of 1/N from three widths, beyond chance nowhere; 1/N² and 1/N³ are left free."""
    widths = np.array([40.0, 80.0, 160.0])
    net = network(name, gamma, 3)
    drawn = [
        ft.simulate(net.replace(width=int(N)), TWO, samples=samples, seed=int(N), cross_inputs=True)
        for N in widths
    ]
    s = ft.solve(net, TWO)
    i, j = np.triu_indices(2)
    weights = extrapolation_weights(widths)

    def z(values, errors, theory):
        found = np.tensordot(weights, values, 1)
        error = np.sqrt(np.tensordot(weights**2, np.square(errors), 1))
        chance = error > 1e-12 * np.abs(theory).max()
        error, theory, found = error[chance], theory[chance], found[chance]
        return (found - theory) / error, (np.abs(theory) / error).max()

    N = widths[:, None, None, None]
    cross = [e.cross_covariance[:, :, i, j][..., i, j] for e in drawn]
    errors = [e.cross_covariance_error[:, :, i, j][..., i, j] for e in drawn]
    means, of_means = [e.mean for e in drawn], [e.mean_error for e in drawn]
    vertices = [e.four_point for e in drawn], [e.four_point_error for e in drawn]
    own = np.zeros((4, 2, 2))
    own[:, i, j] = own[:, j, i] = np.diagonal(s.four_point, axis1=1, axis2=2)
    shifts = N * (means - s.residual_kernels), N * of_means
    found = {
        "G11": z(N[..., None] * cross, N[..., None] * errors, net.width * s.G11),
        "mean_shift": z(*shifts, net.width * s.mean_shift),
        "four_point": z(*vertices, own),
    }
    for field, (deviations, seen) in found.items():
        assert np.abs(deviations).max() < 4, field
        # Without control variates errors of the means are larger than their shifts.
        assert field == "mean_shift" or seen > 10, field


def factors(drawn, theory):
    """What simulated values are of the theory, with its error, and z-scores of all entries.

    Terms beyond those extrapolated count as 0.2 %.
    """
    drawn, theory = drawn.reshape(len(drawn), -1), theory.ravel()
    count = np.sqrt(len(drawn))
    mean, error = drawn.mean(axis=0), drawn.std(axis=0, ddof=1) / count
    scores = (mean - theory) / (error + 2e-3 * np.abs(theory))
    # One factor for all entries has most power.
    weighted = theory / error**2
    of_batches = drawn @ weighted / (theory @ weighted)
    return of_batches.mean(), of_batches.std(ddof=1) / count, scores


@pytest.mark.parametrize(
    ("name", "K0", "depth", "bias", "explicit", "samples", "seen"),
    [
        ("elu", 4 * TWO, 1, 0.0, False, (6_000, 6_000), (0.4, 0.06, 0.08)),
        slow("softsign", 4 * TWO, 2, 0.3, True, (50_000, 100_000), (0.02, 0.02, 0.02)),
        slow("elu", 4 * TWO, 1, 0.0, True, (15_000, 15_000), (0.2, 0.04, 0.05)),
        slow("elu", 4 * TWO, 1, 0.0, False, (150_000, 200_000), (0.04, 0.02, 0.02)),
        slow(OFFSET, 4 * TWO, 3, 0.3, False, (40_000, 40_000), (0.03, 0.02, 0.06)),
        slow("hard_tanh", 1.5 * THREE + 0.8, 1, 0.3, False, (80_000, 120_000), (0.04, 0.02, 0.04)),
        slow("relu6", 1.5 * THREE + 0.8, 1, 0.3, False, (120_000, 160_000), (0.03, 0.02, 0.02)),
    ],
)
def test_against_networks_beside_their_limit(name, K0, depth, bias, explicit, samples, seen):
    """Explicit weights, or residuals of their law; a theory that is off by what is seen fails.

    Of the mean shift, G11 and the vertex.
    """
    net = network(name, 0.7, depth, bias_variance=bias, branch_scale=1.2)
    s, layers, N = ft.solve(net, K0), layer_coefficients(net), net.width
    widths = (32, 96)
    given = PHI[name], layers.weights, layers.biases, 0.7, s.residual_kernels
    drawn = coupled_networks.extrapolated(
        *(
            coupled_networks.coefficients(*given, width, count, 7 * width, explicit)
            for width, count in zip(widths, samples, strict=True)
        ),
        *widths,
    )
    # The first layer is not shifted.
    theory = N * upper(s.mean_shift)[2:], N * of_pairs(s.G11[1:, 1:]), s.four_point[1:]
    compared = zip((drawn[0][:, 1:], *drawn[1:]), theory, seen, strict=True)
    for values, known, wrong in compared:
        factor, error, scores = factors(values, known)
        assert np.abs(scores).max() < 4.5
        assert abs(factor - 1) < 4 * error + 2e-3
        off, of_off, _ = factors(values, (1 + wrong) * known)
        assert abs(off - 1) > 4 * of_off + 2e-3, (wrong, error)


@pytest.mark.parametrize("name", ["erf", "relu"])
def test_progress_is_shown_on_stderr_if_wanted(name, capsys):
    # Signals too wide for the chain of neurons, which takes no time worth a bar.
    net = network(name, 0.7, 1)
    silent, shown = (ft.solve(net, 20 * TWO, progress=wanted) for wanted in (False, True))
    expected = silent.mean_shift, silent.G11
    assert capsys.readouterr().err == ""
    np.testing.assert_array_equal(shown.mean_shift, expected[0])
    np.testing.assert_array_equal(shown.G11, expected[1])
    text = capsys.readouterr().err
    assert "mean_shift, variances" in text and "G11" in text


def test_layers_are_brought_back_together(monkeypatch):
    calls = []
    found = pair_observables.correlated
    monkeypatch.setattr(
        pair_observables, "correlated", lambda *a: calls.append(a[0].shape) or found(*a)
    )
    net = network("erf", 1.0, 20, branch_scale=0.1)
    assert np.isfinite(ft.solve(net, TWO).G11).all()
    # Once to bring them back, and in the last layers once to turn them towards either input.
    assert len(calls) == 21 + 2
    # Signals too wide for the chain of neurons.
    assert np.isfinite(ft.solve(net, 20 * TWO).mean_shift).all()
    # Three entries of either inputs in correlators and in slopes.
    assert len(calls) <= 21 * (1 + 3 + 3) + 2


def wide_nearly_parallel(variance):
    """g = tanh(x) tanh(y), and the covariance of two inputs in layers 1 and 0."""
    early = variance * np.array([[1.0, 0.9999], [0.9999, 1.0]])
    g = network_entries(network("tanh", 1.0, 1)).averages.observable
    return g, np.block([[early + 0.5, early], [early, early]])


def test_wide_nearly_parallel_inputs_in_words_of_the_user(monkeypatch):
    """No symbols of the integrand, but the signals and what can be done."""
    g, K = wide_nearly_parallel(200.0)
    what = (
        r"shift of means of two inputs, of signals of the variances 200\.5 and .* correlation 0\.99"
    )
    monkeypatch.setattr("fieldtheory.averages.tensor._MOST_POINTS", 1000)
    with pytest.raises(QuadratureError, match=rf"{what}.*, misses .*1e-09.*rtol=1e-6") as caught:
        four_inputs.slopes(g, K)
    assert "_c" not in str(caught.value) and "tanh" not in str(caught.value)
    monkeypatch.setattr("fieldtheory.numerics.four_inputs.LONGEST", 1e-4)
    with pytest.raises(QuadratureError, match=rf"{what}.*, takes about .* hours.*rtol=1e-6"):
        four_inputs.slopes(g, K)


def test_a_larger_error_of_wide_nearly_parallel_inputs_is_taken():
    """Fewer nodes, and the number to that error."""
    g, K = wide_nearly_parallel(20.0)
    found = []
    for rtol in (1e-12, 1e-5):
        with relative_tolerance(rtol):
            found.append(four_inputs.slopes(g, K))
    exact, rough = found
    np.testing.assert_allclose(rough, exact, rtol=1e-3, atol=1e-6 * np.abs(exact).max())
    assert not np.array_equal(rough, exact)


@pytest.mark.slow
def test_wide_nearly_parallel_inputs_by_two_routes(monkeypatch):
    K0 = 300 * np.array([[1.0, 0.999], [0.999, 1.0]])
    net = network("tanh", 1.0, 1)
    found = ft.solve(net, K0).mean_shift

    def none(self):
        raise QuadratureError("not asked for")

    monkeypatch.setattr(TwoInputs, "slopes", none)
    np.testing.assert_allclose(ft.solve(net, K0).mean_shift, found, rtol=1e-9)
