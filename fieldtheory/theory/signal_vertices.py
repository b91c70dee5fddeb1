"""Vertices as derivatives by the covariance of the signals, for any layers and observables.

The cumulant ⟨g_k1; ...; g_kn⟩ holds the kernels in the covariance of the signals of layers
k1 − 1, ..., kn − 1 only, which is linear in them. So all vertices of a network follow from the
derivatives of the cumulants of one, two, ... signals by the entries of their covariance.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement

import sympy as sp

from fieldtheory.averages import GaussianAverage
from fieldtheory.theory import notation as sym
from fieldtheory.theory.action import Action

# (s, p) for each signal: the p-th derivative of the s-th power of its observable.
Moment = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class SignalVertex:
    """Derivatives of one order of a cumulant of observables g by the covariance of the signals.

    Parameters
    ----------
    entries : tuple of (int, int)
        The entries (i, j), i <= j, of the covariance of the signals.
    derivatives : dict
        Places in ``entries``, sorted, to the derivative, a polynomial in the moments.
    moments : dict
        The symbols in it to ⟨Π_i ∂^p_i g(h_i)^s_i⟩.
    """

    entries: tuple[tuple[int, int], ...]
    derivatives: dict[tuple[int, ...], sp.Expr]
    moments: dict[sp.Symbol, Moment]


@lru_cache(maxsize=64)
def signal_vertex(powers: tuple[int, ...], order: int) -> SignalVertex:
    """The vertex of n conjugates and m = ``order`` kernels, from the action of its signals alone.

    Parameters
    ----------
    powers : tuple of int
        How many of the n observables belong to each signal.
    order : int
        m.

    Returns
    -------
    SignalVertex

    Examples
    --------
    >>> vertex = signal_vertex((2,), 1)
    >>> vertex.derivatives
    {(0,): -m_{10}*m_{12} + m_{22}/2}
    >>> {str(symbol): moment for symbol, moment in vertex.moments.items()}
    {'m_{10}': ((1, 0),), 'm_{12}': ((1, 2),), 'm_{22}': ((2, 2),)}
    """
    count = len(powers)
    signals = [sp.Symbol(f"x_{{{i}}}", real=True) for i in range(count)]
    entries = tuple(combinations_with_replacement(range(count), 2))
    kinds = {entry: {"positive" if entry[0] == entry[1] else "real": True} for entry in entries}
    symbols = {e: sp.Symbol(f"K_{{{e[0]}{e[1]}}}", **kinds[e]) for e in entries}
    covariance = sp.Matrix(count, count, lambda i, j: symbols[min(i, j), max(i, j)])
    g = sp.Function("g")
    observables = [g(x) for x, power in zip(signals, powers, strict=True) for _ in range(power)]
    action = Action(
        kernels=tuple(symbols.values()),
        conjugates=tuple(sp.Symbol(f"c_{{{i}}}") for i in range(len(observables))),
        relative_widths=(sp.S.Zero,) * len(entries),
        observables=tuple(observables),
        variables=tuple(signals),
        covariance=covariance.as_immutable(),
    )
    cumulant = action.derivative(range(len(observables))) / sym.WIDTH
    by_averages = cumulant.rewrite(GaussianAverage)
    nodes = by_averages.atoms(GaussianAverage)
    by_powers = by_averages.xreplace({node: _of_powers(node) for node in nodes})
    moments: dict[Moment, sp.Symbol] = {}

    def named(expr: sp.Expr) -> sp.Expr:
        nodes = expr.atoms(GaussianAverage)
        return expr.xreplace({node: _symbol(_moment(node, signals), moments) for node in nodes})

    derivatives = {
        places: named(by_powers.diff(*[action.kernels[p] for p in places]) if places else by_powers)
        for places in combinations_with_replacement(range(len(entries)), order)
    }
    return SignalVertex(entries, derivatives, {moments[key]: key for key in sorted(moments)})


def _of_powers(node: GaussianAverage) -> sp.Expr:
    """⟨g(x)^s ...⟩ with the powers as functions of their own, which keep derivatives short."""
    powers = [factor.as_base_exp() for factor in sp.Mul.make_args(node.integrand)]
    F = sp.Mul(*[sp.Function(f"g_{power}")(*base.args) for base, power in powers])
    return GaussianAverage(F, node.variables, node.covariance)


def _moment(node: GaussianAverage, signals: list[sp.Symbol]) -> Moment:
    """The powers and derivatives of the observables in an average, for each signal."""
    found = dict.fromkeys(signals, (0, 0))
    for factor in sp.Mul.make_args(node.integrand):
        function, order = factor, 0
        if isinstance(factor, sp.Derivative):
            function, order = factor.expr, int(factor.derivative_count)
        (signal,) = function.args
        found[signal] = int(type(function).__name__.removeprefix("g_")), order
    return tuple(found.values())


def _symbol(moment: Moment, known: dict[Moment, sp.Symbol]) -> sp.Symbol:
    if moment not in known:
        index = "".join(f"{power}{order}" for power, order in moment)
        known[moment] = sp.Symbol(f"m_{{{index}}}")
    return known[moment]
