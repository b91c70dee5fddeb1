"""What leaves float64: logarithms of kernels and responses, and decorrelations with digits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fieldtheory.numerics.infinite_width.kernels import identical
from fieldtheory.numerics.infinite_width.mean_field import MeanField
from fieldtheory.numerics.infinite_width.scaled_layers import (
    ScaledLayers,
    ScaledPairs,
    log_responses,
    scaled_layers,
    scaled_pairs,
)
from fieldtheory.numerics.infinite_width.scaled_numbers import Scaled
from fieldtheory.numerics.infinite_width.tangents import Trained

# Kernels below lose digits in float64.
_SMALLEST = 1e-290


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
            own.kernels.log, self.mean_field.has_matrix and pairs.log_kernels
        )

    @property
    def log_response(self) -> np.ndarray:
        """ln|∂K^(l)/∂K^(0)|, shape (..., L + 1) or (..., L + 1, P, P)."""
        layers, pairs = self._layers
        depth = self.mean_field.network.depth
        own = log_responses(layers.gains, depth)
        pair = self.mean_field.has_matrix and log_responses(pairs.gains, depth)
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
        if (self.mean_field.own_inputs == 0).any():
            raise ValueError("decorrelation needs positive variances, got 0 in K0")
        layers, pairs = self._layers
        if (layers.kernels.mantissa == 0).any():
            raise ValueError("decorrelation needs positive variances, got 0 in a layer")
        return self.mean_field.assembled(
            np.zeros(layers.kernels.mantissa.shape), pairs.decorrelations
        )

    @cached_property
    def _layers(self) -> tuple[ScaledLayers, ScaledPairs | Any]:
        """The layers of single inputs and of pairs, None for one input."""
        field = self.mean_field
        layers = scaled_layers(field.network, field.own_inputs, field.trailing)
        if not field.has_matrix:
            return layers, None
        return layers, scaled_pairs(layers, field.own_inputs, field.pair_inputs, field.pairs)


def of_array(values: np.ndarray) -> np.ndarray:
    """ln|x|, −∞ of zero."""
    with np.errstate(divide="ignore"):
        return np.log(np.abs(values))


def stays_in_float64(compute: Callable[[], np.ndarray], layer_axis: int) -> bool:
    """Whether kernels or responses can be computed in float64 and lose no digits there.

    Covariances of independent inputs of odd φ are zero from the first layer on.
    """
    try:
        sizes = np.abs(np.moveaxis(compute(), layer_axis, 0))
    except ArithmeticError:
        return False
    vanishes = (sizes[1:] == 0) & (sizes[:-1] > 0)
    return not (((sizes > 0) & (sizes < _SMALLEST)).any() or vanishes.any())
