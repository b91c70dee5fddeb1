"""Networks and diffusions drawn at random, many at once, one layer after the other.

All methods start from x_0 and add increments; what they draw differs, the law of a method is that
of the network ("weights", "kernel") or of Euler's steps of its diffusion ("sde", and "gram", which
draws the Gram matrix of all neurons and one of them).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np

from fieldtheory import validation
from fieldtheory.averages.quadrature.compiled import function_of
from fieldtheory.diffusions.diffusion_network import DiffusionNetwork, ParameterLaw
from fieldtheory.montecarlo.sampling.forward import affine
from fieldtheory.montecarlo.sampling.gram_chain import next_gram
from fieldtheory.networks.activations import h
from fieldtheory.numerics.covariance_roots import lower_root, psd_root
from fieldtheory.numerics.symmetric_matrices import packed, unpacked

# Most numbers in one array: what is drawn of a few networks stays in the cache.
TILE = 2**16
# Most inputs whose products are summed one pair after the other, which is quicker than BLAS.
_FEW = 4

# What is drawn for a layer x, given its features ψ(x) and their Gram matrix.
Increment = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Layer(NamedTuple):
    """Layer l of n networks: x_l − x_0 (n, P, D), overwritten by the next one, and q_l (n, P, P).

    q_ij = Σ_d ψ(x_d^i) ψ(x_d^j) / D.
    """

    number: int
    displacements: np.ndarray
    gram: np.ndarray


def input_layer(network: DiffusionNetwork, Z: Any) -> np.ndarray:
    """The layers x_0, (P, D), of inputs (P,) that are copied to all neurons, or of x_0 themselves.

    >>> input_layer(DiffusionNetwork(width=3), [0.0, 1.0])
    array([[0., 0., 0.],
           [1., 1., 1.]])
    """
    inputs = validation.finite_array("Z", Z)
    width = network.width
    if inputs.ndim == 1:
        return np.repeat(inputs[:, None], width, axis=1)
    if inputs.ndim != 2 or inputs.shape[1] != width:
        raise ValueError(
            f"Z must have shape (P,), inputs copied to all neurons, or (P, {width}), the layers "
            f"x_0 themselves, got shape {inputs.shape}"
        )
    return inputs


def layers_drawn(
    network: DiffusionNetwork,
    start: np.ndarray,
    method: str,
    generator: np.random.Generator,
    networks: int,
) -> Iterator[Layer]:
    """The layers 0, ..., L of so many networks.

        x_{l+1} = x_l + φ(u_l),   u_l = W_l ψ(x_l) + b_l        (PF eq. (10))

    "weights" draws W_l and b_l. "kernel" draws u_l, which given x_l is Gaussian with covariance
    Δt (σ_b² + σ_w² q_ij) over the inputs and independent for every neuron. "sde" does so too (for a
    ``parameter_law`` with explicit weights) and adds φ'(0) u_l + (1/2) φ''(0) Var[u_l | x_l], the
    step of Euler and Maruyama of the limit (PF eqs. (6), (11), (12), (17)).

    >>> net = DiffusionNetwork(depth=2, width=3)
    >>> draw = np.random.default_rng(0)
    >>> [layer.gram.shape for layer in layers_drawn(net, np.zeros((2, 3)), "kernel", draw, 5)]
    [(5, 2, 2), (5, 2, 2), (5, 2, 2)]
    """
    assert network.depth is not None
    psi = function_of(network.input_activation.expression, h).value
    displacement = np.zeros((networks, *start.shape))
    increment = _increment(network, method, generator, displacement.shape)
    for number in range(network.depth + 1):
        with np.errstate(all="ignore"):
            features = psi(start + displacement)
            products = unpacked(products_of_pairs(features), True)
        require_finite(network, products, number)
        yield Layer(number, displacement, products)
        if number < network.depth:
            with np.errstate(all="ignore"):
                displacement += increment(features, products)


def require_finite(network: DiffusionNetwork, products: np.ndarray, layer: int) -> None:
    """Raise if a Gram matrix of a layer is not finite."""
    if np.isfinite(products).all():
        return
    if layer == 0:
        raise ValueError(
            f"input_activation must be finite at the inputs, {network.input_activation.name} is not"
        )
    raise OverflowError(
        f"x exceeds the range of float64 in layer {layer} of {network.depth} of a network: its "
        "diffusion explodes (PF section 3.4); reduce horizon, weight_variance or the inputs"
    )


def first_of_each(x: np.ndarray, neurons: int) -> np.ndarray:
    """The first neurons of every network, one after the other: (n, P, D) -> (n neurons, P).

    >>> first_of_each(np.arange(12).reshape(2, 2, 3), 2)
    array([[ 0,  3],
           [ 1,  4],
           [ 6,  9],
           [ 7, 10]])
    """
    # A copy, so that the whole layer is not kept.
    return np.ascontiguousarray(x[:, :, :neurons].swapaxes(1, 2)).reshape(-1, x.shape[1])


def products_of_pairs(x: np.ndarray) -> np.ndarray:
    """Means over the neurons of x_i x_j for the pairs i <= j, (n, P, D) -> (n, P(P+1)/2).

    >>> products_of_pairs(np.array([[[1.0, 3.0], [0.0, 2.0]]]))
    array([[5., 3., 2.]])
    """
    inputs, width = x.shape[1:]
    if inputs > _FEW:
        return packed(x @ x.swapaxes(-1, -2)) / width
    pairs = combinations_with_replacement(range(inputs), 2)
    return np.stack([np.einsum("nd,nd->n", x[:, i], x[:, j]) for i, j in pairs], axis=1) / width


def _increment(
    network: DiffusionNetwork, method: str, generator: np.random.Generator, shape: tuple[int, ...]
) -> Increment:
    """Increment of x_l from ψ(x_l) and q_l."""
    law, step = network.parameter_law, network.step
    if method == "weights" or law:
        sums = _sums_of_law(law, step, generator) if law else _weighted_sums(network, generator)
    else:
        sums = _sums_by_kernel(network, generator, shape)
    if method != "sde":
        phi = function_of(network.activation.expression, h).value
        return lambda features, products: phi(sums(features, products))
    slope, curvature = network.slopes[:2]
    if curvature == 0:
        return lambda features, products: slope * sums(features, products)

    def euler(features: np.ndarray, products: np.ndarray) -> np.ndarray:
        if law:
            spread = law.covariance_of(features, features)
            variance = np.diagonal(spread, axis1=-2, axis2=-1)
        else:
            own = np.diagonal(products, axis1=-2, axis2=-1)[..., None]
            variance = network.bias_variance + network.weight_variance * own
        return slope * sums(features, products) + (curvature * step / 2) * variance

    return euler


def _sums_by_kernel(
    network: DiffusionNetwork, generator: np.random.Generator, shape: tuple[int, ...]
) -> Increment:
    normals = np.empty(shape)

    def sums(features: np.ndarray, products: np.ndarray) -> np.ndarray:
        variance = network.bias_variance + network.weight_variance * products
        root = lower_root(network.step * variance, pivoted=True)
        columns = root.shape[-1]
        if columns < shape[1]:
            return root @ generator.standard_normal((shape[0], columns, shape[2]))
        generator.standard_normal(out=normals)
        return root * normals if columns == 1 else root @ normals

    return sums


def _weighted_sums(network: DiffusionNetwork, generator: np.random.Generator) -> Increment:
    variances = np.array([network.weight_variance, network.bias_variance])
    deviations = np.sqrt(variances * network.step)

    def sums(features: np.ndarray, products: np.ndarray) -> np.ndarray:
        count, _, width = features.shape
        weights = generator.standard_normal((count, width, width))
        return affine(features, weights, generator.standard_normal((count, 1, width)), deviations)

    return sums


def _sums_of_law(law: ParameterLaw, step: float, generator: np.random.Generator) -> Increment:
    """W ψ + b, with the weights as they act on rows: (n, P, D) times (n, D, D)."""
    roots = {name: psd_root(array) for name, array in law.arrays.items() if "covariance" in name}
    width = law.width

    def noise(features: np.ndarray) -> np.ndarray:
        count = len(features)
        normals = generator.standard_normal((count, width, width))
        if "weight_covariance" in roots:
            flat = normals.reshape(count, -1) @ roots["weight_covariance"].T
            return features @ flat.reshape(normals.shape)
        # Σ^WO and Σ^WI of the rows and the columns (PF Assumption 3.3).
        return features @ roots["column_covariance"] @ normals @ roots["row_covariance"].T

    def sums(features: np.ndarray, products: np.ndarray) -> np.ndarray:
        total = noise(features)
        if "bias_covariance" in roots:
            normals = generator.standard_normal((len(features), 1, width))
            total = total + normals @ roots["bias_covariance"].T
        return step * law.mean_of(features) + np.sqrt(step) * total

    return sums


def grams_drawn(
    network: DiffusionNetwork, start: np.ndarray, generator: np.random.Generator, networks: int
) -> Iterator[Layer]:
    """The Gram matrices q_0, ..., q_L of so many networks, and their first neuron.

    >>> net = DiffusionNetwork(depth=2, width=10**6)
    >>> start = np.ones((1, 10**6))
    >>> [layer.gram.shape for layer in grams_drawn(net, start, np.random.default_rng(0), 5)]
    [(5, 1, 1), (5, 1, 1), (5, 1, 1)]
    """
    assert network.depth is not None
    width, others = start.shape[1], start[:, 1:]
    neuron = np.tile(start[:, :1], (networks, 1, 1))
    rest = np.tile(others @ others.T, (networks, 1, 1))
    for number in range(network.depth + 1):
        products = (neuron * neuron.swapaxes(-1, -2) + rest) / width
        require_finite(network, products, number)
        yield Layer(number, neuron - start[:, :1], products)
        if number == network.depth:
            return
        with np.errstate(over="ignore", invalid="ignore"):
            variance = network.bias_variance + network.weight_variance * products
            scale = network.slopes[0] * lower_root(network.step * variance, pivoted=True)
            neuron = neuron + scale @ generator.standard_normal((networks, scale.shape[-1], 1))
            # The rank is that of the neurons; more columns are rounding.
            root = lower_root(rest, pivoted=True)[..., : width - 1]
            rest = next_gram(root, scale, 1, width - 1, generator, networks)
