"""Averages and cumulants of smooth functions of several variables that are no products of one each.

The trapezoidal rule along the principal axes of the covariance converges exponentially for
functions that are analytic. The step is halved until two steps agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrands.partitions import partitions

# Where grids end and the first step, in deviations.
_END, _STEP = 9.0, 0.5
# By which factor steps shrink, and how many points a grid may have.
_SHRINK, _MOST = 0.7, 1 << 24
# Points at once.
_TOGETHER = 1 << 18


def cumulant(functions: Sequence[Callable], K: np.ndarray, rtol: float) -> float:
    """The joint cumulant of functions of centred Gaussian variables; of one function its average.

    Parameters
    ----------
    functions : sequence of callable
        Each of all d variables, vectorised.
    K : ndarray, shape (d, d)
        Their covariance.
    rtol : float
        Allowed error relative to √⟨F²⟩ of the product F of the functions.

    Raises
    ------
    QuadratureError
        If grids of up to 2²⁴ points do not resolve the functions.

    Examples
    --------
    >>> K = np.array([[1.0, 0.5, 0.5], [0.5, 1.0, 0.5], [0.5, 0.5, 1.0]])
    >>> round(cumulant([lambda x, y, z: x * y, lambda x, y, z: z**2], K, 1e-12), 12)
    0.5
    """
    variances, axes = np.linalg.eigh(K)
    wide = variances >= 1e-14 * variances[-1]
    axes = axes[:, wide] * np.sqrt(np.maximum(variances[wide], 0.0))
    before, step = None, _STEP
    while True:
        number = 2 * int(_END / step) + 1
        if number ** axes.shape[1] > _MOST:
            raise QuadratureError(
                f"an average of {len(K)} variables did not reach the relative tolerance "
                f"{rtol:g}: functions of three and more variables are integrated in float64 "
                'where they are smooth and signals are not wide; use ft.solve, or backend="mpmath"'
            )
        value, size = _at_step(functions, axes, step)
        if before is not None and abs(value - before) <= rtol * size:
            return value
        before, step = value, step * _SHRINK


def _at_step(functions: Sequence[Callable], axes: np.ndarray, step: float) -> tuple[float, float]:
    """The cumulant by a grid, and the size of the product of all functions."""
    z = step * np.arange(-int(_END / step), int(_END / step) + 1)
    weights = step / np.sqrt(2 * np.pi) * np.exp(-(z**2) / 2)
    dimension, blocks = axes.shape[1], list(partitions(range(len(functions))))
    moments = dict.fromkeys((block for _, parts in blocks for block in parts), 0.0)
    shape, square = (len(z),) * dimension, 0.0
    for start in range(0, len(z) ** dimension, _TOGETHER):
        flat = np.arange(start, min(start + _TOGETHER, len(z) ** dimension))
        index = np.array(np.unravel_index(flat, shape))
        weight = weights[index].prod(axis=0)
        h = axes @ z[index]
        values = [np.broadcast_to(F(*h), weight.shape) for F in functions]
        for block in moments:
            moments[block] += weight @ np.prod([values[k] for k in block], axis=0)
        square += weight @ np.prod(values, axis=0) ** 2
    total = sum(
        float(weight) * float(np.prod([moments[block] for block in parts]))
        for weight, parts in blocks
    )
    return total, float(np.sqrt(square))
