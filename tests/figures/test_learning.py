"""The figure of learning: its numbers by another route, and what they say."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.data import load_digits
from fieldtheory.figures import learning

DEPTH, P, T, N, NOISE = 3, 6, 4, 300, 0.02


@pytest.fixture(scope="module")
def found():
    return learning.scaling((DEPTH,), (0.5, 2.0), P, T, N, NOISE)


def digits():
    """Correlations of the images, classes in turn, and labels."""
    images = load_digits((0, 3), 356)
    X = images.samples.reshape(2, 178, -1).swapaxes(0, 1).reshape(356, -1)
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    return X @ X.T, np.tile([1.0, -1.0], 178)


def output_kernel(correlation, rho, readout):
    """Of erf by its closed form, layer by layer."""
    K = 0.05 * correlation

    def branch(K):
        size = np.sqrt(1 + 2 * np.diag(K))
        return 1.25 * 2 / np.pi * np.arcsin(2 * K / np.outer(size, size)) + 0.05

    for _ in range(DEPTH):
        K = K + rho**2 * branch(K)
    return readout * branch(K)


def test_infinite_width(found):
    correlation, y = digits()
    for j, multiple in enumerate((0.5, 2.0)):
        C = output_kernel(correlation, multiple * found.optima[0], found.readout[1, 0, j])
        A, labels = C[:P, :P] + NOISE * np.eye(P), y[:P]
        mean = C[P:, :P] @ np.linalg.solve(A, labels)
        expected = {
            "squared_error_nngp": np.mean((mean - y[P:]) ** 2),
            "misclassified_nngp": np.mean(mean * y[P:] < 0),
            "evidence_nngp": evidence(A, labels),
        }
        for name, value in expected.items():
            np.testing.assert_allclose(found.values[name][1, 0, j], value, rtol=1e-7)
        for factor in (0.97, 1.03):
            assert evidence(factor * C[:P, :P] + NOISE * np.eye(P), labels) < evidence(A, labels)
        hidden = C[:P, :P] / found.readout[1, 0, j] + NOISE * np.eye(P)
        np.testing.assert_allclose(found.evidence_fixed[1, 0, j], evidence(hidden, labels))


def evidence(A, y):
    """ln p(y)/P."""
    quadratic = y @ np.linalg.solve(A, y)
    return -0.5 * (quadratic + np.linalg.slogdet(2 * np.pi * A)[1]) / len(y)


def test_order_one_over_N(found):
    correlation, y = digits()
    net = ft.ResidualNetwork(
        depth=DEPTH, width=N, branch_scale=2 * found.optima[0],
        readout_weight_variance=1.25 * found.readout[1, 0, 1],
        readout_bias_variance=0.05 * found.readout[1, 0, 1],
    )  # fmt: skip
    few = 0.05 * correlation[: P + T, : P + T]
    expected = ft.posterior(net, few, y[:P], NOISE)
    np.testing.assert_allclose(found.evidence[1, 0, 1], expected.log_evidence / P)
    np.testing.assert_allclose(found.expansion_ratio[1, 0, 1], expected.expansion_ratio)
    tested = slice(P, P + T)
    changes = [
        np.mean((mean[tested] - y[tested]) ** 2) for mean in (expected.mean_nngp, expected.mean)
    ]
    change = found.squared_error - found.squared_error_nngp
    np.testing.assert_allclose(change[1, 0, 1], changes[1] - changes[0])
    C, learned = (x[-1, :P, :P] for x in (expected.kernels, expected.kernel_shift))
    np.testing.assert_allclose(
        found.kernel_shift[1, 0, 1], np.linalg.norm(learned) / np.linalg.norm(C - learned)
    )
    centring = np.eye(P) - 1 / P
    for kernel, name in ((C, "alignment"), (C - learned, "alignment_prior")):
        size = P * np.linalg.norm(centring @ kernel @ centring)
        np.testing.assert_allclose(found.values[name][1, 0, 1], y[:P] @ kernel @ y[:P] / size)


def test_optima_of_pairs_are_means_over_covariances(found):
    correlation, _ = digits()
    net = ft.ResidualNetwork(depth=DEPTH)
    optima = ft.optimal_scaling(net, 0.05 * correlation[:P, :P])
    expected = optima[np.triu_indices(P, 1)].mean()
    np.testing.assert_allclose(found.optima_of_pairs[1, 0], expected, rtol=1e-8)
    np.testing.assert_allclose(found.optima, ft.optimal_scaling(net, 0.05))


@pytest.mark.slow
def test_the_optimum_of_the_prior_is_not_that_of_learning():
    """Evidence and test error are best above ρ*, and the kernel learns more the larger ρ is."""
    found = learning.scaling((10,), (0.25, 1.0, 2.0**0.5, 2.0, 4.0), tested=2)
    assert (found.evidence[:, 0].argmax(axis=1) == [2, 3]).all()
    assert (found.squared_error_nngp[:, 0].argmin(axis=1) == [3, 3]).all()
    assert (np.diff(found.kernel_shift) > 0).all()
    assert (found.expansion_ratio < 0.3).all()
