"""Networks drawn from the prior: with explicit weights, or with their kernels only.

A sampler maps (network, inputs, generator, samples) to `Draws`. Both samplers follow one law.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from fieldtheory.averages.steps import pieces
from fieldtheory.compiling.functions import lambdify
from fieldtheory.networks import activations
from fieldtheory.networks.activations import Activation
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.numerics.finite import require_finite

# Most numbers in one array: few enough for the cache, enough to hide the cost of a call.
TILE = 2**16
# The same for JAX: enough for a GPU, 128 MiB.
TILE_JAX = 2**24


@dataclass(frozen=True, eq=False)
class Inputs:
    """What the networks are fed: the kernel K0 (P, P), and the data X (P, d) where it is given."""

    kernel: np.ndarray
    data: np.ndarray | None = None


class Draws(NamedTuple):
    """Random kernels of n networks.

    ``residual`` (n, L+1, P, P) are C^(1), ..., C^(L+1). Of the products h_iα h_iβ of the neurons i
    in the layers 0, ..., L, ``second`` (n, L+1, P, P) are the means over i, and ``spread`` the
    unbiased variances over i (0 for one neuron).
    """

    residual: np.ndarray
    second: np.ndarray
    spread: np.ndarray


def draw_kernels(
    network: ResidualNetwork, inputs: Inputs, generator: np.random.Generator, samples: int
) -> Draws:
    """Draw networks without their weights: exact, and about N times cheaper for few inputs.

    Given h^(l-1), the residual f^(l) = ρ_l [W^(l) φ(h^(l-1)) + b^(l)] is Gaussian, independent for
    every neuron, with the covariance over the inputs

        C^(l) = ρ_l² [σ²_w φ(h^(l-1)) φ(h^(l-1))ᵀ / N + σ²_b]     (F25 eq. (17)),

    so N P normal numbers and a square root of C^(l) give h^(l) = γ_l h^(l-1) + f^(l).

    Parameters
    ----------
    network : ResidualNetwork
        Without batch axes.
    inputs : Inputs
        Every neuron's h^(0) is drawn from N(0, K0).
    generator : numpy.random.Generator
    samples : int
        Number n of networks.

    Returns
    -------
    Draws

    Raises
    ------
    OverflowError
        If a kernel is not finite.

    Examples
    --------
    >>> net = ResidualNetwork(depth=3, width=50)
    >>> inputs = Inputs(np.array([[0.5, 0.2], [0.2, 0.5]]))
    >>> draw_kernels(net, inputs, np.random.default_rng(0), samples=10).residual.shape
    (10, 4, 2, 2)
    """
    shape = (len(inputs.kernel), network.width)

    def first(count: int) -> np.ndarray:
        return _gaussian(inputs.kernel, generator.standard_normal((count, *shape)))

    def residual(l: int, activity: np.ndarray, kernel: np.ndarray) -> np.ndarray:
        return _gaussian(kernel, generator.standard_normal(activity.shape))

    return _draws(network, samples, first, residual, shape[0] * shape[1])


def draw_weights(
    network: ResidualNetwork, inputs: Inputs, generator: np.random.Generator, samples: int
) -> Draws:
    """Draw all weights and biases of networks, as the network is defined.

    Parameters and returns are those of `draw_kernels`. With ``inputs.data`` the first layer is
    h^(0) = W_in x + b_in, otherwise every neuron's h^(0) is drawn from N(0, K0).

    Examples
    --------
    >>> net = ResidualNetwork(depth=3, width=50)
    >>> draws = draw_weights(net, Inputs(np.array([[0.5]])), np.random.default_rng(0), samples=10)
    >>> draws.residual.shape, draws.second.shape
    ((10, 4, 1, 1), (10, 4, 1, 1))
    """
    width, data, P = network.width, inputs.data, len(inputs.kernel)

    def affine(x: np.ndarray, count: int, variances: tuple[float, float]) -> np.ndarray:
        weights = generator.standard_normal((count, x.shape[-1], width))
        biases = generator.standard_normal((count, 1, width))
        weight, bias = np.sqrt(variances)
        return (weight / np.sqrt(x.shape[-1])) * (x @ weights) + bias * biases

    def first(count: int) -> np.ndarray:
        if data is None:
            normals = generator.standard_normal((count, P, width))
            return _gaussian(inputs.kernel, normals)
        return affine(data, count, network.readin_variances)

    def residual(l: int, activity: np.ndarray, kernel: np.ndarray) -> np.ndarray:
        variances = network.weight_variance, network.bias_variance
        return network.branch_scales[l - 1] * affine(activity, len(activity), variances)

    fan_in = width if data is None else max(width, data.shape[1])
    return _draws(network, samples, first, residual, width * max(fan_in, P))


SAMPLERS: dict[str, Callable[..., Draws]] = {"kernel": draw_kernels, "weights": draw_weights}
# The methods that every back end has.
BACKENDS = {"numpy": tuple(SAMPLERS), "jax": ("weights",)}


def sampler(method: str, backend: str) -> Callable[..., Draws]:
    """The sampler of a method; that of JAX is loaded when it is asked for."""
    if backend == "jax":
        from fieldtheory.montecarlo import jax_sampler

        return jax_sampler.draw_weights
    return SAMPLERS[method]


def tile_size(numbers: int) -> int:
    """Networks drawn at once, for so many numbers in the largest array of one of them."""
    return max(1, TILE // numbers)


def _draws(
    network: ResidualNetwork, samples: int, first: Callable, residual: Callable, numbers: int
) -> Draws:
    """Networks in tiles, from the preactivations ``first`` and the ``residual`` of every layer."""
    tile = tile_size(numbers)
    sizes = [min(tile, samples - start) for start in range(0, samples, tile)]
    parts = [_one_tile(network, first(size), residual) for size in sizes]
    return Draws(*map(np.concatenate, zip(*parts, strict=True)))


def _one_tile(network: ResidualNetwork, h: np.ndarray, residual: Callable) -> Draws:
    phi, layers = activation_function(network.activation), layer_coefficients(network)
    kernels, seconds, spreads = [], [], []
    for l in range(1, network.depth + 2):
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            second, spread = _products(h)
            activity = phi(h)
            kernel = layers.weights[l] * _gram(activity) + layers.biases[l]
        require_finite("a kernel", kernel, l)
        if l <= network.depth:
            h = network.skip_scales[l - 1] * h + residual(l, activity, kernel)
        kernels.append(kernel)
        seconds.append(second)
        spreads.append(spread)
    return Draws(*(np.stack(rows, axis=1) for rows in (kernels, seconds, spreads)))


def _gram(values: np.ndarray) -> np.ndarray:
    """Means over the neurons of products of all pairs of inputs, (n, P, N) -> (n, P, P)."""
    return values @ values.swapaxes(1, 2) / values.shape[2]


def _products(h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of h_iα h_iβ over the neurons i."""
    mean, width = _gram(h), h.shape[2]
    return mean, (_gram(h * h) - mean**2) * (width / max(width - 1, 1))


def _gaussian(covariance: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """Normal numbers (n, P, N) with the covariance (..., P, P) over the inputs."""
    root = psd_root(covariance)
    return root * normals if root.shape[-1] == 1 else root @ normals


def psd_root(matrix: np.ndarray) -> np.ndarray:
    """A matrix R with R Rᵀ = ``matrix``, (..., P, P), positive semidefinite and maybe singular.

    Eigenvalues that are not above rounding count as zero, so that identical inputs stay identical.

    Examples
    --------
    >>> root = psd_root(np.array([[2.0, 2.0], [2.0, 2.0]]))
    >>> (root @ root.T).round(12)
    array([[2., 2.],
           [2., 2.]])
    """
    size = matrix.shape[-1]
    if size == 1:
        return np.sqrt(np.maximum(matrix, 0.0))
    values, vectors = np.linalg.eigh(matrix)
    rounding = size * np.finfo(float).eps * np.abs(values).max(axis=-1, keepdims=True)
    roots = np.sqrt(np.where(values > rounding, values, 0.0))
    return vectors * roots[..., None, :]


@lru_cache(maxsize=32)
def activation_function(activation: Activation) -> Callable[[np.ndarray], np.ndarray]:
    """φ in NumPy, each smooth piece of it evaluated apart.

    Examples
    --------
    >>> from fieldtheory.networks.activations import ACTIVATIONS
    >>> activation_function(ACTIVATIONS["relu"])(np.array([-1.0, 2.0]))
    array([0., 2.])
    """
    return lambdify([activations.h], pieces(activation.expression, [activations.h]))
