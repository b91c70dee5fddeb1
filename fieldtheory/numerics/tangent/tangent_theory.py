"""The tangent kernels of what is said to be trained."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from fieldtheory.numerics.infinite_width import kernels, tangents
from fieldtheory.numerics.infinite_width.mean_field import MeanField
from fieldtheory.numerics.infinite_width.scaled_numbers import Scaled, scaled
from fieldtheory.numerics.infinite_width.scaled_theory import ScaledTheory
from fieldtheory.numerics.infinite_width.tangents import Trained
from fieldtheory.numerics.pair_maps import pair_map
from fieldtheory.numerics.pair_maps.pair_recursions import TangentRecursion
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

    def layers(self) -> np.ndarray:
        """Θ^(l), shape (..., L + 2) or (..., L + 2, P, P)."""
        field, own = self.mean_field, self._own()
        K = field.variances
        if not field.has_matrix:
            return field.assembled(own, None)
        sources, kernel = field.covariances
        if self.trained is not None:
            arguments = K[1], kernel, field.pairs
            sources = tangents.own_of_pairs(field.network, self.trained, *arguments)
        same = kernels.identical(K[0][0], kernel[0], field.pairs)
        of_same = own[..., field.pairs[0]]
        chain = field.layers.skips, field.pair_gains, sources
        return field.assembled(own, tangents.tangents(*chain, same, of_same))

    def output(self) -> np.ndarray:
        """Θ^(L+1) alone, which takes memory for a few matrices, shape (...) or (..., P, P)."""
        field, own = self.mean_field, self._own()[-1]
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
            self.layers()
        return tangent

    def scaled(self, kernels_stay: bool) -> Scaled:
        """Θ^(l) as `layers` gives it, whatever its size.

        Parameters
        ----------
        kernels_stay : bool
            Whether the kernels stay in float64, see `scaled_theory.stays_in_float64`.
        """
        if kernels_stay:
            with suppress(ArithmeticError):
                return scaled(self.layers())
        return self.beyond.tangents(self._whole)

    @property
    def _whole(self) -> Trained:
        network = self.mean_field.network
        return Trained.everything(network) if self.trained is None else self.trained

    def _own(self) -> np.ndarray:
        """Θ^(l) of single inputs, in the shape of their variances."""
        field = self.mean_field
        C, K = field.variances
        slopes = tangents.slope_gains(field.network, K, field.trailing)
        if self.trained is not None:
            C = tangents.own_of_inputs(field.network, self.trained, K, field.trailing)
        return tangents.tangents(field.layers.skips, slopes, C)
