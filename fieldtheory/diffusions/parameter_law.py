"""Gaussian laws of the weights and biases of a layer, beyond independent entries."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from fieldtheory import validation


@dataclass(frozen=True, kw_only=True)
class ParameterLaw:
    """A Gaussian law of the weights ΔW (D, D) and biases Δb (D,) of a layer of duration Δt.

        ΔW = μ^W Δt + ε^W √Δt,   Δb = μ^b Δt + ε^b √Δt

    with ε^W and ε^b independent of each other and of other layers, ε^b ~ N(0, Σ^b), and ε^W either
    a matrix normal, Cov(ε^W_oi, ε^W_pj) = Σ^WO_op Σ^WI_ij (PF Assumption 3.3), or of any
    covariance, vec(ε^W) ~ N(0, Σ^W) with the columns one below the other (PF Assumption 3.1).

    Parameters
    ----------
    row_covariance, column_covariance : array_like, shape (D, D)
        Σ^WO of the outputs and Σ^WI of the inputs of the layer.
    weight_covariance : array_like, shape (D², D²)
        Σ^W, in place of those two.
    bias_covariance : array_like, shape (D, D), optional
        Σ^b; no random biases if left out.
    weight_mean : array_like, shape (D, D), optional
        μ^W; zero if left out.
    bias_mean : array_like, shape (D,), optional
        μ^b; zero if left out.

    Raises
    ------
    TypeError, ValueError
        If both or neither covariance of the weights is given, shapes do not fit, or a covariance
        is not symmetric positive semidefinite.

    Examples
    --------
    >>> law = ParameterLaw(row_covariance=[[1, 0.5], [0.5, 1]], column_covariance=[[1, 0], [0, 2]])
    >>> law.width, law.covariance_of(np.array([1.0, 1.0]), np.array([1.0, 1.0]))
    (2, array([[3. , 1.5],
           [1.5, 3. ]]))
    """

    row_covariance: Any = None
    column_covariance: Any = None
    weight_covariance: Any = None
    bias_covariance: Any = None
    weight_mean: Any = None
    bias_mean: Any = None

    def __post_init__(self) -> None:
        factors = self.row_covariance, self.column_covariance
        has_factors = [factor is not None for factor in factors]
        if any(has_factors) == (self.weight_covariance is not None) or any(has_factors) != all(
            has_factors
        ):
            raise TypeError(
                "a law of the weights has either weight_covariance, or both row_covariance and "
                "column_covariance"
            )
        D = self.width
        shapes = {"weight_covariance": (D * D, D * D), "bias_mean": (D,)}
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None:
                continue
            array = validation.finite_array(field.name, value)
            expected = shapes.get(field.name, (D, D))
            if array.shape != expected:
                raise ValueError(f"{field.name} must have shape {expected}, got {array.shape}")
            if field.name.endswith("covariance"):
                array = validation.input_kernel_array(field.name, array)
            object.__setattr__(self, field.name, validation.as_tuples(array.tolist()))

    @property
    def width(self) -> int:
        """D."""
        if self.row_covariance is not None:
            return len(np.atleast_1d(self.row_covariance))
        size = len(np.atleast_1d(self.weight_covariance))
        width = math.isqrt(size)
        if width * width != size:
            raise ValueError(f"weight_covariance must have shape (D², D²), got {size} rows")
        return width

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """The arguments as arrays, without those that were left out."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: np.array(value) for name, value in values.items() if value is not None}

    def mean_of(self, features: np.ndarray) -> np.ndarray:
        """μ^b + μ^W ψ for ψ (..., D), shape (..., D)."""
        arrays = self.arrays
        mean = np.zeros(np.shape(features))
        if "weight_mean" in arrays:
            mean = features @ arrays["weight_mean"].T
        return mean + arrays.get("bias_mean", 0.0)

    def covariance_of(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Cov(ε^W ψ + ε^b, ε^W ψ' + ε^b) of the features ψ, ψ' (..., D), shape (..., D, D).

        Σ^b + Σ^WO ψᵀ Σ^WI ψ' for a matrix normal (PF section 3.4).
        """
        return self.averaged_covariance(first[..., :, None] * second[..., None, :])

    def averaged_covariance(self, products: np.ndarray) -> np.ndarray:
        """The same, averaged over features of second moments ⟨ψ_k ψ'_m⟩ (..., D, D)."""
        arrays = self.arrays
        biases = arrays.get("bias_covariance", 0.0)
        if "weight_covariance" not in arrays:
            sums = np.einsum("...ij,ij", products, arrays["column_covariance"])
            return arrays["row_covariance"] * sums[..., None, None] + biases
        D = self.width
        # Columns one below the other: entry (o, i) of the weights is number i D + o.
        tensor = arrays["weight_covariance"].reshape(D, D, D, D)
        return np.einsum("...ij,iojp->...op", products, tensor) + biases
