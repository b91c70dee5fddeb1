"""Networks drawn from the prior: with explicit weights, or with their kernels only.

A sampler maps (network, inputs, generator, samples) to `Draws`. Both samplers follow one law.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fieldtheory.montecarlo.sampling.forward import (
    Layer,
    affine,
    forward,
    gaussian,
    gram,
    in_tiles,
    tile_size,
)
from fieldtheory.networks.family import LayeredNetwork


@dataclass(frozen=True, eq=False)
class Inputs:
    """Inputs of the networks: the kernel K0 (P, P), and the data X (P, d) if there are any.

    ``across`` asks for the spread of different pairs of inputs as well, see `Draws`.
    """

    kernel: np.ndarray
    data: np.ndarray | None = None
    across: bool = False


class Draws(NamedTuple):
    """Random kernels of n networks.

    ``residual`` (n, L+1, P, P) are C^(1), ..., C^(L+1). Of the products h_iα h_iβ of the neurons i
    in the layers 0, ..., L, ``second`` (n, L+1, P, P) are the means over i, and ``spread`` the
    unbiased variances over i (0 for one neuron), or the covariances (n, L+1, p, p) of all
    p = P(P+1)/2 pairs of inputs.
    """

    residual: np.ndarray
    second: np.ndarray
    spread: np.ndarray


def neuron_products(h: Any, across: bool = False) -> tuple[Any, Any]:
    """Mean and unbiased variance of h_iα h_iβ over the neurons i, (n, P, N) -> (n, P, P) each.

    With ``across`` the covariances of all pairs of inputs, (n, p, p), in place of the variances.
    """
    mean, width = gram(h), h.shape[-1]
    unbiased = width / max(width - 1, 1)
    if not across:
        return mean, (gram(h * h) - mean**2) * unbiased
    first, second = np.triu_indices(h.shape[-2])
    of_pairs = mean[..., first, second]
    squares = of_pairs[..., :, None] * of_pairs[..., None, :]
    return mean, (gram(h[..., first, :] * h[..., second, :]) - squares) * unbiased


def draw_kernels(
    network: LayeredNetwork, inputs: Inputs, generator: np.random.Generator, samples: int
) -> Draws:
    """Draw networks without their weights: exact, and about N times cheaper for few inputs.

    Given h^(l-1), the residual f^(l) is Gaussian, independent for every neuron, with the covariance
    over the inputs

        C^(l) = a_l Σ_k ψ_k(h^(l-1)) ψ_k(h^(l-1))ᵀ / N + c_l     (F25 eq. (17)),

    so N P normal numbers and a square root of C^(l) give h^(l) = γ_l h^(l-1) + f^(l).

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> net = ResidualNetwork(depth=3, width=50)
    >>> inputs = Inputs(np.array([[0.5, 0.2], [0.2, 0.5]]))
    >>> draw_kernels(net, inputs, np.random.default_rng(0), samples=10).residual.shape
    (10, 4, 2, 2)
    """
    shape = len(inputs.kernel), network.width

    def tile(size: int) -> Draws:
        def residual(l: int, kernel: np.ndarray, features: tuple) -> np.ndarray:
            return gaussian(kernel, generator.standard_normal((size, *shape)))

        return _statistics(forward(network, inputs.kernel, residual), inputs.across)

    return joined(in_tiles(tile, samples, tile_size(shape[0] * shape[1])))


def draw_weights(
    network: LayeredNetwork, inputs: Inputs, generator: np.random.Generator, samples: int
) -> Draws:
    """Draw all weights and biases of networks, as the network is defined.

    Parameters and returns are those of `draw_kernels`. With ``inputs.data`` the first layer is
    h^(0) = W_in x + b_in, otherwise every neuron's h^(0) is drawn from N(0, K0).

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> net = ResidualNetwork(depth=3, width=50)
    >>> draws = draw_weights(net, Inputs(np.array([[0.5]])), np.random.default_rng(0), samples=10)
    >>> draws.residual.shape, draws.second.shape
    ((10, 4, 1, 1), (10, 4, 1, 1))
    """
    width, data, P = network.width, inputs.data, len(inputs.kernel)
    parameters = network.parameters

    def tile(size: int) -> Draws:
        def drawn(x: np.ndarray, weight_variance: float, bias_variance: float) -> np.ndarray:
            weights = generator.standard_normal((size, x.shape[-1], width))
            biases = generator.standard_normal((size, 1, width))
            return affine(x, weights, biases, np.sqrt((weight_variance, bias_variance)))

        def residual(l: int, kernel: np.ndarray, features: tuple) -> np.ndarray:
            if l:
                return network.branch(features, drawn, network.of_layer(l))
            if data is None:
                return gaussian(kernel, generator.standard_normal((size, P, width)))
            readin = (parameters[f"readin_{kind}_variance"] for kind in ("weight", "bias"))
            return drawn(data, *readin)

        return _statistics(forward(network, inputs.kernel, residual), inputs.across)

    fan_in = width if data is None else max(width, data.shape[1])
    return joined(in_tiles(tile, samples, tile_size(width * max(fan_in, P))))


SAMPLERS: dict[str, Callable[..., Draws]] = {"kernel": draw_kernels, "weights": draw_weights}


def _statistics(layers: Iterator[Layer], across: bool) -> Draws:
    rows = []
    for layer in layers:
        with np.errstate(over="ignore", invalid="ignore"):
            rows.append((layer.kernel, *neuron_products(layer.h, across)))
    return Draws(*(np.stack(column, axis=1) for column in zip(*rows, strict=True)))


def joined(parts: list[Draws]) -> Draws:
    """The draws of all parts, one after the other."""
    return Draws(*map(np.concatenate, zip(*parts, strict=True)))
