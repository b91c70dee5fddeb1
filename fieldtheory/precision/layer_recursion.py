"""The theory of one input and of two over the layers, in any arithmetic.

The entries are those that the derivation takes from the action (`layer_averages`); the arithmetic
says what a number is and how an average is evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
import sympy as sp

from fieldtheory import validation
from fieldtheory.networks.family import Coefficients, DeepNetwork, LayeredNetwork
from fieldtheory.networks.gram import GramEntry
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.precision.arithmetic import Arithmetic, Correlators
from fieldtheory.theory.elementary_averages import (
    K_XX,
    K_XY,
    K_YY,
    LayerAverages,
    layer_averages,
    network_averages,
)
from fieldtheory.validation import exact, number

Matrix = list[list[Any]]
Pair = tuple[int, int]
Lists = dict[Pair, list[Any]]


def exact_coefficients(network: DeepNetwork) -> list[Coefficients]:
    """a_l, c_l and γ_l for l = 0, ..., L + 1 without rounding, zero for the input.

    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> exact_coefficients(ResidualNetwork(depth=1, branch_scale=0.5, bias_variance=0.0))[1]
    Coefficients(weight=5/16, bias=0, skip=1)
    """
    of_layers = parameters_of_layers(network)
    layers = (0, 0, 0), *map(network.layer, of_layers), network.readout(of_layers[-1])
    return [Coefficients(*map(sp.sympify, each)) for each in layers]


def parameters_of_layers(network: DeepNetwork) -> list[dict[str, Any]]:
    """`exact_parameters` of the layers 1, ..., L."""
    parameters = exact_parameters(network).items()
    return [
        {name: x[index] if isinstance(x, list) else x for name, x in parameters}
        for index in range(network.depth)
    ]


def exact_parameters(network: DeepNetwork) -> dict[str, Any]:
    """Parameters as rational numbers, lists of those with one value for every layer."""
    own = {name: _exact_scales(network, name) for name in network.layer_parameters}
    return {
        name: [*map(_rational, own[name])] if name in own else _rational(value)
        for name, value in network.parameters.items()
    }


def _rational(value: Any) -> sp.Rational:
    return sp.Rational(exact(number(value)))


def _exact_scales(network: DeepNetwork, name: str) -> Any:
    """A parameter of every layer as it was given, irrational numbers as floats."""
    scale, rounded = getattr(network, name, None), network.parameters[name]
    if callable(scale):
        exact_or_not = [number(scale(l, network.depth)) for l in range(1, network.depth + 1)]
        pairs = zip(exact_or_not, rounded, strict=True)
        return [value if isinstance(value, float) else near for value, near in pairs]
    if scale is None or isinstance(scale, str):
        return rounded
    return np.broadcast_to(np.array(scale, dtype=object), network.depth)


class Layer(NamedTuple):
    """⟨φ²⟩ and ⟨φφ⟩ by the kernels before a layer, and s, which the skip connection carries."""

    moment: sp.Expr
    covariance: sp.Expr
    carried: sp.Expr
    carried_pair: sp.Expr


def layers_of_blocks(network: Any) -> list[Layer]:
    """Those of blocks, whose units see functions Q_k of the kernel, and of the readout."""
    found = []
    pair, own = GramEntry(K_XY, K_XX, K_YY), GramEntry(K_XX, K_XX, K_XX)
    of_layers = parameters_of_layers(network)
    for parameters in of_layers:
        moment = covariance = sp.S.One
        reads = (network.read(at, parameters) for at in (pair, own))
        signals = zip(*(network.signals(read, parameters) for read in reads), strict=True)
        for factor, (joint, variance) in zip(network.factors, signals, strict=True):
            averages = layer_averages(ResidualNetwork.features, factor, ())
            seen = {K_XX: variance, K_YY: variance.xreplace({K_XX: K_YY}), K_XY: joint}
            moment *= averages.moment.xreplace(seen)
            covariance *= averages.covariance.xreplace(seen)
        stream = network.stream(own, parameters), network.stream(pair, parameters)
        found.append(Layer(moment, covariance, *map(sp.sympify, stream)))
    read = network.read(own, of_layers[-1]), network.read(pair, of_layers[-1])
    return [*found, Layer(*map(sp.sympify, (*read, *found[-1][2:])))]


@dataclass(frozen=True, eq=False)
class Recursion:
    """Kernels and responses of one or two inputs, fluctuations of one; lists run over the layers.

    Quantities of pairs of inputs are mappings from (0, 0), and of two inputs (1, 1) and (0, 1).

    Parameters
    ----------
    network : LayeredNetwork
        Without batch axes.
    input_kernel : sympy.Expr, or a matrix of two inputs
        Exact numbers, variances positive.
    arithmetic : Arithmetic

    Examples
    --------
    >>> from fieldtheory.networks.residual import ResidualNetwork
    >>> from fieldtheory.precision.layer_correlators import MPMATH
    >>> linear = ResidualNetwork(depth=2, activation="linear", weight_variance=0.5, width=10)
    >>> one = Recursion(linear, sp.Rational(1, 2), MPMATH)
    >>> [float(x) for x in one.response[0, 0]], [float(x) for x in one.kernels[0, 0]]
    ([1.0, 1.5, 2.25, 1.125], [0.5, 0.8, 1.25, 0.675])
    """

    network: DeepNetwork
    input_kernel: Any
    arithmetic: Arithmetic

    @cached_property
    def coefficients(self) -> list[Coefficients]:
        """a_l, c_l and γ_l for l = 0, ..., L + 1."""
        layers = exact_coefficients(self.network)
        return [Coefficients(*map(self.arithmetic.number, each)) for each in layers]

    @cached_property
    def inputs(self) -> dict[Pair, sp.Expr]:
        """K_αβ^(0) of the pairs of inputs, variances first."""
        K0 = self.input_kernel
        if not isinstance(K0, sp.MatrixBase):
            return {(0, 0): K0}
        return {pair: K0[pair] for pair in ((0, 0), (1, 1), (0, 1))}

    @property
    def are_identical(self) -> bool:
        """Whether two inputs are the same, so that roundings do not part them."""
        return len(self.inputs) > 1 and len(set(self.inputs.values())) == 1

    @cached_property
    def gains(self) -> Lists:
        """a_l M'(K^(l-1)), or a_l ⟨φ'_α φ'_β⟩, for l = 0, ..., L + 1, 0 for the input."""
        return {(i, j): self._gains((i, j), K_XX if i == j else K_XY) for i, j in self.inputs}

    @cached_property
    def growth(self) -> Lists:
        """γ_l² ∂s/∂K + a_l M'(K^(l-1)), by which responses grow in layer l; 0 for the input."""
        growth = {}
        for (i, j), gains in self.gains.items():
            carried = self._carried((i, j), K_XX if i == j else K_XY)
            layers = zip(self.coefficients[1:], carried, gains[1:], strict=False)
            growth[i, j] = [gains[0], *(c.skip**2 * s + gain for c, s, gain in layers)]
        return growth

    @cached_property
    def response(self) -> Lists:
        """χ^(l) = ∂K^(l)/∂K^(0) for l = 0, ..., L + 1, χ^out last (F25 eqs. (53), (55), (129))."""
        return {
            pair: list(accumulate(growth[1:], lambda chi, r: r * chi, initial=self._one))
            for pair, growth in self.growth.items()
        }

    @cached_property
    def residual_response(self) -> Lists:
        """η^(l) = ∂C^(l)/∂K^(0) for l = 0, ..., L + 1 (F25 eqs. (51), (128))."""
        return {
            pair: [chi[0], *(gain * x for gain, x in zip(self.gains[pair][1:], chi, strict=False))]
            for pair, chi in self.response.items()
        }

    @cached_property
    def by_variances(self) -> tuple[list[Any], list[Any]]:
        """∂K_αβ^(l)/∂K_αα^(0) and ∂K_αβ^(l)/∂K_ββ^(0) for l = 0, ..., L + 1."""
        responses, growth = [], self.growth[0, 1]
        for i, variable in enumerate((K_XX, K_YY)):
            chi, sources = [self.arithmetic.number(sp.S.Zero)], self._gains((0, 1), variable)
            carried = self._carried((0, 1), variable)
            for l in range(1, len(growth)):
                source = sources[l] + self.coefficients[l].skip ** 2 * carried[l - 1]
                chi.append(growth[l] * chi[-1] + source * self.response[i, i][l - 1])
            slopes = self._carried((0, 1), K_XY), carried, chi, self.response[i, i]
            behind = [s * x + moved * y for s, moved, x, y in zip(*slopes, strict=False)]
            responses.append([*behind, chi[-1]])
        return responses[0], responses[1]

    @cached_property
    def amplification(self) -> Any:
        """By how much roundings of C^(l), relative to variances, are larger in the worst layer."""
        largest = 1
        for (i, j), growth in self.growth.items():
            if i != j and self.are_identical:
                continue
            sizes = self.kernels[i, j]
            if i != j:
                own = zip(self.kernels[i, i], self.kernels[j, j], strict=True)
                sizes = [(a * b) ** 0.5 for a, b in own]
            source = error = 1 if i == j else largest
            for r, before, size in zip(growth[1:], sizes, sizes[1:], strict=False):
                error = source + abs(r) * before / (size or 1) * error
                largest = max(largest, error)
        return largest

    def of_layers(self, name: str) -> np.ndarray:
        """A quantity of all layers up to the output, (L + 2,), or matrices (L + 2, 2, 2) of two."""
        values = getattr(self, name)
        if len(values) == 1:
            return np.array(values[0, 0], dtype=object)
        return matrices(values[0, 0], values[1, 1], values[0, 1], values[0, 1])

    @cached_property
    def kernel_derivatives(self) -> Matrix:
        """∂K^(l)/∂C^(m) = Π_{m<j<=l} growth_j, 0 for l < m, for l, m = 0, ..., L."""
        size = self.network.depth + 1
        responses = [[0] * size for _ in range(size)]
        for m in range(size):
            responses[m][m] = self._one
            for l in range(m + 1, size):
                responses[l][m] = self.growth[0, 0][l] * responses[l - 1][m]
        return responses

    @cached_property
    def propagator(self) -> Matrix:
        """N G12 = ∂C^(l)/∂C^(m), (L + 2, L + 2) (F25 eq. (49))."""
        gains = zip(self.gains[0, 0][1:], self.kernel_derivatives, strict=True)
        matrix = [[gain * x for x in row] + [0] for gain, row in gains]
        matrix.insert(0, [0] * (self.network.depth + 2))
        for l, row in enumerate(matrix):
            row[l] = self._one
        return matrix

    @cached_property
    def signals(self) -> Matrix:
        """Cov(h^(k), h^(l)) = γ_{k+1} ... γ_l K^(k) for k <= l, (L + 1, L + 1)."""
        size = self.network.depth + 1
        matrix = [[0] * size for _ in range(size)]
        for k in range(size):
            value = matrix[k][k] = self.kernels[0, 0][k]
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
        half = [self._propagated(column) for column in _transposed(self.source)]
        return [self._propagated(column) for column in _transposed(half)]

    @cached_property
    def kernel_variance(self) -> list[Any]:
        """N Var K^(l) = N Σ_km A²_lk A²_lm G11^km for l = 0, ..., L."""
        half = [self._accumulated(column) for column in _transposed(self.fluctuations)]
        whole = [self._accumulated(column) for column in _transposed(half)]
        return [whole[l][l] for l in range(self.network.depth + 1)]

    @cached_property
    def mean_shift(self) -> list[Any]:
        """N (⟨C^(l)⟩ − C*^(l)) for l = 0, ..., L + 1: one loop."""
        curvatures = self._at_kernels((0, 0), 0, K_XX, K_XX)
        weights = [coefficients.weight for coefficients in self.coefficients]
        slopes, sources = self.correlators.slopes, [0 * self._one]
        for l, curvature in enumerate(curvatures):
            source = curvature * self.kernel_variance[l] / 2
            for k in range(1, l + 1):
                source += weights[k] * slopes[k - 1][l] * self.kernel_derivatives[l][k]
            sources.append(weights[l + 1] * source)
        return self._propagated(sources)

    @property
    def kernel_shift(self) -> list[Any]:
        """N (⟨K^(l)⟩ − K*^(l)) for l = 0, ..., L + 1, by K^(l) = γ_l² K^(l-1) + C^(l)."""
        return self._accumulated(self.mean_shift)

    @property
    def four_point(self) -> list[Any]:
        """V^(l) = N Var K^(l) + 2 Σ_{k<=l} A²_lk Σ_m N G12^km β_m for l = 0, ..., L."""
        gains, values = self.gains[0, 0], []
        for l, variance in enumerate(self.kernel_variance):
            terms = (
                self.kernel_derivatives[l][m] * 2 * gains[m] * self.signals[l][m - 1] ** 2
                for m in range(1, l + 1)
            )
            values.append(variance + 2 * sum(terms))
        return values

    @property
    def averages(self) -> LayerAverages:
        """The averages of a layer, symbolic."""
        assert isinstance(self.network, LayeredNetwork)
        return network_averages(self.network)

    @property
    def residual_kernels(self) -> Lists:
        """C^(l) = a_l ⟨φ_α φ_β⟩ + c_l for l = 0, ..., L + 1 (F25 eqs. (29), (108))."""
        return {pair: C for pair, (C, _) in self._kernels.items()}

    @property
    def kernels(self) -> Lists:
        """K^(l) = γ_l² K^(l-1) + C^(l) for l = 0, ..., L + 1 (F25 eq. (30))."""
        return {pair: K for pair, (_, K) in self._kernels.items()}

    @cached_property
    def _kernels(self) -> dict[Pair, tuple[list[Any], list[Any]]]:
        kernels: dict[Pair, tuple[list[Any], list[Any]]] = {}
        for (i, j), K0 in self.inputs.items():
            if i != j and self.are_identical:
                kernels[i, j] = kernels[i, i]
                continue
            C, K = [self.arithmetic.number(K0)], [self.arithmetic.number(K0)]
            for l, c in enumerate(self.coefficients[1:]):
                own = [kernels[n, n][1][l] for n in (i, j) if i != j]
                average, carried = self._functions((i, j))[l]
                C.append(c.weight * average(*own, K[l]) + c.bias)
                K.append(c.skip**2 * carried(*own, K[l]) + C[-1])
            kernels[i, j] = C, K
        return kernels

    @cached_property
    def layers(self) -> list[Layer]:
        """What the layers l = 1, ..., L + 1 average, and what they carry on."""
        if isinstance(self.network, LayeredNetwork):
            averages = network_averages(self.network)
            alike = Layer(averages.moment, averages.covariance, K_XX, K_XY)
            return [alike] * (self.network.depth + 1)
        return layers_of_blocks(self.network)

    def reported(self, values: np.ndarray, name: str) -> np.ndarray:
        """``kernels`` or ``response`` of all layers behind the norm of the stream."""
        if self.layers[0].carried == K_XX:
            return values
        found = {}
        for i, j in self.inputs:
            carried = self._carried((i, j), *[K_XX if i == j else K_XY][: name == "response"])
            last = getattr(self, name)[i, j]
            if name == "response":
                carried = [s * chi for s, chi in zip(carried, last, strict=False)]
            found[i, j] = [*carried[: len(last) - 1], last[-1]]
        if len(found) == 1:
            return np.array(found[0, 0], dtype=object)
        return matrices(found[0, 0], found[1, 1], found[0, 1], found[0, 1])

    def _functions(self, pair: Pair, *derivative: sp.Symbol) -> list[tuple[Any, Any]]:
        """⟨φ_α φ_β⟩ and s, or their derivatives, by the kernels before each layer."""
        own = pair[0] == pair[1]
        arguments = [K_XX] if own else [K_XX, K_YY, K_XY]
        found: dict[Layer, tuple[Any, Any]] = {}
        for layer in set(self.layers):
            average = layer.moment if own else layer.covariance
            carried = layer.carried if own else layer.carried_pair
            found[layer] = tuple(  # type: ignore[assignment]
                self.arithmetic.compiled(arguments, each.diff(*derivative) if derivative else each)
                for each in (average, carried)
            )
        return [found[layer] for layer in self.layers]

    def _at_kernels(self, pair: Pair, which: int, *derivative: sp.Symbol) -> list[Any]:
        own = [self.kernels[n, n] for n in pair if pair[0] != pair[1]]
        functions = self._functions(pair, *derivative)
        layers = zip(functions, *own, self.kernels[pair], strict=False)
        return [each[which](*K) for each, *K in layers]

    def _gains(self, pair: Pair, variable: sp.Symbol) -> list[Any]:
        """a_l times the derivative of ⟨φ_α φ_β⟩ by one of the variances or the covariance."""
        slopes = self._at_kernels(pair, 0, variable)
        layers = zip(self.coefficients[1:], slopes, strict=True)
        return [0, *(c.weight * slope for c, slope in layers)]

    def _carried(self, pair: Pair, *derivative: sp.Symbol) -> list[Any]:
        """s(K^(l)), or its derivative, of the layers 0, ..., L."""
        return self._at_kernels(pair, 1, *derivative)

    @property
    def _one(self) -> Any:
        return self.arithmetic.number(sp.S.One)

    def _propagated(self, sources: list[Any]) -> list[Any]:
        """Δ12 times a vector: y_l = x_l + a_l M' k_{l-1}, k_l = γ_l² k_{l-1} + y_l."""
        values, kernel = [], 0
        for x, gain, c in zip(sources, self.gains[0, 0], self.coefficients, strict=True):
            values.append(x + gain * kernel)
            kernel = c.skip**2 * kernel + values[-1]
        return values

    def _accumulated(self, rows: list[Any]) -> list[Any]:
        """Σ_m A²_lm rows_m for every l."""
        layers = zip(rows, self.coefficients, strict=False)
        sums = accumulate(layers, lambda K, of: of[1].skip ** 2 * K + of[0], initial=0 * self._one)
        return list(sums)[1:]


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


def matrices(first: Any, second: Any, upper: Any, lower: Any) -> np.ndarray:
    """Matrices (..., 2, 2) of two inputs from lists over the layers."""
    rows = zip(first, upper, lower, second, strict=True)
    return np.array([[[a, b], [c, d]] for a, b, c, d in rows], dtype=object)


def _transposed(rows: Matrix) -> Matrix:
    return [list(column) for column in zip(*rows, strict=True)]
