"""Where the expansion in 1/N is doubtful, or digits are missing, as warnings."""

from __future__ import annotations

import warnings
from contextlib import suppress

import numpy as np

from fieldtheory import validation
from fieldtheory.networks.family import DeepNetwork
from fieldtheory.numerics.infinite_width.mean_field import MeanField
from fieldtheory.numerics.recursion import ratio

# Terms of order 1/N relative to kernels, and terms of order 1/N² to those of order 1/N, from which
# on the expansion is doubtful.
LARGE, _CLOSE_ORDERS = 0.5, 0.1
SHIFT = "shift of the mean"


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


def warn_if_not_small(
    network: DeepNetwork, what: str, values: np.ndarray, kernels: np.ndarray
) -> np.ndarray:
    """Warn if terms of order 1/N reach half of a kernel; their sizes relative to √(K_αα K_ββ)."""
    sizes = kernels[: len(values)]
    if values.ndim > 1:
        own = np.sqrt(np.diagonal(sizes, axis1=1, axis2=2))
        sizes = own[:, :, None] * own[:, None]
    relative = ratio(np.abs(values), sizes)
    layer, *pair = map(int, np.unravel_index(np.argmax(relative), relative.shape))
    if (largest := relative[layer, *pair]) > LARGE:
        size = "√(K_αα K_ββ)" if len({*pair}) > 1 else "its value at infinite width"
        entry = f" of the inputs {tuple(pair)}" if pair else ""
        warnings.warn(
            f"the {what} of K^({layer}){entry} is {largest:.2g} times {size}, at depth "
            f"{network.depth} and width {network.width}: 1/N is not small",
            ValidityWarning,
            stacklevel=validation.level_of_user(),
        )
    return relative


def warn_if_spread(
    field: MeanField, variance: np.ndarray, kernels: np.ndarray, own: np.ndarray
) -> np.ndarray:
    """Warn if kernels of hidden layers fluctuate by half of them, or move the next ones by as much.

    What the next layer sees counts: C^(l) may fluctuate by its size and be exact to order 1/N
    where the skip connection carries more.

    ``variance`` and ``kernels`` are Var K^(l) and K*^(l), (L + 1, ...) and (L + 2, ...), ``own``
    the variances of what C^(l+1) is a function F of, for each input. F'' is asked for where the
    fluctuations are small.
    """
    spread = np.sqrt(np.maximum(variance, 0.0))
    spread = warn_if_not_small(field.network, "standard deviation", spread, kernels)
    if spread.max() <= LARGE:
        with suppress(ArithmeticError, ValueError), np.errstate(all="ignore"):
            K = np.where(own > 0, field.variances[1][:-1], 1.0)
            moved = np.nan_to_num(field.curvatures(K) * own / 2)
            moved = moved[..., None] * np.eye(moved.shape[-1]) if variance.ndim > 1 else moved
            what = "term F'' Var K/2"
            warn_if_not_small(field.network, what, np.append(0 * moved[:1], moved, 0), kernels)
    return spread


def warn_if_orders_are_close(network: DeepNetwork, relative: np.ndarray) -> None:
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
