"""Fluctuations, vertices and mean shifts of several inputs: dense oracle, exact cases, symmetry."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.numerics import chunks
from tests.numerics.pair_examples import (
    ELSEWHERE,
    KINKED,
    OFFSET,
    OPPOSED,
    STEP,
    STEPPED,
    STEPS,
    THREE,
    TWO,
    dense,
    network,
    of_pairs,
    upper,
)
from tests.rounding import assert_same
from tests.tables import slow

ZERO, BIASES = np.diag([0.0, 0.3]), (0.0, 0.07)


@pytest.mark.slow_but(31)
@pytest.mark.parametrize(
    ("name", "gamma", "K0", "depth", "count", "readout_bias"),
    [
        slow("erf", 0.7, TWO, 2, 32, None),
        slow("erf", 1.0, TWO, 1, 40, None),
        slow("tanh", 1.0, TWO / 2, 1, 38, None),
        slow("tanh", 0.7, TWO / 2, 1, 38, None),
        ("gelu", 0.0, TWO, 2, 26, None),
        slow("gelu", 0.7, TWO, 1, 32, None),
        ("relu", 0.0, TWO, 1, 24, None),
        slow("relu", 0.7, TWO, 1, 28, None),
        slow("abs", -0.7, TWO, 1, 32, None),
        slow("elu", 0.7, TWO, 1, 30, None),
        slow("softsign", 1.0, TWO, 1, 34, None),
        slow("softsign", 0.7, THREE, 1, 26, None),
        slow("elu", 1.0, THREE, 1, 26, None),
        slow("hard_tanh", 0.7, 2 * TWO, 1, 18, None),
        slow(OFFSET, 0.7, TWO, 1, 28, None),
        slow(STEPS, 0.0, 3 * TWO, 1, 24, None),
        slow(STEPS, 0.7, 3 * TWO, 1, 28, None),
        slow(STEPS, 1.0, 3 * OPPOSED, 1, 28, None),
        slow(STEP, 0.0, 3 * OPPOSED, 1, 28, None),
        slow(STEP, 0.7, 4 * TWO, 1, 44, None),
        slow("leaky_relu", 1.0, TWO, 1, 32, None),
        slow("relu", 1.0, TWO, 2, 34, None),
        slow("erf", 0.7, THREE, 1, 36, None),
        slow("tanh", 0.0, THREE / 2, 2, 38, None),
        slow("gelu", 1.0, THREE / 2, 1, 32, None),
        slow("relu", 1.0, THREE, 1, 32, None),
        *[(name, 0.7, ZERO, 1, 24, 0.0) for name in ("heaviside", STEPPED, "abs")],
        *[(name, 0.7, ZERO, 1, 24, 0.07) for name in ("sign", "relu", "cos")],
        *[
            slow(name, 0.7, ZERO, 1, 24, b)
            for name in ("leaky_relu", "elu", "selu")
            for b in BIASES
        ],
        *[slow("softsign", 0.7, ZERO, 1, 26, 0.0), slow("tanh", 0.7, ZERO, 1, 40, 0.07)],
        *[slow("erf", 0.7, ZERO, 1, 36, 0.0), slow("gelu", 0.7, ZERO, 1, 28, 0.07)],
        *[slow("exp(-h**2)", 0.7, ZERO, 1, 62, 0.0), slow("hard_tanh", 0.7, ZERO, 1, 26, 0.07)],
        slow("relu6", 0.7, ZERO, 1, 24, 0.0),
    ],
)
def test_against_dense_blocks(name, gamma, K0, depth, count, readout_bias):
    """An input that is zero is one so narrow that it is none: what is left is its deviation, 1e-13.

    Its readout has biases too, the first layer that zero signals change.
    """
    bias = {} if readout_bias is None else {"bias_variance": readout_bias}
    bias |= {"readout_bias_variance": readout_bias} if bias else {}
    net = network(name, gamma, depth, **bias)
    K0 = np.array(K0)
    near = np.where((K0 == 0) & np.eye(len(K0), dtype=bool), 1e-26, K0)
    s, known, N = ft.solve(net, K0), dense(net, near, count), net.width
    np.testing.assert_allclose(upper(s.residual_kernels), upper(known.C), rtol=0, atol=1e-12)
    # The promise: 1e-6 with kinks elsewhere and beside zero, and 1e-4 of their mean shift.
    kinks = name in {*ELSEWHERE, *(KINKED if bias else ())} - {"relu", "abs", "leaky_relu"}
    allowed = max(1e-6 * np.abs(known.G11).max() * kinks, 1e-9)
    np.testing.assert_allclose(N * of_pairs(s.G11), known.G11, rtol=0, atol=allowed)
    np.testing.assert_allclose(s.four_point, known.vertex, rtol=0, atol=allowed)
    sums = known.A**2
    variance = np.einsum("lk,lm,kmpp->lp", sums, sums, s.G11[:-1, :-1])
    np.testing.assert_allclose(upper(s.kernel_variance), variance, rtol=1e-12, atol=1e-18)
    shift = known.shift.reshape(depth + 2, -1)
    allowed = max(1e-4 * np.abs(shift).max() * kinks, 1e-9)
    np.testing.assert_allclose(N * upper(s.mean_shift), shift, rtol=0, atol=allowed)


@pytest.mark.parametrize("gamma", [slow(0.0), 0.7, 1.0])
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


def test_orthogonal_inputs():
    """Odd φ without bias: covariances fluctuate about zero, not shifted, apart from variances."""
    net = network("erf", 1.0, 3, bias_variance=0.0, readout_bias_variance=0.0)
    s = ft.solve(net, np.diag([0.3, 0.5]))
    np.testing.assert_allclose(s.G11[:, :, 1, [0, 2]], 0, atol=1e-17)
    np.testing.assert_allclose(s.G11[:, :, 0, 2], 0, atol=1e-17)
    np.testing.assert_allclose(s.mean_shift[:, 0, 1], 0, atol=1e-15)
    assert (np.diagonal(s.G11[1:, 1:, 1, 1]) > 0).all()


@pytest.mark.parametrize("name", [slow("erf"), "relu"])
def test_progress_is_shown_on_stderr_if_wanted(name, capsys, monkeypatch):
    monkeypatch.setattr(chunks, "SILENCE", 0.0)
    # Signals too wide for the chain of neurons, which takes no time worth a bar.
    net = network(name, 0.7, 1)
    silent, shown = (ft.solve(net, 20 * TWO, progress=wanted) for wanted in (False, True))
    expected = silent.mean_shift, silent.G11
    assert capsys.readouterr().err == ""
    assert_same(shown.mean_shift, expected[0])
    assert_same(shown.G11, expected[1])
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
    assert_same(found, np.stack(each, axis=-1))


def test_kurtosis_of_linear_outputs_is_exact_to_order_two():
    # Without biases C^(L+1) is a product of L + 1 chi-squared variables: ⟨C²⟩/⟨C⟩² = (1 + 2/N)^4.
    for N in (50, 500):
        net = ft.FeedForwardNetwork(depth=3, activation="linear", width=N, bias_variance=0.0)
        exact = 3 * ((1 + 2 / N) ** 4 - 1)
        found = [float(ft.solve(net, 0.5, order=order).output_kurtosis) for order in (1, 2)]
        assert found == pytest.approx([24 / N, 24 / N + 72 / N**2], rel=1e-9)
        assert abs(found[1] - exact) < 100 / N**3
