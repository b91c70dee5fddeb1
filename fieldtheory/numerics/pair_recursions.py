"""What is asked of pairs of inputs, as recursions over the layers that a map can stand for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from fieldtheory.networks.activations import h
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.kernels import output_covariances, variances


class PairRecursion(Protocol):
    """Quantities of two inputs that follow from their variances and covariance.

    ``own`` has what single inputs bring along in all layers, the inputs on its last axis.
    """

    @property
    def odd(self) -> tuple[bool, ...]:
        """Of every quantity, whether it vanishes with the covariance of the inputs."""

    def own(self, K0: np.ndarray) -> np.ndarray:
        """What inputs of variances (P,) bring along, shape (..., P)."""

    def pairs(self, own: np.ndarray, K0: np.ndarray, pairs: tuple) -> np.ndarray:
        """The quantities of pairs of covariances (n,), shape (number of quantities, n)."""

    def factors(self, own: np.ndarray) -> np.ndarray:
        """s of single inputs, shape (number of quantities, P).

        What s_α s_β, for odd quantities times the covariance of the inputs, is taken out of, is
        of order one and changes little with the variances.
        """


@dataclass(frozen=True)
class OutputRecursion:
    """K_αβ and χ_αβ of the last layer that ``own`` goes to: of a hidden layer, or the output.

    Parameters
    ----------
    network : LayeredNetwork
        Without batch axes.
    rows : tuple of int
        Which are wanted: 0 for the kernel, 1 for the response.
    layer : int
        l of K^(l) and χ^(l), up to L + 1.
    """

    network: LayeredNetwork
    rows: tuple[int, ...]
    layer: int

    @cached_property
    def odd(self) -> tuple[bool, ...]:
        """For φ without an even part, without biases."""
        phi = self.network.activation
        biases = layer_coefficients(self.network).biases[1 : self.layer + 1]
        odd = not biases.any() and (phi(h) + phi(-h)).expand() == 0
        return tuple(odd and row == 0 for row in self.rows)

    def own(self, K0: np.ndarray) -> np.ndarray:
        """K^(0), ..., K^(layer), shape (layer + 1, P)."""
        return variances(self.network, K0, 1)[1][: self.layer + 1]

    def pairs(self, own: np.ndarray, K0: np.ndarray, pairs: tuple) -> np.ndarray:
        """The recursion over the layers."""
        return output_covariances(self.network, own, K0, pairs)[list(self.rows)]

    def factors(self, own: np.ndarray) -> np.ndarray:
        """√K^(layer), divided by √K^(0) for responses and odd kernels."""
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = np.sqrt(own[-1] / own[0])
        root = np.sqrt(own[-1])
        return np.stack(
            [gain if row == 1 or odd else root for row, odd in zip(self.rows, self.odd, strict=True)]
        )
