"""Where the expansion in 1/N is doubtful, or digits are missing, as warnings."""

from __future__ import annotations

import warnings

import numpy as np

from fieldtheory import validation
from fieldtheory.networks.family import DeepNetwork, LayeredNetwork
from fieldtheory.numerics.finite import ratio

# Standard deviations relative to means, and terms of order 1/N² to those of order 1/N, from which
# on the expansion is doubtful.
LARGE, _CLOSE_ORDERS = 0.5, 0.1


class ValidityWarning(UserWarning):
    """A result leaves the range in which an expansion in 1/N holds, or float64 has its digits.

    Examples
    --------
    >>> import warnings
    >>> import fieldtheory as ft
    >>> with warnings.catch_warnings(record=True) as given:
    ...     warnings.simplefilter("always")
    ...     _ = ft.solve(ft.ResidualNetwork(depth=5, activation="relu", width=2), 0.05).G11
    >>> given[0].category is ValidityWarning
    True
    """


def warn_if_not_small(network: DeepNetwork, variance: np.ndarray, mean: np.ndarray) -> float:
    """Warn if kernels of some layer fluctuate by half of their mean; by how much they do."""
    relative = ratio(np.sqrt(np.maximum(variance, 0.0)), mean)
    if relative.max() > LARGE:
        warnings.warn(
            f"kernels fluctuate by {relative.max():.2g} of their mean at depth "
            f"{network.depth} and width {network.width}: 1/N is not small",
            ValidityWarning,
            stacklevel=validation.level_of_user(),
        )
    return float(relative.max())


def warn_if_orders_are_close(network: LayeredNetwork, relative: np.ndarray) -> None:
    """Warn if terms of order 1/N² exceed a tenth of those of order 1/N in some layer."""
    layer = int(np.argmax(relative))
    largest = float(relative[layer])
    if largest > _CLOSE_ORDERS:
        warnings.warn(
            f"terms of order 1/N² reach {largest:.2g} of those of order 1/N in layer {layer}, "
            f"at depth {network.depth} and width {network.width}: the expansion "
            "holds for wider networks",
            ValidityWarning,
            stacklevel=validation.level_of_user(),
        )
