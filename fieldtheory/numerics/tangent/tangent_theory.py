"""The tangent kernels of what is said to be trained, and the fields that results have of them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fieldtheory.numerics.infinite_width import kernels, scaled_theory, tangents
from fieldtheory.numerics.infinite_width.layer_functions import network_functions
from fieldtheory.numerics.infinite_width.mean_field import MeanField
from fieldtheory.numerics.infinite_width.scaled_numbers import Scaled, scaled
from fieldtheory.numerics.infinite_width.scaled_theory import ScaledTheory
from fieldtheory.numerics.infinite_width.tangents import Trained
from fieldtheory.numerics.pair_maps import pair_map
from fieldtheory.numerics.pair_maps.pair_recursions import TangentRecursion
from fieldtheory.numerics.recursion import residual_kernel
from fieldtheory.numerics.result import Computed, field
from fieldtheory.numerics.symmetric_matrices import assembled


@dataclass(frozen=True, eq=False)
class TangentTheory:
    """Θ^(l) of a network for given inputs.

    Parameters
    ----------
    mean_field : MeanField
    beyond : ScaledTheory
        The same layers, in numbers of any size.
    trained : Trained, optional
        Everything at rate one if left out, where D^(l) are the residual kernels to the last bit.
    """

    mean_field: MeanField
    beyond: ScaledTheory
    trained: Trained | None = None

    @cached_property
    def layers(self) -> np.ndarray:
        """Θ^(l), shape (..., L + 2) or (..., L + 2, P, P)."""
        field, own = self.mean_field, self._own
        if not field.has_matrix:
            return field.assembled(own, None)
        C, K = field.variances
        sources, kernel = field.covariances
        if self.trained is not None:
            first, second = (K[:-1][..., members] for members in field.pairs)
            averages = network_functions(field.network).covariance(first, second, kernel[:-1])
            factors = self.trained.shaped(1, K.ndim - 2)
            sources = residual_kernel(*factors, np.concatenate([kernel[:1], averages]))
        same = kernels.identical(C[0], kernel[0], field.pairs)
        chain = field.layers.skips, field.pair_gains, sources
        return field.assembled(own, tangents.tangents(*chain, same, own[..., field.pairs[0]]))

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
    def scaled(self) -> Scaled:
        """Θ^(l) as in `layers`, whatever its size."""
        field = self.mean_field
        if scaled_theory.stays_in_float64(lambda: field.kernels, field.layer_axis):
            with suppress(ArithmeticError):
                return scaled(self.layers)
        return self.beyond.tangents(self._whole)

    @property
    def _whole(self) -> Trained:
        network = self.mean_field.network
        return Trained.everything(network) if self.trained is None else self.trained

    @cached_property
    def _own(self) -> np.ndarray:
        """Θ^(l) of single inputs, in the shape of their variances."""
        field = self.mean_field
        C, K = field.variances
        slopes = tangents.slope_gains(field.network, K, field.trailing)
        if self.trained is not None:
            C = tangents.own_of_inputs(field.network, self.trained, K, field.trailing)
        return tangents.tangents(field.layers.skips, slopes, C)


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
        return self._tangents.scaled.log

    @field
    def tangent_signs(self) -> np.ndarray:
        """1, 0 or −1, the sign of Θ^(l), also where Θ^(l) exceeds float64."""
        return np.sign(self._tangents.scaled.mantissa)
