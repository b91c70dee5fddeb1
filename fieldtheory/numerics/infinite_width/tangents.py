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
from fieldtheory.networks.family import DeepNetwork
from fieldtheory.numerics.infinite_width.block_functions import network_functions
from fieldtheory.numerics.infinite_width.gains import weighted
from fieldtheory.numerics.infinite_width.kernels import by_tiles, identical, pair_layers
from fieldtheory.numerics.recursion import add_skip, require_finite, residual_kernel

# Indices α and β of pairs of inputs.
Pairs = tuple[np.ndarray, ...]


@dataclass(frozen=True, eq=False)
class Trained:
    """Contributions of the parameters of every layer to the tangent kernel.

        D^(l) = w_l ⟨φφ⟩ + u_l + a_l Σ_k (∂⟨φφ⟩/∂Q_k) (w_kl Q_k + u_kl)

    Parameters
    ----------
    weights, biases : ndarray, shape (L + 2, ...)
        w_l and u_l; for the input w_0 K^(0) + u_0. Batch axes are behind the layers.
    signals : tuple of pairs of ndarray, shape (L + 2, ...)
        w_kl and u_kl of weights and biases between the stream and the signals Q_k of blocks.
    """

    weights: np.ndarray
    biases: np.ndarray
    signals: tuple[tuple[np.ndarray, np.ndarray], ...] = ()

    @classmethod
    def everything(cls, network: DeepNetwork) -> Trained:
        """All weights and biases at rate one, in the parametrisation of Jacot et al. and SR.

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
        one = np.ones_like(weights), np.zeros_like(weights)
        return cls(weights, layers.biases, (one,) * len(network.signal_names))

    def shaped(self, trailing: int = 0, batch: int = 0) -> Trained:
        """The same that broadcast with (L + 2, ..., pairs), see `layer_coefficients`."""
        size, *own = self.weights.shape
        shape = (size, *(1,) * (batch - len(own)), *own, *(1,) * trailing)
        signals = tuple((w.reshape(shape), u.reshape(shape)) for w, u in self.signals)
        return Trained(self.weights.reshape(shape), self.biases.reshape(shape), signals)

    def added(self, l: Any, average: Any, weight: Any, slopes: list[Any]) -> Any:
        """D of layers l, of ⟨φφ⟩, a_l and `signal_slopes`."""
        total = residual_kernel(self.weights[l], self.biases[l], average)
        for (w, u), (slope, _, Q) in zip(self.signals, slopes, strict=False):
            total = total + weight * slope * (w[l] * Q + u[l])
        return total


def tangents(
    skips: np.ndarray, gains: np.ndarray, own: np.ndarray, same: Any = False, of_same: Any = 0.0
) -> np.ndarray:
    """Θ^(l) of all layers, shape (L + 2, ...), layer axis first; the last entry is the output's."""
    theta = np.array(np.broadcast_to(own, np.broadcast_shapes(skips.shape, gains.shape, own.shape)))
    with np.errstate(over="ignore", invalid="ignore"):
        for l in range(1, len(theta)):
            theta[l] = add_skip(skips[l] + gains[l], theta[l - 1], theta[l])
            require_finite("the tangent kernel", theta[l], l)
    return np.where(same, of_same, theta) if np.any(same) else theta


def slope_gains(network: DeepNetwork, K: np.ndarray, trailing: int = 0) -> np.ndarray:
    """a_l ⟨φ'²⟩ over the signals of single inputs of layer l − 1, shape (L + 2, ...)."""
    functions = network_functions(network, trailing, K.ndim - 1 - trailing)
    return weighted(network, functions.every("slope_square", K[:-1]), trailing)


def own_of_inputs(
    network: DeepNetwork, trained: Trained, K: np.ndarray, trailing: int = 0
) -> np.ndarray:
    """D^(l) of single inputs of variances K, shape (L + 2, ...)."""
    batch = K.ndim - 1 - trailing
    functions = network_functions(network, trailing, batch)
    averages = np.concatenate([K[:1], functions.every("second_moment", K[:-1])])
    return sources(network, trained.shaped(trailing, batch), averages, trailing, K)


def sources(
    network: DeepNetwork, shaped: Trained, averages: np.ndarray, trailing: int, *K: np.ndarray
) -> np.ndarray:
    """D^(l) of single inputs or of pairs, of K^(0) and ⟨φφ⟩ over the signals before each layer."""
    added = residual_kernel(shaped.weights, shaped.biases, averages)
    if not shaped.signals:
        return added
    batch, inner = K[0].ndim - 1 - trailing, slice(1, -1)
    functions = network_functions(network, trailing, batch)
    slopes = functions.signal_slopes(*(each[:-2] for each in K))
    weight = layer_coefficients(network, trailing, batch).weights[inner]
    added[inner] = shaped.added(inner, averages[inner], weight, slopes)
    return added


def output_tangents(
    network: DeepNetwork,
    trained: Trained,
    K: np.ndarray,
    theta: np.ndarray,
    K0: np.ndarray,
    pairs: Pairs,
) -> np.ndarray:
    """K^(L+1) and Θ^(L+1) of pairs of inputs, shape (2, ..., number of pairs)."""
    shaped = trained.shaped(1, K.ndim - 2)
    weights = layer_coefficients(network, 1, K.ndim - 2).weights
    functions = network_functions(network, 1, K.ndim - 2)

    def through(K0: np.ndarray, pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
        tangent = residual_kernel(shaped.weights[0], shaped.biases[0], K0)
        with np.errstate(over="ignore", invalid="ignore"):
            for layer in pair_layers(network, K, K0, pairs):
                l, slopes = layer.number, []
                if shaped.signals and l <= network.depth:
                    slopes = functions.layer(l).signal_slopes(*layer.before)
                own = shaped.added(l, layer.average, weights[l], slopes)
                tangent = add_skip(layer.skip + weights[l] * layer.slope, tangent, own)
        return layer.kernel, np.where(identical(K[0], K0, pairs), theta[..., pairs[0]], tangent)

    return by_tiles(through, K, K0, pairs)
