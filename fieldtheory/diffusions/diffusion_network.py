"""Residual networks with small parameters, whose deep limit is a diffusion, and their laws."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import sympy as sp

from fieldtheory import validation
from fieldtheory.diffusions.registration import FAMILY
from fieldtheory.networks.activations import Activation, as_activation, h, named_activation
from fieldtheory.networks.dispatch import reasons
from fieldtheory.networks.family import NetworkFamily
from fieldtheory.networks.parameters import named_parameters
from fieldtheory.networks.residual import ResidualNetwork


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


INFINITE = "infinite"


# Why it does not have what other families have.
_WITHOUT = reasons(
    {
        "kernels, residual_kernels, output_kernel, shares, decorrelation, log_kernels": (
            "its neurons have means and covariances of their own, which no layer adds up: see "
            "mean, covariance and gram"
        ),
        "response, residual_response, full_response, output_response, G12, log_response, "
        "response_shift, residual_response_shift, output_response_shift, response_shift_error, "
        "simulate_response, optimal_scaling, spread_scaling, critical_block, susceptibilities, "
        "component_kernels, data_variability": (
            "its inputs are the first layer itself: there is no kernel K^(0) of a random read-in "
            "to respond to"
        ),
        "tangent_kernels, output_tangent_kernel, kernel, spectrum, power_coefficients, "
        "NetworkGPRegressor, posterior, a response after labels, tilted_posterior, sweep": (
            "it has no read-in and no readout: its inputs and outputs are all N neurons"
        ),
        "G11, G11_error, kernel_variance, stream_covariance, stream_variance, mean_shift, "
        "mean_shift_error, kernel_shift, four_point, four_point_error, output_kurtosis, "
        "required_width, covariance_with, mean_shift_2, kernel_shift_2, variance_2, "
        "third_cumulant, four_point_2, order_ratio, resummed_mean, resummed_variance": (
            "its parameters are increments of order 1/√L, and what fluctuates at width N is not a "
            "kernel but the diffusion itself: see gram_variance and kurtosis of simulate"
        ),
        "depth_limit": "it is the limit: solve with depth=None",
        "diagrams, correction, action, hessian": (
            "its law is a stochastic differential equation, not an action of kernels: see derive"
        ),
        "digits, proven": "its moments solve ordinary differential equations in float64",
    }
)


@named_parameters
@dataclass(frozen=True, kw_only=True)
class DiffusionNetwork(NetworkFamily):
    """An identity residual network whose parameters shrink as its depth grows.

        x_{l+1} = x_l + φ(W_l ψ(x_l) + b_l),   l = 0, ..., L − 1,   Δt = T/L,
        W_l ~ N(0, σ²_w Δt/D),   b_l ~ N(0, σ²_b Δt),

    all entries independent (PF eqs. (7), (10), (15)). For L → ∞ the layers x_l, t = l Δt, become
    the diffusion

        dx = φ'(0) (dW ψ(x) + db) + (1/2) φ''(0) (σ²_b + σ²_w |ψ(x)|²/D) dt

    at any width D (PF Theorem 3.1, Corollary 3.3). `solve` gives its means and covariances,
    `simulate` draws networks and diffusions, `derive` the equations.

    Parameters
    ----------
    depth : int, None or "infinite"
        Number of layers L >= 1; None or "infinite" for the limit L → ∞.
    width : int
        D >= 1, the number of neurons in every layer.
    horizon : float
        T > 0.
    activation : str, Activation, sympy.Expr or callable
        φ in any form that `ResidualNetwork` takes. φ(0) = 0, else increments do not shrink.
    input_activation : str, Activation, sympy.Expr or callable
        ψ; "linear" for ψ(x) = x.
    weight_variance, bias_variance : float
        σ²_w and σ²_b, >= 0.
    parameter_law : ParameterLaw, optional
        Another Gaussian law of the parameters (PF Assumptions 3.1, 3.3), in place of the variances.

    Raises
    ------
    TypeError, ValueError
        If an argument is not of the stated kind; the message names it and what is allowed.

    Notes
    -----
    The defaults are those of PF section 4.1. All quantities are dimensionless.

    Examples
    --------
    >>> net = DiffusionNetwork(depth=100)
    >>> net.step, net.slopes[:3]  # Δt, and φ', φ'', φ''' of tanh at 0
    (0.01, (1.0, 0.0, -2.0))
    >>> DiffusionNetwork(activation="cos")
    Traceback (most recent call last):
        ...
    ValueError: activation must be 0 at 0, so that increments shrink with Δt, got cos: φ(0) = 1
    """

    functions: ClassVar[Mapping[str, str]] = FAMILY.functions
    without: ClassVar[Mapping[str, str]] = _WITHOUT

    depth: int | None = 500
    width: int = 500
    horizon: float = 1.0
    activation: Activation = "tanh"  # type: ignore[assignment]
    input_activation: Activation = "linear"  # type: ignore[assignment]
    weight_variance: float = 1.0
    bias_variance: float = 1.0
    parameter_law: ParameterLaw | None = None

    def __post_init__(self) -> None:
        layers: Any = self.depth
        depth = None if layers is None or layers == INFINITE else layers
        checked: dict[str, Any] = {
            "depth": None if depth is None else validation.integer("depth", depth, 1),
            "width": validation.integer("width", self.width, 1),
            "horizon": validation.positive("horizon", self.horizon),
            "activation": as_activation(self.activation),
            "input_activation": named_activation("input_activation", self.input_activation),
        }
        for name in ("weight_variance", "bias_variance"):
            checked[name] = validation.nonnegative(name, getattr(self, name))
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if (start := self.activation(0)) != 0:
            raise ValueError(
                "activation must be 0 at 0, so that increments shrink with Δt, got "
                f"{self.activation.name}: φ(0) = {start}"
            )
        law = self.parameter_law
        if law is None:
            return
        if not isinstance(law, ParameterLaw):
            raise TypeError(f"parameter_law must be a ParameterLaw, got {validation.excerpt(law)}")
        if law.width != self.width:
            raise ValueError(f"parameter_law must be of width {self.width}, got {law.width}")
        for name in ("weight_variance", "bias_variance"):
            if getattr(self, name) != 1.0:
                raise TypeError(f"{name} has no meaning beside parameter_law, which has them")

    @property
    def step(self) -> float:
        """Δt = T/L; 0 in the limit."""
        return self.horizon / self.depth if self.depth else 0.0

    @cached_property
    def slopes(self) -> tuple[float, ...]:
        """φ'(0), ..., φ''''(0).

        Raises
        ------
        ValueError
            If φ has a kink at 0, where there is no diffusion limit (PF section 3.4).
        """
        return tuple(float(value) for value in self.exact_slopes)

    @cached_property
    def exact_slopes(self) -> tuple[sp.Expr, ...]:
        """`slopes` as SymPy numbers."""
        return slopes_at_zero(self.activation)

    @property
    def is_linear(self) -> bool:
        """Whether the diffusion is linear: ψ(x) = x and φ''(0) = 0."""
        return self.features_are_inputs and self.slopes[1] == 0

    @property
    def features_are_inputs(self) -> bool:
        """Whether ψ(x) = x."""
        return bool(self.input_activation.expression == h)

    @property
    def residual_network(self) -> ResidualNetwork:
        """The residual network of the same deep limit, ρ = |φ'(0)| √(T/L) and activation ψ.

        Its input kernel is that of x_0, ⟨x_0 x_0⟩ over neurons. The two agree for φ = id at every
        depth, and for φ''(0) = 0 in the limit: for ψ = id whatever x_0 is, else for Gaussian x_0.

        Raises
        ------
        ValueError
            For φ''(0) ≠ 0 and for a ``parameter_law``, where no residual network has this limit.

        Examples
        --------
        >>> DiffusionNetwork(depth=100, activation="erf").residual_network.branch_scale
        0.11283791670955126
        """
        first, second = self.slopes[:2]
        if second or self.parameter_law:
            raise ValueError(
                "residual networks have this deep limit only for φ''(0) = 0 and independent "
                f"parameters, got {self.activation.name}"
            )
        scale = abs(first) * self.horizon**0.5
        # A function of the depth follows it to infinity.
        rho: Any = scale / self.depth**0.5 if self.depth else _Uniform(scale)
        return ResidualNetwork(
            depth=self.depth or 1,
            activation=self.input_activation,
            branch_scale=rho,
            weight_variance=self.weight_variance,
            bias_variance=self.bias_variance,
            width=self.width,
        )


@dataclass(frozen=True)
class _Uniform:
    """ρ = c/√L of every layer."""

    scale: float

    def __call__(self, layer: Any, depth: Any) -> Any:
        return self.scale / depth**0.5


def slopes_at_zero(activation: Activation, order: int = 4) -> tuple[sp.Expr, ...]:
    """The derivatives of φ at 0 up to an order, the same from both sides.

    >>> slopes_at_zero(as_activation("swish"), 3)
    (1/2, 1/2, 0)
    """
    slopes = []
    for n in range(order + 1):
        minus, plus = activation.sides(n)
        if (n <= 1 and plus != minus) or not (plus.is_finite and minus.is_finite):
            raise ValueError(
                "activation must have derivatives at 0 for the limit of infinite depth "
                f"(PF Assumption 3.2), got {activation.name}: the one of order {n} is "
                f"{number_text(plus)} on the right and {number_text(minus)} on the left"
            )
        slopes.append((plus + minus) / 2)
    return tuple(slopes[1:])


def number_text(value: sp.Expr) -> str:
    """A real number with six digits, or what stands for an infinite one."""
    return f"{float(value):.6g}" if value.is_finite else str(value)
