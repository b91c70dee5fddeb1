"""What the estimators with less variance share: networks of one input from given normals."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from fieldtheory.montecarlo.samplers import activation_function
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.finite import require_finite
from fieldtheory.numerics.solution import Solution, solve

# Most numbers kept at once of all layers and neurons.
TILE = 2**21


def in_tiles(
    draw: Callable[..., dict[str, np.ndarray]],
    network: ResidualNetwork,
    K0: float,
    generator: np.random.Generator,
    samples: int,
) -> dict[str, np.ndarray]:
    """``draw(network, K0, generator, size)`` for as many networks at once as memory allows."""
    tile = max(1, TILE // (network.width * (network.depth + 1)))
    sizes = [min(tile, samples - start) for start in range(0, samples, tile)]
    parts = [draw(network, K0, generator, size) for size in sizes]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@lru_cache(maxsize=8)
def saddle_point(network: ResidualNetwork, K0: float) -> Solution:
    """The solution of the theory that the estimators take as their origin."""
    return solve(network, K0)


def trajectories(
    network: ResidualNetwork, K0: float, normals: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Networks drawn by their kernels: h^(l) = γ_l h^(l-1) + (C^(l))^(1/2) z^(l).

    Parameters
    ----------
    network : ResidualNetwork
    K0 : float
    normals : ndarray, shape (n, L+1, N)
        z^(0), ..., z^(L).

    Returns
    -------
    h : ndarray, shape (n, L+1, N)
    residual : ndarray, shape (n, L+1)
        C^(1), ..., C^(L+1).
    """
    phi, layers = activation_function(network.activation), layer_coefficients(network)
    h, residual = np.empty_like(normals), np.empty(normals.shape[:2])
    with np.errstate(over="ignore", invalid="ignore"):
        for l in range(network.depth + 1):
            h[:, l] = np.sqrt(residual[:, l - 1, None] if l else K0) * normals[:, l]
            if l:
                h[:, l] += network.skip_scales[l - 1] * h[:, l - 1]
            moment = (phi(h[:, l]) ** 2).mean(axis=1)
            residual[:, l] = layers.weights[l + 1] * moment + layers.biases[l + 1]
            require_finite("a kernel", residual[:, l], l + 1)
    return h, residual


def distinct_pairs(x: np.ndarray) -> np.ndarray:
    """Σ_{i≠j} x_i x_j / N(N−1) over the neurons, (..., N) -> (...); 0 for one neuron."""
    width = x.shape[-1]
    if width == 1:
        return np.zeros(x.shape[:-1])
    return (width * x.mean(axis=-1) ** 2 - np.einsum("...i,...i", x, x) / width) / (width - 1)
