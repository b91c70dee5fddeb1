"""Derivatives of kernels by the parameters of the network, as recursions over the layers.

With δ the derivative by a parameter, of kernels and of the coefficients a_l, c_l, γ_l² of F25 eqs.
(29), (30), (108),

    δK_αβ^(l) = γ_l² δK_αβ^(l-1) + δγ_l² K_αβ^(l-1) + δa_l ⟨φ_α φ_β⟩ + δc_l
                + a_l (⟨φ'_α φ'_β⟩ δK_αβ + ½⟨φ''_α φ_β⟩ δK_αα + ½⟨φ_α φ''_β⟩ δK_ββ)^(l-1)

by Price's theorem, from δK^(0) = δσ²_w,in x_α x_β/d + δσ²_b,in.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import sympy as sp

from fieldtheory.compiling.functions import lambdify
from fieldtheory.networks.coefficients import LayerCoefficients, layer_coefficients
from fieldtheory.networks.family import LayeredNetwork
from fieldtheory.networks.parameters import unknown_argument
from fieldtheory.numerics.entries import network_entries
from fieldtheory.numerics.finite import require_finite
from fieldtheory.numerics.kernels import by_tiles, identical, variances
from fieldtheory.numerics.recursion import carried, residual_kernel
from fieldtheory.numerics.tangents import Pairs

_READIN = ("readin_weight_variance", "readin_bias_variance")


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
        Of a variance, with which others move that are left out and follow it; or of a scale, of
        which a number is added to those of all layers.

    Raises
    ------
    TypeError
        If the network has no such argument.
    ValueError
        If the variance of the read-in weights moves and is zero: then K^(0) does not tell the
        inputs apart, and δK^(0) does.
    """
    parameters = network.parameters
    if name not in parameters:
        raise TypeError(unknown_argument(name, tuple(parameters)))
    with_it = {name}
    if name not in network.layer_parameters:
        other = network.replace(**{name: parameters[name] + 1.0}).parameters
        with_it = {each for each, value in other.items() if np.any(value != parameters[each])}
    weight, bias = (float(each in with_it) for each in _READIN)
    if weight:
        variance, offset = (parameters[each] for each in _READIN)
        if variance == 0:
            raise ValueError(f"{_READIN[0]} must be positive for the derivative by {name}, got 0")
        weight, bias = 1 / variance, bias - offset / variance
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


@dataclass(frozen=True)
class DerivativeRecursion:
    """δK_αβ of a hidden layer, or of the output.

    Parameters
    ----------
    network : LayeredNetwork
        Without batch axes.
    name : str
        An argument of the network, see `moved`.
    layer : int
        From 1 to L + 1.
    """

    network: LayeredNetwork
    name: str
    layer: int
    odd: ClassVar[tuple[bool, ...]] = (False,)

    @cached_property
    def _moved(self) -> Moved:
        return moved(self.network, self.name)

    def own(self, K0: np.ndarray) -> np.ndarray:
        """K^(l) and δK^(l) of all layers, shape (2, L + 2, P)."""
        entries, coefficients = network_entries(self.network), layer_coefficients(self.network, 1)
        K = variances(self.network, K0, 1)[1]
        change, weight, bias = self._moved
        moments, slopes = entries.second_moment(K[:-1]), entries.susceptibility(K[:-1])
        delta = np.empty_like(K)
        delta[0] = weight * K[0] + bias
        with np.errstate(over="ignore", invalid="ignore"):
            for l in range(1, len(K)):
                source = _source(change, l, moments[l - 1], K[l - 1])
                response = _product(coefficients.weights[l] * slopes[l - 1], delta[l - 1])
                delta[l] = carried(coefficients.skips[l], delta[l - 1], source + response)
                require_finite(f"the derivative by {self.name}", delta[l], l)
        return np.stack([K, delta])

    def pairs(self, own: np.ndarray, K0: np.ndarray, pairs: Pairs) -> np.ndarray:
        """The recursion over the layers."""
        gradient = network_entries(self.network).covariance_gradient
        layers, (change, weight, bias) = layer_coefficients(self.network, 1), self._moved
        K, delta = own

        def through(K0: np.ndarray, pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
            first, second = pairs
            same = identical(K[0], K0, pairs)
            kernel, moving = K0, weight * K0 + bias
            with np.errstate(over="ignore", invalid="ignore"):
                for l in range(1, self.layer + 1):
                    average, *slopes = gradient(K[l - 1][first], K[l - 1][second], kernel)
                    movements = delta[l - 1][first], delta[l - 1][second], moving
                    response = sum(map(_product, slopes, movements))
                    source = _source(change, l, average, kernel)
                    moving = carried(layers.skips[l], moving, source + layers.weights[l] * response)
                    C = residual_kernel(layers.weights[l], layers.biases[l], average)
                    kernel = carried(layers.skips[l], kernel, C)
                    if same.any():
                        kernel = np.where(same, K[l][first], kernel)
                        moving = np.where(same, delta[l][first], moving)
            return kernel, moving

        return np.asarray(by_tiles(through, K, K0, pairs)[1:])

    def diagonal(self, own: np.ndarray) -> np.ndarray:
        """δK^(layer) of single inputs."""
        return own[1:, self.layer]

    def factors(self, own: np.ndarray) -> np.ndarray:
        """√K^(layer)."""
        return np.sqrt(own[:1, self.layer])


def _source(change: LayerCoefficients, l: int, average: Any, kernel: Any) -> Any:
    """What moves a kernel in a layer while those before it stay."""
    own = residual_kernel(change.weights[l], change.biases[l], average)
    return carried(change.skips[l], kernel, own)


def _product(slope: np.ndarray, movement: np.ndarray) -> np.ndarray:
    """Zero where nothing moves, though slopes of φ with kinks diverge there."""
    return np.where(movement == 0, 0.0, slope * movement)
