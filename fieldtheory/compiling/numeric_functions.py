"""Numeric functions that stand for averages: rules, closed forms of δ-functions, and code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import mpmath
import numpy as np
import sympy as sp
from sympy.core.function import AppliedUndef

from fieldtheory.averages import precise
from fieldtheory.averages.choosing import (
    Rule,
    choose,
    mean_about,
    precise_mean_about,
    shifted,
)
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrands.breakpoints import break_points
from fieldtheory.averages.nodes.base import AverageNode, entry_indices
from fieldtheory.averages.nodes.deltas import DENSITY
from fieldtheory.averages.nodes.float_forms import mpmath_code, numpy_code

# The least number of float64.
_LEAST = np.finfo(float).smallest_subnormal


def of_densities(
    value: sp.Expr, arguments: Sequence[sp.Expr], backend: str, functions: dict[str, Callable]
) -> Callable:
    """The function of what δ-functions leave: ±∞ where it diverges, as for signals that jump alike.

    It is NaN for variances of zero.

    QuadratureError where terms of both signs diverge.
    """
    code, density, number = {
        "numpy": (numpy_code, _density, np.float64),
        "mpmath": (mpmath_code, _precise_density, mpmath.mpf),
    }[backend]
    compiled = code(arguments, value, functions | {DENSITY.__name__: density})
    variances = [i for i, argument in enumerate(arguments) if argument.is_positive]

    def function(*entries: Any) -> Any:
        K = [number(k) for k in entries]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            result = compiled(*K)
        undefined = np.asarray(result != result)
        for i in variances:
            undefined = undefined & np.asarray(K[i] > 0)
        if undefined.any():
            raise QuadratureError(
                "a derivative of an average has no value for signals that jump together with "
                "jumps of both signs: its terms diverge to +∞ and −∞"
            )
        return result

    return function


def _density(point: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """N(point; 0, variance); not zero by underflow, as it may multiply another that is infinite."""
    spread = np.where(variance > 0, variance, 1.0)
    peaked = np.where(point == 0, np.inf, 0.0)
    values = np.maximum(np.exp(-(point**2) / (2 * spread)), _LEAST) / np.sqrt(2 * np.pi * spread)
    return np.where(variance > 0, values, peaked)


def _precise_density(point: mpmath.mpf, variance: mpmath.mpf) -> mpmath.mpf:
    if variance > 0:
        return mpmath.npdf(point, 0, mpmath.sqrt(variance))
    return mpmath.mpf(0) if point else mpmath.inf


def entries_of(K: sp.ImmutableMatrix) -> list[sp.Expr]:
    """The entries of a covariance in the order in which rules take them."""
    return [K[i, j] for i, j in entry_indices(K.shape[0])]


def integral(
    node: AverageNode, backend: str, functions: dict[str, Callable]
) -> tuple[Rule, sp.Expr]:
    """The rule for an average and a call of it as a function of the covariance."""
    unknown = set().union(*(F.free_symbols for F in node.functions)) - set(node.variables)
    if unknown and unknown <= node.covariance.free_symbols and (parts := shifted(node)):
        mean, factors = parts
        make = mean_about if backend == "numpy" else precise_mean_about
        K, (variable,) = node.covariance[0, 0], node.variables
        rules = [(factor, make(F, variable)) for factor, F in factors]
        terms = [f * call(rule.function, [K, mean], functions) for f, rule in rules]
        return rules[0][1], sp.Add(*terms)
    if unknown:
        names = ", ".join(sorted(map(str, unknown)))
        raise ValueError(f"expression must have a number for {names} inside the average {node}")
    if any(F.atoms(sp.DiracDelta, AppliedUndef) for F in node.functions):
        raise ValueError(f"expression must have a known, continuous activation, got {node}")
    rule = choose(node) if backend == "numpy" else _precise_rule(node)
    return rule, call(rule.function, entries_of(node.covariance), functions)


def _precise_rule(node: AverageNode) -> Rule:
    """The rule for an average with mpmath, to the digits at the time of the call."""
    size, variables = len(node.variables), tuple(node.variables)
    for F, v in product(node.functions, variables):
        break_points(F, v)
    if size > 2:
        raise ValueError(
            "expression must have a closed form for averages over more than two variables with "
            f"mpmath, got {node}"
        )

    def function(*entries: Any) -> Any:
        K = [[entries[i if i == j else -1] for j in range(size)] for i in range(size)]
        return precise.cumulant(node.functions, variables, K, mpmath.mp.dps)

    if size == 1:
        return Rule("panels", "one variable", function)
    return Rule("Mehler series or nested panels", "two variables", function)


def call(function: Callable, values: Sequence[sp.Expr], functions: dict) -> sp.Expr:
    """A call of a numeric function, which is entered under a new name."""
    name = f"average_{len(functions)}"
    functions[name] = function
    return sp.Function(name)(*values)
