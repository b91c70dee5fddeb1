"""1 − c of pairs of inputs where it is small, against recursions of mpmath with 80 digits."""

import time

import numpy as np
import pytest
from mpmath import mp, mpf, sin

import fieldtheory as ft
from fieldtheory.numerics.layer_averages.large_variances import pair_averages
from fieldtheory.numerics.overflow.decorrelations import decorrelations
from tests.oracles import deep_kernels, hard_shrinkage
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


@pytest.mark.parametrize(("name", "angle"), crossed(CASES, ["1e-8", "1e-4", "0.3", "2.0"]))
def test_inputs_of_one_norm_at_an_angle(name, angle):
    net = ft.ResidualNetwork(depth=60, activation=name, weight_variance=2.0, bias_variance=0.1)
    half = mpf(angle) / 2
    initial = 2 * sin(half) ** 2
    exact = expected(net, CASES[name], mpf(1), mpf(1), 1 - initial)
    found = decorrelations(net, [1.0, 1.0], float(initial))
    np.testing.assert_allclose(found, exact, rtol=1e-12)


@pytest.mark.parametrize("scale", ["none", "uniform", "decreasing"])
def test_kernels_given_in_float64(scale):
    """What 1 − c is of the numbers in K0; the last pair differs in the last bit only."""
    last = np.nextafter(1.0, 2.0)
    net = ft.ResidualNetwork(depth=40, activation="relu", branch_scale=scale, weight_variance=2.0)
    for K0 in ([[0.3, 0.1], [0.1, 0.5]], [[1.5, -0.7], [-0.7, 0.5]], [[1.0, 1.0], [1.0, last]]):
        exact = expected(net, CASES["relu"], mpf(K0[0][0]), mpf(K0[1][1]), mpf(K0[0][1]))
        found = ft.solve(net, K0).decorrelation
        assert found.shape == (42, 2, 2) and not found[:, [0, 1], [0, 1]].any()
        # Differences of norms of the last bit are only known as they are after each layer.
        near = K0[1][1] == last
        np.testing.assert_allclose(found[:, 0, 1], exact, rtol=1e-8 if near else 1e-13)


@pytest.mark.parametrize("weight_variance", [slow(1.0), 2.0])
def test_deep_unscaled_relu_forgets_angles_as_one_over_depth_squared(weight_variance):
    """L² (1 − C_L) → (9π²/2)(1 + 2/σ_w²)² without bias, from δ' = δ − w (2δ)^(3/2)/(3π)."""
    depth = 3000
    net = ft.ResidualNetwork(
        depth=depth, activation="relu", weight_variance=weight_variance, bias_variance=0.0
    )
    found = decorrelations(net, [1.0, 1.0], 1.0)[:-1]
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


@pytest.mark.parametrize("K", [1e6, 1e14, 1e30])
def test_slopes_of_parallel_wide_signals_of_softplus_squared(K):
    """4 ⟨max(0, x) max(0, y)⟩ = 2 √(K_xx K_yy) up to 1/K, of e^{x + y} beyond float64."""
    net = ft.ResidualNetwork(depth=1, activation="softplus(h)**2")
    one = np.ones(2)
    found = pair_averages(net, "slope", K * one, K * np.array([1.0, 4.0]), one)
    np.testing.assert_allclose(found, [2 * K, 4 * K], rtol=10 / K + 1e-12)


def test_nearly_parallel_inputs_of_softplus_squared():
    """Where its kernels exceed float64 they are those of max(0, h)², K' = 3/2 a K² of one input."""
    near = [[1.0, 1 - 1e-9], [1 - 1e-9, 1.0]]
    net = ft.ResidualNetwork(depth=40, activation="softplus(h)**2")
    found = ft.solve(net, near).log_kernels
    assert (found[:, 0, 1] <= found[:, 0, 0]).all()
    weight = 1.5 * net.branch_scale**2 * net.weight_variance
    expected = 2 * found[9:-2, 0, 0] + np.log(weight)
    np.testing.assert_allclose(found[10:-1, 0, 0], expected, rtol=1e-13)


@pytest.mark.parametrize("K", [1e-4, 1.0, 1e6])
@pytest.mark.parametrize("delta", [1e-9, 1e-4])
def test_jumps_tell_nearly_parallel_signals_apart(K, delta):
    """sign(h) + h: 1 − c_φ = (2θ/π + K δ + 2 √(2K/π) δ)/(1 + K + 2 √(2K/π))."""
    net = ft.ResidualNetwork(depth=1, activation="sign(h)+h", skip_scale=0.0, bias_variance=0.0)
    found = decorrelations(net, [K, K], delta)[1]
    angle, linear = 2 * np.arcsin(np.sqrt(delta / 2)), K + 2 * np.sqrt(2 * K / np.pi)
    expected = (2 / np.pi * angle + linear * delta) / (1 + linear)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_slow_slopes_with_a_kink_of_wide_nearly_parallel_signals():
    """atan|h| at K = 1e6: ⟨(φ(x) − φ(y))²⟩/2M by 16 nodes on panels that shrink towards x = ±y."""
    net = ft.ResidualNetwork(
        depth=1, activation="sign(h)*atan(h)", skip_scale=0.0, bias_variance=0.0
    )
    found = decorrelations(net, [1e6, 1e6], 1e-9)[1]
    np.testing.assert_allclose(found, 2.4806365264446e-07, rtol=1e-12)


@pytest.mark.parametrize(
    ("norms", "apart", "tolerance"),
    [
        ((0.5, 0.5), 1e-9, 1e-14),
        ((0.5, 0.5), 1e-12, 1e-14),
        ((0.5, 0.5), 2.0**-49, 1e-14),
        # The mean of x − y is a difference of roundings of 1 here.
        ((0.5, 0.500005), 1e-6, 1e-11),
        ((0.5, 0.500005), 1e-12, 1e-9),
        ((0.5, 0.3), 1e-9, 1e-13),
    ],
)
def test_jumps_away_from_zero_at_small_angles(norms, apart, tolerance):
    """⟨φ'φ'⟩ of φ that jumps grows as 1/θ, or appears at once where signals jump together."""
    K_xy = float((1 - apart) * np.sqrt(np.prod(norms)))
    settings = {"weight_variance": 2.0, "bias_variance": 0.05}
    net = ft.ResidualNetwork(depth=3, activation="hardshrink", **settings)
    s = ft.solve(net, [[norms[0], K_xy], [K_xy, norms[1]]])
    delta, chi = hard_shrinkage.layers(3, 1.0, 2.0, 0.05, *norms, K_xy)
    assert s.decorrelation[1:-1, 0, 1] == pytest.approx(np.array(delta, float), rel=tolerance)
    assert s.response[1:, 0, 1] == pytest.approx(np.array(chi, float), rel=max(tolerance, 1e-12))
    assert s.log_response[1:, 0, 1] == pytest.approx(
        np.log(np.array(chi, float)), abs=max(tolerance, 1e-13)
    )


def test_jumps_away_from_zero_take_one_integral_a_layer():
    """Nested integrals over both signals took 40 s of these layers."""
    net = ft.ResidualNetwork(depth=100, activation="hardshrink", weight_variance=1.0)
    r = (1 - 1e-9) * np.sqrt(0.15)
    start = time.process_time()
    assert np.isfinite(ft.solve(net, [[0.5, r], [r, 0.3]]).response).all()
    assert time.process_time() - start < 15


def test_wide_nearly_parallel_signals_of_slow_ends():
    """Fourier transforms of slopes took a second a layer, and lost digits of different norms."""
    K_xx, K_yy, delta = 1e12, 6e11, 1e-5
    settings = {"skip_scale": 0.0, "weight_variance": 1.0, "bias_variance": 0.0}
    net = ft.ResidualNetwork(depth=1, activation="isru", **settings)
    start = time.process_time()
    found = decorrelations(net, [K_xx, K_yy], delta)
    assert time.process_time() - start < 5
    # ⟨(φ_x/n − φ_y/m)²⟩/2 over the radius and the angle from the zero of x, on graded panels.
    theta = 2 * np.arcsin(np.sqrt(delta / 2))
    beside = np.append(0.0, np.geomspace(1e-12, theta / 2, 60))
    inside = np.concatenate([beside, theta - beside])
    outside = np.geomspace(1e-12, (np.pi - theta) / 2, 60)
    angles = np.unique([*inside, *-outside, *(theta + outside)])
    nodes, weights = np.polynomial.legendre.leggauss(12)

    def composite(edges):
        half = np.diff(edges)[:, None] / 2
        return (edges[:-1, None] + half * (1 + nodes)).ravel(), (half * weights).ravel()

    a, of_angles = composite(angles)
    r, of_radii = composite(np.append(0.0, np.geomspace(1e-8, 10, 50)))

    def phi(h):
        return h / np.hypot(1, h)

    signals = np.sqrt(K_xx) * np.sin(a), np.sqrt(K_yy) * np.sin(a - theta)
    x, y = (phi(r[:, None] * signal) for signal in signals)
    bell = of_radii * r * np.exp(-r * r / 2) / np.pi
    n, m = (np.sqrt(bell @ v**2 @ of_angles) for v in (x, y))
    expected = bell @ (x / n - y / m) ** 2 @ of_angles / 2
    assert found[1] == pytest.approx(expected, rel=1e-11)
