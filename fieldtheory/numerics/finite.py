"""Nothing infinite or undefined leaves the recursions unnoticed."""

from __future__ import annotations

from math import isfinite

import numpy as np


def require_finite(name: str, values: np.ndarray, layer: int, logarithm: str = "") -> None:
    """Raise OverflowError if the values of a layer are not finite.

    ``logarithm`` is the field that has their logarithms, if there is one.
    """
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


def ratio(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x/y where y is positive, else zero."""
    return np.divide(x, y, out=np.zeros_like(x), where=y > 0)
