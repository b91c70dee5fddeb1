"""Order 1/N of networks whose neurons' paths through the layers matter: one matrix in a branch."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fieldtheory.networks.coefficients import layer_coefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics import shift_response
from fieldtheory.numerics.infinite_width.mean_field import MeanField
from fieldtheory.numerics.one_input import OneTheory
from fieldtheory.numerics.recursion import accumulate
from fieldtheory.numerics.several_inputs.pair_theory import PairTheory
from fieldtheory.numerics.validity import LARGE, warn_if_spread

# Fluctuations of kernels, relative to their mean, from which on the next order shows whether the
# expansion holds, up to those where it does not.
_DOUBTFUL = 0.2


@dataclass(frozen=True, eq=False)
class NeuronPaths:
    """The fluctuations of one input or several, from the theory of either."""

    # One, without batch axes.
    network: LayeredNetwork
    field: MeanField
    # Show progress bars on stderr for several inputs.
    progress: bool = False

    @cached_property
    def one(self) -> OneTheory:
        """That of one input, with the order 1/N²."""
        return OneTheory(self.network, self.field)

    @cached_property
    def pairs(self) -> PairTheory:
        """That of several inputs."""
        return PairTheory.of(self.network, self.field, self.progress)

    @property
    def of_inputs(self) -> OneTheory | PairTheory:
        """The one that K0 asks for."""
        return self.pairs if self.field.has_matrix else self.one

    def alone(self, i: int) -> OneTheory:
        """Input i of several."""
        field = MeanField(self.network, self.field.input_kernel[i, i])
        return OneTheory(self.network, field)

    @cached_property
    def shift_of_variances(self) -> np.ndarray:
        """N times the mean shift of each of several inputs with itself, (L + 2, P)."""
        each = (self.alone(i).mean_shift for i in range(self.field.input_kernel.shape[-1]))
        return self.network.width * np.stack([*each], axis=-1)

    @cached_property
    def mean_shifts(self) -> tuple[np.ndarray, np.ndarray]:
        """⟨C^(l)⟩ − C*^(l) and its error."""
        if self.field.has_matrix:
            return self.pairs.shift(self.shift_of_variances)
        return self.one.mean_shift, np.zeros_like(self.one.mean_shift)

    @property
    def kernel_shift(self) -> np.ndarray:
        """⟨K^(l)⟩ − K*^(l), by K^(l) = γ_l² K^(l-1) + C^(l), exact for the means."""
        return self.accumulated(self.mean_shifts[0])

    @property
    def kernel_shift_2(self) -> np.ndarray:
        """The term of ⟨K^(l)⟩ of order 1/N²."""
        return self.accumulated(self.one.mean_shift_2)

    def accumulated(self, residual: np.ndarray) -> np.ndarray:
        """What changes of the C^(l) add up to in the K^(l)."""
        return accumulate(layer_coefficients(self.network).skips, residual)

    def response_shifts(self, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """∂ of the mean shifts of C^(l), (2, L + 2, ...), and of K^(l), (2, L + 1, ...)."""
        field = self.field
        if field.has_matrix:
            parts = self.shift_of_variances, eta
            found = shift_response.of_pairs(self.network, field.input_kernel, *parts)
        else:
            K0 = field.input_kernel[None]
            shift = shift_response.of_one(self.network, K0, eta[:, None])[:, 0]
            found = shift, np.zeros_like(shift)
        return np.stack(found), np.stack([self.accumulated(each)[:-1] for each in found])

    def spread(self, kernels: np.ndarray) -> np.ndarray:
        """The relative standard deviations of the kernels that layers see; see `warn_if_spread`."""
        field, variance = self.field, self.of_inputs.kernel_variance
        own = np.diagonal(variance, axis1=1, axis2=2) if field.has_matrix else variance
        spread = warn_if_spread(field, variance, kernels, own)
        if field.has_matrix and _DOUBTFUL < spread.max() <= LARGE:
            # The order 1/N² of one input shows how far the expansion holds.
            with suppress(ArithmeticError):
                _ = self.alone(int(spread[-1].diagonal().argmax())).order_ratio
        return spread
