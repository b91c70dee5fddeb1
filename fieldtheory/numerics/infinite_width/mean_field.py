"""The network at infinite width: its kernels, and the gains by which layers hand on what moves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fieldtheory.networks.coefficients import LayerCoefficients, layer_coefficients
from fieldtheory.networks.family import DeepNetwork
from fieldtheory.numerics.infinite_width import gains, kernels
from fieldtheory.numerics.infinite_width.block_functions import network_functions
from fieldtheory.numerics.infinite_width.homogeneous import exactly_parallel
from fieldtheory.numerics.symmetric_matrices import assembled


@dataclass(frozen=True, eq=False)
class MeanField:
    """Kernels and gains of all layers, each found when first asked for, layer axis first.

    The last axis counts the inputs, or their pairs α < β, if the kernel of the input is a matrix.
    """

    network: DeepNetwork
    # (...) or (..., P, P): variances, or covariance matrices.
    input_kernel: np.ndarray

    @property
    def has_matrix(self) -> bool:
        """Whether there are pairs of inputs: one more axis, `trailing` of `layer_coefficients`."""
        return self.input_kernel.ndim > 1

    @cached_property
    def pairs(self) -> tuple[Any, ...]:
        """α and β of the pairs of different inputs."""
        return np.triu_indices(self.input_kernel.shape[-1], 1)

    @property
    def own_inputs(self) -> np.ndarray:
        """Variances of the single inputs, shape (...) or (..., P)."""
        K0 = self.input_kernel
        return np.diagonal(K0, axis1=-2, axis2=-1) if self.has_matrix else K0

    @property
    def pair_inputs(self) -> np.ndarray:
        """Covariances of the pairs of inputs as φ sees them, shape (..., pairs)."""
        first, second = (self.own_inputs[..., members] for members in self.pairs)
        return exactly_parallel(first, second, self.input_kernel[..., *self.pairs])

    @cached_property
    def layers(self) -> LayerCoefficients:
        """Coefficients that broadcast with `variances`."""
        batch = max(len(self.network.batch_shape), self.own_inputs.ndim - self.has_matrix)
        return layer_coefficients(self.network, self.has_matrix, batch)

    @cached_property
    def variances(self) -> tuple[Any, ...]:
        """C*^(l) and K^(l) of single inputs, shape (L + 2, ...) or (L + 2, ..., P)."""
        return kernels.variances(self.network, self.own_inputs, self.has_matrix)

    @cached_property
    def covariances(self) -> tuple[Any, ...]:
        """C*^(l) and K^(l) of pairs of inputs, shape (L + 2, ..., pairs)."""
        return kernels.covariances(self.network, self.variances, self.pair_inputs, self.pairs)

    @cached_property
    def own_gains(self) -> np.ndarray:
        """a_l M'(K^(l-1)) of single inputs, in the shape of `variances`."""
        return gains.variance_gains(self.network, self.variances[1], self.has_matrix)

    @cached_property
    def pair_gains(self) -> np.ndarray:
        """a_l ⟨φ'φ'⟩ of pairs of inputs, in the shape of `covariances`."""
        own, joint = self.variances[1], self.covariances[1]
        return gains.covariance_gains(self.network, own, joint, self.pairs)

    @cached_property
    def own_skips(self) -> np.ndarray:
        """γ_l² ∂s/∂K of single inputs."""
        skips, K = self.layers.skips, self.variances[1]
        return gains.skip_gains(self.network, skips, self.has_matrix, K)

    @cached_property
    def pair_skips(self) -> np.ndarray:
        """γ_l² ∂s/∂K_αβ of pairs of inputs."""
        return gains.skip_gains(self.network, self.layers.skips, 1, *self.pair_arguments)

    @property
    def pair_arguments(self) -> tuple[np.ndarray, ...]:
        """K_αα^(l), K_ββ^(l) and K_αβ^(l) of pairs of inputs."""
        first, second = (self.variances[1][..., members] for members in self.pairs)
        return first, second, self.covariances[1]

    @cached_property
    def moving_gains(self) -> np.ndarray:
        """`own_gains`, zero by variances that vanish, as they do at any width."""
        moving = self.own_gains.copy()
        moving[1:][self.variances[1][:-1] == 0] = 0.0
        return moving

    def curvatures(self, K: np.ndarray) -> np.ndarray:
        """a_l M''(K) of variances before the layers 1, ..., L + 1."""
        functions = network_functions(self.network, self.has_matrix, K.ndim - 1 - self.has_matrix)
        return gains.weighted(self.network, functions.every("curvature", K), self.has_matrix)[1:]

    @property
    def residual_kernels(self) -> np.ndarray:
        """C*^(l), shape (..., L + 2) or (..., L + 2, P, P)."""
        return self.assembled(self.variances[0], self.has_matrix and self.covariances[0])

    @property
    def kernels(self) -> np.ndarray:
        """s(K^(l)) and K^(L+1), shape (..., L + 2) or (..., L + 2, P, P)."""
        own = self.variances[1]
        pair: Any = self.has_matrix and self.covariances[1]
        if (stream := self.carried()) is not None:
            own = np.concatenate([stream.own(own[:-1])[0], own[-1:]])
            if self.has_matrix:
                inner = (each[:-1] for each in self.pair_arguments)
                pair = np.concatenate([stream.pair(*inner)[0], pair[-1:]])
        return self.assembled(own, pair)

    def carried(self) -> Any:
        """s as an `Entry` for the layers 0, ..., L, None where s(K) = K."""
        batch = self.variances[0].ndim - 1 - self.has_matrix
        return network_functions(self.network, self.has_matrix, batch).stream

    def assembled(self, own: np.ndarray, pair: Any, lower: Any = None) -> np.ndarray:
        """Layer axis behind the batch axes, pairs as symmetric matrices."""
        if self.has_matrix:
            return np.moveaxis(assembled(own, pair, self.pairs, lower), 0, -3)
        return np.moveaxis(own, 0, -1)

    def at_output(self, layers: np.ndarray) -> np.ndarray:
        """The entry of the output of what `assembled` gives."""
        return (layers[..., -1, :, :] if self.has_matrix else layers[..., -1]).copy()
