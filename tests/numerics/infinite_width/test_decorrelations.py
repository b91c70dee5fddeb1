"""1 − c of pairs of inputs where it is small, against recursions of mpmath with 80 digits."""

import numpy as np
import pytest
from mpmath import mp, mpf

import fieldtheory as ft
from tests.oracles import deep_kernels
from tests.tables import crossed, slow


@pytest.fixture(autouse=True)
def eighty_digits():
    with mp.workdps(80):
        yield


def expected(net, phi, p, q, r):
    rho, gamma = net.branch_scales.tolist(), net.skip_scales.tolist()
    w, b = mpf(net.weight_variance), mpf(net.bias_variance)
    each = zip(rho, gamma, strict=True)
    layers = [(mpf(g) ** 2, mpf(s) ** 2 * w, mpf(s) ** 2 * b) for s, g in each]
    layers.append((mpf(0), w, b))
    kernels, _ = deep_kernels.two_inputs(phi, layers, p, q, r)
    return np.array([float(deep_kernels.decorrelation(*k)) for k in kernels])


CASES = {
    "relu": deep_kernels.bent(1, 0),
    "leaky_relu": deep_kernels.bent(1, "0.01"),
    "abs(h)": deep_kernels.bent(1, -1),
    "erf": deep_kernels.error_function(),
}


@pytest.mark.parametrize(("name", "gap"), crossed(CASES, [1e-13, 1e-8, 0.05, 1.4]))
def test_inputs_of_one_norm_at_an_angle(name, gap):
    net = ft.ResidualNetwork(depth=60, activation=name, weight_variance=2.0, bias_variance=0.1)
    K_xy = 1 - gap
    exact = expected(net, CASES[name], mpf(1), mpf(1), mpf(K_xy))
    found = ft.solve(net, [[1.0, K_xy], [K_xy, 1.0]]).decorrelation[:, 0, 1]
    # Of φ that are not lines on either side of zero it is a difference of kernels.
    np.testing.assert_allclose(found, exact, rtol=1e-12, atol=1e-12 if name == "erf" else 0)


@pytest.mark.parametrize("K_yy", [1.0, 1.03])
def test_smooth_functions_keep_the_digits_of_small_gaps(K_yy):
    """By as many Hermite coefficients as it takes, here more than 40."""
    net = ft.ResidualNetwork(depth=2, activation="erf", skip_scale=0.0)
    K_xy = np.sqrt(K_yy) * (1 - 1e-9)
    exact = expected(net, CASES["erf"], mpf(1), mpf(K_yy), mpf(K_xy))
    found = ft.solve(net, [[1.0, K_xy], [K_xy, K_yy]]).decorrelation[:, 0, 1]
    np.testing.assert_allclose(found, exact, rtol=2e-13)


@pytest.mark.parametrize("scale", ["none", "uniform", "decreasing"])
def test_kernels_given_in_float64(scale):
    """What 1 − c is of the numbers in K0."""
    net = ft.ResidualNetwork(depth=40, activation="relu", branch_scale=scale, weight_variance=2.0)
    for K0 in ([[0.3, 0.1], [0.1, 0.5]], [[1.5, -0.7], [-0.7, 0.5]]):
        exact = expected(net, CASES["relu"], mpf(K0[0][0]), mpf(K0[1][1]), mpf(K0[0][1]))
        found = ft.solve(net, K0).decorrelation
        assert found.shape == (42, 2, 2) and not found[:, [0, 1], [0, 1]].any()
        np.testing.assert_allclose(found[:, 0, 1], exact, rtol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("weight_variance", [slow(1.0), 2.0])
def test_deep_unscaled_relu_forgets_angles_as_one_over_depth_squared(weight_variance):
    """L² (1 − C_L) → (9π²/2)(1 + 2/σ_w²)² without bias, from δ' = δ − w (2δ)^(3/2)/(3π)."""
    depth = 3000
    net = ft.ResidualNetwork(
        depth=depth, activation="relu", weight_variance=weight_variance, bias_variance=0.0
    )
    found = ft.solve(net, np.eye(2)).decorrelation[:-1, 0, 1]
    limit = 4.5 * np.pi**2 * (1 + 2 / weight_variance) ** 2
    errors = [found[l] * l**2 / limit - 1 for l in (depth // 4, depth)]
    assert abs(errors[1]) < 0.05 and 2 < errors[0] / errors[1] < 4
    layers = [(mpf(1), mpf(weight_variance), mpf(0))]
    # One of the deep layers against mpmath, from what is there.
    start = mpf(float(found[-2]))
    kernels, _ = deep_kernels.two_inputs(CASES["relu"], layers, mpf(1), mpf(1), 1 - start)
    assert found[-1] == pytest.approx(float(deep_kernels.decorrelation(*kernels[1])), rel=1e-14)


def test_zero_inputs_have_no_angle():
    with pytest.raises(ValueError, match="decorrelation needs positive variances, got 0 in K0"):
        ft.solve(ft.ResidualNetwork(depth=2), np.diag([0.0, 1.0])).decorrelation  # noqa: B018
