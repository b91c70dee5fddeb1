"""The theory of one input and of two over the layers, in any arithmetic.

The entries are those that the derivation takes from the action (`layer_averages`); the arithmetic
says what a number is and how an average is evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import isfinite
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory import validation
from fieldtheory.exact_numbers import exact, number
from fieldtheory.networks.family import Coefficients, LayeredNetwork
from fieldtheory.precision.arithmetic import Arithmetic, Correlators
from fieldtheory.theory.elementary_averages import (
    K_XX,
    K_XY,
    K_YY,
    LayerAverages,
    network_averages,
)

Matrix = list[list[Any]]


def exact_coefficients(network: LayeredNetwork) -> list[Coefficients]:
    """a_l, c_l and γ_l for l = 0, ..., L + 1 without rounding, zero for the input.

    A float counts as the binary fraction that it is; so do scales of a schedule by name.

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> exact_coefficients(ResidualNetwork(depth=1, branch_scale=0.5, bias_variance=0.0))[1]
    Coefficients(weight=5/16, bias=0, skip=1)
    """
    parameters = network.parameters
    own = {name: _exact_scales(network, name) for name in network.layer_parameters}

    def of_layer(index: int) -> dict[str, sp.Rational]:
        values = parameters | {name: scales[index] for name, scales in own.items()}
        return {name: sp.Rational(exact(number(value))) for name, value in values.items()}

    hidden = [network.layer(of_layer(index)) for index in range(network.depth)]
    layers = [Coefficients(0, 0, 0), *hidden, network.readout(of_layer(-1))]
    return [Coefficients(*map(sp.sympify, each)) for each in layers]


def _exact_scales(network: LayeredNetwork, name: str) -> Any:
    """A parameter of every layer as it was given, irrational numbers as floats."""
    scale, rounded = getattr(network, name, None), network.parameters[name]
    if callable(scale):
        exact_or_not = [number(scale(l, network.depth)) for l in range(1, network.depth + 1)]
        pairs = zip(exact_or_not, rounded, strict=True)
        return [value if isinstance(value, float) else near for value, near in pairs]
    if scale is None or isinstance(scale, str):
        return rounded
    return np.broadcast_to(np.array(scale, dtype=object), network.depth)


@dataclass(frozen=True, eq=False)
class OneInput:
    """Kernels, responses and Gaussian fluctuations of one input; lists run over the layers.

    Parameters
    ----------
    network : LayeredNetwork
        Without batch axes.
    input_kernel : sympy.Expr
        K^(0) > 0, an exact number.
    arithmetic : Arithmetic

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> from fieldtheory.precision.mpmath_arithmetic import MPMATH
    >>> linear = ResidualNetwork(depth=2, activation="linear", weight_variance=0.5, width=10)
    >>> found = OneInput(linear, sp.Rational(1, 2), MPMATH)
    >>> [float(x) for x in found.response], [float(x) for x in found.kernels]
    ([1.0, 1.5, 2.25, 1.125], [0.5, 0.8, 1.25, 0.675])
    """

    network: LayeredNetwork
    input_kernel: sp.Expr
    arithmetic: Arithmetic

    @cached_property
    def coefficients(self) -> list[Coefficients]:
        """a_l, c_l and γ_l for l = 0, ..., L + 1."""
        layers = exact_coefficients(self.network)
        return [Coefficients(*map(self.arithmetic.number, each)) for each in layers]

    @property
    def residual_kernels(self) -> list[Any]:
        """C^(l) = a_l M(K^(l-1)) + c_l for l = 0, ..., L + 1 (F25 eq. (29))."""
        return self._kernels[0]

    @property
    def kernels(self) -> list[Any]:
        """K^(l) = γ_l² K^(l-1) + C^(l) for l = 0, ..., L + 1 (F25 eq. (30))."""
        return self._kernels[1]

    @cached_property
    def gains(self) -> list[Any]:
        """a_l M'(K^(l-1)) for l = 0, ..., L + 1, 0 for the input."""
        slope = self.compiled(self.averages.moment.diff(K_XX))
        layers = zip(self.coefficients[1:], self.kernels, strict=False)
        return [0, *(c.weight * slope(K) for c, K in layers)]

    @cached_property
    def growth(self) -> list[Any]:
        """γ_l² + a_l M'(K^(l-1)), by which responses grow in layer l; 0 for the input."""
        return [c.skip**2 + gain for c, gain in zip(self.coefficients, self.gains, strict=True)]

    @cached_property
    def response(self) -> list[Any]:
        """χ^(l) = ∂K^(l)/∂K^(0) for l = 0, ..., L + 1, χ^out last (F25 eqs. (53), (55))."""
        one = self.arithmetic.number(sp.S.One)
        return list(accumulate(self.growth[1:], lambda chi, r: r * chi, initial=one))

    @cached_property
    def residual_response(self) -> list[Any]:
        """η^(l) = ∂C^(l)/∂K^(0) for l = 0, ..., L + 1 (F25 eq. (51))."""
        chi = self.response
        return [chi[0], *(gain * x for gain, x in zip(self.gains[1:], chi, strict=False))]

    @cached_property
    def kernel_derivatives(self) -> Matrix:
        """∂K^(l)/∂C^(m) = Π_{m<j<=l} growth_j, 0 for l < m, for l, m = 0, ..., L."""
        size = self.network.depth + 1
        responses = [[0] * size for _ in range(size)]
        for m in range(size):
            responses[m][m] = self.arithmetic.number(sp.S.One)
            for l in range(m + 1, size):
                responses[l][m] = self.growth[l] * responses[l - 1][m]
        return responses

    @cached_property
    def propagator(self) -> Matrix:
        """N G12 = ∂C^(l)/∂C^(m), (L + 2, L + 2) (F25 eq. (49))."""
        one = self.arithmetic.number(sp.S.One)
        gains = zip(self.gains[1:], self.kernel_derivatives, strict=True)
        matrix = [[gain * x for x in row] + [0] for gain, row in gains]
        matrix.insert(0, [0] * (self.network.depth + 2))
        for l, row in enumerate(matrix):
            row[l] = one
        return matrix

    @cached_property
    def signals(self) -> Matrix:
        """Cov(h^(k), h^(l)) = γ_{k+1} ... γ_l K^(k) for k <= l, (L + 1, L + 1)."""
        size = self.network.depth + 1
        matrix = [[0] * size for _ in range(size)]
        for k in range(size):
            value = matrix[k][k] = self.kernels[k]
            for l in range(k + 1, size):
                value = matrix[k][l] = matrix[l][k] = self.coefficients[l].skip * value
        return matrix

    @cached_property
    def correlators(self) -> Correlators:
        """⟨g;g⟩ of all layers whose weights do not vanish."""
        used = [coefficients.weight != 0 for coefficients in self.coefficients[1:]]
        return self.arithmetic.correlators(self.averages, self.signals, used)

    @cached_property
    def source(self) -> Matrix:
        """S22/N = a_k a_l ⟨g(h^(k-1)) ; g(h^(l-1))⟩, (L + 2, L + 2) (F25 eq. (39))."""
        weights = [coefficients.weight for coefficients in self.coefficients]
        rows = [[0, *row] for row in self.correlators.connected]
        rows.insert(0, [0] * len(weights))
        return [
            [a * b * value for b, value in zip(weights, row, strict=True)]
            for a, row in zip(weights, rows, strict=True)
        ]

    @cached_property
    def fluctuations(self) -> Matrix:
        """N G11 = N Cov(C^(l), C^(m)) = Δ12 (S22/N) Δ12ᵀ, (L + 2, L + 2) (F25 eq. (131))."""
        half = [self.propagated(column) for column in transposed(self.source)]
        return [self.propagated(column) for column in transposed(half)]

    @cached_property
    def amplification(self) -> Any:
        """By how much roundings of C^(l), relative to K^(l), are larger in the worst layer."""
        error = largest = 1
        for growth, before, K in zip(self.growth[1:], self.kernels, self.kernels[1:], strict=False):
            error = 1 + abs(growth) * before / (K or 1) * error
            largest = max(largest, error)
        return largest

    @property
    def averages(self) -> LayerAverages:
        """The averages of a layer, symbolic."""
        return network_averages(self.network)

    def compiled(self, expression: sp.Expr) -> Any:
        """A symbolic result as a function of a variance."""
        return self.arithmetic.compiled([K_XX], expression)

    @cached_property
    def _kernels(self) -> tuple[list[Any], list[Any]]:
        moment = self.compiled(self.averages.moment)
        start = self.arithmetic.number(self.input_kernel)
        C, K = [start], [start]
        for c in self.coefficients[1:]:
            C.append(c.weight * moment(K[-1]) + c.bias)
            K.append(c.skip**2 * K[-1] + C[-1])
        return C, K

    def propagated(self, sources: list[Any]) -> list[Any]:
        """Δ12 times a vector: y_l = x_l + a_l M' k_{l-1}, k_l = γ_l² k_{l-1} + y_l."""
        values, kernel = [], 0
        for x, gain, c in zip(sources, self.gains, self.coefficients, strict=True):
            values.append(x + gain * kernel)
            kernel = c.skip**2 * kernel + values[-1]
        return values


@dataclass(frozen=True, eq=False)
class TwoInputs:
    """Kernels and responses of two inputs; lists run over the layers.

    Parameters
    ----------
    first, second : OneInput
        Each input alone, of one network in one arithmetic.
    covariance : sympy.Expr
        K_αβ^(0), an exact number.
    """

    first: OneInput
    second: OneInput
    covariance: sp.Expr

    @property
    def are_identical(self) -> bool:
        """Whether both inputs are the same, so that roundings do not part them."""
        return self.first.input_kernel == self.second.input_kernel == self.covariance

    @cached_property
    def amplification(self) -> Any:
        """By how much roundings of C^(l), relative to variances, are larger in the worst layer."""
        error = largest = max(self.first.amplification, self.second.amplification)
        if self.are_identical:
            return largest
        sizes = [a * b for a, b in zip(self.first.kernels, self.second.kernels, strict=True)]
        for l, c in enumerate(self.first.coefficients[1:], start=1):
            growth = abs(c.skip**2 + self.gains[l]) * (sizes[l - 1] / (sizes[l] or 1)) ** 0.5
            error = largest + growth * error
            largest = max(largest, error)
        return largest

    @property
    def residual_kernels(self) -> list[Any]:
        """C_αβ^(l) = a_l ⟨φ_α φ_β⟩ + c_l for l = 0, ..., L + 1 (F25 eq. (108))."""
        return self._kernels[0]

    @property
    def kernels(self) -> list[Any]:
        """K_αβ^(l) = γ_l² K_αβ^(l-1) + C_αβ^(l) for l = 0, ..., L + 1."""
        return self._kernels[1]

    @cached_property
    def gains(self) -> list[Any]:
        """a_l ⟨φ'_α φ'_β⟩ for l = 0, ..., L + 1, 0 for the input."""
        return self._gains(K_XY)

    @cached_property
    def response(self) -> list[Any]:
        """χ_αβ^(l) = ∂K_αβ^(l)/∂K_αβ^(0) for l = 0, ..., L + 1 (F25 eq. (129))."""
        chi = [self.first.arithmetic.number(sp.S.One)]
        for c, gain in zip(self.first.coefficients[1:], self.gains[1:], strict=True):
            chi.append((c.skip**2 + gain) * chi[-1])
        return chi

    @cached_property
    def residual_response(self) -> list[Any]:
        """η_αβ^(l) = ∂C_αβ^(l)/∂K_αβ^(0) for l = 0, ..., L + 1 (F25 eq. (128))."""
        chi = self.response
        return [chi[0], *(gain * x for gain, x in zip(self.gains[1:], chi, strict=False))]

    @cached_property
    def by_variances(self) -> tuple[list[Any], list[Any]]:
        """∂K_αβ^(l)/∂K_αα^(0) and ∂K_αβ^(l)/∂K_ββ^(0) for l = 0, ..., L + 1."""
        responses = []
        for variable, own in ((K_XX, self.first), (K_YY, self.second)):
            chi, sources = [self.first.arithmetic.number(sp.S.Zero)], self._gains(variable)
            for l, c in enumerate(self.first.coefficients[1:], start=1):
                driven = sources[l] * own.response[l - 1]
                chi.append((c.skip**2 + self.gains[l]) * chi[-1] + driven)
            responses.append(chi)
        return responses[0], responses[1]

    @cached_property
    def _kernels(self) -> tuple[list[Any], list[Any]]:
        if self.are_identical:
            return self.first.residual_kernels, self.first.kernels
        moment = self._compiled(self.first.averages.covariance)
        start = self.first.arithmetic.number(self.covariance)
        C, K = [start], [start]
        for l, c in enumerate(self.first.coefficients[1:]):
            product = moment(self.first.kernels[l], self.second.kernels[l], K[l])
            C.append(c.weight * product + c.bias)
            K.append(c.skip**2 * K[l] + C[-1])
        return C, K

    def _gains(self, variable: sp.Symbol) -> list[Any]:
        """a_l times the derivative of ⟨φ_α φ_β⟩ by one of the variances or the covariance."""
        slope = self._compiled(self.first.averages.covariance.diff(variable))
        own = zip(self.first.kernels, self.second.kernels, self.kernels, strict=True)
        layers = zip(self.first.coefficients[1:], own, strict=False)
        return [0, *(c.weight * slope(*K) for c, K in layers)]

    def _compiled(self, expression: sp.Expr) -> Any:
        return self.first.arithmetic.compiled([K_XX, K_YY, K_XY], expression)


def theory_of(network: LayeredNetwork, K0: Any, arithmetic: Arithmetic) -> OneInput | TwoInputs:
    """The theory of one input, or of two for a matrix K0 of exact numbers."""
    if not isinstance(K0, sp.MatrixBase):
        return OneInput(network, K0, arithmetic)
    first, second = (OneInput(network, K0[i, i], arithmetic) for i in range(2))
    return TwoInputs(first, second, K0[0, 1])


def exact_kernel(K0: Any) -> sp.Expr | sp.ImmutableMatrix:
    """K0 as an exact number, or as a matrix of those of two inputs.

    Examples
    --------
    >>> exact_kernel("0.1"), exact_kernel(0.1), exact_kernel([["1/2", 0], [0, 0.25]])
    (1/10, 3602879701896397/36028797018963968, Matrix([
    [1/2,   0],
    [  0, 1/4]]))
    """
    K0 = validation.without_tensors(K0)
    shape = np.shape(np.array(K0, dtype=object))
    if shape == ():
        variances, kernel = [_exact(K0)], _exact(K0)
    elif shape == (2, 2):
        kernel = sp.ImmutableMatrix(
            [[_exact(value) for value in row] for row in np.array(K0, object)]
        )
        variances = [kernel[0, 0], kernel[1, 1]]
        if kernel[0, 1] != kernel[1, 0]:
            raise ValueError(f"K0 must be symmetric, got {validation.excerpt(K0)}")
        if kernel.det() < 0:
            raise ValueError(
                "K0 must be positive semidefinite, got the determinant "
                f"{float(kernel.det()):.3g} of its numbers taken as exact"
            )
    else:
        raise ValueError(f"K0 must be of one input or (2, 2) with digits, got shape {shape}")
    if min(variances) <= 0:
        raise ValueError(f"K0 must have variances > 0 with digits, got {min(variances)}")
    return kernel


def _exact(value: Any) -> sp.Rational:
    real = number(value.item() if isinstance(value, np.generic | np.ndarray) else value)
    if isinstance(real, float) and isfinite(real):
        return sp.Rational(exact(real))
    raise ValueError(f"K0 must have finite rational numbers with digits, got {value!r}")


def of_layers(theory: OneInput | TwoInputs, name: str) -> np.ndarray:
    """A quantity of all layers up to the output, (L + 2,), or matrices (L + 2, 2, 2) of two."""
    if isinstance(theory, OneInput):
        return np.array(getattr(theory, name), dtype=object)
    first, second, both = (getattr(each, name) for each in (theory.first, theory.second, theory))
    return matrices(first, second, both, both)


def matrices(first: Any, second: Any, upper: Any, lower: Any) -> np.ndarray:
    """Matrices (..., 2, 2) of two inputs from lists over the layers."""
    rows = zip(first, upper, lower, second, strict=True)
    return np.array([[[a, b], [c, d]] for a, b, c, d in rows], dtype=object)


def transposed(rows: Matrix) -> Matrix:
    """The columns of a matrix."""
    return [list(column) for column in zip(*rows, strict=True)]
