"""One forward pass of finite networks: what all samplers, estimators and responses are made of.

Signals h are arrays (..., P, N) with the networks in front, or (..., N) for one input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

import numpy as np

from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.networks.family import DeepNetwork, LayeredNetwork
from fieldtheory.numerics.infinite_width.block_functions import network_functions
from fieldtheory.numerics.recursion import add_skip, require_finite, residual_kernel

# Most numbers in one array: few enough for the cache, enough to hide the cost of a call.
TILE = 2**16
# The same where all layers are kept.
TILE_KEPT = 2**21

Part = TypeVar("Part")


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


def neuron_products(h: Any, across: bool = False) -> tuple[Any, Any]:
    """Mean and unbiased variance of h_iα h_iβ over the neurons i, (n, P, N) -> (n, P, P) each."""
    mean, width = gram(h), h.shape[-1]
    unbiased = width / max(width - 1, 1)
    if not across:
        return mean, (gram(h * h) - mean**2) * unbiased
    first, second = np.triu_indices(h.shape[-2])
    of_pairs = mean[..., first, second]
    squares = of_pairs[..., :, None] * of_pairs[..., None, :]
    return mean, (gram(h[..., first, :] * h[..., second, :]) - squares) * unbiased


class Sampler(Protocol):
    """So many networks from layer to layer: the state of one, and how it leads to the next."""

    @property
    def network(self) -> DeepNetwork:
        """Without batch axes."""

    def enter(self, l: int, kernel: Any) -> None:
        """Draw layer l, whose residual kernel is C^(l)."""

    def kernel(self, l: int) -> Any:
        """C^(l) of what layer l − 1 is."""

    def look(self, across: bool) -> tuple[Any, Any]:
        """The kernel of the stream and the spread of its units, as in `Draws`."""


def forward(
    sampler: Sampler, kernel: Any, given: Callable[[int, Any], Any] = lambda l, C: C
) -> Iterator[tuple[int, Any]]:
    """Go through the layers l = 0, ..., L of networks; l and C^(l+1) of each."""
    for l in range(sampler.network.steps + 1):
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            sampler.enter(l, given(l, kernel))
            kernel = sampler.kernel(l + 1)
        require_finite("a kernel", kernel, l + 1)
        yield l, kernel


class Neurons:
    """Signals h^(l) of networks whose layers are joined by skip connections.

        h^(0) = f^(0),   h^(l) = γ_l h^(l-1) + f^(l)
        C^(l+1) = a_{l+1} (1/N) Σ_i Σ_k ψ_k(h_iα^(l)) ψ_k(h_iβ^(l)) + c_{l+1}

    (F25 eqs. (1), (17); the features of the residual network are φ alone.) ``residual(l, C,
    features)`` draws f^(l) from C^(l) or the features of the layer before, and
    ``moment(*features)`` is the mean over the neurons.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> net = ResidualNetwork(depth=2, activation="linear", bias_variance=0.0, weight_variance=2.0)
    >>> ones = lambda l, kernel, features: np.ones((1, 1, 4))
    >>> [C.item() for _, C in forward(Neurons(net, ones), np.eye(1))]      # h = 1, 2, 3
    [2.0, 8.0, 18.0]
    """

    def __init__(
        self,
        network: LayeredNetwork,
        residual: Callable[[int, np.ndarray, tuple], np.ndarray],
        moment: Callable[..., Any] = gram,
    ) -> None:
        self.network, self.residual, self.moment = network, residual, moment
        self.psi, self.layers = feature_functions(network), layer_coefficients(network)
        self.skips = network.skip_scales
        self.h: Any = None
        self.features: tuple = ()

    def enter(self, l: int, kernel: Any) -> None:
        """h^(l) and its features."""
        step = self.residual(l, kernel, self.features)
        self.h = add_skip(self.skips[l - 1], self.h, step) if l else step
        self.features = self.psi(self.h)

    def kernel(self, l: int) -> Any:
        """C^(l) of the features."""
        a, c = self.layers.weights[l], self.layers.biases[l]
        return residual_kernel(a, c, self.moment(*self.features))

    def look(self, across: bool) -> tuple[Any, Any]:
        """Those of h^(l)."""
        return neuron_products(self.h, across)


def affine(x: Any, weights: Any, biases: Any, deviations: Any) -> Any:
    """W x + b from standard normals (n, fan_in, N) and (n, 1, N)."""
    weight, bias = deviations
    return (weight / np.sqrt(x.shape[-1])) * (x @ weights) + bias * biases


def correlated(root: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """R z of normals (..., P, N), whose covariance over the inputs is R Rᵀ."""
    return root * normals if root.shape[-1] == 1 else root @ normals


def tile_size(numbers: int, most: int = TILE) -> int:
    """Networks drawn at once, for so many numbers in the largest array of one of them."""
    return max(1, most // numbers)


def in_tiles(draw: Callable[[int], Part], samples: int, tile: int) -> list[Part]:
    """``draw(size)`` of at most ``tile`` networks, until there are ``samples``.

    >>> in_tiles(lambda size: size, 7, 3)
    [3, 3, 1]
    """
    return [draw(min(tile, samples - start)) for start in range(0, samples, tile)]


def feature_functions(network: LayeredNetwork, slopes: bool = False) -> Callable[[Any], tuple]:
    """The features ψ_k of a network, those that averages are of, as one function of an array.

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
