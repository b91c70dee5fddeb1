"""Feed-forward networks on the edge of chaos as random functions of one variable, for PF."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fieldtheory.criticality.universality import edge_of_chaos
from fieldtheory.diffusions.layers_drawn import TILE, first_of_each
from fieldtheory.montecarlo.sampling.forward import Neurons, forward, in_tiles, tile_size
from fieldtheory.networks.residual import FeedForwardNetwork, input_kernel
from fieldtheory.numerics import chunks, storage
from fieldtheory.numerics.covariance_roots import lower_root
from fieldtheory.numerics.solution import solve


def edge_networks(depth: int, width: int) -> tuple[FeedForwardNetwork, FeedForwardNetwork]:
    """Networks of tanh and ReLU on the edge of chaos, see `edge_of_chaos` (PF section 1)."""
    # Of tanh; PF names no point of the line.
    bias_variance = 0.05
    networks = []
    for name, bias in (("tanh", bias_variance), ("relu", 0.0)):
        weight = edge_of_chaos(name, bias).weight_variance
        parameters: Any = {"activation": name, "input_dim": 1, "bias_variance": bias}
        sizes: Any = {"depth": depth, "width": width}
        networks.append(FeedForwardNetwork(weight_variance=weight, **parameters, **sizes))
    return networks[0], networks[1]


def edge_covariance(network: FeedForwardNetwork, z: np.ndarray) -> np.ndarray:
    """Covariance of h^(L) of infinitely wide networks over inputs z (m,), (m, m)."""
    kernel = input_kernel(z[:, None], network)
    return np.asarray(solve(network, kernel).kernels[network.depth])


def edge_functions(
    network: FeedForwardNetwork,
    z: np.ndarray,
    samples: int,
    *,
    neurons: int = 1,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool = False,
    directory: Path | None = None,
) -> np.ndarray:
    """The first neurons of h^(L) of random networks over inputs z (m,), (samples, m)."""
    # Networks of one task.
    chunk = 25
    # ReLU networks without biases are linear on either side of z = 0. Those of tanh are not smooth
    # enough to be interpolated.
    relu = network.activation.name == "relu"
    K0 = input_kernel(np.array([[-1.0], [1.0]]) if relu else z[:, None], network)
    networks = -(-samples // neurons)
    sizes = [min(chunk, networks - start) for start in range(0, networks, chunk)]
    decided = {"network": storage.attributes(network), "K0": K0.tolist(), "seed": seed}
    decided |= {"networks": networks, "neurons": neurons}
    tasks = ((index, network, K0, seed, size, neurons) for index, size in enumerate(sizes))
    saving: dict[str, Any] = {"directory": directory, "specification": decided}
    parts = chunks.ordered_chunks(
        _drawn, tasks, len(sizes), jobs, "simulate", progress=progress, **saving
    )
    drawn = np.concatenate([arrays["values"] for arrays in parts])[:samples]
    return drawn @ np.maximum([-z, z], 0.0) if relu else drawn


def relu_outputs(network: FeedForwardNetwork, samples: int, seed: int) -> np.ndarray:
    """h_1^(L) of ReLU networks without biases for z = 1, (samples,), at a cost free of the width.

    Of N neurons of variance K, n ~ B(N, 1/2) are positive, and the sum of their squares is K χ²_n:

        K' = σ_w² K χ²_n/N.
    """
    draw = np.random.default_rng([seed, 1])
    K = np.full(samples, float(input_kernel(np.ones((1, 1)), network)[0, 0]))
    for _ in range(network.depth):
        positive = draw.binomial(network.width, 0.5, samples)
        # A gamma variable of shape 0 is 0: no neuron is positive.
        K *= network.weight_variance * 2 * draw.standard_gamma(positive / 2) / network.width
    return np.sqrt(K) * draw.standard_normal(samples)


def _drawn(task: tuple[Any, ...]) -> tuple[int, dict[str, np.ndarray]]:
    index, network, K0, seed, samples, neurons = task
    bits = np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(index,)))
    draw = np.random.Generator(bits).standard_normal

    def first_neurons(size: int) -> np.ndarray:
        """Given the layer before, a layer is Gaussian and its neurons are independent."""

        def residual(l: int, kernel: np.ndarray, features: Any) -> np.ndarray:
            root = lower_root(kernel, pivoted=True)
            return root @ draw((size, root.shape[-1], network.width))

        sampler: Any = Neurons(network, residual)
        for _ in forward(sampler, np.repeat(K0[None], size, axis=0)):
            pass
        return first_of_each(sampler.h, neurons)

    with chunks.one_thread():
        parts = in_tiles(first_neurons, samples, tile_size(len(K0) * network.width, TILE))
    return index, {"values": np.concatenate(parts)}
