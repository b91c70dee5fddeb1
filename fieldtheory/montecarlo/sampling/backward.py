"""Backward pass of finite networks: derivatives of the output by the signals of every layer."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fieldtheory.montecarlo.sampling.forward import (
    TILE_KEPT,
    feature_functions,
    forward,
    in_tiles,
    mean_square,
    observable,
    tile_size,
)
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.finite import ratio
from fieldtheory.numerics.infinite_width.layer_functions import network_functions

Features = tuple[np.ndarray, ...]
# The random numbers of a layer, the same at every call.
Stream = Callable[[int], np.random.Generator]
# W_kᵀ δ^(l) for every feature k, from l, the ψ_k of the layer before, and δ^(l) (n, rows).
Pull = Callable[[int, Features, np.ndarray], Sequence[np.ndarray]]


class Squares(NamedTuple):
    """Factors of the squares of the gradients of n networks.

    With δ^(l) = ∂y/∂h^(l) and δ^(L+1) = 1, ``backward`` (n, L+2) are |δ^(l)|², ``forward``
    (n, L+1) are Σ_k |ψ_k(h^(l-1))|²/N for l = 1, ..., L + 1, and ``output`` (n,) is y.
    """

    backward: np.ndarray
    forward: np.ndarray
    output: np.ndarray


class _Networks(NamedTuple):
    h: np.ndarray
    output: np.ndarray
    pull: Pull


def draw_squares(
    network: LayeredNetwork, K0: float, samples: int, seed: int, number: int, method: str
) -> Squares:
    """Draw networks of one input, the one with this number.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> net = ResidualNetwork(depth=2, activation="linear", width=50)
    >>> found = draw_squares(net, 0.3, 10, 0, 0, "weights")
    >>> found.backward.shape, found.forward.shape, found.output.shape
    ((10, 4), (10, 3), (10,))
    """
    fan_in = network.width if method == "weights" else network.depth + 1
    tile = tile_size(network.width * max(fan_in, network.depth + 1), TILE_KEPT)
    counts = itertools.count()

    def draw(size: int) -> Squares:
        # The keys of `simulate` and `simulate_response` are shorter, so that streams differ.
        key = (list(METHODS).index(method), number, next(counts))

        def stream(layer: int) -> np.random.Generator:
            return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(*key, layer)))

        return _squares(network, METHODS[method](network, K0, size, stream))

    return Squares(*map(np.concatenate, zip(*in_tiles(draw, samples, tile), strict=True)))


def _squares(network: LayeredNetwork, drawn: _Networks) -> Squares:
    """δ^(l-1) = γ_l δ^(l) + Σ_k ψ_k'(h^(l-1)) ⊙ W_kᵀ δ^(l), from δ^(L+1) = 1 down to l = 1."""
    psi, slopes = (feature_functions(network, slopes) for slopes in (False, True))
    skips, depth = network.skip_scales, network.depth
    delta = np.ones((len(drawn.h), 1))
    backward = np.ones((len(delta), depth + 2))
    moments = np.empty((len(delta), depth + 1))
    with np.errstate(over="ignore", invalid="ignore"):
        for l in range(depth + 1, 0, -1):
            before = drawn.h[:, l - 1]
            features = psi(before)
            moments[:, l - 1] = observable(features).mean(axis=-1)
            pulled = zip(slopes(before), drawn.pull(l, features, delta), strict=True)
            carried = skips[l - 1] * delta if l <= depth else 0.0
            delta = carried + sum(slope * back for slope, back in pulled)
            backward[:, l - 1] = (delta**2).sum(axis=-1)
    return Squares(backward, moments, drawn.output[:, 0])


def _with_weights(network: LayeredNetwork, K0: float, size: int, stream: Stream) -> _Networks:
    """Networks with explicit weights, which are drawn once more on the way back, not kept."""
    depth, width, layers = network.depth, network.width, layer_coefficients(network)
    features = len(network_functions(network).functions)

    def weights(l: int, generator: np.random.Generator) -> np.ndarray:
        normals = generator.standard_normal((features, size, width if l <= depth else 1, width))
        return np.sqrt(layers.weights[l] / width) * normals

    def residual(l: int, kernel: np.ndarray, psi: Features) -> np.ndarray:
        generator = stream(l)
        if l == 0:
            return np.sqrt(K0) * generator.standard_normal((size, width))
        total = sum(W @ x[..., None] for W, x in zip(weights(l, generator), psi, strict=True))
        total = total[..., 0]
        return total + np.sqrt(layers.biases[l]) * generator.standard_normal(total.shape)

    def pull(l: int, psi: Features, delta: np.ndarray) -> list[np.ndarray]:
        return [(delta[:, None] @ W)[:, 0] for W in weights(l, stream(l))]

    passed = list(forward(network, np.full((size, 1), K0), residual, mean_square))
    output = residual(depth + 1, passed[-1].kernel, passed[-1].features)
    return _Networks(np.stack([layer.h for layer in passed], axis=1), output, pull)


def _without_weights(network: LayeredNetwork, K0: float, size: int, stream: Stream) -> _Networks:
    """The same law with N normal numbers for a layer each way.

    Given f = Σ_k W_k ψ_k + b, weights are what they are without that knowledge, W' and b' of
    f' = Σ_k W'_k ψ_k + b', and what corrects f' to f:

        W_kᵀ δ = W'_kᵀ δ + (a/N) ψ_k (f − f')ᵀ δ/C,    C = (a/N) Σ_k |ψ_k|² + c

    W'_kᵀ δ and b'ᵀ δ are normal, of variance a |δ|²/N and c |δ|².
    """
    depth, width, layers = network.depth, network.width, layer_coefficients(network)
    generator = stream(0)
    normals = generator.standard_normal((size, depth + 1, width))

    def driven(l: int, kernel: np.ndarray, features: Features) -> np.ndarray:
        return np.sqrt(kernel) * normals[:, l]

    passed = list(forward(network, np.full((size, 1), K0), driven, mean_square))
    kernels = np.concatenate([layer.kernel for layer in passed], axis=1)
    deviations = np.sqrt(kernels)[..., None]
    output = deviations[:, depth] * generator.standard_normal((size, 1))

    def pull(l: int, psi: Features, delta: np.ndarray) -> list[np.ndarray]:
        signals = deviations[:, l - 1] * normals[:, l] if l <= depth else output
        weight, norm = layers.weights[l] / width, np.sqrt(_dot(delta, delta))
        fresh = [np.sqrt(weight) * norm * generator.standard_normal((size, width)) for _ in psi]
        bias = np.sqrt(layers.biases[l]) * norm * generator.standard_normal((size, 1))
        conditional_mean = bias + sum(_dot(x, u) for x, u in zip(psi, fresh, strict=True))
        gain = weight * ratio(_dot(signals, delta) - conditional_mean, kernels[:, l - 1, None])
        return [u + gain * x for x, u in zip(psi, fresh, strict=True)]

    return _Networks(np.stack([layer.h for layer in passed], axis=1), output, pull)


def _dot(x: Any, y: Any) -> np.ndarray:
    return (x * y).sum(axis=-1, keepdims=True)


METHODS: dict[str, Callable[[LayeredNetwork, float, int, Stream], _Networks]] = {
    "kernel": _without_weights,
    "weights": _with_weights,
}
