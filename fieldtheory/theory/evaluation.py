"""Symbolic blocks evaluated for a network: the saddle point first, then the block at it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp
from scipy.linalg import solve_triangular

from fieldtheory import validation
from fieldtheory.averages.integrands.steps import sift
from fieldtheory.averages.nodes.base import AverageNode
from fieldtheory.compiling.functions import lambdify
from fieldtheory.networks.activations import Activation
from fieldtheory.networks.family import DeepNetwork, input_width
from fieldtheory.theory import notation as sym
from fieldtheory.theory.hessian import Hessian


def block_function(
    saddle: Mapping[sp.Symbol, sp.Expr], block: sp.ImmutableMatrix, inputs: int
) -> Callable[..., np.ndarray]:
    """A block at the saddle point as a function of a network, K0, φ and a convention."""
    kernels = tuple(saddle)

    @lru_cache(maxsize=8)
    def compiled(activation: Activation | None) -> tuple[list[Callable], Callable, list]:
        rows = [with_activation(e, activation) for e in saddle.values()]
        explicit = block.applyfunc(lambda e: with_activation(e, activation))
        symbols = explicit.free_symbols.union(*(e.free_symbols for e in rows))
        parameters = sorted(symbols - set(kernels), key=str)
        steps = [lambdify([*parameters, *kernels[:j]], row) for j, row in enumerate(rows)]
        return steps, lambdify([*parameters, *kernels], explicit), parameters

    def function(
        network: DeepNetwork, K0: Any, activation: Activation | None, convention: str
    ) -> np.ndarray:
        steps, last, parameters = compiled(activation)
        values = symbol_values(network, K0, inputs, convention)
        numbers = [values[p] for p in parameters]
        kernel_values: list[float] = []
        for step in steps:
            kernel_values.append(float(step(*numbers, *kernel_values)))
        return last(*numbers, *kernel_values)

    return function


def propagator_function(
    saddle: Mapping[sp.Symbol, sp.Expr], hessian: Hessian, name: str, inputs: int
) -> Callable[..., np.ndarray]:
    """A block of the propagator as `block_function` has it, from the numbers of the Hessian."""
    blocks = [hessian.S21, hessian.S22][: 1 + (name == "G11")]
    evaluated = block_function(saddle, sp.ImmutableMatrix.hstack(*blocks), inputs)

    def function(*arguments: Any) -> np.ndarray:
        S21, *S22 = np.hsplit(evaluated(*arguments), len(blocks))
        G12 = -solve_triangular(S21, np.eye(len(S21)), lower=True)
        if S22:
            return G12 @ S22[0] @ G12.T
        return {"G12": G12, "G21": G12.T, "G22": np.zeros_like(G12)}[name]

    return function


def symbol_values(
    network: DeepNetwork, K0: Any, inputs: int = 1, convention: str = "derivative"
) -> dict[sp.Symbol, float]:
    """The values of the symbols of the theory for a network and its input kernel."""
    kernel = np.atleast_2d(validation.input_kernel_array("K0", K0))
    if kernel.shape != (inputs, inputs):
        raise ValueError(f"K0 must have shape ({inputs}, {inputs}), got {np.shape(K0)}")
    values = sym.parameter_values(network) | {sym.WIDTH: float(network.width)}
    values[sym.INPUT_WIDTH] = input_width(network, convention)
    values[sym.HIDDEN_WIDTH] = float(getattr(network, "hidden_width", network.width))
    for pair in sym.pairs(inputs):
        values[sym.data_kernel(pair, inputs)] = float(kernel[pair])
    return values


def with_activation(expr: sp.Expr, activation: Callable[[Any], sp.Expr] | None) -> sp.Expr:
    """The expression with the undetermined φ inside its averages put in; None leaves it open."""
    if activation is None:
        return expr

    def with_phi(node: AverageNode) -> sp.Expr:
        variables = tuple(node.variables)
        functions = [sift(F.replace(sym.phi, activation).doit(), variables) for F in node.functions]
        return type(node)(*functions, variables, node.covariance)

    return sym.with_averages(expr, with_phi)
