"""The tangent kernels of what is said to be trained, and the fields that results have of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fieldtheory.numerics.infinite_width import gains, kernels, tangents
from fieldtheory.numerics.infinite_width.block_functions import network_functions
from fieldtheory.numerics.infinite_width.logarithms import Logarithms, log
from fieldtheory.numerics.infinite_width.mean_field import MeanField
from fieldtheory.numerics.infinite_width.tangents import Trained
from fieldtheory.numerics.pair_maps import pair_map
from fieldtheory.numerics.pair_maps.pair_recursions import TangentRecursion
from fieldtheory.numerics.result import Computed, field
from fieldtheory.numerics.symmetric_matrices import assembled


@dataclass(frozen=True, eq=False)
class TangentTheory:
    """Θ^(l) of a network for given inputs."""

    mean_field: MeanField
    # Everything at rate one if left out, where D^(l) are the residual kernels to the last bit.
    trained: Trained | None = None

    @cached_property
    def layers(self) -> np.ndarray:
        """Θ^(l), shape (..., L + 2) or (..., L + 2, P, P)."""
        field, own = self.mean_field, self._carried(self._own)
        if not field.has_matrix:
            return field.assembled(own, None)
        kernel = field.covariances[1]
        same = kernels.identical(field.variances[0][0], kernel[0], field.pairs)
        chain = field.pair_skips, field.pair_gains, self._pair_sources
        first = self._own[..., field.pairs[0]]
        pair = self._carried(tangents.tangents(*chain, same, first), pairs=True)
        return field.assembled(own, pair)

    def _carried(self, theta: np.ndarray, pairs: bool = False) -> np.ndarray:
        """Θ behind the norm of a stream that is normalised, at fixed variances."""
        field = self.mean_field
        if (stream := field.carried()) is None:
            return theta
        K = field.pair_arguments if pairs else (field.variances[1],) * 3
        slope = stream.pair(*(each[:-1] for each in K), order=1)[3]
        return np.concatenate([slope * theta[:-1], theta[-1:]])

    @cached_property
    def _pair_sources(self) -> np.ndarray:
        """D^(l) of pairs of inputs."""
        field = self.mean_field
        network, K = field.network, field.variances[1]
        if self.trained is None and not network.signal_names:
            return field.covariances[0]
        functions = network_functions(network, 1, K.ndim - 2)
        arguments = field.pair_arguments
        averages = functions.every("covariance", *(each[:-1] for each in arguments))
        averages = np.concatenate([arguments[2][:1], averages])
        shaped = self._whole.shaped(1, K.ndim - 2)
        return tangents.sources(network, shaped, averages, 1, *arguments)

    def parts(self, alone: list[Trained]) -> np.ndarray:
        """What each of several and each layer adds to Θ^(L+1), (..., kinds, L + 2, ...)."""
        field, found = self.mean_field, []

        def passed(skips: np.ndarray, gain: np.ndarray) -> np.ndarray:
            after = np.cumprod((skips + gain)[:0:-1], axis=0)[::-1]
            return np.concatenate([after, np.ones_like(after[:1])])

        own = passed(self._fixed_skips, self._slopes)
        pair = field.has_matrix and passed(field.pair_skips, field.pair_gains)
        for trained in alone:
            each = TangentTheory(field, trained)
            added = field.has_matrix and each._pair_sources * pair
            found.append(field.assembled(each._own_sources * own, added))
        return np.stack(found, axis=-4 if field.has_matrix else -2)

    @cached_property
    def output(self) -> np.ndarray:
        """Θ^(L+1), in memory for a few matrices if alone, shape (...) or (..., P, P)."""
        field = self.mean_field
        own = self._own[-1]
        if not field.has_matrix:
            return own
        K, batch = field.variances[1], own.shape[:-1]
        if batch or not (own > 0).all():
            arguments = K, own, field.pair_inputs, field.pairs
            pairs = tangents.output_tangents(field.network, self._whole, *arguments)[1]
            tangent = assembled(own, pairs, field.pairs)
        else:
            tangent = np.empty((1, *field.input_kernel.shape))
            maps = pair_map.PairMaps(TangentRecursion(field.network, self.trained))
            maps.fill(tangent, field.input_kernel, np.concatenate([K, own[None]]))
            np.fill_diagonal(tangent := tangent[0], own)
        if not np.isfinite(tangent).all():
            # The recursion that keeps the layers says which of them.
            _ = self.layers
        return tangent

    @cached_property
    def logarithms(self) -> tuple[np.ndarray, np.ndarray]:
        """ln|Θ^(l)| and the signs of Θ^(l), of any size for ReLU and its relatives."""
        field = self.mean_field
        if (lines := network_functions(field.network).lines) is not None:
            return Logarithms(field, lines).tangents(self._whole)
        return log(self.layers), np.sign(self.layers)

    @cached_property
    def _whole(self) -> Trained:
        network = self.mean_field.network
        return Trained.everything(network) if self.trained is None else self.trained

    @cached_property
    def _slopes(self) -> np.ndarray:
        """a_l ⟨φ'²⟩ of single inputs."""
        field = self.mean_field
        return tangents.slope_gains(field.network, field.variances[1], field.has_matrix)

    @property
    def _fixed_skips(self) -> np.ndarray:
        """γ_l² ∂s/∂K_αβ of single inputs at fixed variances."""
        field, K = self.mean_field, self.mean_field.variances[1]
        return gains.skip_gains(field.network, field.layers.skips, field.has_matrix, K, K, K)

    @cached_property
    def _own_sources(self) -> np.ndarray:
        """D^(l) of single inputs."""
        field = self.mean_field
        C, K = field.variances
        if self.trained is None and not field.network.signal_names:
            return C
        return tangents.own_of_inputs(field.network, self._whole, K, field.has_matrix)

    @cached_property
    def _own(self) -> np.ndarray:
        """Θ^(l) of single inputs, in the shape of their variances."""
        return tangents.tangents(self._fixed_skips, self._slopes, self._own_sources)


class WithTangents(Computed):
    """A result that has fields of tangent kernels."""

    @property
    def _tangents(self) -> TangentTheory:
        raise NotImplementedError

    @field
    def tangent_kernels(self) -> np.ndarray:
        """Θ^(l), with Θ^(0) = D^(0) and Θ^(l) = (γ_l² + a_l ⟨φ'φ'⟩) Θ^(l-1) + D^(l)."""
        return self._tangents.layers

    @field
    def output_tangent_kernel(self) -> np.ndarray:
        """Θ^(L+1) = a_{L+1} ⟨φ'φ'⟩ Θ^(L) + D^(L+1)."""
        if "tangent_kernels" in vars(self):
            return self._tangents.mean_field.at_output(self.tangent_kernels)
        return self._tangents.output

    @field
    def log_tangent_kernels(self) -> np.ndarray:
        """ln|Θ^(l)|, also where Θ^(l) exceeds float64."""
        return self._tangents.logarithms[0]

    @field
    def tangent_signs(self) -> np.ndarray:
        """1, 0 or −1, the sign of Θ^(l), also where Θ^(l) exceeds float64."""
        return self._tangents.logarithms[1]
