"""One forward pass of finite networks: what all samplers, estimators and responses are made of.

Signals h are arrays (..., P, N) with the networks in front, or (..., N) for one input. What a
layer is, its features ψ_k, a_l, c_l and γ_l, comes from the family of the network; what its
residuals are drawn from comes from the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np

from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.infinite_width.block_functions import network_functions
from fieldtheory.numerics.recursion import add_skip, require_finite, residual_kernel

# Most numbers in one array: few enough for the cache, enough to hide the cost of a call.
TILE = 2**16
# The same where all layers are kept.
TILE_KEPT = 2**21

Part = TypeVar("Part")


class Layer(NamedTuple):
    """A layer l of the networks: h^(l), its features ψ_k(h^(l)), and the C^(l+1) they give."""

    number: int
    h: Any
    features: tuple
    kernel: Any


def gram(*values: Any) -> Any:
    """Means over neurons of products of all pairs of inputs, (..., P, N) -> (..., P, P), summed.

    Examples
    --------
    >>> gram(np.array([[1.0, 3.0], [0.0, 2.0]])), gram(np.ones((1, 8)), np.ones((1, 8)))
    (array([[5., 3.],
           [3., 2.]]), array([[2.]]))
    """
    total = values[0] @ values[0].swapaxes(-1, -2)
    for x in values[1:]:
        total = total + x @ x.swapaxes(-1, -2)
    return total / values[0].shape[-1]


def observable(features: tuple) -> Any:
    """g(h, h) = Σ_k ψ_k(h)² of every neuron."""
    total = features[0] ** 2
    for x in features[1:]:
        total = total + x**2
    return total


def forward(
    network: LayeredNetwork,
    kernel: np.ndarray,
    residual: Callable[[int, np.ndarray, tuple], np.ndarray],
    moment: Callable[..., Any] = gram,
) -> Iterator[Layer]:
    """Go through the layers l = 0, ..., L of networks, one after the other.

        h^(0) = f^(0),   h^(l) = γ_l h^(l-1) + f^(l)
        C^(l+1) = a_{l+1} (1/N) Σ_i Σ_k ψ_k(h_iα^(l)) ψ_k(h_iβ^(l)) + c_{l+1}

    (F25 eqs. (1), (17); the features of the residual network are φ alone.)

    Parameters
    ----------
    network : LayeredNetwork
        Without batch axes.
    kernel : ndarray
        K0, with axes that broadcast with those of the C^(l).
    residual : callable
        ``residual(l, kernel, features)`` draws f^(l): from C^(l) or from the features of the layer
        before. For l = 0 they are K0 and the empty tuple.
    moment : callable, optional
        ``moment(*features)`` is the mean over the neurons.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> net = ResidualNetwork(depth=2, activation="linear", bias_variance=0.0, weight_variance=2.0)
    >>> ones = lambda l, kernel, features: np.ones((1, 1, 4))
    >>> [layer.kernel.item() for layer in forward(net, np.eye(1), ones)]      # h = 1, 2, 3
    [2.0, 8.0, 18.0]
    """
    psi, layers = feature_functions(network), layer_coefficients(network)
    skips, h, features = network.skip_scales, None, ()
    for l in range(network.depth + 1):
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            step = residual(l, kernel, features)
            h = add_skip(skips[l - 1], h, step) if l else step
            features = psi(h)
            a, c = layers.weights[l + 1], layers.biases[l + 1]
            kernel = residual_kernel(a, c, moment(*features))
        require_finite("a kernel", kernel, l + 1)
        yield Layer(l, h, features, kernel)


def affine(x: Any, weights: Any, biases: Any, deviations: Any) -> Any:
    """W x + b from standard normals (n, fan_in, N) and (n, 1, N).

    ``deviations`` are those of the entries of W, times √fan_in, and of b.
    """
    weight, bias = deviations
    return (weight / np.sqrt(x.shape[-1])) * (x @ weights) + bias * biases


def gaussian(covariance: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """Normal numbers (..., P, N) with the covariance (..., P, P) over the inputs."""
    return correlated(psd_root(covariance), normals)


def correlated(root: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """R z of normals (..., P, N), whose covariance over the inputs is R Rᵀ."""
    return root * normals if root.shape[-1] == 1 else root @ normals


def psd_root(matrix: np.ndarray) -> np.ndarray:
    """A matrix R with R Rᵀ = ``matrix``, (..., P, P), positive semidefinite and maybe singular.

    Eigenvalues of the correlations that are not above rounding count as zero, so that identical
    inputs stay identical, and inputs of small variance keep their digits.

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
    deviations = np.sqrt(np.maximum(np.diagonal(matrix, axis1=-2, axis2=-1), 0.0))[..., None]
    units = np.where(deviations > 0, deviations, 1.0)
    values, vectors = np.linalg.eigh(matrix / units / units.swapaxes(-1, -2))
    rounding = size * np.finfo(float).eps * np.abs(values).max(axis=-1, keepdims=True)
    roots = np.sqrt(np.where(values > rounding, values, 0.0))
    return deviations * vectors * roots[..., None, :]


def tile_size(numbers: int, most: int = TILE) -> int:
    """Networks drawn at once, for so many numbers in the largest array of one of them."""
    return max(1, most // numbers)


def in_tiles(draw: Callable[[int], Part], samples: int, tile: int) -> list[Part]:
    """``draw(size)`` of at most ``tile`` networks, until there are ``samples``.

    Examples
    --------
    >>> in_tiles(lambda size: size, 7, 3)
    [3, 3, 1]
    """
    return [draw(min(tile, samples - start)) for start in range(0, samples, tile)]


def feature_functions(network: LayeredNetwork, slopes: bool = False) -> Callable[[Any], tuple]:
    """The features ψ_k of a network, those that averages are of, as one function of an array.

    With ``slopes`` the ψ_k' in place of them, without what jumps add. Each smooth piece is
    evaluated by itself.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> net, h = ResidualNetwork(depth=1, activation="relu"), np.array([-1.0, 2.0])
    >>> feature_functions(net)(h), feature_functions(net, slopes=True)(h)
    ((array([0., 2.]),), (array([0., 1.]),))
    """
    functions = network_functions(network).functions
    values = [continued_at_zero((psi.slope if slopes else psi).value) for psi in functions]
    return lambda h: tuple(value(h) for value in values)


def continued_at_zero(value: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function with its limit at zero, which the signals of a zero input are, if 0/0 there."""
    # Where a function that is 0/0 at zero is taken for its limit there: the first that has a value.
    next_to_zero = (1e-150, 1e-8)
    if not np.isnan(value(np.zeros(1))[0]):
        return value
    near = value(np.array(next_to_zero))
    limit = near[~np.isnan(near)][0]
    return lambda h: np.where(h == 0, limit, value(h))
