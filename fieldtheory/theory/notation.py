"""The symbols of the theory, written as in the papers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from itertools import combinations_with_replacement

import sympy as sp

from fieldtheory.averages.nodes.base import AverageNode
from fieldtheory.networks.family import LayeredNetwork

WIDTH = sp.Symbol("N", positive=True)
WEIGHT = sp.Symbol(r"\sigma_{w}", positive=True)
BIAS = sp.Symbol(r"\sigma_{b}", positive=True)
READOUT_WEIGHT = sp.Symbol(r"\sigma_{w,\mathrm{out}}", positive=True)
READIN_WEIGHT = sp.Symbol(r"\sigma_{w,\mathrm{in}}", positive=True)
READIN_BIAS = sp.Symbol(r"\sigma_{b,\mathrm{in}}", positive=True)
READOUT_BIAS = sp.Symbol(r"\sigma_{b,\mathrm{out}}", positive=True)
DEPTH = sp.Symbol("L", integer=True, positive=True)
# ν_0 = d_in/N. Layers joined by skip connections have one width: there is no other.
INPUT_WIDTH = sp.Symbol(r"\nu_{0}", positive=True)
phi = sp.Function("phi")

# Parameters by name, as they stand in coefficients and features.
_NAMED = {
    "weight_variance": WEIGHT**2,
    "bias_variance": BIAS**2,
    "readin_weight_variance": READIN_WEIGHT**2,
    "readin_bias_variance": READIN_BIAS**2,
    "readout_weight_variance": READOUT_WEIGHT**2,
    "readout_bias_variance": READOUT_BIAS**2,
}


def pairs(inputs: int) -> list[tuple[int, int]]:
    """The kernel entries (α, β), α <= β, counted from zero: variances and covariances."""
    return list(combinations_with_replacement(range(inputs), 2))


def kernel(layer: int, pair: tuple[int, int] = (0, 0), inputs: int = 1) -> sp.Symbol:
    """The residual kernel C^(l)_{αβ}; a variance is positive, a covariance real."""
    kind = {"positive": True} if pair[0] == pair[1] else {"real": True}
    return sp.Symbol(f"C^{{({layer})}}{_pair_index(pair, inputs)}", **kind)


def conjugate(layer: int, pair: tuple[int, int] = (0, 0), inputs: int = 1) -> sp.Symbol:
    """The conjugate field C̃^(l)_{αβ}."""
    return sp.Symbol(rf"\tilde{{C}}^{{({layer})}}{_pair_index(pair, inputs)}")


def data_kernel(pair: tuple[int, int] = (0, 0), inputs: int = 1) -> sp.Symbol:
    """The kernel of the data, σ²_w,in/d_in x·x' + σ²_b,in."""
    kind = {"positive": True} if pair[0] == pair[1] else {"real": True}
    index = "" if inputs == 1 else rf", {pair[0] + 1} {pair[1] + 1}"
    return sp.Symbol(rf"C^{{(0)}}_{{\mathrm{{data}}{index}}}", **kind)


def signal(layer: int | sp.Expr, sample: int = 0, inputs: int = 1) -> sp.Symbol:
    """The signal h^(l)_α of one neuron."""
    index = "" if inputs == 1 else f"_{{{sample + 1}}}"
    return sp.Symbol(f"h^{{({layer})}}{index}", real=True)


def with_averages(expr: sp.Expr, function: Callable[[AverageNode], sp.Expr]) -> sp.Expr:
    """An expression with a function of each of its averages in place of it."""
    return expr.xreplace({node: function(node) for node in expr.atoms(AverageNode)})


def over_signals(
    expr: sp.Expr,
    signals: Mapping[sp.Symbol, sp.Symbol],
    covariance: Callable[[list[sp.Symbol]], list[list[sp.Expr]]],
) -> sp.Expr:
    """An expression in other signals, and for its averages the covariance of the old ones."""

    def one(node: AverageNode) -> sp.Expr:
        variables, old = [signals[v] for v in node.variables], list(node.variables)
        functions = [F.xreplace(signals) for F in node.functions]
        return type(node)(*functions, variables, covariance(old))

    nodes = {node: one(node) for node in expr.atoms(AverageNode)}
    return expr.xreplace(nodes | dict(signals))


def branch_scale(layer: int | str = "") -> sp.Symbol:
    """The residual scaling ρ_l of a layer, or ρ of all."""
    return sp.Symbol(rf"\rho{_index(layer)}", positive=True)


def skip_scale(layer: int | str = "") -> sp.Symbol:
    """The scale γ_l of the skip connection of a layer, or γ of all."""
    return sp.Symbol(rf"\gamma{_index(layer)}", real=True)


def _index(layer: int | str) -> str:
    return "" if layer == "" else f"_{{{layer}}}"


def parameters(family: type[LayeredNetwork], layer: int | str) -> dict[str, sp.Expr]:
    """The parameters of a layer by name: symbols, or squares of them for variances."""
    scales = {"branch_scale": branch_scale(layer), "skip_scale": skip_scale(layer)}
    named = dict(_NAMED)
    for name in family.layer_parameters:
        named[name] = scales.get(name, sp.Symbol(f"{_upright(name)}_{{{layer}}}", real=True))
    others = {f.name for f in fields(family)} - {*named, *LayeredNetwork.__annotations__}
    return named | {name: sp.Symbol(_upright(name), real=True) for name in sorted(others)}


def parameter_values(network: LayeredNetwork) -> dict[sp.Symbol, float]:
    """The number of every symbol of `parameters`, for a network without batch axes.

    ρ and γ without an index have one where it is the same for all layers.
    """
    numbers, values = network.parameters, {}
    for name, symbol in (("branch_scale", branch_scale()), ("skip_scale", skip_scale())):
        if name in network.layer_parameters and len(set(numbers[name].tolist())) == 1:
            values[symbol] = float(numbers[name][0])
    for layer in range(1, network.depth + 1):
        for name, expression in parameters(type(network), layer).items():
            if name in numbers:
                own = (
                    numbers[name][layer - 1] if name in network.layer_parameters else numbers[name]
                )
                symbol, power = expression.as_base_exp()
                values[symbol] = float(own) ** (1 / int(power))
    return values


def _upright(name: str) -> str:
    escaped = name.replace("_", r"\_")
    return rf"\mathrm{{{escaped}}}"


def _pair_index(pair: tuple[int, int], inputs: int) -> str:
    return "" if inputs == 1 else f"_{{{pair[0] + 1} {pair[1] + 1}}}"
