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
    """A field of the theory and its simulations at widths N_i; arrays of one shape.

    Parameters
    ----------
    field : Field
    theory : ndarray
        Of the width of the solution.
    values, errors : list of ndarray
        Simulated values and standard errors of every width, narrow ones first.
    widths : ndarray of float
        N_i.
    width : float
        That of the solution.
    size : ndarray
        To what deviations are relative.
    remainders : list of ndarray
        Size of the terms that the coefficients of N^0, N^-1, ... of the extrapolation leave out.
    index : dict of str to ndarray
        Places of the entries along the axes, see `Compared`.
    distinct : ndarray of bool
        One of the entries that are equal by symmetry.
    next_orders : dict of int to (str, ndarray)
        Terms of higher powers of 1/N, and their names; of covariances of two layers they may be
        those of a layer with itself.
    """

    field: Field
    theory: np.ndarray
    values: list[np.ndarray]
    errors: list[np.ndarray]
    widths: np.ndarray
    width: float
    size: np.ndarray
    remainders: list[np.ndarray]
    index: dict[str, np.ndarray]
    distinct: np.ndarray
    next_orders: dict[int, tuple[str, np.ndarray]]

    @property
    def coefficients(self) -> dict[int, tuple[str, np.ndarray]]:
        """Names and values of the coefficients that the widths determine, by power of 1/N."""
        orders = {self.field.order: (self.field.name, self.theory)} | self.next_orders
        return {k: of for k, of in orders.items() if k - self.field.order < len(self.widths)}


def coefficients(measured: Measured) -> Iterator[dict[str, Any]]:
    """Each coefficient of 1/N that the widths determine: `Compared` without its limits."""
    base, widths = measured.field.order, measured.widths / measured.width
    for order, (name, theory) in measured.coefficients.items():
        power = order - base
        # The power of 1/N is that of the network of the solution.
        factors = extrapolation_weights(widths, power) * widths**base
        summands = [f * value for f, value in zip(factors, measured.values, strict=True)]
        errors = [f * error for f, error in zip(factors, measured.errors, strict=True)]
        columns = {
            "size": measured.size if power == 0 else np.abs(theory),
            "remainder": measured.remainders[power],
            "error": np.sqrt(np.sum(np.square(errors), axis=0)),
        }
        entries = _entries(measured, theory, summands, columns)
        yield entries | {"question": RIGHT, "name": name, "order": order}


def at_width(measured: Measured, which: int) -> dict[str, Any]:
    """The field at the width of an index, as `coefficients` are."""
    field, ratio = measured.field, measured.width / measured.widths[which]
    total = theory = measured.theory * ratio**field.order
    sums: dict[Any, np.ndarray] = {}
    for order, (_, term) in measured.next_orders.items():
        if term.ndim < theory.ndim:
            term = np.where(np.eye(len(term), dtype=bool), np.diag(term), np.nan)
        sums[order] = total = total + term * ratio**order
    size = measured.size * ratio**field.order
    columns = {"error": measured.errors[which], "size": size, **sums}
    columns["remainder"] = np.full(theory.shape, np.nan)
    # What is 0, such as the vertex of the inputs, has no relative deviation.
    kept = np.full(theory.shape, True) if field.decides else size > 0
    entries = _entries(measured, theory, [measured.values[which]], columns, kept)
    entries["with_next"] = {order: entries.pop(order) for order in sums}
    return entries | {"question": WIDTH, "name": field.name, "order": field.order}


def _entries(
    measured: Measured,
    theory: np.ndarray,
    summands: list[np.ndarray],
    columns: dict[Any, np.ndarray],
    kept: Any = True,
) -> dict[Any, Any]:
    """The entries that fluctuate or differ, each once; simulated values are sums of summands."""
    index, distinct = measured.index, measured.distinct
    if theory.ndim < measured.theory.ndim:
        index = {key: np.diagonal(at) for key, at in index.items() if key != "layer_"}
        distinct, summands = np.diagonal(distinct), [np.diagonal(values) for values in summands]
        columns = {
            key: np.diagonal(values) if values.ndim > theory.ndim else values
            for key, values in columns.items()
        }
    values = np.sum(summands, axis=0)
    scale = np.maximum(np.abs(theory), np.max(np.abs(summands), axis=0))
    error = np.where(columns["error"] > _ROUNDING * scale, columns["error"], 0.0)
    moves = (error > 0) | (np.abs(values - theory) > _DIFFERENCE * scale)
    kept = kept & distinct & moves
    columns = columns | {"theory": theory, "simulation": values, "error": error}
    return {
        "index": {key: at[kept] for key, at in index.items()},
        **{key: column[kept] for key, column in columns.items()},
    }


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
