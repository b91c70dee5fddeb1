"""Kernels as functions of inputs, against `solve` of all inputs together."""

import numpy as np
import pytest

import fieldtheory as ft
from tests.rounding import assert_same
from tests.tables import crossed, slow

FIELDS = {
    "output_kernel": lambda s: s.kernels[-1],
    "output_response": lambda s: (s.response, s.output_response)[1],
    "tangent_kernel": lambda s: s.tangent_kernels[-1],
    "kernel": lambda s: s.kernels[3],
    "response": lambda s: s.response[3],
}


def layer(quantity):
    return 3 if quantity in ("kernel", "response") else None


def inputs(kind, count, seed=0):
    """Inputs of one norm, of many norms, or with doubtful members."""
    X = np.random.default_rng(seed).standard_normal((count, 20))
    if kind == "one norm":
        X /= np.linalg.norm(X, axis=1)[:, None] / np.sqrt(20)
    if kind == "doubtful":
        X[1], X[2], X[3] = X[0], -X[0], 0
        X[4] = X[0] + 1e-6 * X[5]
    return X


@pytest.mark.parametrize(
    ("quantity", "name", "kind", "bias"),
    crossed(list(FIELDS), ["erf", "relu"], ["one norm", "many norms", "doubtful"], [0.0, 0.05]),
)
def test_against_solve(quantity, name, kind, bias):
    net = ft.ResidualNetwork(depth=6, activation=name, branch_scale=0.4, bias_variance=bias)
    X, Z = inputs(kind, 60), inputs(kind, 30, 1)
    s = ft.solve(net, ft.input_kernel(np.vstack([X, Z]), net))
    expected = FIELDS[quantity](s)
    scale = np.sqrt(np.outer(np.diagonal(expected), np.diagonal(expected)))
    k = ft.kernel(net, quantity, layer(quantity))
    matrix = k(X)
    # The kernel of identical inputs is known to a rounding, its square root to 1e-8.
    near = 3e-8 if name == "relu" and kind == "doubtful" and "l_kernel" not in quantity else 1e-12
    assert (np.abs(matrix - expected[:60, :60]) <= near * scale[:60, :60] + 1e-300).all()
    off = np.abs(k(X, Z) - expected[:60, 60:])
    assert (off <= 1e-12 * scale[:60, 60:] + 1e-300).all()
    np.testing.assert_allclose(k.diagonal(X), np.diagonal(expected)[:60], rtol=1e-13)
    assert_same(np.diagonal(matrix), k.diagonal(X))
    np.testing.assert_array_equal(matrix, matrix.T)


@pytest.mark.parametrize("quantity", ["output_kernel", "tangent_kernel", "kernel"])
@pytest.mark.parametrize("name", ["erf", "relu"])
def test_identical_inputs_have_identical_entries(quantity, name):
    X = inputs("many norms", 40)
    k = ft.kernel(
        ft.ResidualNetwork(depth=5, activation=name, branch_scale=0.7), quantity, layer(quantity)
    )
    assert_same(np.diagonal(k(X, X)), k.diagonal(X))
    assert_same(k(np.vstack([X, X]))[:40, 40:].diagonal(), k.diagonal(X))
    assert_same(k(X[:3], X[2:4])[2, 0], k.diagonal(X[2:3])[0])


def test_vanishing_input_kernel():
    """Nothing of the input reaches the network."""
    net = ft.ResidualNetwork(
        depth=3, readin_weight_variance=0.0, readin_bias_variance=0.0, bias_variance=0.1
    )
    k = ft.kernel(net)
    expected = ft.solve(net, 0.0).output_kernel
    np.testing.assert_allclose(k(inputs("one norm", 30), inputs("one norm", 20)), expected)


@pytest.mark.parametrize("quantity", [slow("output_kernel"), "tangent_kernel"])
def test_dask_arrays(quantity):
    da = pytest.importorskip("dask.array")
    X, Z = inputs("many norms", 50), inputs("many norms", 30, 1)
    k = ft.kernel(ft.ResidualNetwork(depth=5, branch_scale=0.3), quantity)
    lazy = da.from_array(X, (20, 7))
    for found, expected in (
        (k(lazy), k(X)),
        (k(lazy, da.from_array(Z, 12)), k(X, Z)),
        (k(lazy, Z), k(X, Z)),
        (k(X, da.from_array(Z, 12)), k(X, Z)),
    ):
        assert isinstance(found, da.Array) and found.shape == expected.shape
        np.testing.assert_allclose(found.compute(scheduler="threads"), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="Z must have as many columns as X, got 3 and 20"):
        k(lazy, Z[:, :3])
    with pytest.raises(ValueError, match="X must have chunks of known sizes"):
        k(lazy[lazy[:, 0] > 0])


def test_diagonals_of_dask_arrays_are_lazy():
    da = pytest.importorskip("dask.array")
    X = inputs("many norms", 50)
    k = ft.kernel(ft.ResidualNetwork(depth=5, branch_scale=0.3))

    def fails(block):
        raise AssertionError("computed")

    lazy = da.from_array(X, (20, 7))
    unread = k.diagonal(lazy.map_blocks(fails, dtype=float, meta=np.empty((0, 0))))
    assert isinstance(unread, da.Array) and unread.chunks == ((20, 20, 10),)
    with pytest.raises(AssertionError, match="computed"):
        unread.compute(scheduler="threads")
    found = k.diagonal(lazy).compute(scheduler="threads")
    assert_same(found, k.diagonal(X))
    with pytest.raises(ValueError, match="X must have shape"):
        k.diagonal(lazy[0])
