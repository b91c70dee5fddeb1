"""What a family of networks hands to the comparison, and the entries that are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fieldtheory.numerics.fields import Field


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
    remainder : callable
        Size of the terms that the coefficient of N^-j of the extrapolation leaves out, of j.
    index : dict of str to ndarray
        Places of the entries along the axes, see `ComparedField`.
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
    remainder: Callable[[int], np.ndarray]
    index: dict[str, np.ndarray]
    distinct: np.ndarray
    next_orders: dict[int, tuple[str, np.ndarray]]

    @property
    def orders(self) -> dict[int, tuple[str, np.ndarray]]:
        """Names and values of the field and its next orders, by their power of 1/N."""
        return {self.field.order: (self.field.name, self.theory)} | self.next_orders


def coefficients(measured: Measured) -> Iterator[dict[str, Any]]:
    """The coefficients of 1/N that the widths determine: `Coefficient` without its threshold."""
    base, widths = measured.field.order, measured.widths / measured.width
    for order, (name, theory) in measured.orders.items():
        power = order - base
        if power >= len(widths):
            continue
        # The power of 1/N is that of the network of the solution.
        factors = extrapolation_weights(widths, power) * widths**base
        size = np.abs(theory) if power else measured.size
        parts = {
            "size": size,
            "remainder": measured.remainder(power),
            "error": np.sqrt(sum((f * e) ** 2 for f, e in _pairs(factors, measured.errors))),
        }
        summands = [f * value for f, value in _pairs(factors, measured.values)]
        if theory.ndim < measured.theory.ndim:
            summands = [np.diagonal(values) for values in summands]
            parts = {
                key: np.diagonal(values) if values.ndim > theory.ndim else values
                for key, values in parts.items()
            }
        entries = _entries(measured, theory, summands, parts)
        yield entries | {"name": name, "order": order}


def at_width(measured: Measured, which: int) -> dict[str, Any]:
    """The field at the width of an index: `AtWidth` without threshold and tolerance."""
    field, ratio = measured.field, measured.width / measured.widths[which]
    total = theory = measured.theory * ratio**field.order
    orders = {}
    for order, (_, term) in measured.next_orders.items():
        if term.ndim < theory.ndim:
            term = np.where(np.eye(len(term), dtype=bool), np.diag(term), np.nan)
        orders[order] = total = total + term * ratio**order
    size = measured.size * ratio**field.order
    parts: dict[Any, Any] = {"error": measured.errors[which], "size": size, **orders}
    entries = _entries(measured, theory, [measured.values[which]], parts)
    if not field.decides:
        # What is 0, such as the vertex of the inputs, has no relative deviation.
        kept = entries["size"] > 0
        index = {key: at[kept] for key, at in entries.pop("index").items()}
        entries = {key: part[kept] for key, part in entries.items()} | {"index": index}
    with_next = {order: entries.pop(order) for order in orders}
    names = {"name": field.name, "order": field.order, "with_next": with_next}
    return entries | names


def _entries(
    measured: Measured, theory: np.ndarray, summands: list[np.ndarray], parts: dict[Any, Any]
) -> dict[Any, Any]:
    """The entries that fluctuate or differ, each once; simulated values are sums of summands."""
    # Relative difference of two such numbers that is no rounding.
    exact_difference = 1e-9
    # An error below this part of a value is the rounding of a number that does not fluctuate.
    rounding_of_errors = 1e-14
    index, distinct = measured.index, measured.distinct
    if theory.ndim < measured.theory.ndim:
        index = {key: np.diagonal(at) for key, at in index.items() if key != "layer_"}
        distinct = np.diagonal(distinct)
    values = np.sum(summands, axis=0)
    scale = np.maximum(np.abs(theory), np.max(np.abs(summands), axis=0))
    error = np.where(parts["error"] > rounding_of_errors * scale, parts["error"], 0.0)
    kept = distinct & ((error > 0) | (np.abs(values - theory) > exact_difference * scale))
    arrays = parts | {"theory": theory, "simulation": values, "error": error}
    return {"index": {key: at[kept] for key, at in index.items()}} | {
        key: np.asarray(part)[kept] for key, part in arrays.items()
    }


def extrapolation_weights(widths: np.ndarray, order: int = 0) -> np.ndarray:
    """Weights of values at the widths N_i that give the coefficient of N^-order.

    Examples
    --------
    >>> extrapolation_weights(np.array([100.0, 200.0]))
    array([-1.,  2.])
    >>> extrapolation_weights(np.array([100.0, 200.0]), order=1)
    array([ 200., -200.])
    """
    # In units of the smallest width, so that the powers are of one size.
    powers = np.vander(widths[0] / widths, increasing=True)
    return np.linalg.inv(powers)[order] * widths[0] ** order


def _pairs(factors: np.ndarray, arrays: Sequence[np.ndarray]) -> Iterator[tuple[Any, np.ndarray]]:
    return zip(factors, arrays, strict=True)


def kernel_sizes(kernels: np.ndarray, matrix: bool) -> np.ndarray:
    """√(K_αα K_ββ) for every pair of inputs; K itself for one input."""
    if not matrix:
        return np.abs(kernels)
    own = np.sqrt(np.maximum(np.diagonal(kernels, axis1=-2, axis2=-1), 0.0))
    return own[..., :, None] * own[..., None, :]
