"""Any φ of the promise, at random: every number against a second route to it."""

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import fieldtheory as ft
from tests.oracles.panel_products import average1, average2
from tests.piecewise import activations

variances = st.sampled_from([0.05, 0.4, 1.0, 3.0, 20.0])
correlations = st.sampled_from([-0.95, -0.4, 0.1, 0.6, 0.97])
# Errors relative to the natural size: of averages, and of differences of fourth order.
EXACT, DIFFERENCE = 2e-12, 1e-7
ROUNDING = 2 * np.finfo(float).eps
STEP, STENCIL = 2e-3, {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12}
NETWORKS, LARGEST_Z = 500, 6.0
WEIGHT, BIAS = 0.7**2 * 1.25, 0.7**2 * 0.1


def network(phi):
    return ft.ResidualNetwork(
        depth=1, activation=phi, branch_scale=0.7, bias_variance=0.1, width=1000
    )


def shifted(K0):
    """K0, and K0 with steps in the covariance and in the first variance."""
    a, b, c = K0[0, 0], K0[1, 1], K0[0, 1]
    by_covariance = STEP * (a * b - c * c) / np.sqrt(a * b)
    kernels = [K0]
    for entry, step in (((0, 1), by_covariance), ((0, 0), STEP * a)):
        for times in STENCIL:
            K = K0.copy()
            K[entry] = K[entry[::-1]] = K0[entry] + times * step
            kernels.append(K)
    return np.array(kernels), (by_covariance, STEP * a)


def check(phi, K0, number):
    net, points = network(phi.expression), [float(p) for p in phi.points]
    kernels, steps = shifted(K0)
    s = ft.solve(net, kernels)
    C = s.residual_kernels[:, 1]
    square = [average1(lambda x: phi(x) ** 2, points, K) for K in np.diag(K0)]
    fourth = [average1(lambda x: phi(x) ** 4, points, K) for K in np.diag(K0)]
    size = WEIGHT * np.sqrt(np.outer(square, square)) + BIAS
    # Kernels against panels.
    joint = average2(phi, phi, points, K0)
    exact = WEIGHT * np.array([[square[0], joint], [joint, square[1]]]) + BIAS
    np.testing.assert_array_less(np.abs(C[0] - exact), EXACT * size + 1e-300)
    # φ(−h) and another spelling.
    for other in (phi.mirrored.expression, phi.text):
        same = ft.solve(network(other), K0).residual_kernels[1]
        np.testing.assert_array_less(np.abs(C[0] - same), EXACT * size + 1e-300)
    # Responses against differences; a variance alone has a steeper natural size.
    natural = WEIGHT * np.sqrt(fourth[0]) / K0[0, 0], size[0, 1] / np.sqrt(np.linalg.det(K0))
    for entry, first, step, scale in (
        ((0, 1), 1, steps[0], natural[1]),
        ((0, 0), 5, steps[1], natural[0]),
    ):
        rows = C[first : first + 4, *entry]
        slope = sum(w * row for w, row in zip(STENCIL.values(), rows, strict=True)) / step
        # C holds the variance of biases, whose rounding its differences have.
        rounding = ROUNDING * np.abs(C[0][entry]) / step
        assert abs(s.residual_response[0, 1][entry] - slope) <= DIFFERENCE * scale + rounding, entry
    # Networks at random; their mean over neurons is that of the theory in the first layer.
    ensemble = ft.simulate(net, K0, samples=NETWORKS, seed=number)
    # Of rare values a sample may have none, and no error.
    spread = np.sqrt(np.maximum(np.subtract(fourth, np.square(square)), 0.0))
    least = WEIGHT * np.sqrt(np.outer(spread, spread) / (NETWORKS * net.width))
    mean, error = ensemble.mean[1], np.maximum(ensemble.mean_error[1], least)
    moving = error > EXACT * size
    assert np.abs((mean - C[0])[moving] / error[moving]).max(initial=0.0) < LARGEST_Z


def kernels():
    """Two inputs that are not parallel."""
    return st.builds(
        lambda a, b, r: np.array([[a, r * np.sqrt(a * b)], [r * np.sqrt(a * b), b]]),
        variances, variances, correlations,
    )  # fmt: skip


# Shrinking takes longer than reading the example.
DRAWN = {"suppress_health_check": list(HealthCheck), "phases": [Phase.generate]}


@given(activations(), kernels(), st.integers(0, 2**31))
@settings(max_examples=2, **DRAWN)
def test_some(phi, K0, number):
    check(phi, K0, number)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(100))
def test_many(block):
    """Two thousand of them."""
    drawn = given(activations(), kernels(), st.integers(0, 2**31))(check)
    seed(block)(settings(max_examples=20, derandomize=False, database=None, **DRAWN)(drawn))()
