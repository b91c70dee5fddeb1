"""The tangent kernel in numbers: Θ = Σ ∂f/∂θ ∂f/∂θ' over the parameters θ of a wide network.

    Θ^(0) = D^(0),   Θ^(l) = (γ_l² + a_l ⟨φ'φ'⟩) Θ^(l-1) + D^(l),   D^(l) = w_l ⟨φφ⟩ + u_l

(SR eq. (9), whose λ_{l,L} should be λ_{l+1,L}; A. Jacot, F. Gabriel, C. Hongler,
arXiv:1806.07572, theorem 1.) D^(l) is what the weights and biases of layer l themselves add. In
the parametrisation of these papers, with all of them trained, it is the residual kernel C^(l).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.infinite_width.kernels import by_tiles, identical, pair_layers
from fieldtheory.numerics.infinite_width.layer_functions import network_functions
from fieldtheory.numerics.recursion import add_skip, require_finite, residual_kernel

# Indices α and β of pairs of inputs.
Pairs = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Trained:
    """Contributions of the weights and biases of every layer to the tangent kernel.

    Parameters
    ----------
    weights : ndarray, shape (L + 2, ...)
        w_l, the factors of ⟨φφ⟩; for the input that of K^(0). Batch axes are behind the layers.
    biases : ndarray, shape (L + 2, ...)
        u_l, what is added to that.
    """

    weights: np.ndarray
    biases: np.ndarray

    @classmethod
    def everything(cls, network: LayeredNetwork) -> Trained:
        """All weights and biases at rate one, in the parametrisation of Jacot et al. and SR.

        w_l = a_l and u_l = c_l, so that D^(l) = C^(l).

        Examples
        --------
        >>> from fieldtheory.networks.residual import ResidualNetwork
        >>> found = Trained.everything(ResidualNetwork(depth=1, weight_variance=2.0))
        >>> found.weights, found.biases
        (array([1., 2., 2.]), array([0.  , 0.05, 0.05]))
        """
        layers = layer_coefficients(network)
        weights = layers.weights.copy()
        weights[0] = 1.0
        return cls(weights, layers.biases)

    def shaped(self, trailing: int = 0, batch: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """w and u that broadcast with (L + 2, ..., pairs), see `layer_coefficients`."""
        size, *own = self.weights.shape
        shape = (size, *(1,) * (batch - len(own)), *own, *(1,) * trailing)
        return self.weights.reshape(shape), self.biases.reshape(shape)


def tangents(
    skips: np.ndarray, gains: np.ndarray, own: np.ndarray, same: Any = False, of_same: Any = 0.0
) -> np.ndarray:
    """Θ^(l) of all layers, shape (L + 2, ...), layer axis first; the last entry is the output's.

    Parameters
    ----------
    skips : ndarray
        γ_l².
    gains : ndarray
        a_l ⟨φ'φ'⟩, by which layer l hands on what is before it; see `slope_gains`.
    own : ndarray
        D^(l).
    same, of_same : array_like
        Which pairs are of identical inputs, and what their Θ^(l) is.

    Raises
    ------
    OverflowError
        If it exceeds float64.
    """
    theta = np.array(np.broadcast_to(own, np.broadcast_shapes(skips.shape, gains.shape, own.shape)))
    with np.errstate(over="ignore", invalid="ignore"):
        for l in range(1, len(theta)):
            theta[l] = add_skip(skips[l] + gains[l], theta[l - 1], theta[l])
            require_finite("the tangent kernel", theta[l], l, "log_tangent_kernels")
    return np.where(same, of_same, theta) if np.any(same) else theta


def slope_gains(network: LayeredNetwork, K: np.ndarray, trailing: int = 0) -> np.ndarray:
    """a_l ⟨φ'²⟩ over the signals of single inputs of layer l − 1, shape (L + 2, ...).

    Parameters
    ----------
    network : LayeredNetwork
    K : ndarray, shape (L + 2, ...)
        Their variances.
    trailing : int
        See `layer_coefficients`.

    Raises
    ------
    ValueError
        If ⟨φ'²⟩ is infinite.
    """
    slope = network_functions(network).slope_square
    weights = layer_coefficients(network, trailing, K.ndim - 1 - trailing).weights
    averages = slope(K[:-1])
    shape = np.broadcast_shapes(weights[1:].shape, averages.shape)
    return np.concatenate([np.zeros((1, *shape[1:])), weights[1:] * averages])


def own_of_inputs(
    network: LayeredNetwork, trained: Trained, K: np.ndarray, trailing: int = 0
) -> np.ndarray:
    """D^(l) of single inputs of variances K, shape (L + 2, ...)."""
    weights, biases = trained.shaped(trailing, K.ndim - 1 - trailing)
    averages = np.concatenate([K[:1], network_functions(network).second_moment(K[:-1])])
    return residual_kernel(weights, biases, averages)


def output_tangents(
    network: LayeredNetwork,
    trained: Trained,
    K: np.ndarray,
    theta: np.ndarray,
    K0: np.ndarray,
    pairs: Pairs,
) -> np.ndarray:
    """K^(L+1) and Θ^(L+1) of pairs of inputs, shape (2, ..., number of pairs).

    In blocks of pairs that stay in the cache, as `output_covariances`; no layer is kept. What
    exceeds float64 is left as it is.

    Parameters
    ----------
    network : LayeredNetwork
    trained : Trained
    K : ndarray, shape (L + 2, ..., P)
        Variances of the inputs in all layers.
    theta : ndarray, shape (..., P)
        Θ^(L+1) of the single inputs, which pairs of identical inputs have.
    K0 : ndarray, shape (..., number of pairs)
        Covariances of the input.
    pairs : pair of ndarray
        Indices α and β of the pairs.
    """
    weights, biases = trained.shaped(1, K.ndim - 2)
    layers = layer_coefficients(network, 1, K.ndim - 2)

    def through(K0: np.ndarray, pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
        tangent = residual_kernel(weights[0], biases[0], K0)
        with np.errstate(over="ignore", invalid="ignore"):
            for layer in pair_layers(network, K, K0, pairs):
                l = layer.number
                own = residual_kernel(weights[l], biases[l], layer.average)
                tangent = add_skip(layers.skips[l] + layers.weights[l] * layer.slope, tangent, own)
        return layer.kernel, np.where(identical(K[0], K0, pairs), theta[..., pairs[0]], tangent)

    return by_tiles(through, K, K0, pairs)
