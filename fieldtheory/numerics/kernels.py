"""The saddle point in numbers: kernels of all layers (NNGP recursion)."""

from __future__ import annotations

import numpy as np

from fieldtheory.network import ResidualNetwork
from fieldtheory.numerics.chain import chain
from fieldtheory.numerics.entries import entries
from fieldtheory.numerics.finite import require_finite


def variances(network: ResidualNetwork, K0: np.ndarray, trailing: int = 0) -> tuple:
    """C*^(l) and K^(l) of single inputs, both of shape (L + 2, ...), layer axis first.

        C^(l) = a_l M(K^(l-1)) + c_l,   K^(l) = γ_l² K^(l-1) + C^(l)     (F25 eqs. (29), (30))

    The last entry of both is the output kernel.
    """
    moment = entries(network.activation).second_moment
    layers = chain(network, trailing)
    shape = np.broadcast_shapes(layers.weights.shape[1:], K0.shape)
    C = np.empty((network.depth + 2, *shape))
    K = np.empty_like(C)
    C[0] = K[0] = K0
    with np.errstate(over="ignore", invalid="ignore"):
        for l in range(1, network.depth + 2):
            C[l] = layers.weights[l] * moment(K[l - 1]) + layers.biases[l]
            K[l] = layers.skips[l] * K[l - 1] + C[l]
            require_finite("the kernel", K[l], l)
    return C, K


def covariances(
    network: ResidualNetwork, K: np.ndarray, K0: np.ndarray, pairs: tuple
) -> tuple[np.ndarray, np.ndarray]:
    """C*^(l) and K^(l) of pairs of inputs, both of shape (L + 2, ..., number of pairs).

        C_αβ^(l) = a_l ⟨φ_α φ_β⟩ + c_l,   K_αβ^(l) = γ_l² K_αβ^(l-1) + C_αβ^(l)   (F25 eq. (108))

    Parameters
    ----------
    network : ResidualNetwork
    K : ndarray, shape (L + 2, ..., P)
        Variances of the inputs in all layers.
    K0 : ndarray, shape (..., number of pairs)
        Covariances of the input.
    pairs : pair of ndarray
        Indices α and β of the pairs.
    """
    moment = entries(network.activation).covariance
    layers = chain(network, 1)
    first, second = pairs
    C = np.empty((*K.shape[:-1], len(first)))
    kernel = np.empty_like(C)
    C[0] = kernel[0] = K0
    for l in range(1, network.depth + 2):
        average = moment(K[l - 1][..., first], K[l - 1][..., second], kernel[l - 1])
        C[l] = layers.weights[l] * average + layers.biases[l]
        kernel[l] = layers.skips[l] * kernel[l - 1] + C[l]
    return C, kernel
