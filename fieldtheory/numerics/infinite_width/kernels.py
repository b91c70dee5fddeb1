"""The saddle point in numbers: kernels of all layers (NNGP recursion)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from fieldtheory.averages import routes
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrands.exact_differences import narrow_alone
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.networks.family import DeepNetwork, LayeredNetwork
from fieldtheory.numerics.infinite_width.block_functions import network_functions
from fieldtheory.numerics.infinite_width.homogeneous import (
    are_parallel,
    as_parallel,
    averages_along,
)
from fieldtheory.numerics.recursion import add_skip, require_finite, residual_kernel

# Variances above have integrals that exceed float64.
_LARGEST = 1e100
# Pairs go through all layers in blocks of this many times this many.
_TILE = 128


def variances(network: DeepNetwork, K0: np.ndarray, trailing: int = 0) -> tuple:
    """C*^(l) and K^(l) of single inputs, both of shape (L + 2, ...), layer axis first.

        C^(l) = a_l M(K^(l-1)) + c_l,   K^(l) = γ_l² K^(l-1) + C^(l)     (F25 eqs. (29), (30))

    The last entry of both is the output kernel. Blocks with a norm behind the sum carry s(K).
    """
    functions = network_functions(network, trailing, K0.ndim - trailing)
    layers = layer_coefficients(network, trailing)
    shape = np.broadcast_shapes(layers.weights.shape[1:], K0.shape)
    C = np.empty((network.depth + 2, *shape))
    K = np.empty_like(C)
    C[0] = K[0] = K0
    before = K[0]
    with np.errstate(over="ignore", invalid="ignore"):
        coefficients = zip(layers.weights[1:], layers.biases[1:], layers.skips[1:], strict=True)
        for l, (weight, bias, skip) in enumerate(coefficients, start=1):
            layer = functions.layer(l)
            try:
                average = layer.second_moment(before)
            except QuadratureError:
                # At the end of float64 the squares under an integral are infinite.
                if before.max() < _LARGEST:
                    raise
                average = np.inf
            C[l] = residual = weight * average + bias
            carried = before if layer.stream is None else layer.stream.own(before)[0]
            K[l] = before = skip * carried + residual
            if not math.isfinite(before.sum() if before.ndim else before):
                require_finite("the kernel", before, l, "log_kernels" if functions.lines else "")
    return C, K


def covariances(
    network: DeepNetwork, own: tuple, K0: np.ndarray, pairs: tuple
) -> tuple[np.ndarray, np.ndarray]:
    """C*^(l) and K^(l) of pairs of inputs, both of shape (L + 2, ..., number of pairs).

        C_αβ^(l) = a_l ⟨φ_α φ_β⟩ + c_l,   K_αβ^(l) = γ_l² K_αβ^(l-1) + C_αβ^(l)   (F25 eq. (108))

    Those of identical inputs are the variances, to the last bit.
    """
    variance, K = own
    same = identical(K[0], K0, pairs)
    C = np.empty((*K.shape[:-1], len(pairs[0])))
    kernel = np.empty_like(C)
    x, y = (K[0][..., members] for members in pairs)
    C[0] = kernel[0] = as_parallel(are_parallel(x, y, K0), x, y, K0)
    with np.errstate(over="ignore", invalid="ignore"):
        for layer in pair_layers(network, K, K0, pairs, slopes=False):
            l = layer.number
            C[l] = np.where(same, variance[l][..., pairs[0]], layer.residual)
            kernel[l] = layer.kernel
            if not np.isfinite(kernel[l]).all():
                lines = network_functions(network).lines
                require_finite("the kernel", kernel[l], l, "log_kernels" if lines else "")
    return C, kernel


def homogeneous_averages(
    network: DeepNetwork, K: np.ndarray, K0: np.ndarray, pairs: tuple
) -> Iterator[tuple[np.ndarray, np.ndarray]] | None:
    """⟨φφ⟩ and ⟨φ'φ'⟩ of ReLU and its relatives by the angles of the inputs, None of other φ."""
    lines = network_functions(network).lines
    if lines is None or not (K > 0).all():
        return None
    routes.record(routes.LINES, len(K) * K0.size)
    return averages_along(lines, layer_coefficients(network, 1, K.ndim - 2), K, K0, pairs)


def output_covariances(
    network: DeepNetwork, K: np.ndarray, K0: np.ndarray, pairs: tuple
) -> np.ndarray:
    """K^(L+1) and χ^out of pairs of inputs, shape (2, ..., number of pairs)."""
    return by_tiles(lambda *part: _through_layers(network, K, *part), K, K0, pairs)


def by_tiles(through: Callable[..., tuple], K: np.ndarray, K0: np.ndarray, pairs: tuple) -> Any:
    """Two quantities of pairs of inputs, shape (2, ..., number of pairs), tile by tile."""
    batch = K.shape[1:-1]
    count = len(pairs[0])
    block = max(1, _TILE**2 // math.prod(batch))
    order = np.arange(count)
    if count > block:
        # A tile of the matrix has few inputs, and averages by quadrature are shared among pairs.
        order = np.lexsort([index // _TILE for index in pairs[::-1]])
    values = np.empty((2, *batch, count))
    for start in range(0, count, block):
        part = order[start : start + block]
        values[..., part] = through(K0[..., part], (pairs[0][part], pairs[1][part]))
    return values


class PairLayer(NamedTuple):
    """A layer l of pairs: ⟨φφ⟩ and its slope by K_αβ before it, γ_l² ∂s/∂K_αβ, C^(l), K^(l)."""

    number: int
    average: Any
    slope: Any
    skip: Any
    residual: np.ndarray
    kernel: np.ndarray
    before: tuple[np.ndarray, ...]


def pair_layers(
    network: DeepNetwork, K: np.ndarray, K0: np.ndarray, pairs: tuple, slopes: bool = True
) -> Iterator[PairLayer]:
    """The layers 1, ..., L + 1 of pairs of inputs, one after the other, none of them kept."""
    functions = network_functions(network, 1, K.ndim - 2)
    layers = layer_coefficients(network, 1, K.ndim - 2)
    first, second = pairs
    x, y = K[0][..., first], K[0][..., second]
    parallel = are_parallel(x, y, K0)
    K0 = as_parallel(parallel, x, y, K0)
    same = identical(K[0], K0, pairs)
    along = homogeneous_averages(network, K[:-1], K0, pairs)
    kernel = np.broadcast_to(K0, same.shape)
    averages: tuple[Any, Any] = None, None
    before: tuple | None = None
    for l in range(1, len(K)):
        layer, arguments = functions.layer(l), (x, y, kernel)
        if along is not None:
            averages = next(along)
        elif (
            before is None
            or functions.layers_differ
            or any(map(np.any, map(np.not_equal, arguments, before)))
        ):
            # Kernels may have reached a fixed point.
            before = arguments
            if slopes:
                averages = layer.covariance_gain(*arguments)
            else:
                averages = layer.covariance(*arguments), None
        average, slope = averages
        C = residual_kernel(layers.weights[l], layers.biases[l], average)
        carried, skip = kernel, layers.skips[l]
        if layer.stream is not None:
            carried, _, _, moved = layer.stream.pair(*arguments, order=1)
            skip = skip * moved
        kernel = add_skip(layers.skips[l], carried, C)
        x, y = K[l][..., first], K[l][..., second]
        if same.any():
            kernel = np.where(same, x, kernel)
        kernel = as_parallel(parallel, x, y, kernel)
        yield PairLayer(l, average, slope, skip, C, kernel, arguments)


def _through_layers(
    network: DeepNetwork, K: np.ndarray, K0: np.ndarray, pairs: tuple
) -> tuple[np.ndarray, np.ndarray]:
    coefficients = layer_coefficients(network, 1, K.ndim - 2)
    chi: Any = 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        for layer in pair_layers(network, K, K0, pairs):
            l = layer.number
            chi = (layer.skip + coefficients.weights[l] * layer.slope) * chi
    return layer.kernel, chi


def identical(K0: np.ndarray, covariance: np.ndarray, pairs: tuple) -> np.ndarray:
    """Mask of the pairs with both variances and the covariance equal."""
    return (K0[..., pairs[0]] == covariance) & (K0[..., pairs[1]] == covariance)


def limit_variances(network: LayeredNetwork, K: np.ndarray) -> np.ndarray:
    """Variances K^(l), zeros replaced by a small variance where φ jumps at zero.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> networks = [ResidualNetwork(depth=1, activation=name) for name in ("relu", "sign")]
    >>> [limit_variances(network, np.zeros(2)).tolist() for network in networks]
    [[0.0, 0.0], [1e-60, 1e-60]]
    """
    if np.all(K) or not any(0.0 in psi.jumping for psi in network_functions(network).functions):
        return K
    return narrow_alone(K)


def limit_kernels(
    network: LayeredNetwork, K: np.ndarray, C: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """`limit_variances` for K^(l) and C^(l) of several inputs, both (L + 1, P, P)."""
    own = np.diagonal(K, axis1=1, axis2=2)
    narrow = limit_variances(network, own)
    if narrow is own:
        return K, C
    zero = own == 0
    both = zero[:, :, None] & zero[:, None, :]
    K = np.where(both, np.sqrt(narrow[:, :, None] * narrow[:, None, :]), K)
    return K, np.concatenate([np.where(both[:1], K[:1], C[:1]), C[1:]])


def limit_input_kernel(network: LayeredNetwork, K0: np.ndarray) -> np.ndarray:
    """`limit_variances` for the kernel of the inputs, a number or (P, P)."""
    if K0.ndim:
        return limit_kernels(network, K0[None], K0[None])[0][0]
    return limit_variances(network, K0[None])[0]
