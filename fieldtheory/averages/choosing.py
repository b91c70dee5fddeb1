"""Which algorithm evaluates an average in float64: the one place where it is chosen.

    one variable         panels
    two variables        Mehler's series while its remainder is below the tolerance, else nested
                         panels, for every product of a function of each variable
    other functions      a grid along the principal axes of the covariance, if they are smooth

Closed forms come before these (`fieldtheory.compiling`), tables of many pairs are
`quadrature.tables`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import sympy as sp

from fieldtheory.averages import many
from fieldtheory.averages.integrands.partitions import partitions
from fieldtheory.averages.integrands.simplification import separated
from fieldtheory.averages.nodes.base import AverageNode
from fieldtheory.averages.nodes.connected import ConnectedCorrelator
from fieldtheory.averages.quadrature import grids
from fieldtheory.averages.quadrature.compiled import vectorised
from fieldtheory.averages.quadrature.functions import Function
from fieldtheory.averages.quadrature.pairs import PairAverages
from fieldtheory.averages.quadrature.piecewise import function_of
from fieldtheory.averages.quadrature.single import Means
from fieldtheory.averages.rules import Rule, entry_indices
from fieldtheory.averages.tolerance import tolerance

PANELS, PAIRS, GRID = "panels", "Mehler series or nested panels", "grid"
_ONE = "one variable: Gauss-Legendre panels between breakpoints"
_TWO = (
    "functions of one variable each: the series where its remainder is below the tolerance, else "
    "panels in sum and difference"
)
_MORE = "no product of functions of one variable each: trapezoidal rule along the principal axes"
_h = sp.Dummy("h", real=True)


def choose(node: AverageNode) -> Rule:
    """The rule for an average or cumulant without free symbols in its functions.

    Parameters
    ----------
    node : GaussianAverage or ConnectedCorrelator
        With known functions, free of δ-functions.

    Returns
    -------
    Rule

    Raises
    ------
    ValueError
        If kinks do not lie at values of one variable.

    Examples
    --------
    >>> x, y = sp.symbols("x y", real=True)
    >>> choose(GaussianAverage(sp.tanh(x) * sp.tanh(y), (x, y), [[2, 1], [1, 2]])).name
    'Mehler series or nested panels'
    """
    variables = tuple(node.variables)
    if isinstance(node, ConnectedCorrelator) and (found := apart(node)) is not None:
        F, G, x, y = found
        pair = _pair(F, G, x, y, connected=True)
        if len(variables) == 1:
            return Rule(PAIRS, _TWO, lambda K: pair(K, K, K))
        return Rule(PAIRS, _TWO, pair)
    if len(variables) <= 2:
        averages: dict[sp.Expr, Callable | None] = {}
        terms = []
        for weight, blocks in partitions(node.functions):
            products = [sp.Mul(*block) for block in blocks]
            terms.append((int(weight), products))
            averages.update((F, _average(F, variables)) for F in products if F not in averages)
        if None not in averages.values():
            name, reason = (PANELS, _ONE) if len(variables) == 1 else (PAIRS, _TWO)
            if len(terms) == 1:
                return Rule(name, reason, averages[terms[0][1][0]])
            return Rule(
                name,
                reason,
                lambda *K: sum(w * math.prod(averages[F](*K) for F in Fs) for w, Fs in terms),
            )
    return many.rule(node)


def apart(node: AverageNode) -> tuple[sp.Expr, sp.Expr, sp.Symbol, sp.Symbol] | None:
    """F(x), G(y), x and y of ⟨F(x);G(y)⟩, None for other nodes.

    One shared variable counts as two equal ones.
    """
    variables = tuple(node.variables)
    if len(node.functions) != 2 or len(variables) > 2:
        return None
    F, G = node.functions
    if len(variables) == 1:
        x, y = variables[0], sp.Dummy("y", real=True)
        return F, G.xreplace({x: y}), x, y
    x, y = variables
    if F.has(y) or G.has(x):
        F, G = G, F
    return None if F.has(y) or G.has(x) else (F, G, x, y)


def _average(F: sp.Expr, variables: tuple) -> Callable | None:
    """⟨F⟩ of one or two variables, None if it is no sum of products."""
    if len(variables) == 1:
        return _single(_function(F, variables[0]))
    x, y = variables
    products = separated(F, x, y)
    if products is None:
        return None
    pairs = [_pair(f, g, x, y, connected=False) for f, g in products]
    return pairs[0] if len(pairs) == 1 else lambda *K: sum(pair(*K) for pair in pairs)


def _function(F: sp.Expr, x: sp.Symbol) -> Function:
    """One object for one function, whatever its variable is called."""
    return function_of(F.xreplace({x: _h}), _h)


def _single(function: Function) -> Callable:
    """⟨F⟩ as a function of variances, an array of any shape."""
    means = Means(function)

    def average(K: np.ndarray) -> np.ndarray:
        K = np.asarray(K, dtype=float)
        return means(K.ravel(), tolerance()).reshape(K.shape)[()]

    return average


def _pair(F: sp.Expr, G: sp.Expr, x: sp.Symbol, y: sp.Symbol, connected: bool) -> Callable:
    """⟨F(x)G(y)⟩ or ⟨F(x);G(y)⟩ as a function of (K_xx, K_yy, K_xy), arrays that broadcast."""
    f, g = _function(F, x), _function(G, y)
    pairs = PairAverages(f, None if g is f else g, connected, slopes=False)
    one, other = Means(f), Means(g)

    def average(a: np.ndarray, b: np.ndarray, t: np.ndarray) -> np.ndarray:
        arrays = np.broadcast_arrays(*(np.asarray(k, dtype=float) for k in (a, b, t)))
        shape, (a, b, t) = arrays[0].shape, (k.ravel() for k in arrays)
        found = np.zeros(len(a))
        some = (a > 0) & (b > 0)
        if some.any():
            found[some] = pairs(a[some], b[some], t[some], tolerance())[0].value
        if not some.all():
            found[~some] = _without_variance(one, other, connected, a[~some], b[~some])
        return found.reshape(shape)[()]

    return average


def _without_variance(
    one: Means,
    other: Means,
    connected: bool,
    a: np.ndarray,
    b: np.ndarray,
) -> np.ndarray:
    """The limits of ⟨f(x)g(y)⟩ where a variance is zero; two that are zero are one variable."""
    x, y = one.function.at_zero(), other.function.at_zero()
    apart = np.full(len(a), x.mean() * y.mean())
    for means, K, rest in ((one, a, y), (other, b, x)):
        if (K > 0).any():
            apart[K > 0] = means(K[K > 0], tolerance()) * rest.mean()
    joint = np.where((a > 0) | (b > 0), apart, (x * y).mean())
    return joint - apart if connected else joint


def mean_about(F: sp.Expr, x: sp.Symbol) -> Rule:
    """⟨F(h + m)⟩ of one variable as a function of its variance and the mean m."""
    function = _function(F, x)

    def average(K: np.ndarray, mean: np.ndarray) -> np.ndarray:
        arrays = np.broadcast_arrays(np.asarray(K, dtype=float), np.asarray(mean, dtype=float))
        K, mean = (each.ravel() for each in arrays)
        return Means(function).about(K, mean, tolerance()).reshape(arrays[0].shape)[()]

    return Rule(PANELS, _ONE, average)


def _on_grids(node: AverageNode) -> Callable:
    size = len(node.variables)
    functions = [vectorised(node.variables, F) for F in node.functions]

    def average(*entries: np.ndarray) -> np.ndarray:
        arrays = np.broadcast_arrays(*(np.asarray(k, dtype=float) for k in entries))
        K = np.empty((arrays[0].size, size, size))
        for (i, j), values in zip(entry_indices(size), arrays, strict=True):
            K[:, i, j] = K[:, j, i] = values.ravel()
        found = [grids.cumulant(functions, each, tolerance()) for each in K]
        return np.array(found).reshape(arrays[0].shape)[()]

    return average
