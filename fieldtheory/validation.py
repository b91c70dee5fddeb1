"""Checks of arguments shared by every entry: one line that names argument, value and range."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np


def integer(name: str, value: Any, minimum: int) -> int:
    """Return ``value`` as an int, or raise naming the argument and its smallest allowed value."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer >= {minimum}, got {value!r}")
    if value < minimum:
        raise ValueError(f"{name} must be an integer >= {minimum}, got {value!r}")
    return int(value)


def nonnegative(name: str, value: Any) -> float:
    """Return ``value`` as a finite float >= 0, or raise."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a finite real number >= 0, got {value!r}")
    if not np.isfinite(float(value)) or value < 0:
        raise ValueError(f"{name} must be a finite real number >= 0, got {value!r}")
    return float(value)


def choice(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """Return ``value`` if it is one of ``allowed``, or raise listing them."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")
    return str(value)


def finite_array(name: str, value: Any) -> np.ndarray:
    """Return ``value`` as a float64 array without NaN or infinity, or raise."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "iufO":
            raise TypeError
        if array.dtype.kind == "O" and not all(isinstance(v, Real) for v in array.flat):
            raise TypeError
        array = array.astype(float)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must be a real number or an array of them, got {value!r}"
        ) from None
    if array.size == 0:
        raise ValueError(f"{name} must not be empty, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {float(array[~np.isfinite(array)][0])!r}")
    return array


def layer_scales(name: str, value: Any, depth: int) -> float | tuple:
    """Return a scale as a float or nested tuple whose last axis is 1 or ``depth``, or raise."""
    array = finite_array(name, value)
    if array.ndim and array.shape[-1] not in (1, depth):
        raise ValueError(
            f"{name} must be a scalar or have 1 or depth={depth} entries on its last axis, "
            f"got shape {array.shape}"
        )
    return _as_tuples(array.tolist())


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def input_kernel_array(name: str, value: Any) -> np.ndarray:
    """Return K0 as variances (any shape with ndim < 2) or covariance matrices (..., P, P).

    Raises if an entry is not finite, a variance is negative, or a matrix is not square,
    symmetric and positive semidefinite up to rounding.
    """
    kernel = finite_array(name, value)
    if kernel.ndim < 2:
        if (kernel < 0).any():
            raise ValueError(f"{name} must be a variance >= 0, got {float(kernel.min())!r}")
        return kernel
    if kernel.shape[-1] != kernel.shape[-2]:
        raise ValueError(f"{name} must be a scalar or square (P, P), got shape {kernel.shape}")
    size = np.abs(kernel).max()
    if not np.allclose(kernel, kernel.swapaxes(-1, -2), rtol=0, atol=1e-12 * size):
        raise ValueError(f"{name} must be symmetric, got entries differing from the transpose")
    smallest = np.linalg.eigvalsh(kernel).min()
    if smallest < -1e-10 * size:
        raise ValueError(f"{name} must be positive semidefinite, got eigenvalue {smallest:.6g}")
    upper = np.triu(kernel)
    return upper + np.triu(kernel, 1).swapaxes(-1, -2)
