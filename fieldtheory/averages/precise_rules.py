"""The rule that evaluates an average with mpmath: the one place where it is chosen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import sympy as sp

from fieldtheory.averages import numeric
from fieldtheory.averages.high_precision import precise, precise_cumulants
from fieldtheory.averages.nodes.base import AverageNode
from fieldtheory.averages.nodes.connected import ConnectedCorrelator
from fieldtheory.averages.nodes.gaussian import GaussianAverage
from fieldtheory.averages.rules import Rule, entry_indices


def choose_precise(node: AverageNode) -> Rule:
    """The rule for an average or cumulant, to the digits ``mpmath.mp.dps`` at the time of the call.

    Parameters
    ----------
    node : GaussianAverage or ConnectedCorrelator
        With known functions, free of δ-functions and of other symbols than their variables.

    Returns
    -------
    Rule

    Examples
    --------
    >>> import sympy as sp
    >>> x = sp.Symbol("x", real=True)
    >>> node = ConnectedCorrelator(sp.tanh(x) ** 2, sp.tanh(x) ** 2, x, 1)
    >>> with mpmath.workdps(12):
    ...     print(choose_precise(node).function(mpmath.mpf(1)))
    0.0975237380859
    """
    size, variables = len(node.variables), tuple(node.variables)
    if isinstance(node, ConnectedCorrelator) and numeric.apart(node) is not None:
        reason = "⟨FG⟩ − ⟨F⟩⟨G⟩ with guard digits"
        return Rule("panels and grids", reason, _connected(node))
    if size <= 2 and not isinstance(node, ConnectedCorrelator):
        F = node.functions[0]
        reason = "one variable: Gauss-Legendre panels"
        if size == 2:
            reason = "on a grid only the Gaussian couples the variables; else nested panels"
        return Rule(
            "panels" if size == 1 else "panels and grids",
            reason,
            lambda *K: precise.average(F, variables, _matrix(K, size), mpmath.mp.dps),
        )
    found = precise_cumulants.method(node.functions, variables)
    return Rule(
        found.name,
        found.reason,
        lambda *K: precise_cumulants.cumulant(
            node.functions, variables, _matrix(K, size), mpmath.mp.dps
        ),
    )


def _matrix(entries: tuple, size: int) -> list[list]:
    rows = [[mpmath.mpf(0)] * size for _ in range(size)]
    for (i, j), value in zip(entry_indices(size), entries, strict=True):
        rows[i][j] = rows[j][i] = value
    return rows


def _connected(node: ConnectedCorrelator) -> Any:
    found = numeric.apart(node)
    if found is None:
        raise ValueError(f"node must correlate two functions of one variable each, got {node}")
    F, G, x, y = found
    a, b = sp.symbols("a b", positive=True)
    c = sp.Symbol("c", real=True)
    moments = {
        F: _moment(F, (x,), [[a]]),
        G: _moment(G, (y,), [[b]]),
        F * G: _moment(F * G, (x, y), [[a, c], [c, b]]),
    }

    def connected(a: Any, b: Any = None, c: Any = None) -> Any:
        if b is None:
            b = c = a
        entries = {F: (a,), G: (b,), F * G: (a, b, c)}
        if c == 0:
            return mpmath.mpf(0)
        digits = mpmath.mp.dps
        return +precise_cumulants.cancelling(
            (F, G), digits, lambda part, more: moments[part](more, *entries[part])
        )

    return connected


def _moment(F: sp.Expr, variables: tuple, K: list[list]) -> Callable:
    """⟨F⟩ as a function of the digits and the entries of K, by its closed form if it has one."""
    closed = GaussianAverage(F, variables, K).doit()
    size = len(variables)
    if closed.has(GaussianAverage):
        return lambda digits, *entries: precise.average(
            F, variables, _matrix(entries, size), digits
        )
    symbols = [K[i][j] for i, j in entry_indices(size)]
    compiled = sp.lambdify(symbols, closed, modules=[{"sqrt": _root}, "mpmath"], cse=True)
    return lambda digits, *entries: compiled(*entries)


def _root(value: Any) -> Any:
    # Determinants of singular covariances come out as −0.0…01 by rounding.
    return mpmath.sqrt(max(value, 0))
