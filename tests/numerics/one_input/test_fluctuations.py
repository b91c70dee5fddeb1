"""G11 and the variance of the kernels: exact cases, oracles, finite networks, structure."""

from warnings import catch_warnings

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import fieldtheory as ft
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.numerics.one_input import source_covariance
from tests.examples import PHI, network, oracle, precise_oracle
from tests.oracles import exact, hessian, recursion
from tests.tables import slow

K0 = 0.4
NAMES = ["erf", "relu", "tanh", "linear"]
GAMMAS = [0.0, 0.7, 1.0, (0.9, 0.4, 1.0)]


@pytest.mark.slow_but(1, 3)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("gamma", GAMMAS)
def test_against_the_dense_hessian(name, gamma):
    net = network(3, name, gamma)
    S21 = hessian.S21(oracle(net), K0, PHI[name])
    S22 = hessian.S22(oracle(net), K0, PHI[name])
    G11 = hessian.propagator(hessian.hessian(S21, S22))[0]
    s = ft.solve(net, K0)
    np.testing.assert_allclose(
        source_covariance(net, layer_coefficients(net), s.kernels), S22, atol=1e-13
    )
    np.testing.assert_allclose(net.width * s.G11, G11, rtol=0, atol=1e-11)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_linear_network(gamma):
    """S22 in closed form; N G11 is the limit of N times the exact covariance."""
    net = network(3, "linear", gamma)
    s = ft.solve(net, K0)
    S22 = source_covariance(net, layer_coefficients(net), s.kernels)
    np.testing.assert_allclose(S22, exact.linear_S22(oracle(net), K0), rtol=1e-13, atol=1e-16)
    with mpmath.workdps(40):
        N = mpf(10) ** 18
        _, cov = exact.linear_moments(precise_oracle(net), mpf(K0), N)
        limit = (N * cov).astype(float)
    np.testing.assert_allclose(net.width * s.G11, limit, rtol=1e-13, atol=1e-16)


@pytest.mark.slow_but(0, 5, 6, 7, 8)
@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("h*sign(h)", "linear"),
        ("tanh(h)*sign(h)", "tanh"),
        ("tanh(h)*sign(h - 0.3)", "tanh"),
        ("softplus(h)*sign(h + 2)", "softplus"),
        ("sign(h) + erf(h)*sign(h)", "1 + erf(h)"),
    ],
)
@pytest.mark.parametrize("gamma", GAMMAS[:2])
def test_signs_that_cancel_in_the_square(text, same, gamma):
    """φ = ψ sign has the fluctuations of ψ for one input: φ² is ψ², which has no steps."""
    found, expected = (ft.solve(network(3, name, gamma), K0) for name in (text, same))
    for field in ("kernels", "G11", "mean_shift", "four_point"):
        np.testing.assert_allclose(
            getattr(found, field), getattr(expected, field), rtol=1e-12, atol=1e-18, err_msg=field
        )
    np.testing.assert_allclose(found.response, expected.response, rtol=1e-12)


@pytest.mark.parametrize("variance", [slow(1e-3), 0.3, 30.0])
def test_jumps_away_from_zero_beside_kinks(variance):
    """relu(h) + θ(h + 1)/2: N G11 of the first layer is a² Var φ², on panels between the kinks."""
    net = ft.ResidualNetwork(depth=1, activation="relu(h) + 0.5*heaviside(h + 1)", width=1)
    z, w = np.polynomial.legendre.leggauss(40)
    cuts = np.unique([*np.linspace(-12, 12, 121) * np.sqrt(variance), -1.0, 0.0])
    half, middle = np.diff(cuts) / 2, (cuts[1:] + cuts[:-1]) / 2
    h = (middle[:, None] + np.outer(half, z)).ravel()
    weights = np.outer(half, w).ravel() * np.exp(-h * h / (2 * variance))
    weights /= np.sqrt(2 * np.pi * variance)
    square = (np.maximum(h, 0) + 0.5 * (h > -1)) ** 2
    expected = 1.25**2 * (weights @ (square - weights @ square) ** 2)
    # Narrow signals hardly fluctuate, even at width 1.
    doubt = pytest.warns(ft.ValidityWarning) if variance > 0.01 else catch_warnings(action="error")
    with doubt:
        found = ft.solve(net, variance).G11[1, 1]
    assert found == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_kernel_variance_is_the_full_double_sum(gamma):
    net = network(3, gamma=gamma)
    s, A = ft.solve(net, K0), np.array(recursion.skip_matrix(oracle(net)), dtype=float)
    full = A**2 @ s.G11[:-1, :-1] @ (A**2).T
    np.testing.assert_allclose(s.kernel_variance, np.diagonal(full), rtol=1e-13)
    diagonal_terms = A**4 @ np.diagonal(s.G11)[:-1]
    assert np.allclose(s.kernel_variance, diagonal_terms) == (gamma == 0.0)


def test_without_branches_only_the_readout_fluctuates():
    net = network(3, gamma=1.0, branch_scale=0.0)
    s = ft.solve(net, K0)
    expected = 1.4**2 * float(exact.erf_connected(K0, K0, K0)) / net.width
    assert s.G11[-1, -1] == pytest.approx(expected, rel=1e-12)
    rest = s.G11.copy()
    rest[-1, -1] = 0
    assert not rest.any()
    assert not s.kernel_variance.any()


@pytest.mark.parametrize("depth, K0", [(20, 20.0), (50, 0.5), (10, 1e-6)])
def test_means_of_linear_networks_are_not_shifted(depth, K0):
    found = ft.solve(ft.ResidualNetwork(depth=depth, activation="linear"), K0).mean_shift
    np.testing.assert_array_equal(found, 0.0)


def test_means_of_squares_are_shifted_where_fourth_moments_exceed_float64():
    net = ft.ResidualNetwork(depth=6, activation="h**2", skip_scale=0.0)
    found = ft.solve(net, 20.0).mean_shift
    # The mean of the first layer is that of a kernel that does not fluctuate.
    assert (found[:2] == 0).all() and np.isfinite(found).all() and (found[2:] > 0).all()
    with pytest.raises(OverflowError, match="the covariance of the kernels"):
        _ = ft.solve(net, 20.0).G11
