"""The orders 1/N and 1/N² of networks of one input, each quantity computed when first asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.finite import ratio, require_finite_layers
from fieldtheory.numerics.infinite_width.mean_field import MeanField
from fieldtheory.numerics.neurons.finite_width import at_second_order
from fieldtheory.numerics.neurons.interacting_neurons import SecondOrder
from fieldtheory.numerics.one_input import fluctuations
from fieldtheory.numerics.validity import warn_if_orders_are_close

# What there is if terms of order 1/N² are not resolved.
_WITHOUT = "; order=1 does without them"


@dataclass(frozen=True, eq=False)
class OneTheory:
    """Arrays over all layers, (L + 2,), or the hidden ones, (L + 1,), with their powers of 1/N.

    Parameters
    ----------
    mean_field : MeanField
        Of one variance and one network.

    Raises
    ------
    QuadratureError
        From a quantity of order 1/N² that is not resolved.

    Warns
    -----
    ValidityWarning
        Where the order 1/N² is not small.
    """

    mean_field: MeanField

    @property
    def network(self) -> LayeredNetwork:
        """The network with its width N."""
        return self.mean_field.network

    @cached_property
    def G11(self) -> np.ndarray:
        """Cov(C^(l), C^(m)), shape (L + 2, L + 2)."""
        field = self.mean_field
        C, K = field.limits_at_zero
        S22 = fluctuations.source_covariance(self.network, field.layers, K, C)
        chain = field.layers, field.moving_gains
        return fluctuations.kernel_covariance(*chain, S22, self.network.width)

    @cached_property
    def kernel_variance(self) -> np.ndarray:
        """Var K^(l)."""
        return fluctuations.accumulated_variance(self.mean_field.layers, self.G11)

    @cached_property
    def mean_shift(self) -> np.ndarray:
        """⟨C^(l)⟩ − C*^(l) to order 1/N."""
        field = self.mean_field
        arguments = field.layers, field.moving_gains, *field.limits_at_zero
        return fluctuations.mean_shift(self.network, *arguments) / self.network.width

    @property
    def four_point(self) -> np.ndarray:
        """V^(l), see `Solution.four_point`."""
        field = self.mean_field
        by_neurons = fluctuations.seen_by_neurons(
            self.network, field.layers, field.moving_gains, field.kernels
        )
        return self.network.width * self.kernel_variance + 2 * by_neurons

    @property
    def mean_shift_2(self) -> np.ndarray:
        """The term of ⟨C^(l)⟩ of order 1/N²."""
        self._require(0, "mean")
        return self._from_input(self._second.shift)

    @property
    def variance_2(self) -> np.ndarray:
        """The term of Var C^(l) of order 1/N²."""
        self._require(1, "variance")
        return self._from_input(self._second.variance)

    @property
    def third_cumulant(self) -> np.ndarray:
        """⟨(C^(l) − ⟨C^(l)⟩)³⟩ to order 1/N²."""
        self._require(2, "third cumulant")
        return self._from_input(self._second.third_cumulant)

    @property
    def four_point_2(self) -> np.ndarray:
        """The term of V^(l) of order 1/N."""
        self._require(1, "variance")
        return self.mean_field.variances[1][:-1] ** 2 * self._second.pairing / self.network.width

    @property
    def order_ratio(self) -> np.ndarray:
        """The larger of |v_2|/v_1 and |m_2|/(|m_1| + v_1/C*), with the terms v and m of C."""
        self._require(0, "mean")
        self._require(1, "variance")
        return self._ratio(self._second)

    @property
    def resummed(self) -> tuple[np.ndarray, np.ndarray]:
        """⟨C⟩ and Var C, see `Solution.resummed_variance`."""
        C, variance = self.mean_field.variances[0], np.diagonal(self.G11)
        return resummed(C, self.mean_shift, variance, self.mean_shift_2, self.variance_2)

    @cached_property
    def _resolved(self) -> tuple[SecondOrder, tuple[str, ...]]:
        """The coefficients of 1/N², and why its moments are not resolved; empty if they are."""
        field, variance = self.mean_field, self.network.width * np.diagonal(self.G11)
        chain = self.network, field.layers, field.limits_at_zero
        try:
            second, failures = at_second_order(*chain, variance)
        except QuadratureError as error:
            raise QuadratureError(f"at order 1/N²: {error}{_WITHOUT}") from None
        if not any(failures[:2]):
            warn_if_orders_are_close(self.network, self._ratio(second))
        return second, failures

    def _ratio(self, second: SecondOrder) -> np.ndarray:
        variance = np.diagonal(self.G11)
        size = np.abs(self.mean_shift) + ratio(variance, self.mean_field.variances[0])
        shift_2, variance_2 = (self._from_input(term) for term in (second.shift, second.variance))
        return np.maximum(ratio(np.abs(shift_2), size), ratio(np.abs(variance_2), variance))

    @property
    def _second(self) -> SecondOrder:
        return self._resolved[0]

    def _require(self, quantity: int, name: str) -> None:
        if failure := self._resolved[1][quantity]:
            raise QuadratureError(f"the {name} at order 1/N²: {failure}{_WITHOUT}")

    def _from_input(self, coefficients: np.ndarray) -> np.ndarray:
        """The terms of order 1/N² of the layers, and that of the input, which is fixed."""
        return np.append(0.0, coefficients) / self.network.width**2


def resummed(
    C: np.ndarray, shift: np.ndarray, variance: np.ndarray, shift_2: np.ndarray, more: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """⟨C⟩ and Var C from the logarithms of the first two moments, expanded to order 1/N².

    Parameters
    ----------
    C, shift, variance, shift_2, more : ndarray, shape (L + 2,)
        C*, and the terms of order 1/N and 1/N² of the mean and of the variance.

    Raises
    ------
    OverflowError
        If a moment exceeds the range of float64.
    """
    m1, m2, v1, v2 = (
        ratio(x, C**k) for x, k in ((shift, 1), (shift_2, 1), (variance, 2), (more, 2))
    )
    with np.errstate(over="ignore", invalid="ignore"):
        mean = C * np.exp(m1 + m2 - m1**2 / 2)
        spread = mean**2 * np.expm1(v1 + v2 - 2 * m1 * v1 - v1**2 / 2)
    require_finite_layers("resummed_mean", mean)
    require_finite_layers("resummed_variance", spread)
    return mean, spread
