"""Functions of one neuron as coefficients in the Hermite polynomials of h/√K*, for smooth φ.

P_j lowers the order by 2j and multiplies by powers of the correlation of the two layers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from fieldtheory.networks.coefficients import LayerCoefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.numerics.neurons.hermite_modes import Modes, Observable, observables, square_of
from fieldtheory.numerics.neurons.interacting_neurons import of_the_mean, raising


class ModeStep(NamedTuple):
    """From the modes of one layer to those of the next.

    Parameters
    ----------
    modes : Modes
    correlation, variance : float
        See `interacting_neurons.Step`.
    powers : ndarray, shape (n,)
        cⁿ.
    """

    modes: Modes
    correlation: float
    variance: float
    powers: np.ndarray

    def unit(self, order: int) -> np.ndarray:
        """The Hermite polynomial of this order."""
        return self.modes.unit(order)

    def to_next(self, j: int, u: np.ndarray) -> np.ndarray:
        """P_jᵀ u, or of all columns of u: h_n to √((n+2j)!/n!) cⁿ/(j! (2K')^j) h_{n+2j}."""
        columns = (slice(None), *[None] * (u.ndim - 1))
        if j == 0:
            return self.powers[columns] * u
        orders = self.modes.orders
        shift = 2 * j // int(orders[1])
        factors = raising(len(orders), int(orders[1]), j) * self.powers[:-shift]
        found = np.zeros_like(u)
        found[shift:] = (of_the_mean(self, j) * factors)[columns] * u[:-shift]
        return found


def in_modes(
    network: LayeredNetwork, layers: LayerCoefficients, K: np.ndarray, count: int
) -> Iterator[tuple[Observable, ModeStep | None]]:
    """The observable of every layer l = 0, ..., L and the step to the next one.

    Parameters
    ----------
    network : LayeredNetwork
    layers : LayerCoefficients
    K : ndarray, shape (L + 1,)
        K*^(l) of the signals.
    count : int
        Hermite polynomials of orders below.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        correlations = np.where(K[1:] > 0, network.skip_scales * np.sqrt(K[:-1] / K[1:]), 0.0)
    for l, D in enumerate(observables(square_of(network), layers.weights[1:], K, count)):
        if l == network.depth:
            yield D, None
        else:
            assert isinstance(D.space, Modes)
            c, modes = float(correlations[l]), D.space
            # Orders left out are seen by later layers times cⁿ, and a derivative by n more.
            left_out = D.unseen * count * abs(c) ** count
            D = D._replace(missed=max(D.missed, left_out))
            yield D, ModeStep(modes, c, float(K[l + 1]), c**modes.orders)
