"""Inputs that are zero beside others: their signals begin with the biases, or with φ(0±)."""

import mpmath
import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.networks.activations import as_activation
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.numerics.infinite_width.layer_functions import layer_functions
from tests.numerics.pair_examples import ELSEWHERE, KINKED, STEPPED, dense, network, of_pairs, upper
from tests.oracles.several_inputs import kinked_nodes
from tests.tables import crossed, slow

K0 = np.array([[0.0, 0.0, 0.0], [0.0, 0.3, 0.11], [0.0, 0.11, 0.2]])
# A signal so narrow that it is none: what is left of it is its deviation, 1e-13.
NARROW = np.diag([1e-26, 0.3])


@pytest.mark.parametrize(
    "name", ["relu", "abs", "tanh", *map(slow, ("hard_tanh", "relu6", "selu", "elu"))]
)
def test_without_biases_it_stays_zero(name):
    net = network(name, 0.7, 2, bias_variance=0.0, readout_bias_variance=0.0)
    s, two = ft.solve(net, K0), ft.solve(net, K0[1:, 1:])
    of_two = [3, 4, 5]
    expected = np.zeros_like(s.G11)
    expected[:, :, 3:, 3:] = two.G11
    np.testing.assert_allclose(s.G11, expected, rtol=1e-9, atol=1e-12 * expected.max())
    assert not s.G11[:, :, :3].any() and not s.four_point[:, :3].any()
    np.testing.assert_allclose(s.four_point[:, 3:, of_two], two.four_point, rtol=1e-9, atol=1e-12)
    assert not s.mean_shift[:, 0].any()
    np.testing.assert_allclose(s.mean_shift[:, 1:, 1:], two.mean_shift, rtol=1e-8, atol=1e-14)


@pytest.mark.parametrize(
    ("name", "count", "bias"),
    [
        *[("heaviside", 24, 0.0), (STEPPED, 24, 0.0), ("abs", 24, 0.0)],
        *[("sign", 24, 0.07), ("relu", 24, 0.07), ("cos", 24, 0.07)],
        *[slow(name, 24, bias) for name in ("leaky_relu", "elu", "selu") for bias in (0.0, 0.07)],
        *[slow("softsign", 26, 0.0), slow("tanh", 40, 0.07), slow("erf", 36, 0.0)],
        *[slow("gelu", 28, 0.07), slow("exp(-h**2)", 62, 0.0)],
        *[slow("hard_tanh", 26, 0.07), slow("relu6", 24, 0.0)],
    ],
)
def test_against_dense_blocks(name, count, bias):
    """Of a readout of biases too, the first layer that zero signals change."""
    net = network(name, 0.7, 1, bias_variance=bias, readout_bias_variance=bias)
    s, known, N = ft.solve(net, K0[:2, :2]), dense(net, NARROW, count), net.width
    np.testing.assert_allclose(upper(s.residual_kernels), upper(known.C), rtol=0, atol=1e-12)
    shift = known.shift.reshape(3, -1)
    # The promise: 1e-6 with kinks and jumps, and 1e-4 of their mean shift.
    kinks = name in {*KINKED, *ELSEWHERE} - {"relu", "abs", "leaky_relu"}
    allowed = max(1e-6 * np.abs(known.G11).max() * kinks, 1e-9)
    np.testing.assert_allclose(N * of_pairs(s.G11), known.G11, rtol=0, atol=allowed)
    np.testing.assert_allclose(s.four_point, known.vertex, rtol=0, atol=allowed)
    allowed = max(1e-4 * np.abs(shift).max() * kinks, 1e-9)
    np.testing.assert_allclose(N * upper(s.mean_shift), shift, rtol=0, atol=allowed)


SLOPES = {
    "relu": lambda h: (h > 0) * 1.0,
    "abs": np.sign,
    "elu": lambda h: np.where(h > 0, 1.0, np.exp(np.minimum(h, 0))),
    "softsign": lambda h: 1 / (1 + np.abs(h)) ** 2,
    "tanh": lambda h: 1 / np.cosh(h) ** 2,
}


@pytest.mark.parametrize("name", SLOPES)
@pytest.mark.parametrize("bias", [0.0, 0.07])
def test_responses(name, bias):
    """Of a covariance: beside zero slopes are the mean of both sides, as they are of narrow x."""
    net = network(name, 0.7, 2, bias_variance=bias)
    s, a = ft.solve(net, K0[:2, :2]), layer_coefficients(net).weights
    expected = 1.0
    for l, K in enumerate(s.kernels[:-1]):
        near = K + np.diag([1e-26 * (K[0, 0] == 0), 0.0])
        h, weights = kinked_nodes(near, 40)
        gain = a[l + 1] * (weights @ np.prod(SLOPES[name](h), axis=0))
        expected *= (0.49 if l < 2 else 0.0) + gain
    assert s.output_response[0, 1] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("name", ["heaviside", "sign", "relu", "tanh", slow("hard_tanh")])
def test_pairs_of_more_inputs(name):
    """Two inputs that are zero are the same, and every pair is what it is alone."""
    net = network(name, 0.7, 2)
    s, four = ft.solve(net, K0), ft.solve(net, np.pad(K0, ((1, 0), (1, 0))))
    places = {pair: n for n, pair in enumerate(zip(*np.triu_indices(3), strict=True))}
    of = [
        places[tuple(sorted((max(i - 1, 0), max(j - 1, 0))))]
        for i, j in zip(*np.triu_indices(4), strict=True)
    ]
    np.testing.assert_allclose(four.G11, s.G11[:, :, of][..., of], rtol=1e-9, atol=1e-14)
    two = ft.solve(net, K0[:2, :2])
    chosen = [places[pair] for pair in ((0, 0), (0, 1), (1, 1))]
    alone = s.G11[:, :, chosen][..., chosen]
    np.testing.assert_allclose(alone, two.G11, rtol=1e-9, atol=1e-14)
    for field in ("residual_kernels", "mean_shift"):
        value, other = getattr(s, field), getattr(two, field)
        np.testing.assert_allclose(value[:, :2, :2], other, rtol=1e-8, atol=1e-14)
        value, other = getattr(four, field), getattr(s, field)
        np.testing.assert_allclose(value[:, 1:, 1:], other, rtol=1e-8, atol=1e-14)


def test_features_of_zero_signals():
    """Where φ(0) is not zero: the limit of narrow signals."""
    net = network("max(0,h)+1", 0.7, 1)
    s, near = (ft.solve(net, K0[:2, :2] + np.diag([k, 0.0])) for k in (0.0, 1e-16))
    for field in ("G11", "mean_shift", "four_point"):
        value, share = getattr(s, field), 1e-5 if field == "mean_shift" else 1e-6
        np.testing.assert_allclose(getattr(near, field), value, atol=share * np.abs(value).max())


@pytest.mark.parametrize("name", ["relu", "max(0,h)+1", "relu6", "hard_tanh"])
@pytest.mark.parametrize("inputs", [1, 2])
def test_no_input_at_all(name, inputs):
    net = network(name, 0.7, 2)
    one, s = ft.solve(net, 0.0), ft.solve(net, np.zeros((inputs, inputs)))
    for field in ("G11", "mean_shift"):
        value = getattr(one, field)
        assert np.isfinite(value).all() and value[-1].any()
        expected = np.broadcast_to(np.expand_dims(value, (-1, -2)), getattr(s, field).shape)
        np.testing.assert_allclose(getattr(s, field), expected, rtol=1e-9, atol=1e-18)


@pytest.mark.parametrize("name", ["heaviside", "sign", STEPPED])
@pytest.mark.parametrize("gamma", [0.0, 1.0])
def test_one_input_that_jumps(name, gamma):
    """K0 = 0 is the limit of narrow inputs, whose φ² fluctuate."""
    net = network(name, gamma, 2, bias_variance=0.0)
    s, near = ft.solve(net, 0.0), ft.solve(net, 1e-24)
    for field in ("residual_kernels", "G11", "mean_shift", "four_point"):
        value, other = getattr(s, field), getattr(near, field)
        np.testing.assert_allclose(value, other, atol=1e-10 * np.abs(value).max())
    assert s.G11[1, 1] == pytest.approx(0 if name == "sign" else (0.36 * 1.3 / 2) ** 2 / net.width)


@pytest.mark.parametrize("name", ["heaviside", "sign"])
def test_networks_that_are_drawn(name):
    """Theory and simulation mean the same by an input that is zero, or tiny."""
    net = network(name, 0.9, 2, bias_variance=0.0, width=40)
    for k in (0.0, 1e-30):
        s = ft.solve(net, np.diag([k, 0.3]))
        for method in ("kernel", "weights"):
            e = ft.simulate(net, np.diag([k, 0.3]), samples=1500, seed=1, method=method)
            error = np.maximum(e.mean_error[1:], 1e-12)
            off = (e.mean - s.residual_kernels - s.mean_shift)[1:]
            assert np.abs(off / error).max() < 4.5


@pytest.mark.parametrize("text", ["Heaviside(h)*(h+2)", "Heaviside(h)*(h**2+1)"])
def test_closed_forms_that_divide_by_variances(text):
    """Averages of narrow signals in place of 0/0, infinite where these grow beyond all limits."""
    averages = layer_functions(as_activation(text))
    found, near = (
        averages.covariance(np.array([k, 0.3]), np.array([0.3, k]), np.zeros(2))
        for k in (0.0, 1e-28)
    )
    np.testing.assert_allclose(found, near, rtol=1e-12)
    assert averages.covariance_susceptibility(0.0, 0.3, 0.0) == np.inf


@pytest.mark.parametrize(
    ("name", "K"),
    crossed(["sign", "heaviside"], [np.diag([0.0, 0.3]), np.array([[0.3, 0.6], [0.6, 1.2]])]),
)
def test_responses_of_jumps_that_are_infinite(name, K):
    """∂ arcsin c/∂K_xy = 1/√(K_xx K_yy − K_xy²)."""
    s = ft.solve(network(name, 0.7, 1), K)
    for field in ("response", "residual_response", "output_response"):
        with pytest.raises(OverflowError, match="is infinite in layer 1: .* input that is zero"):
            getattr(s, field)
    assert np.isfinite(s.G11).all()


@pytest.mark.parametrize("text", ["sign", "heaviside", STEPPED, "sign(h)+h"])
@pytest.mark.parametrize("K", [(0.0, 0.0, 0.0), (0.0, 0.3, 0.0), (0.3, 0.0, 0.0)])
def test_averages_of_many_digits(text, K):
    """Two signals that vanish are one in mpmath as well: ⟨φφ⟩ = (φ(0+)² + φ(0−)²)/2."""
    exact = layer_functions(as_activation(text), "mpmath")
    with mpmath.workdps(30):
        found = float(exact.covariance(*map(mpmath.mpf, K)))
    if not any(K):
        assert found == pytest.approx(0.5 if "eaviside" in text else 1.0, rel=1e-14)
    assert found == pytest.approx(
        float(layer_functions(as_activation(text)).covariance(*K)), abs=1e-14
    )
