"""Kernels that are larger than memory, in zarr arrays."""

import numpy as np
import pytest

import fieldtheory as ft
from fieldtheory.inference.kernel_function import KernelFunction
from tests.tables import slow

zarr = pytest.importorskip("zarr")


@pytest.fixture
def case():
    rng = np.random.default_rng(0)
    k = ft.kernel(ft.ResidualNetwork(depth=5, branch_scale="uniform", activation="relu"))
    return k, rng.standard_normal((50, 8)), rng.standard_normal((30, 8))


@pytest.mark.parametrize("with_others", [slow(False), True])
def test_blocks_are_those_of_the_kernel(case, with_others, tmp_path):
    k, X, Z = case
    Z = Z if with_others else None
    found = k.to_zarr(tmp_path / "k.zarr", X, Z, chunks=20)
    np.testing.assert_allclose(found[:], k(X, Z), rtol=1e-12)
    assert found.chunks == (20, 20) and found.attrs["quantity"] == "output_kernel"
    stored = zarr.open_array(tmp_path / "k.zarr", mode="r")
    assert stored.attrs["branch_scale"] == "uniform"
    if Z is None:
        np.testing.assert_array_equal(stored[:], stored[:].T)


class Counted(KernelFunction):
    """Counts the blocks, and is killed at one of them."""

    calls: list = []  # noqa: RUF012

    def __call__(self, X, Z=None):
        self.calls.append(1)
        if len(self.calls) == 4:
            raise KeyboardInterrupt
        return super().__call__(X, Z)


def test_finished_blocks_are_not_computed_again(case, tmp_path):
    k, X, _ = case
    counted = Counted(k.network)
    with pytest.raises(KeyboardInterrupt):
        counted.to_zarr(tmp_path / "k.zarr", X, chunks=20)
    found = counted.to_zarr(tmp_path / "k.zarr", X, chunks=20)
    # Of six blocks three were finished.
    assert len(counted.calls) == 4 + 3
    np.testing.assert_allclose(found[:], k(X), rtol=1e-12)
    counted.to_zarr(tmp_path / "k.zarr", X, chunks=20)
    assert len(counted.calls) == 7
    # A chunk that is lost below the diagonal is computed with its block.
    (tmp_path / "k.zarr" / "c" / "1" / "0").unlink()
    found = counted.to_zarr(tmp_path / "k.zarr", X, chunks=20)
    assert len(counted.calls) == 8
    np.testing.assert_allclose(found[:], k(X), rtol=1e-12)


def test_another_kernel_is_refused(case, tmp_path):
    k, X, Z = case
    path = tmp_path / "k.zarr"
    k.to_zarr(path, X, chunks=20)
    other = ft.kernel(k.network.replace(depth=6))
    for function, *inputs, chunks in (
        (other, X, None, 20),
        (ft.kernel(k.network, "tangent_kernel"), X, None, 20),
        (k, X + 1e-9, None, 20),
        (k, X, Z, 20),
        (k, X, None, 25),
    ):
        with pytest.raises(ValueError, match="path must be new or hold the same kernel, .* is of"):
            function.to_zarr(path, *inputs, chunks=chunks)


def test_bad_paths(case, tmp_path):
    k, X, Z = case
    (tmp_path / "file").write_text("text")
    (tmp_path / "folder").mkdir()
    for name in ("file", "folder"):
        with pytest.raises(ValueError, match="path must be new or a zarr array of to_zarr"):
            k.to_zarr(tmp_path / name, X)
    with pytest.raises(ValueError, match="path must lie in a folder that exists"):
        k.to_zarr(tmp_path / "none" / "k.zarr", X)
    with pytest.raises(ValueError, match="Z must have as many columns as X, got 3 and 8"):
        k.to_zarr(tmp_path / "k.zarr", X, Z[:, :3])
    with pytest.raises(ValueError, match=r"X must have shape \(P, d\), got shape \(8,\)"):
        k.to_zarr(tmp_path / "k.zarr", X[0])
    with pytest.raises(ValueError, match="chunks must be an integer >= 1, got 0"):
        k.to_zarr(tmp_path / "k.zarr", X, chunks=0)
    assert not (tmp_path / "k.zarr").exists()


def test_rows_are_read_when_they_are_needed(case, tmp_path):
    da = pytest.importorskip("dask.array")
    k, X, Z = case
    np.save(tmp_path / "X.npy", X)
    for inputs, name in (
        (np.load(tmp_path / "X.npy", mmap_mode="r"), "a"),
        (da.from_array(X), "b"),
    ):
        found = k.to_zarr(tmp_path / f"{name}.zarr", inputs, Z, chunks=25, progress=True)
        np.testing.assert_allclose(found[:], k(X, Z), rtol=1e-12)
