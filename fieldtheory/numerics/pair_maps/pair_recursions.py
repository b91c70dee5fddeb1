"""What is asked of pairs of inputs, as recursions over the layers that a map can stand for."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from fieldtheory.networks.activations import h
from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.networks.family import DeepNetwork
from fieldtheory.numerics.infinite_width.block_functions import network_functions
from fieldtheory.numerics.infinite_width.gains import responses, skip_gains, variance_gains
from fieldtheory.numerics.infinite_width.kernels import output_covariances, variances
from fieldtheory.numerics.infinite_width.tangents import (
    Pairs,
    Trained,
    output_tangents,
    own_of_inputs,
    slope_gains,
    tangents,
)


@dataclass(frozen=True)
class OutputRecursion:
    """K_αβ and χ_αβ of a hidden layer, or of the output."""

    # Without batch axes.
    network: DeepNetwork
    # Which are wanted: 0 for the kernel, 1 for the response.
    rows: tuple[int, ...]
    # l of K^(l) and χ^(l), from 1 to L + 1.
    layer: int

    @cached_property
    def odd(self) -> tuple[bool, ...]:
        """For φ without an even part, without biases; not of gates."""
        network, phi = self.network, self.network.activation
        biases = layer_coefficients(network).biases[1 : self.layer + 1]
        inner = [network.parameters.get(f"{k}_bias_variance", 0.0) for k in network.signal_names]
        biased = biases.any() or np.any(inner) or len(inner) > 1
        odd = not biased and (phi(h) + phi(-h)).expand() == 0
        return tuple(odd and row == 0 for row in self.rows)

    def own(self, K0: np.ndarray) -> np.ndarray:
        """K^(0), ..., K^(L+1), shape (L + 2, P)."""
        return variances(self.network, K0, 1)[1]

    def pairs(self, own: np.ndarray, K0: np.ndarray, pairs: Pairs) -> np.ndarray:
        """The recursion over the layers."""
        values = output_covariances(self.network, own[: self.layer + 1], K0, pairs)
        if (stream := self._stream) is not None:
            arguments = (own[self.layer][..., members] for members in pairs)
            kernel, _, _, slope = stream.pair(*arguments, values[0], order=1)
            values = np.stack([kernel, slope * values[1]])
        return values[list(self.rows)]

    @property
    def _stream(self) -> Any:
        """What a hidden layer carries on, None where it is the stream itself."""
        hidden = self.layer <= self.network.depth
        return network_functions(self.network, 1).stream if hidden else None

    def diagonal(self, own: np.ndarray) -> np.ndarray:
        """K^(layer), and the response of variances, which is not that of covariances."""
        diagonals, stream = [own[self.layer]] * 2, self._stream
        if 1 in self.rows:
            gains = variance_gains(self.network, own, 1)
            skips = skip_gains(self.network, layer_coefficients(self.network, 1).skips, 1, own)
            diagonals[1] = responses(skips, gains)[1][self.layer]
        if stream is not None:
            kernel, slope = stream.own(own[self.layer], 1)
            diagonals = [kernel, slope * diagonals[1]]
        return np.stack([diagonals[row] for row in self.rows])

    def factors(self, own: np.ndarray) -> np.ndarray:
        """√K^(layer), divided by √K^(0) for responses and odd kernels."""
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = np.sqrt(own[self.layer] / own[0])
        root = np.sqrt(own[self.layer])
        return np.stack(
            [
                gain if row == 1 or odd else root
                for row, odd in zip(self.rows, self.odd, strict=True)
            ]
        )


@dataclass(frozen=True)
class TangentRecursion:
    """Θ^(L+1) of pairs of inputs."""

    network: DeepNetwork
    # Everything if left out.
    trained: Trained | None = field(default=None, compare=False)
    odd: ClassVar[tuple[bool, ...]] = (False,)

    @cached_property
    def _trained(self) -> Trained:
        return Trained.everything(self.network) if self.trained is None else self.trained

    def own(self, K0: np.ndarray) -> np.ndarray:
        """K^(0), ..., K^(L+1) and Θ^(L+1), shape (L + 3, P)."""
        K = variances(self.network, K0, 1)[1]
        skips = layer_coefficients(self.network, 1).skips
        skips = skip_gains(self.network, skips, 1, K, K, K)
        gains = slope_gains(self.network, K, 1)
        theta = tangents(skips, gains, own_of_inputs(self.network, self._trained, K, 1))
        return np.concatenate([K, theta[-1:]])

    def pairs(self, own: np.ndarray, K0: np.ndarray, pairs: Pairs) -> np.ndarray:
        """The recursion over the layers."""
        return output_tangents(self.network, self._trained, own[:-1], own[-1], K0, pairs)[1:]

    def diagonal(self, own: np.ndarray) -> np.ndarray:
        """Θ^(L+1)."""
        return own[-1:]

    def factors(self, own: np.ndarray) -> np.ndarray:
        """√Θ^(L+1)."""
        return np.sqrt(own[-1:])


# Quantities of two inputs that follow from their variances and covariance. ``own`` has what single
# inputs bring along in all layers, on its last axis; ``odd`` says which quantities vanish with the
# covariance, and ``factors``, (quantities, P), by which products of two inputs all are divided.
PairRecursion = OutputRecursion | TangentRecursion
