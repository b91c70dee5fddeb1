"""Feed-forward networks on the edge of chaos as random functions of one variable, for PF."""

from __future__ import annotations

from typing import Any

import numpy as np

from fieldtheory.criticality.critical_line import edge_of_chaos
from fieldtheory.diffusions.layers_drawn import TILE, pivoted_root
from fieldtheory.montecarlo.forward import forward, in_tiles, tile_size
from fieldtheory.networks.residual import FeedForwardNetwork, input_kernel
from fieldtheory.numerics import chunks
from fieldtheory.numerics.solution import solve

# Of tanh; PF names no point of the line.
BIAS_VARIANCE = 0.05
# Networks of one task.
_CHUNK = 50


def edge_networks(depth: int, width: int) -> tuple[FeedForwardNetwork, FeedForwardNetwork]:
    """Networks of tanh and ReLU on the edge of chaos, see `edge_of_chaos` (PF section 1)."""
    found = []
    for name, bias in (("tanh", BIAS_VARIANCE), ("relu", 0.0)):
        weight = edge_of_chaos(name, bias).weight_variance
        parameters: dict[str, Any] = {"activation": name, "input_dim": 1, "bias_variance": bias}
        parameters |= {"depth": depth, "width": width, "weight_variance": weight}
        found.append(FeedForwardNetwork(**parameters))
    return found[0], found[1]


def edge_covariance(network: FeedForwardNetwork, z: np.ndarray) -> np.ndarray:
    """Covariance of h^(L) of infinitely wide networks over inputs z (m,), (m, m)."""
    kernel = input_kernel(z[:, None], network)
    return np.asarray(solve(network, kernel).kernels[network.depth])


def edge_functions(
    network: FeedForwardNetwork,
    z: np.ndarray,
    samples: int,
    seed: int,
    jobs: int | None,
    progress: bool,
) -> np.ndarray:
    """The first neuron of h^(L) of random networks over inputs z (m,) of one variable.

    ReLU networks without biases are linear on either side of z = 0, so that two inputs are enough.
    Those of tanh are not smooth enough to be interpolated.

    Returns
    -------
    ndarray, shape (samples, m)
    """
    relu = network.activation.name == "relu"
    K0 = input_kernel(np.array([[-1.0], [1.0]]) if relu else z[:, None], network)
    sizes = [min(_CHUNK, samples - start) for start in range(0, samples, _CHUNK)]
    tasks = ((index, network, K0, seed, size) for index, size in enumerate(sizes))
    found: Any = chunks.ordered_chunks(_drawn, tasks, len(sizes), {}, jobs, "simulate")
    if progress:
        found = chunks.with_progress(found, len(sizes), "simulate")
    drawn = np.concatenate([arrays["values"] for arrays in found])
    return drawn @ np.maximum([-z, z], 0.0) if relu else drawn


def _drawn(task: tuple[Any, ...]) -> tuple[int, dict[str, np.ndarray]]:
    index, network, K0, seed, samples = task
    bits = np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(index,)))
    draw = np.random.Generator(bits).standard_normal

    def first_neurons(size: int) -> np.ndarray:
        """Given the layer before, a layer is Gaussian and its neurons are independent."""

        def residual(l: int, kernel: np.ndarray, features: Any) -> np.ndarray:
            root = pivoted_root(kernel)
            return root @ draw((size, root.shape[-1], network.width))

        *_, last = forward(network, np.repeat(K0[None], size, axis=0), residual)
        return np.asarray(last.h[:, :, 0])

    with chunks.one_thread():
        parts = in_tiles(first_neurons, samples, tile_size(len(K0) * network.width, TILE))
    return index, {"values": np.concatenate(parts)}
