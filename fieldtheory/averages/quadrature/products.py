"""Averages ⟨f₁(x₁) f₂(x₂) f₃(x₃) …⟩ of three and more Gaussian variables in float64.

With a pivoted Cholesky factor, x = L z, the integrals over z₁, z₂, … are nested panels that end at
the breakpoints of every x, where what is left of the others smooths a breakpoint on each side of
it. The last variable enters through its conditional mean alone: f_d becomes an average about that
mean, a function of one variable that is tabulated.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.quadrature.panelled_functions import Function
from fieldtheory.averages.quadrature.panels import DENSITY, averages_about, legendre

# Where panels end, in deviations, and how many of them there are without breakpoints.
_END, _PANELS = 8.6, 8
# Edges on each side of a breakpoint, in units of the width over which others smooth it; wider than
# one deviation it needs none.
_SMOOTHED = np.array([-7.5, -2.0, 0.0, 2.0, 7.5])
# Numbers of nodes on a panel: two that agree are right.
_ORDERS = (10, 14, 20)
# Points that are evaluated at once.
_TOGETHER = 1 << 18
# A variance that is left of a variable, relative to its own, which counts as none.
_SINGULAR = 1e-14


def average(functions: Sequence[Function], K: np.ndarray, rtol: float) -> float:
    """⟨Π f_i(x_i)⟩ of d centred Gaussian variables.

    Examples
    --------
    >>> K = np.array([[1.0, 0.5, 0.5], [0.5, 1.0, 0.5], [0.5, 0.5, 1.0]])
    >>> functions = [Function(np.array), Function(np.array), Function(np.square)]
    >>> round(average(functions, K, 1e-10), 9)
    1.0
    """
    order, L = _pivoted(np.asarray(K, dtype=float))
    functions, spreads = [functions[k] for k in order], np.zeros(len(order))
    if L.shape[1] == len(functions):
        functions[-1], spreads[-1] = _smoothed(functions[-1], L[-1]), abs(L[-1, -1])
        L = L[:, :-1]
    before = None
    for nodes in _ORDERS:
        value, size = _nested(functions, spreads, L, nodes)
        if before is not None and abs(value - before) <= rtol * size:
            return value
        before = value
    raise QuadratureError(
        f"an average of {len(functions)} variables did not reach the relative tolerance {rtol:g}: "
        "functions vary too fast, or variables are too similar; use ft.solve for the theory of "
        "several inputs"
    )


def _pivoted(K: np.ndarray) -> tuple[list[int], np.ndarray]:
    """An order of the variables and the factor L of their covariance, of full column rank."""
    left = K.copy()
    order: list[int] = []
    columns: list[np.ndarray] = []
    while len(order) < len(K):
        variances = np.diag(left).copy()
        variances[order] = -np.inf
        pivot = int(np.argmax(variances))
        if variances[pivot] <= _SINGULAR * K[pivot, pivot]:
            break
        column = left[:, pivot] / np.sqrt(variances[pivot])
        column[order] = 0.0
        left = left - np.outer(column, column)
        columns.append(column)
        order.append(pivot)
    order += [k for k in range(len(K)) if k not in order]
    return order, np.stack(columns, axis=1)[order]


def _smoothed(function: Function, row: np.ndarray) -> Function:
    """The average of a function about its conditional mean, tabulated."""
    spread = abs(row[-1])

    def about(mean: np.ndarray) -> np.ndarray:
        flat = np.ravel(mean)
        return averages_about([function], flat, np.full(len(flat), spread))[0][0].reshape(
            mean.shape
        )

    reach = max(_END * float(np.linalg.norm(row[:-1])), 1.0)
    table = Function(about).interpolated(reach)
    return Function(table, None, tuple(function.kinks))


def _nested(
    functions: Sequence[Function], spreads: np.ndarray, L: np.ndarray, nodes: int
) -> tuple[float, float]:
    """The average and that of the modulus; breakpoints are smoothed by the spreads at least."""
    totals = np.zeros(2)

    def expand(z: np.ndarray, weight: np.ndarray) -> None:
        if len(z) == L.shape[1]:
            x = L @ z
            values = np.prod([f(h) for f, h in zip(functions, x, strict=True)], axis=0)
            totals[:] += weight @ values, weight @ np.abs(values)
            return
        points, weights = _line(functions, spreads, L, z, nodes)
        weights = (weights * weight[:, None]).ravel()
        new = np.concatenate([np.repeat(z, points.shape[1], axis=1), points.reshape(1, -1)], axis=0)
        kept = np.nonzero((weights > 0) & ((new**2).sum(axis=0) <= _END**2))[0]
        step = _TOGETHER if len(new) == L.shape[1] else _TOGETHER // 256
        for start in range(0, len(kept), step):
            some = kept[start : start + step]
            expand(new[:, some], weights[some])

    expand(np.zeros((0, 1)), np.ones(1))
    return float(totals[0]), float(totals[1])


def _line(
    functions: Sequence[Function], spreads: np.ndarray, L: np.ndarray, z: np.ndarray, nodes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights (m, n) of the next variable at points (j, m) of those before it."""
    j, count = z.shape
    edges = [np.broadcast_to(np.linspace(-_END, _END, _PANELS + 1), (count, _PANELS + 1))]
    for function, spread, row in zip(functions, spreads, L, strict=True):
        slope, width = row[j], np.hypot(np.linalg.norm(row[j + 1 :]), spread)
        if len(function.kinks) and abs(slope) > width:
            at = (function.kinks - (row[:j] @ z)[:, None]) / slope
            around = _SMOOTHED * (width / abs(slope)) if width else np.zeros(1)
            edges.append((at[..., None] + around).reshape(count, -1))
    ends = np.sort(np.clip(np.concatenate(edges, axis=1), -_END, _END), axis=1)
    x, w = legendre(nodes)
    middle, half = (ends[:, 1:] + ends[:, :-1]) / 2, np.diff(ends, axis=1) / 2
    points = (middle[..., None] + half[..., None] * x).reshape(count, -1)
    weights = (half[..., None] * w).reshape(count, -1) * np.exp(-(points**2) / 2) * DENSITY
    return points, weights
