"""Nothing infinite or undefined leaves the recursions unnoticed."""

from __future__ import annotations

import numpy as np


def require_finite(name: str, values: np.ndarray) -> np.ndarray:
    """Return ``values``, layer axis first, or raise OverflowError naming the first layer at fault."""
    layers = np.isfinite(values).reshape(len(values), -1).all(axis=1)
    if not layers.all():
        raise OverflowError(
            f"{name} is not a finite float64 in layer {np.argmin(layers)}; reduce depth, "
            f"branch_scale, skip_scale or weight_variance"
        )
    return values
