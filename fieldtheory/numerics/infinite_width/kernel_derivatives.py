"""Derivatives of kernels, responses and tangent kernels by the parameters of the network.

The recursions over the layers (F25 eqs. (30), (108), (128), SR eq. (9)),

    K^(l) = γ_l² K^(l-1) + C^(l),   χ^(l) = (γ_l² + a_l P) χ^(l-1),
    Θ^(l) = (γ_l² + a_l P) Θ^(l-1) + C^(l),   C^(l) = a_l ⟨φ_α φ_β⟩ + c_l,   P = ⟨φ'_α φ'_β⟩,

are taken of numbers that bring their derivative δ by the parameter along, from
δK^(0) = δσ²_w,in x_α x_β/d + δσ²_b,in. Averages move as the kernels do, by Price's theorem,

    δ⟨φφ⟩ = ⟨φ'_α φ'_β⟩ δK_αβ + ½⟨φ''_α φ_β⟩ δK_αα + ½⟨φ_α φ''_β⟩ δK_ββ,

and P likewise. Where φ has kinks, the part at a fixed correlation is split off, which is finite for
all inputs; what is left, ⟨φ''φ''⟩ times δK_αβ − K_αβ/2 (δK_αα/K_αα + δK_ββ/K_ββ), turns the signals
against each other: for ReLU, P rises as a root where they become parallel, and has no derivative
there unless they stay so. Of identical inputs P is ⟨φ'²⟩, which has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import sympy as sp

from fieldtheory.averages.integrands.breakpoints import has_steps
from fieldtheory.compiling.functions import lambdify
from fieldtheory.networks.coefficients import LayerCoefficients, layer_coefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.networks.parameters import unknown_argument
from fieldtheory.numerics.finite import ratio, require_finite
from fieldtheory.numerics.infinite_width.kernels import by_tiles, identical, variances
from fieldtheory.numerics.infinite_width.layer_functions import network_functions
from fieldtheory.numerics.infinite_width.tangents import Pairs
from fieldtheory.numerics.recursion import carried, residual_kernel

_READIN = ("readin_weight_variance", "readin_bias_variance")
_DEVIATION = "_deviation"
_WORDS = {"response": "response", "tangent": "tangent kernel"}
# Signals are parallel if 1 − |c| is below; what turns them is zero below this part of its terms.
_PARALLEL, _ROUNDING = 1e-15, 1.5e-14


class Moved(NamedTuple):
    """How the coefficients of a network move with one of its arguments.

    Parameters
    ----------
    layers : LayerCoefficients
        δa_l, δc_l and δγ_l², shape (L + 2, 1).
    weight, bias : float
        δK^(0) = weight K^(0) + bias, the same for all pairs of inputs.
    """

    layers: LayerCoefficients
    weight: float
    bias: float


def moved(network: LayeredNetwork, name: str) -> Moved:
    """How the coefficients of a network without batch axes move with an argument of it.

    Parameters
    ----------
    network : LayeredNetwork
    name : str
        Of a variance, with which others move that are left out and follow it; with "deviation" for
        "variance" its root moves; or of a scale, of which a number is added to those of all layers.

    Raises
    ------
    TypeError
        If the network has no such argument.
    ValueError
        If the variance of the read-in weights moves and is zero: then K^(0) does not tell the
        inputs apart, and δK^(0) does.
    """
    parameters = network.parameters
    variance = f"{name.removesuffix(_DEVIATION)}_variance"
    if name.endswith(_DEVIATION) and variance in parameters:
        # ∂/∂σ = 2σ ∂/∂σ².
        by, change = moved(network, variance), 2 * float(np.sqrt(parameters[variance]))
        weights, biases, skips = by.layers.weights, by.layers.biases, by.layers.skips
        layers = LayerCoefficients(change * weights, change * biases, change * skips)
        return Moved(layers, change * by.weight, change * by.bias)
    if name not in parameters:
        raise TypeError(unknown_argument(name, tuple(parameters)))
    with_it = {name}
    if name not in network.layer_parameters:
        other = network.replace(**{name: parameters[name] + 1.0}).parameters
        with_it = {each for each, value in other.items() if np.any(value != parameters[each])}
    weight, bias = (float(each in with_it) for each in _READIN)
    if weight:
        readin, offset = (parameters[each] for each in _READIN)
        if readin == 0:
            raise ValueError(f"{_READIN[0]} must be positive for the derivative by {name}, got 0")
        weight, bias = 1 / readin, bias - offset / readin
    shape = (network.depth,)
    layer = np.broadcast_to(_slopes(network, network.layer, with_it), (3, *shape))
    readout = _slopes(network, network.readout, with_it)[:, -1:]
    a, c, skip = np.concatenate([np.zeros((3, 1)), layer, readout], axis=1)[:, :, None]
    return Moved(LayerCoefficients(a, c, skip), weight, bias)


def _slopes(network: LayeredNetwork, of: Any, names: set[str]) -> np.ndarray:
    """δa, δc and δγ² of the layers, or of the readout, (3, L) or (3, 1)."""
    parameters = network.parameters
    symbols = {name: sp.Symbol(name, nonnegative=True) for name in parameters}
    found = of(symbols)
    terms = (sp.sympify(each) for each in (found.weight, found.bias, found.skip**2))
    slopes = [sum((term.diff(symbols[name]) for name in names), sp.S.Zero) for term in terms]
    function = lambdify(list(symbols.values()), slopes, "numpy")
    return np.stack(np.broadcast_arrays(*function(*parameters.values()), np.zeros(1))[:3])


@dataclass(frozen=True, eq=False)
class Moving:
    """Numbers with their derivatives by a parameter.

    Examples
    --------
    >>> (Moving(3.0, 1.0) * Moving(3.0, 1.0) + Moving(1.0, 0.0)).slope
    6.0
    """

    value: Any
    slope: Any

    def __add__(self, other: Moving) -> Moving:
        return Moving(self.value + other.value, self.slope + other.slope)

    def __mul__(self, other: Moving) -> Moving:
        slope = self.value * other.slope + self.slope * other.value
        return Moving(self.value * other.value, slope)

    def __getitem__(self, index: Any) -> Moving:
        return Moving(self.value[index], self.slope[index])

    def where(self, chosen: np.ndarray, other: Moving) -> Moving:
        """Those of another where it is chosen, else these."""
        return Moving(
            np.where(chosen, other.value, self.value), np.where(chosen, other.slope, self.slope)
        )


@dataclass(frozen=True)
class DerivativeRecursion:
    """δ of a quantity of a hidden layer, or of the output.

    Parameters
    ----------
    network : LayeredNetwork
        Without batch axes.
    name : str
        An argument of the network, see `moved`.
    layer : int
        From 1 to L + 1.
    of : {"kernel", "response", "tangent"}
        K, χ or Θ with everything trained.
    """

    network: LayeredNetwork
    name: str
    layer: int
    of: str = "kernel"
    odd: ClassVar[tuple[bool, ...]] = (False,)

    def own(self, K0: np.ndarray) -> np.ndarray:
        """K^(l) and δK^(l), the quantity of identical inputs and its δ, and δ on the diagonal.

        Of all layers, shape (5, L + 2, P).
        """
        averages = network_functions(self.network)
        K = variances(self.network, K0, 1)[1]
        moments, slopes = averages.second_moment(K[:-1]), averages.susceptibility(K[:-1])
        kernel = [self._input(K[0])]
        for l in range(1, len(K)):
            moment = Moving(moments[l - 1], _product(slopes[l - 1], kernel[-1].slope))
            with np.errstate(over="ignore", invalid="ignore"):
                kernel.append(self._passed(l, kernel[-1], moment))
            require_finite(f"the derivative by {self.name}", kernel[-1].slope, l)
        delta = np.stack([each.slope for each in kernel])
        if self.of == "kernel":
            return np.stack([K, delta, K, delta, delta])
        moment = Moving(moments, _product(slopes, delta[:-1]))
        square = Moving(
            averages.slope_square(K[:-1]),
            _product(averages.slope_square_change(K[:-1]), delta[:-1]),
        )
        same = diagonal = self._of_inputs(kernel[0], moment, square)
        if self.of == "response":
            gain = Moving(slopes, _product(averages.curvature(K[:-1]), delta[:-1]))
            diagonal = self._of_inputs(kernel[0], moment, gain)
        return np.stack([K, delta, same.value, same.slope, diagonal.slope])

    def pairs(self, own: np.ndarray, K0: np.ndarray, pairs: Pairs) -> np.ndarray:
        """The recursion over the layers.

        Raises
        ------
        ValueError
            If φ has kinks and a quantity has no finite derivative.
        """
        single, of_same = Moving(*own[:2]), Moving(*own[2:4])

        def through(K0: np.ndarray, pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
            first, second = pairs
            same = identical(single.value[0], K0, pairs)
            kernel = self._input(K0)
            found = self._start(kernel)
            for l in range(1, self.layer + 1):
                inputs = single[l - 1, first], single[l - 1, second], kernel
                with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                    moment, slope = self._averages(*inputs)
                    if slope is not None:
                        self._require_finite(slope.slope[~same & np.isfinite(kernel.slope)], l)
                        found = self._passed(l, found, moment, slope)
                    kernel = self._passed(l, kernel, moment)
                if same.any():
                    kernel = kernel.where(same, single[l, first])
            found = kernel if self.of == "kernel" else found
            found = found.where(same, of_same[self.layer, first])
            return found.value, found.slope

        return np.asarray(by_tiles(through, own[0], K0, pairs)[1:])

    def diagonal(self, own: np.ndarray) -> np.ndarray:
        """δ of single inputs."""
        return own[4:, self.layer]

    def factors(self, own: np.ndarray) -> np.ndarray:
        """The root of the quantity of identical inputs."""
        return np.sqrt(own[2:3, self.layer])

    @cached_property
    def _moved(self) -> Moved:
        return moved(self.network, self.name)

    @cached_property
    def _layers(self) -> tuple[Moving, Moving, Moving]:
        """a_l, c_l and γ_l²."""
        layers, change = layer_coefficients(self.network, 1), self._moved.layers
        parts = (layers.weights, layers.biases, layers.skips)
        slopes = (change.weights, change.biases, change.skips)
        return tuple(Moving(*each) for each in zip(parts, slopes, strict=True))  # type: ignore

    def _input(self, K0: np.ndarray) -> Moving:
        return Moving(K0, self._moved.weight * K0 + self._moved.bias)

    def _start(self, kernel: Moving) -> Moving:
        unit = Moving(np.ones_like(kernel.value), np.zeros_like(kernel.value))
        return unit if self.of == "response" else kernel

    def _passed(self, l: int, before: Moving, moment: Moving, slope: Moving | None = None) -> Any:
        """What layer l makes of a kernel, or with the average of slopes of χ or Θ."""
        weight, bias, skip = (each[l] for each in self._layers)
        if slope is not None:
            skip = skip + weight * slope
            if self.of == "response":
                return skip * before
        return carried(skip, before, residual_kernel(weight, bias, moment))

    def _of_inputs(self, kernel: Moving, moment: Moving, slope: Moving) -> Moving:
        """The quantity of single inputs in all layers."""
        found = [self._start(kernel)]
        for l in range(1, self.network.depth + 2):
            self._require_finite(slope[l - 1].slope, l)
            with np.errstate(over="ignore", invalid="ignore"):
                found.append(self._passed(l, found[-1], moment[l - 1], slope[l - 1]))
        return Moving(np.stack([x.value for x in found]), np.stack([x.slope for x in found]))

    def _averages(self, x: Moving, y: Moving, kernel: Moving) -> tuple[Moving, Moving | None]:
        """⟨φφ⟩ and, if it is needed, ⟨φ'φ'⟩."""
        averages = network_functions(self.network)
        at, moves = (
            (x.value, y.value, kernel.value),
            (x.slope, y.slope, kernel.slope),
        )
        if self.of == "kernel":
            average, *by = averages.covariance_gradient(*at)
            return Moving(average, _total(by, moves)), None
        if has_steps(averages.averages.observable):
            average, m_x, m_y, slope, p_x, p_y, turning = averages.covariance_scaling(*at)
            c = at[2] / np.sqrt(at[0] * at[1])
            turning = np.where(1 - np.abs(c) < _PARALLEL, np.inf, turning)
            by, of_slope = [m_x, m_y, slope], [p_x, p_y, turning]
            moves = *moves[:2], _turned(x, y, kernel)
        else:
            average, *by = averages.covariance_flow(*at)
            by, of_slope, slope = by[:3], by[3:], by[2]
        return Moving(average, _total(by, moves)), Moving(slope, _total(of_slope, moves))

    def _require_finite(self, slopes: np.ndarray, layer: int) -> None:
        if not np.isfinite(slopes).all():
            raise ValueError(
                f"the {_WORDS[self.of]} of {self.network.activation.name} has no finite derivative "
                f"by {self.name}: φ has kinks, and in layer {layer - 1} two inputs are parallel or "
                "one vanishes"
            )


def _turned(x: Moving, y: Moving, kernel: Moving) -> np.ndarray:
    """What moves a covariance besides its variances, zero within rounding."""
    along = [kernel.value / 2 * ratio(each.slope, each.value) for each in (x, y)]
    left = kernel.slope - along[0] - along[1]
    size = np.abs(kernel.slope) + np.abs(along[0]) + np.abs(along[1])
    return np.where(np.abs(left) <= _ROUNDING * size, 0.0, left)


def _total(slopes: Sequence[np.ndarray], movements: Sequence[np.ndarray]) -> Any:
    return sum(map(_product, slopes, movements))


def _product(slope: np.ndarray, movement: np.ndarray) -> np.ndarray:
    """Zero where nothing moves, though slopes of φ with kinks diverge there."""
    return np.where(movement == 0, 0.0, slope * movement)
