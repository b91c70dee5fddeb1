"""Symmetric matrices over inputs and their entries α <= β, in the order of `np.triu_indices`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np


def packed(matrices: np.ndarray) -> np.ndarray:
    """The entries α <= β of symmetric matrices, (..., P, P) -> (..., P(P+1)/2)."""
    size = matrices.shape[-1]
    return matrices[..., *_upper(size)] if size > 1 else matrices[..., 0]


def unpacked(pairs: np.ndarray, matrix: bool) -> np.ndarray:
    """Symmetric matrices from their entries α <= β; plain numbers for one input without a matrix.

    Examples
    --------
    >>> unpacked(np.array([1.0, 2.0, 3.0]), matrix=True)
    array([[1., 2.],
           [2., 3.]])
    """
    return pairs[..., positions(pairs.shape[-1])] if matrix else pairs[..., 0]


def own_pairs(values: np.ndarray) -> np.ndarray:
    """Entries of pairs α <= β with themselves, (..., p, p) -> symmetric matrices (..., P, P)."""
    return unpacked(np.diagonal(values, axis1=-2, axis2=-1), True)


@lru_cache(maxsize=8)
def _upper(size: int) -> tuple[np.ndarray, np.ndarray]:
    return np.triu_indices(size)


@lru_cache(maxsize=8)
def positions(count: int) -> np.ndarray:
    """Places of the entries of a symmetric matrix among ``count`` pairs, (P, P)."""
    size = (int(np.sqrt(8 * count + 1)) - 1) // 2
    places = np.zeros((size, size), dtype=int)
    places[_upper(size)] = np.arange(count)
    return np.maximum(places, places.T)


def assembled(
    own: np.ndarray, pair: np.ndarray, pairs: tuple[Any, ...], lower: Any = None
) -> np.ndarray:
    """Matrices (..., P, P) from P diagonal and P(P−1)/2 upper entries on the last axis."""
    first, second = pairs
    size = own.shape[-1]
    shape = np.broadcast_shapes(own.shape[:-1], pair.shape[:-1])
    matrix = np.empty((*shape, size, size))
    diagonal = np.arange(size)
    matrix[..., diagonal, diagonal] = own
    matrix[..., first, second] = pair
    matrix[..., second, first] = pair if lower is None else lower
    return matrix
