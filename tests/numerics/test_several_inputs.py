"""Fluctuations, vertices and mean shifts of several inputs: dense oracle, exact cases, symmetry."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fieldtheory as ft
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.numerics import chunks
from tests.numerics.pair_examples import (
    OFFSET,
    OPPOSED,
    STEP,
    STEPS,
    THREE,
    TWO,
    dense,
    network,
    of_pairs,
    upper,
)
from tests.tables import slow

FIELDS = ["G11", "kernel_variance", "mean_shift", "four_point", "output_kurtosis"]


@pytest.mark.parametrize(
    ("name", "gamma", "K0", "depth", "count"),
    [
        slow("erf", 0.7, TWO, 2, 32),
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
    net = network(name, gamma, 2)
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


def test_orthogonal_inputs():
    """Odd φ without bias: covariances fluctuate about zero, not shifted, apart from variances."""
    net = network("erf", 1.0, 3, bias_variance=0.0, readout_bias_variance=0.0)
    s = ft.solve(net, np.diag([0.3, 0.5]))
    np.testing.assert_allclose(s.G11[:, :, 1, [0, 2]], 0, atol=1e-17)
    np.testing.assert_allclose(s.G11[:, :, 0, 2], 0, atol=1e-17)
    np.testing.assert_allclose(s.mean_shift[:, 0, 1], 0, atol=1e-15)
    assert (np.diagonal(s.G11[1:, 1:, 1, 1]) > 0).all()


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


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("batch", ["scales", "kernels"])
def test_batches_are_refused(name, batch):
    scales = [[0.3], [0.4]] if batch == "scales" else 0.3
    net = ft.ResidualNetwork(depth=2, branch_scale=scales)
    K0 = TWO if batch == "scales" else np.stack([TWO, TWO])
    with pytest.raises(ValueError, match=f"{name} needs one "):
        getattr(ft.solve(net, K0), name)


@pytest.mark.parametrize("name", ["erf", "relu"])
def test_progress_is_shown_on_stderr_if_wanted(name, capsys, monkeypatch):
    monkeypatch.setattr(chunks, "SILENCE", 0.0)
    # Signals too wide for the chain of neurons, which takes no time worth a bar.
    net = network(name, 0.7, 1)
    silent, shown = (ft.solve(net, 20 * TWO, progress=wanted) for wanted in (False, True))
    expected = silent.mean_shift, silent.G11
    assert capsys.readouterr().err == ""
    np.testing.assert_array_equal(shown.mean_shift, expected[0])
    np.testing.assert_array_equal(shown.G11, expected[1])
    text = capsys.readouterr().err
    assert "mean_shift, layers" in text and "correlators, layers" in text


def test_the_order_of_single_inputs_says_where_that_of_several_holds():
    net = ft.ResidualNetwork(depth=6, activation="swish", width=64)
    K0 = np.array([[0.05, 0.02], [0.02, 0.04]])
    with pytest.warns(ft.ValidityWarning, match="terms of order 1/N² reach 0.22"):
        _ = ft.solve(net, K0).G11
    with pytest.warns(ft.ValidityWarning):
        found = ft.solve(net, K0, order=2).order_ratio
        each = [ft.solve(net, variance, order=2).order_ratio for variance in np.diagonal(K0)]
    np.testing.assert_array_equal(found, np.stack(each, axis=-1))


def test_kurtosis_of_linear_outputs_is_exact_to_order_two():
    # Without biases C^(L+1) is a product of L + 1 chi-squared variables: ⟨C²⟩/⟨C⟩² = (1 + 2/N)^4.
    for N in (50, 500):
        net = ft.FeedForwardNetwork(depth=3, activation="linear", width=N, bias_variance=0.0)
        exact = 3 * ((1 + 2 / N) ** 4 - 1)
        found = [float(ft.solve(net, 0.5, order=order).output_kurtosis) for order in (1, 2)]
        assert found == pytest.approx([24 / N, 24 / N + 72 / N**2], rel=1e-9)
        assert abs(found[1] - exact) < 100 / N**3
