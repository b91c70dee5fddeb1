"""Roots of covariances, singular ones too, and Bartlett's root of a Wishart matrix."""

from functools import partial

import numpy as np
import pytest

from fieldtheory.numerics.covariance_roots import lower_root, psd_root, wishart_root

ROOTS = [psd_root, lower_root, partial(lower_root, pivoted=True)]
PIVOTED = ROOTS[2]


@pytest.mark.parametrize("root_of", ROOTS)
@pytest.mark.parametrize("rank, size", [(1, 1), (1, 2), (2, 2), (0, 2), (2, 5), (5, 5), (3, 30)])
def test_roots_of_singular_matrices(root_of, rank, size):
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(7, size, rank)) * 10.0 ** np.arange(-size, 0)[:, None]
    matrices = factor @ factor.swapaxes(1, 2)
    root = root_of(matrices)
    scale = np.sqrt(np.einsum("nii,njj->nij", matrices, matrices))
    assert (abs(root @ root.swapaxes(1, 2) - matrices) <= 1e-13 * scale).all()
    # As many columns as the rank, all others zero, or left out.
    assert (np.abs(root).max(axis=1, initial=0) > 0).sum() == 7 * rank
    assert root.shape == (7, size, rank if root_of is PIVOTED and size > 2 else size)


def test_roots_do_not_extrapolate():
    # Two inputs that are nearly one, and a third far from them.
    factor = np.array([[1, 0, 0], [1, 1e-7, 0], [0.3, 0.4, 1.0]])
    root = PIVOTED((factor @ factor.T)[None])[0]
    np.testing.assert_allclose(root @ root.T, factor @ factor.T, rtol=0, atol=1e-14)


@pytest.mark.parametrize("freedom", [0, 1, 2, 7])
def test_wishart_matrices_have_their_moments(freedom):
    T = wishart_root(freedom, 3, np.random.default_rng(0), 40_000)
    W = T @ T.swapaxes(1, 2)
    assert T.shape == (40_000, 3, min(3, freedom))
    error = np.sqrt(freedom * (1 + np.eye(3)) / 40_000)
    assert (np.abs(W.mean(axis=0) - freedom * np.eye(3)) <= 4.5 * error).all()
    # Var W_ii = 2ν, Var W_ij = ν.
    np.testing.assert_allclose(W.var(axis=0), freedom * (1 + np.eye(3)), rtol=0.1)
