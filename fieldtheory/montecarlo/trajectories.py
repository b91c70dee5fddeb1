"""What the estimators with less variance share: networks of one input from given normals."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from fieldtheory.montecarlo.forward import (
    TILE_KEPT,
    forward,
    in_tiles,
    mean_square,
    tile_size,
)
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.solution import Solution, solve


def sampled(
    draw: Callable[..., dict[str, np.ndarray]],
    network: LayeredNetwork,
    K0: float | np.ndarray,
    generator: np.random.Generator,
    samples: int,
    numbers: int = 1,
) -> dict[str, np.ndarray]:
    """``draw(network, K0, generator, size)`` for as many networks at once as memory allows.

    So many ``numbers`` belong to each neuron of each layer.
    """
    tile = tile_size(network.width * (network.depth + 1) * numbers, TILE_KEPT)
    parts = in_tiles(lambda size: draw(network, K0, generator, size), samples, tile)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@lru_cache(maxsize=8)
def saddle_point(network: LayeredNetwork, K0: float) -> Solution:
    """The solution of the theory that the estimators take as their origin."""
    return solve(network, K0)


def trajectories(
    network: LayeredNetwork, K0: float, normals: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Networks drawn by their kernels: h^(l) = γ_l h^(l-1) + (C^(l))^(1/2) z^(l).

    Parameters
    ----------
    network : LayeredNetwork
    K0 : float
    normals : ndarray, shape (n, L+1, N)
        z^(0), ..., z^(L).

    Returns
    -------
    h : ndarray, shape (n, L+1, N)
    residual : ndarray, shape (n, L+1)
        C^(1), ..., C^(L+1).
    """

    def driven(l: int, kernel: np.ndarray, features: tuple) -> np.ndarray:
        return np.sqrt(kernel) * normals[:, l]

    h, residual = np.empty_like(normals), np.empty(normals.shape[:2])
    for layer in forward(network, np.full((len(normals), 1), K0), driven, mean_square):
        h[:, layer.number], residual[:, layer.number] = layer.h, layer.kernel[:, 0]
    return h, residual


def distinct_pairs(x: np.ndarray) -> np.ndarray:
    """Σ_{i≠j} x_i x_j / N(N−1) over the neurons, (..., N) -> (...); 0 for one neuron."""
    width = x.shape[-1]
    if width == 1:
        return np.zeros(x.shape[:-1])
    return (width * x.mean(axis=-1) ** 2 - np.einsum("...i,...i", x, x) / width) / (width - 1)
