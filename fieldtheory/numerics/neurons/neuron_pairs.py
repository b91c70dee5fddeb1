"""Functions of two neurons as sums of products of a few functions of one.

They stay few: what a layer adds is a product of what it shows of single neurons, and noise makes
all functions alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

# What is dropped of a sum of products, relative to its largest parts.
_DROPPED = 1e-12
# Columns that LAPACK reflects at once.
_WORK = 64

# Σ w (u vᵀ + v uᵀ) as the list of its w and the names of u and v.
Products = Iterable[tuple[float, str, str]]


class Pairs(NamedTuple):
    """The symmetric functions g_2, B and E of `interacting_neurons`, Σ_ab u_a core_ab u_b."""

    # (n, k): The vectors u, orthonormal.
    basis: np.ndarray
    # (3, k, k)
    cores: np.ndarray

    @staticmethod
    def none() -> Pairs:
        """Independent neurons."""
        return Pairs(np.zeros((0, 0)), np.zeros((3, 0, 0)))

    def applied(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The three as matrices times u."""
        if not self.basis.size:
            return np.zeros(len(u)), np.zeros(len(u)), np.zeros(len(u))
        parts = self.basis.T @ u
        g2, B, E = (self.basis @ (core @ parts) for core in self.cores)
        return g2, B, E

    @staticmethod
    def of(
        blocks: Mapping[tuple[int, int], np.ndarray],
        bases: tuple[np.ndarray, ...],
        vectors: Mapping[str, np.ndarray],
        added: tuple[Products, ...],
    ) -> Pairs:
        """A sum of cores between bases and of products of vectors; what is negligible is dropped.

        ``blocks`` has the cores (3, k, k) between two bases by their numbers, ``added`` the
        products of vectors that are added to each of the three.
        """
        columns = [*bases, np.stack(list(vectors.values()), axis=1)]
        starts = np.cumsum([0, *(part.shape[1] for part in columns)])
        cores = np.zeros((3, starts[-1], starts[-1]))
        for (row, column), core in blocks.items():
            rows, others = slice(*starts[row : row + 2]), slice(*starts[column : column + 2])
            cores[:, rows, others] += core
        place = dict(zip(vectors, range(starts[-2], starts[-1]), strict=True))
        for core, products in zip(cores, added, strict=True):
            for weight, one, other in products:
                core[place[one], place[other]] += weight
                core[place[other], place[one]] += weight
        reflections, scales = np.linalg.qr(np.concatenate(columns, axis=1), mode="raw")
        R = np.triu(reflections.T[: len(scales)])
        cores = R @ cores @ R.T
        norms = np.abs(cores).max(axis=(1, 2))
        if not norms.any():
            return Pairs.none()
        all_cores = np.concatenate(cores[norms > 0] / norms[norms > 0, None, None], axis=1)
        left, triangle, _ = linalg.qr(all_cores, mode="economic", pivoting=True, check_finite=False)
        sizes = np.abs(np.diagonal(triangle))
        left = left[:, sizes > _DROPPED * sizes[0]]
        basis = np.zeros((reflections.shape[1], left.shape[1]), order="F")
        basis[: len(left)] = left
        basis = lapack.dormqr("L", "N", reflections.T, scales, basis, _WORK * left.shape[1])[0]
        return Pairs(basis, left.T @ cores @ left)
