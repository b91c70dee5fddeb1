"""Symbolic blocks evaluated for a network: the saddle point first, then the block at it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory import validation
from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.averages.steps import sift
from fieldtheory.compiling.functions import lambdify
from fieldtheory.networks.activations import Activation
from fieldtheory.networks.residual import ResidualNetwork
from fieldtheory.theory import notation as sym
from fieldtheory.theory.derivation import Derivation


def block_function(derivation: Derivation, name: str) -> Callable[..., np.ndarray]:
    """See `Derivation.lambdify`."""
    kernels = derivation.network_action.kernels

    @lru_cache(maxsize=8)
    def compiled(activation: Activation | None) -> tuple[list[Callable], Callable, list]:
        saddle = [_with(e, activation) for e in derivation.saddle_point.kernels.values()]
        block = derivation.block(name).applyfunc(lambda e: _with(e, activation))
        found = block.free_symbols.union(*(e.free_symbols for e in saddle))
        parameters = sorted(found - set(kernels), key=str)
        steps = [
            lambdify([*parameters, *kernels[:j]], expression) for j, expression in enumerate(saddle)
        ]
        return steps, lambdify([*parameters, *kernels], block), parameters

    def function(network: ResidualNetwork, K0: Any) -> np.ndarray:
        _check(derivation, network)
        steps, block, parameters = compiled(
            network.activation if derivation.activation is None else None
        )
        values = parameter_values(network, K0, derivation.inputs)
        numbers = [values[p] for p in parameters]
        found: list[float] = []
        for step in steps:
            found.append(float(step(*numbers, *found)))
        return block(*numbers, *found)

    return function


def parameter_values(network: ResidualNetwork, K0: Any, inputs: int = 1) -> dict[sp.Symbol, float]:
    """The values of the symbols of the theory for a network and its input kernel, with ν_l = 1.

    Parameters
    ----------
    network : ResidualNetwork
        Without batch axes.
    K0 : float or array_like, shape (P, P)
    inputs : int
        P.

    Returns
    -------
    dict
        Symbol to float.
    """
    kernel = np.atleast_2d(validation.input_kernel_array("K0", K0))
    if kernel.shape != (inputs, inputs):
        raise ValueError(f"K0 must have shape ({inputs}, {inputs}), got {np.shape(K0)}")
    readout_weight, readout_bias = network.readout_variances
    values = {
        sym.WIDTH: float(network.width),
        sym.WEIGHT: network.weight_variance**0.5,
        sym.BIAS: network.bias_variance**0.5,
        sym.READOUT_WEIGHT: readout_weight**0.5,
        sym.READOUT_BIAS: readout_bias**0.5,
    }
    for layer in range(network.depth + 2):
        values[sym.relative_width(layer)] = 1.0
    for layer in range(1, network.depth + 1):
        values[sym.branch_scale(layer)] = float(network.branch_scales[layer - 1])
        values[sym.skip_scale(layer)] = float(network.skip_scales[layer - 1])
    for pair in sym.pairs(inputs):
        values[sym.data_kernel(pair, inputs)] = float(kernel[pair])
    return values


def _with(expr: sp.Expr, activation: Activation | None) -> sp.Expr:
    """The expression with the undetermined φ inside its averages put in."""
    if activation is None:
        return expr
    nodes = expr.atoms(GaussianAverage, ConnectedCorrelator)
    return expr.xreplace({node: _node_with(node, activation) for node in nodes})


def _node_with(node: sp.Expr, activation: Activation) -> sp.Expr:
    *integrands, variables, covariance = node.args
    known = [sift(F.replace(sym.phi, activation).doit(), tuple(variables)) for F in integrands]
    return type(node)(*known, variables, covariance)


def _check(derivation: Derivation, network: ResidualNetwork) -> None:
    if network.depth != derivation.depth:
        raise ValueError(
            f"network must have the depth {derivation.depth} of the derivation, got {network.depth}"
        )
    if network.branch_scales.ndim > 1 or network.skip_scales.ndim > 1:
        raise ValueError(
            "network must not have batch axes, got branch_scale or skip_scale with one"
        )
    if derivation.activation not in (None, network.activation):
        raise ValueError(
            f"network must have the activation {derivation.activation.name} of the derivation, "
            f"got {network.activation.name}"
        )
