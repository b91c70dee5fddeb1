"""One layer of the saddle point, and forward substitution over layers: what results are built from.

The functions of one layer take numbers, arrays and mpmath numbers. That they are what the action
says, a test checks for symbols. Nothing infinite or undefined leaves them unnoticed.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np


def residual_kernel(weight: Any, bias: Any, average: Any) -> Any:
    """C^(l) = a_l ⟨g⟩ + c_l (F25 eqs. (29), (108)).

    Examples
    --------
    >>> residual_kernel(0.5, 0.125, 2.0)
    1.125
    """
    return weight * average + bias


def add_skip(skip: Any, before: Any, residual: Any) -> Any:
    """K^(l) = γ_l² K^(l-1) + C^(l) (F25 eq. (30)), and likewise responses and fluctuations.

    Examples
    --------
    >>> add_skip(0.25, 4.0, 0.5)
    1.5
    """
    return skip * before + residual


def accumulate(skips: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Σ_m A²_lm rows_m for every l, by x_l = γ_l² x_{l-1} + rows_l."""
    sums = np.array(rows, dtype=float)
    for l in range(1, len(sums)):
        sums[l] += skips[l] * sums[l - 1]
    return sums


def accumulated_variance(skips: np.ndarray, G11: np.ndarray) -> np.ndarray:
    """Var K^(l) = Σ_km A²_lk A²_lm G11^km, shape (L + 1, ...) of G11 (L + 2, L + 2, ...)."""
    half = accumulate(skips[:-1], G11[:-1, :-1])
    return np.einsum("ll...->l...", accumulate(skips[:-1], half.swapaxes(0, 1))).copy()


def propagate(skips: np.ndarray, gains: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Δ12 rows, the response of all layers to sources in the rows, by forward substitution."""
    return respond(gains, rows, accumulate(skips + gains, rows))


def respond(gains: np.ndarray, rows: np.ndarray, kernels: np.ndarray) -> np.ndarray:
    """C^(l) = rows_l + gain_l K^(l-1)."""
    response = np.array(rows, dtype=float)
    gains = gains.reshape(len(gains), *[1] * (response.ndim - gains.ndim), *gains.shape[1:])
    response[1:] += gains[1:] * kernels[:-1]
    return response


def require_finite(name: str, values: np.ndarray, layer: int, logarithm: str = "") -> None:
    """Raise OverflowError if the values of a layer are not finite."""
    # The sum of finite values may be infinite.
    if not isfinite(values if np.ndim(values) == 0 else values.sum()) and not (
        np.isfinite(values).all()
    ):
        instead = f", or ask for {logarithm}" if logarithm else ""
        raise OverflowError(
            f"{name} exceeds the range of float64 in layer {layer}; reduce depth, branch_scale, "
            f"skip_scale or weight_variance{instead}"
        )


def require_finite_layers(name: str, layers: np.ndarray) -> None:
    """`require_finite` of every layer, the first axis."""
    if not np.isfinite(layers).all():
        for l, values in enumerate(layers):
            require_finite(name, values, l)


def ratio(x: Any, y: Any) -> np.ndarray:
    """x/y where y is positive, else zero."""
    return np.divide(x, y, out=np.zeros(np.broadcast(x, y).shape), where=np.greater(y, 0))
