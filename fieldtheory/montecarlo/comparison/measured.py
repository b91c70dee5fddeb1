"""What a family of networks hands to the comparison, and the entries that are compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fieldtheory.montecarlo.comparison.compared import RIGHT, WIDTH
from fieldtheory.numerics.fields import Field

# Relative difference of two numbers without errors that is no rounding.
_DIFFERENCE = 1e-9
# An error below this part of a value is the rounding of a number that does not fluctuate.
_ROUNDING = 1e-14


@dataclass(frozen=True, eq=False)
class Measured:
    """A field of the theory and its simulations at widths N_i; arrays of one shape."""

    field: Field
    # Of the width of the solution.
    theory: np.ndarray
    # Simulated values and standard errors of every width N_i, narrow ones first.
    values: list[np.ndarray]
    errors: list[np.ndarray]
    widths: np.ndarray
    # That of the solution.
    width: float
    # To what deviations are relative.
    size: np.ndarray
    # Size of the terms that the coefficients of N^0, N^-1, ... of the extrapolation leave out.
    remainders: list[np.ndarray]
    # Places of the entries along the axes, see `Compared`.
    index: dict[str, np.ndarray]
    # One of the entries that are equal by symmetry.
    distinct: np.ndarray
    # Names and terms of higher powers of 1/N, nan where the solution has none.
    next_orders: dict[int, tuple[str, np.ndarray]]

    @property
    def coefficients(self) -> dict[int, tuple[str, np.ndarray]]:
        """Names and values of the coefficients that the widths determine, by power of 1/N."""
        orders = {self.field.order: (self.field.name, self.theory)} | self.next_orders
        return {k: of for k, of in orders.items() if k - self.field.order < len(self.widths)}


def coefficients(measured: Measured) -> Iterator[dict[str, Any]]:
    """Each coefficient of 1/N that the widths determine: columns of `Comparison`."""
    base, widths = measured.field.order, measured.widths / measured.width
    for order, (name, theory) in measured.coefficients.items():
        power = order - base
        # The power of 1/N is that of the network of the solution.
        factors = extrapolation_weights(widths, power) * widths**base
        errors = [f * error for f, error in zip(factors, measured.errors, strict=True)]
        columns = {
            "theory": theory,
            "error": np.sqrt(np.sum(np.square(errors), axis=0)),
            "size": measured.size if power == 0 else np.abs(theory),
            "remainder": measured.remainders[power],
        }
        summands = [f * value for f, value in zip(factors, measured.values, strict=True)]
        entries = _entries(measured, columns, summands)
        yield entries | {"question": RIGHT, "quantity": name, "order": order}


def at_width(measured: Measured, which: int) -> dict[str, Any]:
    """The field at the width of an index, as `coefficients` are."""
    field, ratio = measured.field, measured.width / measured.widths[which]
    theory, size = (values * ratio**field.order for values in (measured.theory, measured.size))
    columns, total = {"theory": theory, "error": measured.errors[which], "size": size}, theory
    for order, (_, term) in measured.next_orders.items():
        columns[f"theory_to_order_{order}"] = total = total + term * ratio**order
    # What is 0, such as the vertex of the inputs, has no relative deviation.
    entries = _entries(measured, columns, [measured.values[which]], field.decides | (size > 0))
    return entries | {"question": WIDTH, "quantity": field.name, "order": field.order}


def _entries(
    measured: Measured,
    columns: dict[str, np.ndarray],
    summands: list[np.ndarray],
    kept: np.ndarray | bool = True,
) -> dict[str, Any]:
    """The entries that fluctuate or differ, each once; simulated values are sums of summands."""
    theory, error, values = columns["theory"], columns["error"], np.sum(summands, axis=0)
    # Nothing is larger than the nan of what the theory does not have.
    scale = np.maximum(np.abs(theory), np.max(np.abs(summands), axis=0))
    error = np.where(error > _ROUNDING * scale, error, 0.0)
    moves = (error > 0) | (np.abs(values - theory) > _DIFFERENCE * scale)
    kept = kept & measured.distinct & moves
    columns = columns | {"simulation": values, "error": error}
    return {name: column[kept] for name, column in (measured.index | columns).items()}


def extrapolation_weights(widths: np.ndarray, order: int = 0) -> np.ndarray:
    """Weights of values at the widths N_i that give the coefficient of N^-order.

    >>> extrapolation_weights(np.array([100.0, 200.0]))
    array([-1.,  2.])
    >>> extrapolation_weights(np.array([100.0, 200.0]), order=1)
    array([ 200., -200.])
    """
    # In units of the smallest width, so that the powers are of one size.
    powers = np.vander(widths[0] / widths, increasing=True)
    return np.linalg.inv(powers)[order] * widths[0] ** order


def kernel_sizes(kernels: np.ndarray, matrix: bool) -> np.ndarray:
    """√(K_αα K_ββ) for every pair of inputs; K itself for one input."""
    if not matrix:
        return np.abs(kernels)
    own = np.sqrt(np.maximum(np.diagonal(kernels, axis1=-2, axis2=-1), 0.0))
    return own[..., :, None] * own[..., None, :]
