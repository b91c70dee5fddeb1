"""Kernels block by block: of dask arrays, lazily, and into zarr arrays that can be resumed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fieldtheory import validation
from fieldtheory.numerics import storage
from fieldtheory.numerics.chunks import with_progress

# What zarr does not look at: the numbers of the blocks that are finished.
_FINISHED = "finished_blocks.txt"


def lazy(kernel: Any, X: Any, Z: Any = None) -> Any:
    """The dask array of a kernel, one block for every pair of chunks of the rows."""
    import dask.array
    from dask.delayed import delayed

    da: Any = dask.array
    rows = _chunks(da, "X", X)
    columns = rows if Z is None else _chunks(da, "Z", Z)
    require_same_columns(rows, columns)
    first, second = (one.to_delayed()[:, 0] for one in (rows, columns))
    block = delayed(kernel, pure=False)
    grid: list[list[Any]] = []
    for i, (x, height) in enumerate(zip(first, rows.chunks[0], strict=True)):
        line = []
        for j, (z, width) in enumerate(zip(second, columns.chunks[0], strict=True)):
            if Z is None and j < i:
                line.append(grid[j][i].T)
                continue
            values = block(x) if Z is None and i == j else block(x, z)
            line.append(da.from_delayed(values, (height, width), float))
        grid.append(line)
    return da.block(grid)


def require_same_columns(X: Any, Z: Any) -> None:
    """Raise if inputs in rows differ in their dimension."""
    if X.shape[1] != Z.shape[1]:
        raise ValueError(f"Z must have as many columns as X, got {Z.shape[1]} and {X.shape[1]}")


def lazy_diagonal(kernel: Any, X: Any) -> Any:
    """The dask array of the diagonal of a kernel, one block for every chunk of the rows."""
    import dask.array
    from dask.delayed import delayed

    da: Any = dask.array
    rows = _chunks(da, "X", X)
    block = delayed(kernel.diagonal, pure=False)
    chunks = zip(rows.to_delayed()[:, 0], rows.chunks[0], strict=True)
    return da.concatenate([da.from_delayed(block(x), (height,), float) for x, height in chunks])


def _chunks(da: Any, name: str, inputs: Any) -> Any:
    array = getattr(inputs, "variable", inputs)
    array = array.data if hasattr(array, "dims") else array
    if not isinstance(array, da.Array):
        array = da.from_array(np.asarray(array), -1)
    if array.ndim != 2:
        raise ValueError(f"{name} must have shape (P, d), got shape {array.shape}")
    if np.isnan(array.shape).any():
        raise ValueError(
            f"{name} must have chunks of known sizes, got {array.chunks}: "
            f"{name}.compute_chunk_sizes() finds them"
        )
    return array.rechunk({1: -1})


def to_zarr(kernel: Any, path: str | Path, X: Any, Z: Any, chunks: int, progress: bool) -> Any:
    """Write the blocks of a kernel that are not finished yet, see `KernelFunction.to_zarr`."""
    try:
        import zarr
    except ImportError:
        raise ImportError(
            "to_zarr needs zarr: pip install 'fieldtheory-networks[parallel]'"
        ) from None
    folder = Path(path)
    rows = _sliceable("X", X)
    columns = rows if Z is None else _sliceable("Z", Z)
    require_same_columns(rows, columns)
    shape = (rows.shape[0], columns.shape[0])
    fingerprint = _fingerprint(kernel, (rows,) if Z is None else (rows, columns), chunks)
    if folder.exists():
        array = _opened(zarr, folder, fingerprint)
    else:
        if not folder.parent.is_dir():
            raise ValueError(f"path must lie in a folder that exists, got {str(folder)!r}")
        array = zarr.create_array(
            folder,
            shape=shape,
            chunks=(min(chunks, shape[0]), min(chunks, shape[1])),
            dtype="float64",
            compressors=None,
            fill_value=np.nan,
            attributes={
                "fingerprint": fingerprint,
                "quantity": kernel.quantity,
                **storage.attributes(kernel.network),
            },
        )
    finished = folder / _FINISHED
    done = set(finished.read_text().split("\n")) if finished.exists() else set()
    tasks = [
        (i, j)
        for i in range(0, shape[0], chunks)
        for j in range(0 if Z is not None else i, shape[1], chunks)
        if f"{i} {j}" not in done or _is_lost(array, folder, i, j, Z is None)
    ]
    blocks: Iterable[tuple[int, int]] = _blocks(kernel, tasks, array, rows, columns, Z is None)
    if progress:
        blocks = with_progress(blocks, len(tasks), "blocks of the kernel")
    for i, j in blocks:
        with open(finished, "a", encoding="ascii") as file:
            file.write(f"{i} {j}\n")
    return array


def _blocks(
    kernel: Any, tasks: list[tuple[int, int]], array: Any, X: Any, Z: Any, symmetric: bool
) -> Iterator[tuple[int, int]]:
    """Compute and write blocks; yields the place of each that is written."""
    size = array.chunks[0], array.chunks[1]
    for i, j in tasks:
        first, second = slice(i, i + size[0]), slice(j, j + size[1])
        x = np.asarray(X[first])
        block = kernel(x) if symmetric and i == j else kernel(x, np.asarray(Z[second]))
        array[first, second] = block
        if symmetric and i != j:
            array[second, first] = block.T
        yield i, j


def _is_lost(array: Any, folder: Path, i: int, j: int, symmetric: bool) -> bool:
    """Whether a block that was written has no chunk, which zarr reads as NaN."""
    chunk = i // array.chunks[0], j // array.chunks[1]
    places = {chunk, chunk[::-1]} if symmetric else {chunk}
    return not all((folder / array.metadata.encode_chunk_key(c)).is_file() for c in places)


def _opened(zarr: Any, folder: Path, fingerprint: str) -> Any:
    try:
        array = zarr.open_array(folder, mode="r+")
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(
            f"path must be new or a zarr array of to_zarr, {str(folder)!r} is not ({reason})"
        ) from None
    if array.attrs.get("fingerprint") != fingerprint:
        raise ValueError(
            f"path must be new or hold the same kernel, {str(folder)!r} is of another network, "
            "quantity, chunks or inputs"
        )
    return array


def _fingerprint(kernel: Any, inputs: tuple[Any, ...], chunks: int) -> str:
    """A hash of all that decides what is in the blocks."""
    what = [storage.attributes(kernel.network), kernel.quantity, kernel.layer, None, chunks]
    digest = hashlib.sha256(json.dumps(what).encode())
    for array in inputs:
        digest.update(repr(array.shape).encode())
        for start in range(0, array.shape[0], chunks):
            rows = np.asarray(array[start : start + chunks], dtype=float)
            digest.update(np.ascontiguousarray(rows).tobytes())
    return digest.hexdigest()


def _sliceable(name: str, inputs: Any) -> Any:
    inputs = validation.without_tensors(inputs)
    array = inputs if hasattr(inputs, "shape") and hasattr(inputs, "dtype") else np.asarray(inputs)
    if len(array.shape) != 2:
        raise ValueError(f"{name} must have shape (P, d), got shape {tuple(array.shape)}")
    return array
