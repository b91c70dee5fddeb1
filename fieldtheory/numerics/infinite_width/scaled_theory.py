"""What leaves float64: logarithms of kernels and responses, and decorrelations with digits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fieldtheory.numerics.infinite_width.mean_field import MeanField
from fieldtheory.numerics.kernels import identical
from fieldtheory.numerics.layer_averages import angles
from fieldtheory.numerics.overflow import (
    decorrelations,
    logarithms,
    unlimited,
    wave_averages,
    wave_layers,
)
from fieldtheory.numerics.overflow.scaled_numbers import Scaled
from fieldtheory.numerics.overflow.scaled_pairs import scaled_pairs
from fieldtheory.numerics.tangents import Trained


@dataclass(frozen=True, eq=False)
class ScaledTheory:
    """The layers in numbers of any size, each quantity found when first asked for.

    Parameters
    ----------
    mean_field : MeanField
        Whose kernels, which float64 may not hold, are not asked for.
    """

    mean_field: MeanField

    @property
    def log_kernels(self) -> np.ndarray:
        """ln|K^(l)|, shape (..., L + 2) or (..., L + 2, P, P)."""
        own, pairs = self._layers
        return self.mean_field.assembled(
            own.log_kernels, self.mean_field.has_matrix and pairs.log_kernels
        )

    @property
    def log_response(self) -> np.ndarray:
        """ln|∂K^(l)/∂K^(0)|, shape (..., L + 1) or (..., L + 1, P, P)."""
        layers, pairs = self._layers
        depth = self.mean_field.network.depth
        own = logarithms.log_responses(layers.gains, depth)
        pair = self.mean_field.has_matrix and logarithms.log_responses(pairs.gains, depth)
        return self.mean_field.assembled(own, pair)

    def tangents(self, trained: Trained) -> Scaled:
        """Θ^(l), shape (..., L + 2) or (..., L + 2, P, P)."""
        field = self.mean_field
        layers, pairs = self._layers
        own = layers.tangents(trained)
        if not field.has_matrix:
            return Scaled(*(field.assembled(part, None) for part in own))
        first = field.pairs[0]
        same = identical(field.own_inputs, field.pair_inputs, field.pairs)
        parts = zip(own, pairs.tangents(trained), strict=True)
        return Scaled(
            *(field.assembled(one, np.where(same, one[..., first], pair)) for one, pair in parts)
        )

    @property
    def decorrelation(self) -> np.ndarray:
        """1 − K_αβ^(l)/√(K_αα^(l) K_ββ^(l)), shape (..., L + 2, P, P)."""
        field = self.mean_field
        own = field.own_inputs
        first, second = (own[..., index] for index in field.pairs)
        if (own == 0).any():
            raise ValueError("decorrelation needs positive variances, got 0 in K0")
        initial = angles.of_input(first, second, field.pair_inputs)
        found = decorrelations.of_pairs(self._own, initial, field.pairs)
        return field.assembled(np.zeros(self._own.kernels.mantissa.shape), found)

    @cached_property
    def _own(self) -> logarithms.ScaledLayers:
        field = self.mean_field
        return logarithms.scaled_layers(field.network, field.own_inputs, field.trailing)

    @cached_property
    def _layers(self) -> tuple[Any, Any]:
        """The layers of single inputs and of pairs, None for one input."""
        field = self.mean_field
        network, own, inputs = field.network, field.own_inputs, field.trailing
        layers: Any
        of_pairs: Any = scaled_pairs
        if not unlimited.needs_unlimited(network):
            layers = self._own
        elif wave_averages.has_growing_waves(network):
            layers = wave_layers.wave_layers(network, own, inputs)
            of_pairs = wave_layers.wave_pairs
        else:
            layers = unlimited.unlimited_layers(network, own, inputs)
            of_pairs = unlimited.unlimited_pairs
        if not field.has_matrix:
            return layers, None
        return layers, of_pairs(layers, own, field.pair_inputs, field.pairs)
