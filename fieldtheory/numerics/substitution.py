"""Linear recursions over the layers, by forward substitution: what every result is built from."""

from __future__ import annotations

import numpy as np

from fieldtheory.numerics.recursion import carried


def accumulate(skips: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Σ_m A²_lm rows_m for every l, by x_l = γ_l² x_{l-1} + rows_l."""
    sums = np.array(rows, dtype=float)
    for l in range(1, len(sums)):
        sums[l] = carried(skips[l], sums[l - 1], sums[l])
    return sums


def propagate(skips: np.ndarray, gains: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Δ12 rows, the response of all layers to sources in the rows, by forward substitution.

    Solves y_l = rows_l + gains_l Σ_{m<l} A²_{l-1,m} y_m in O(L) steps.
    """
    response = np.array(rows, dtype=float)
    kernel = response[0]
    for l in range(1, len(response)):
        response[l] += gains[l] * kernel
        kernel = carried(skips[l], kernel, response[l])
    return response
