"""Hermite functions on nodes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np


def basis(order: int, z: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """h_n(z) N(z; 0, 1) times the weights, h_n orthonormal; shape (order, nodes)."""
    table, rows = np.empty((order, *np.shape(z))), weighted_hermite(order, z, weights)
    for place, row in zip(table, rows, strict=True):
        place[...] = row
    return table


def weighted_hermite(order: int, z: np.ndarray, weights: np.ndarray) -> Iterator[np.ndarray]:
    """h_0(z), h_1(z), ... times the Gaussian and the weights, one after the other."""
    before, now = np.zeros_like(z), weights * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    for n in range(order):
        yield now
        before, now = now, (z * now - np.sqrt(n) * before) / np.sqrt(n + 1)
