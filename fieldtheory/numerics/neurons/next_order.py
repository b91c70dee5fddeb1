"""The order 1/N² of one input, or why parts of it are not found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.networks.coefficients import LayerCoefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.finite import ratio
from fieldtheory.numerics.neurons.finite_width import at_second_order
from fieldtheory.numerics.neurons.interacting_neurons import SecondOrder

# What there is if terms of order 1/N² are not found.
_WITHOUT = "; order=1 does without them"


@dataclass(frozen=True, eq=False)
class NextOrder:
    """The coefficients of 1/N² of all layers, shapes (L + 2,).

    Parameters
    ----------
    coefficients : SecondOrder
    failures : tuple of str
        Why its mean, variance and third cumulant are not resolved; empty if they are.

    Raises
    ------
    QuadratureError
        From a coefficient that is not resolved.
    """

    coefficients: SecondOrder
    failures: tuple[str, ...]

    @classmethod
    def of(
        cls,
        network: LayeredNetwork,
        layers: LayerCoefficients,
        kernels: tuple[np.ndarray, np.ndarray],
        variance: np.ndarray,
    ) -> NextOrder:
        """That of a network, with the arguments of `at_second_order`."""
        try:
            return cls(*at_second_order(network, layers, kernels, variance))
        except QuadratureError as error:
            raise QuadratureError(f"at order 1/N²: {error}{_WITHOUT}") from None

    @property
    def has_moments(self) -> bool:
        """Whether the mean and the variance are resolved."""
        return not any(self.failures[:2])

    @property
    def shift(self) -> np.ndarray:
        """That of ⟨C^(l)⟩."""
        self._require(0, "mean")
        return _from_input(self.coefficients.shift)

    @property
    def variance(self) -> np.ndarray:
        """That of Var C^(l)."""
        self._require(1, "variance")
        return _from_input(self.coefficients.variance)

    @property
    def third_cumulant(self) -> np.ndarray:
        """That of ⟨(C^(l) − ⟨C^(l)⟩)³⟩."""
        self._require(2, "third cumulant")
        return _from_input(self.coefficients.third_cumulant)

    @property
    def pairing(self) -> np.ndarray:
        """That of ⟨h_i² ; h_j²⟩/K² of the hidden layers, shape (L + 1,)."""
        self._require(1, "variance")
        return self.coefficients.pairing

    def _require(self, quantity: int, name: str) -> None:
        if self.failures[quantity]:
            raise QuadratureError(f"the {name} at order 1/N²: {self.failures[quantity]}{_WITHOUT}")


def ratio_of_orders(
    C: np.ndarray, first: tuple[np.ndarray, np.ndarray], second: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """The larger of |v_2|/v_1 and |m_2|/(|m_1| + v_1/C*) of every layer.

    Parameters
    ----------
    C : ndarray
        C*.
    first, second : pair of ndarray
        The terms m of ⟨C⟩ and v of Var C of both orders.
    """
    (shift, variance), (shift_2, variance_2) = first, second
    size = np.abs(shift) + ratio(variance, C)
    return np.maximum(ratio(np.abs(shift_2), size), ratio(np.abs(variance_2), variance))


def _from_input(of_layers: np.ndarray) -> np.ndarray:
    """The kernel of the input does not fluctuate."""
    return np.append(0.0, of_layers)
