"""Properties for any parameters: signs, positivity, symmetry, consistency."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fieldtheory as ft

# Squares of smaller scales leave the normal range of float64.
scales = st.one_of(st.just(0.0), st.floats(1e-3, 1.5))
variances = st.floats(1e-4, 5.0)


@st.composite
def networks(draw, activations=("erf", "relu")):
    depth = draw(st.integers(1, 5))
    layers = st.lists(scales, min_size=depth, max_size=depth)
    return ft.ResidualNetwork(
        depth=depth,
        activation=draw(st.sampled_from(activations)),
        branch_scale=draw(layers),
        skip_scale=draw(layers),
        weight_variance=draw(st.floats(0.01, 4.0)),
        bias_variance=draw(st.floats(0.0, 1.0)),
        readout_weight_variance=draw(st.floats(0.01, 4.0)),
        width=10**6,
    )


@st.composite
def kernels(draw):
    """X Xᵀ with a ridge, three inputs."""
    X = np.array(draw(st.lists(st.floats(-2, 2), min_size=9, max_size=9))).reshape(3, 3)
    return X @ X.T + 1e-3 * np.eye(3)


@given(networks(), variances)
@pytest.mark.slow
def test_responses_of_variances_are_positive(net, K0):
    """M' = ⟨φ'² + φφ''⟩ > 0 for erf and ReLU: more input, more output."""
    s = ft.solve(net, K0)
    assert (s.residual_response >= 0).all()
    moving = (net.branch_scales != 0) | (net.skip_scales != 0)
    assert (s.response > 0).all() == moving.all()
    assert (s.output_response > 0) == moving.all()
    assert (np.diagonal(s.G12) > 0).all()
    assert (s.G12 >= 0).all()


@given(networks(), kernels())
def test_kernels_are_positive_semidefinite(net, K0):
    s = ft.solve(net, K0)
    for kernel in (*s.kernels, *s.residual_kernels):
        np.testing.assert_array_equal(kernel, kernel.T)
        assert np.linalg.eigvalsh(kernel).min() > -1e-10 * max(np.abs(kernel).max(), 1e-300)


@given(networks(), kernels())
def test_responses_are_symmetric_and_bounded(net, K0):
    """⟨φ'φ'⟩ >= 0 for monotonic φ, and Cauchy-Schwarz bounds what the kernels can be."""
    s = ft.solve(net, K0)
    np.testing.assert_array_equal(s.response, s.response.swapaxes(-1, -2))
    assert (s.response >= 0).all()
    deviations = np.sqrt(np.diagonal(s.kernels, axis1=-2, axis2=-1))
    bound = deviations[:, :, None] * deviations[:, None, :]
    assert (np.abs(s.kernels) <= bound * (1 + 1e-12)).all()


@given(networks(), variances)
def test_fluctuations_are_a_covariance(net, K0):
    s = ft.solve(net, K0)
    np.testing.assert_allclose(s.G11, s.G11.T, rtol=1e-13, atol=0)
    size = max(np.abs(s.G11).max(), 1e-300)
    assert np.linalg.eigvalsh(s.G11).min() > -1e-12 * size
    assert (s.kernel_variance >= 0).all()


@given(networks(("relu", "linear")), variances, st.floats(0.1, 10))
def test_homogeneous_activations_without_bias_scale(net, K0, factor):
    """φ(cx) = c φ(x), σ_b = 0: kernels are proportional to K0, responses do not depend on it."""
    net = net.replace(bias_variance=0.0)
    s, scaled = ft.solve(net, K0), ft.solve(net, factor * K0)
    np.testing.assert_allclose(scaled.kernels, factor * s.kernels, rtol=1e-12)
    np.testing.assert_allclose(scaled.response, s.response, rtol=1e-12)
    np.testing.assert_allclose(scaled.G11, factor**2 * s.G11, rtol=1e-10, atol=1e-300)


@given(networks(("erf",)), st.floats(0.1, 3.0), st.floats(0.1, 3.0))
@settings(max_examples=25)
def test_scales_matter_by_their_products_with_variances_without_correlations(net, K0, factor):
    """C, K and χ depend on ρ² σ²_w, ρ² σ²_b and γ² alone."""
    moved = net.replace(
        branch_scale=net.branch_scales * factor,
        skip_scale=-net.skip_scales,
        weight_variance=net.weight_variance / factor**2,
        bias_variance=net.bias_variance / factor**2,
        readout_weight_variance=net.readout_variances[0],
        readout_bias_variance=net.readout_variances[1],
    )
    s, other = ft.solve(net, K0), ft.solve(moved, K0)
    for name in ("kernels", "response", "output_response", "G11"):
        np.testing.assert_allclose(getattr(other, name), getattr(s, name), rtol=1e-12, atol=1e-300)
