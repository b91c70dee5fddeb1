"""Kernels of dask arrays, lazily and block by block."""

from __future__ import annotations

from typing import Any

import numpy as np


def lazy(kernel: Any, X: Any, Z: Any = None) -> Any:
    """The dask array of a kernel, one block for every pair of chunks of the rows.

    Without ``Z`` blocks below the diagonal are those above it, transposed. An array that is not
    of dask is one chunk.

    Parameters
    ----------
    kernel : callable
        ``kernel(x)`` and ``kernel(x, z)`` of NumPy arrays.
    X, Z : dask array or array_like, shape (P, d) and (Q, d)
    """
    import dask.array
    from dask.delayed import delayed

    da: Any = dask.array
    rows = _chunks(da, "X", X)
    columns = rows if Z is None else _chunks(da, "Z", Z)
    if rows.shape[1] != columns.shape[1]:
        raise ValueError(
            f"Z must have as many columns as X, got {columns.shape[1]} and {rows.shape[1]}"
        )
    first, second = (one.to_delayed()[:, 0] for one in (rows, columns))
    block = delayed(kernel, pure=False)
    grid: list[list[Any]] = []
    for i, (x, height) in enumerate(zip(first, rows.chunks[0], strict=True)):
        line = []
        for j, (z, width) in enumerate(zip(second, columns.chunks[0], strict=True)):
            if Z is None and j < i:
                line.append(grid[j][i].T)
                continue
            found = block(x) if Z is None and i == j else block(x, z)
            line.append(da.from_delayed(found, (height, width), float))
        grid.append(line)
    return da.block(grid)


def _chunks(da: Any, name: str, given: Any) -> Any:
    array = given if hasattr(given, "__dask_graph__") else da.from_array(np.asarray(given), -1)
    if array.ndim != 2:
        raise ValueError(f"{name} must have shape (P, d), got shape {array.shape}")
    if np.isnan(array.shape).any():
        raise ValueError(
            f"{name} must have chunks of known sizes, got {array.chunks}: "
            f"{name}.compute_chunk_sizes() finds them"
        )
    return array.rechunk({1: -1})
