"""Known parts of the fluctuations as control variates."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from fieldtheory.montecarlo.forward import (
    TILE_KEPT,
    feature_slopes,
    forward,
    in_tiles,
    mean_square,
    observable,
    tile_size,
)
from fieldtheory.networks.coefficients import LayerCoefficients, layer_coefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.infinite_width.gains import variance_gains
from fieldtheory.numerics.recursion import carried
from fieldtheory.numerics.solution import Solution, solve


class _Expansion(NamedTuple):
    """The saddle point, the gains a_l M'(K^(l-1)), and their derivatives by K^(l-1)."""

    layers: LayerCoefficients
    residual: np.ndarray
    kernels: np.ndarray
    gains: np.ndarray
    curvatures: np.ndarray


def controlled_samples(
    network: LayeredNetwork, K0: float, generator: np.random.Generator, samples: int
) -> dict[str, np.ndarray]:
    """Draw networks by their kernels, for one input, less known parts of their fluctuations.

    Beside every network, h^(l) = γ_l h^(l-1) + (C^(l))^(1/2) z^(l), goes the network of infinite
    width of the same normals z,

        g^(l) = γ_l g^(l-1) + (C*^(l))^(1/2) z^(l),

    whose N neurons are independent, g_i^(l) ~ N(0, K*^(l)). To first order in the fluctuations,
    C^(l) − C*^(l) is the mean ū^(l) over the neurons i of

        u_i^(l) = a_l [Σ_k ψ_k²(g_i^(l-1)) − M(K*^(l-1))] + a_l M'(K*^(l-1)) κ_i^(l-1),
        κ_i^(l) = Σ_{m<=l} A²_lm u_i^(m),

    that is Δ12 times the noise of all layers. All u_i have mean 0 exactly, and different neurons
    are independent. Hence these have the same expectation as what they stand for:

        C^(l) − C*^(l)                       the same, − ū^(l) − q^(l)
        [C^(l) − C*^(l)] [C^(m) − C*^(m)]    the same, − ū^(l) ū^(m) + Σ_i u_i^(l) u_i^(m) / N²
        Σ_{i≠j} x_i x_j / N (N−1)            the same, − Σ_{i≠j} w_i w_j / N (N−1) + ...

    Here q^(l) is the second order, made of products of two different neurons i ≠ j only, so that
    its mean is 0 as well; x_i = (h_i^(l))² − K*^(l), whose first order is w_i = (g_i^(l))² −
    K*^(l) + κ_i^(l); and the dots stand for 4 K* κ̄ / (N−1), which has mean 0 and follows the
    diagonal i = j. The noise that is left is smaller by a factor of order N for the first line and
    of order N^(1/2) for the others.

    Parameters
    ----------
    network : LayeredNetwork
        Without batch axes.
    K0 : float
    generator : numpy.random.Generator
    samples : int
        Number n of networks.

    Returns
    -------
    dict of str to ndarray
        ``residual`` (n, L+1), C^(1), ..., C^(L+1); ``rest`` (n, L+1), ``product``
        (n, L+1, L+1) and ``vertex`` (n, L+1), the three lines; the last one is of the layers
        0, ..., L, and 0 for width 1.

    Raises
    ------
    OverflowError
        If a kernel is not finite.

    Notes
    -----
    Only the Gaussian average M(K*) = ⟨Σ_k ψ_k²⟩ is taken from the theory. A wrong C*, Δ12 or
    response would leave the estimates unbiased and make them noisier. They pay as long as the
    fluctuations are small; where Var K is not small against K², as in deep networks of ReLU, the
    expansion is as noisy as the network itself.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> net = ResidualNetwork(depth=3, width=50)
    >>> found = controlled_samples(net, 0.5, np.random.default_rng(0), samples=10)
    >>> bool((found["rest"].std(axis=0) < 0.5 * found["residual"].std(axis=0)).all())
    True
    """
    return sampled(_one_tile, network, float(K0), generator, samples)


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


@lru_cache(maxsize=8)
def _expansion(network: LayeredNetwork, K0: float) -> _Expansion:
    solution = saddle_point(network, K0)
    K = solution.kernels
    # A coefficient of something with mean 0, which needs no digits.
    step = 1e-4 * K
    slopes = [variance_gains(network, K + sign * step) for sign in (1, -1)]
    step = np.roll(step, 1)
    curvatures = np.zeros_like(K)
    np.divide(slopes[0] - slopes[1], 2 * step, out=curvatures, where=step > 0)
    gains = variance_gains(network, K)
    return _Expansion(layer_coefficients(network), solution.residual_kernels, K, gains, curvatures)


def _one_tile(
    network: LayeredNetwork, K0: float, generator: np.random.Generator, samples: int
) -> dict[str, np.ndarray]:
    slopes = feature_slopes(network)
    point, width, depth = _expansion(network, K0), network.width, network.depth
    weights, biases, skips = point.layers.weights, point.layers.biases, point.layers.skips
    roots = np.sqrt(point.residual)
    # The normals of the layer in turn, for both networks.
    z, tilt, u, kappa = np.zeros((4, samples, width))
    second = np.zeros(samples)
    every, vertex = np.empty((samples, depth + 1, width)), np.empty((samples, depth + 1))
    residual, order2 = np.empty((2, samples, depth + 1))

    def driven(l: int, kernel: np.ndarray, features: tuple[Any, ...]) -> np.ndarray:
        generator.standard_normal(out=z)
        return np.stack([np.sqrt(kernel), np.full_like(kernel, roots[l])]) * z

    def of_finite_width(*features: np.ndarray) -> np.ndarray:
        return mean_square(*(psi[0] for psi in features))

    for l, (h, g), features, C in forward(
        network, np.full((samples, 1), K0), driven, of_finite_width
    ):
        skip, root = network.skip_scales[l - 1] if l else 0.0, roots[l]
        with np.errstate(over="ignore", invalid="ignore"):
            vertex[:, l] = _vertex(h, g, kappa, point.kernels[l])
            # First order of h − g, of the noise of all other neurons.
            others = u.mean(axis=1, keepdims=True) - u / width
            tilt = skip * tilt + others * z * (0.5 / root if root else 0.0)
            psi, mean = tuple(both[1] for both in features), kappa.mean(axis=1)
            slope = sum(x * rise for x, rise in zip(psi, slopes(g), strict=True))
            pairs = mean**2 - np.einsum("ni,ni->n", kappa, kappa) / width**2
            order2[:, l] = point.gains[l + 1] * (second - mean)
            order2[:, l] += 0.5 * point.curvatures[l + 1] * pairs
            order2[:, l] += 2 * weights[l + 1] * (slope * tilt).mean(axis=1)
            u = weights[l + 1] * observable(psi) - (point.residual[l + 1] - biases[l + 1])
            u += point.gains[l + 1] * kappa
        kappa = carried(skips[l + 1], kappa, u)
        second = carried(skips[l + 1], second, order2[:, l])
        every[:, l], residual[:, l] = u, C[:, 0]
    steps, means = residual - point.residual[1:], every.mean(axis=2)
    rest = steps - means - order2
    # C^(1) is linear in the noise; what is left is rounding.
    rest[:, 0] = 0.0
    product = every @ every.swapaxes(1, 2) / width**2
    product += steps[:, :, None] * steps[:, None, :] - means[:, :, None] * means[:, None, :]
    return {"residual": residual, "rest": rest, "product": product, "vertex": vertex}


def _vertex(h: np.ndarray, g: np.ndarray, kappa: np.ndarray, K: float) -> np.ndarray:
    """Σ_{i≠j} (h_i² − K)(h_j² − K) / N(N−1) of every network, less its part of mean 0."""
    width = h.shape[1]
    if width == 1:
        return np.zeros(len(h))
    own, first = h * h - K, g * g - K + kappa
    pairs = _distinct_pairs(own) - _distinct_pairs(first)
    return pairs + 4 * K * kappa.mean(axis=1) / (width - 1)


def _distinct_pairs(x: np.ndarray) -> np.ndarray:
    """Σ_{i≠j} x_i x_j / N(N−1) over the neurons, (..., N) -> (...); 0 for one neuron."""
    width = x.shape[-1]
    if width == 1:
        return np.zeros(x.shape[:-1])
    return (width * x.mean(axis=-1) ** 2 - np.einsum("...i,...i", x, x) / width) / (width - 1)
