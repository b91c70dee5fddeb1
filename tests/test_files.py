"""What `load` refuses, and data of other kinds."""

import numpy as np
import pytest

import fieldtheory as ft

NET = ft.ResidualNetwork(depth=3, branch_scale=0.3, width=20)


def test_what_is_no_result(tmp_path):
    np.savez(tmp_path / "other.npz", kind="Recipe", X=1.0)
    with pytest.raises(ValueError, match=r"other.npz' holds Recipe"):
        ft.load(tmp_path / "other.npz")
    with pytest.raises(ValueError, match="must be a file that exists"):
        ft.load(tmp_path / "missing.npz")


def test_labelled_inputs_and_words_of_other_papers():
    xr = pytest.importorskip("xarray")
    X = np.random.default_rng(0).standard_normal((4, 3))
    for data in (xr.DataArray(X), xr.DataArray(X).chunk({"dim_0": 2})):
        np.testing.assert_allclose(np.asarray(ft.kernel(NET, "nngp")(data)), ft.kernel(NET)(X))
    assert ft.kernel(NET, "ntk") == ft.kernel(NET, "tangent_kernel")
    assert ft.kernel(NET, "chi_out") == ft.kernel(NET, "output_response")


def test_kernels_of_few_digits_say_so():
    X = np.random.default_rng(0).standard_normal((40, 3)).astype(np.float32)
    with pytest.raises(ValueError, match="digits of float32: make it of data in float64"):
        ft.solve(NET, X @ X.T).kernels  # noqa: B018
