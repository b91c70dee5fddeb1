"""Which algorithm evaluates an average in float64: the one place where it is chosen.

    one variable         panels
    two variables        Mehler's series while its remainder is below the tolerance, else nested
                         panels, for every product of a function of each variable
    three and more       nested panels over the Cholesky factor of the covariance

Closed forms come before these (`fieldtheory.compiling`); maps of many pairs of inputs are in
`numerics.pair_maps`. A cumulant of joint functions is a sum of products of averages; ⟨F(x);G(y)⟩ is
computed without that difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import mpmath
import numpy as np
import sympy as sp

from fieldtheory.averages import precise
from fieldtheory.averages.nodes.base import AverageNode, entry_indices
from fieldtheory.averages.nodes.connected import ConnectedCorrelator, two_factors
from fieldtheory.averages.nodes.gaussian import GaussianAverage
from fieldtheory.averages.precise import partitions
from fieldtheory.averages.quadrature import products
from fieldtheory.averages.quadrature.compiled import factors_by_variable, function_of
from fieldtheory.averages.quadrature.one_variable import Means
from fieldtheory.averages.quadrature.panelled_functions import Function
from fieldtheory.averages.quadrature.two_variables import PairAverages
from fieldtheory.averages.routes import SETTINGS, tolerance

PANELS, PAIRS, NESTED = "panels", "Mehler series or nested panels", "nested panels"
_REASONS = {
    PANELS: "one variable: Gauss-Legendre panels between breakpoints",
    PAIRS: (
        "functions of one variable each: the series where its remainder is below the tolerance, "
        "else panels in sum and difference"
    ),
    NESTED: "products of three and more variables: panels over their Cholesky factor",
}
_h = sp.Dummy("h", real=True)


class Rule(NamedTuple):
    """Evaluation of one average."""

    # Of the rule.
    name: str
    # Why it applies.
    reason: str
    # The average as a function of the entries of the covariance: the variances, then the
    # covariances (0, 1), (0, 2), ..., (1, 2), ....
    function: Callable


def choose(node: AverageNode) -> Rule:
    """The rule for an average or cumulant without free symbols in its functions.

    Examples
    --------
    >>> from fieldtheory.averages import GaussianAverage
    >>> x, y = sp.symbols("x y", real=True)
    >>> choose(GaussianAverage(sp.tanh(x) * sp.tanh(y), (x, y), [[2, 1], [1, 2]])).name
    'Mehler series or nested panels'
    """
    variables = tuple(node.variables)
    if isinstance(node, ConnectedCorrelator) and (parts := two_factors(node)) is not None:
        F, G, x, y = parts
        pair = _pair(_function(F, x), _function(G, y), connected=True)
        function = pair if len(variables) == 2 else lambda K: pair(K, K, K)
        return Rule(PAIRS, _REASONS[PAIRS], function)
    averages: dict[sp.Expr, Callable] = {}
    terms = []
    for weight, blocks in partitions(node.functions):
        blocks_as_products = [sp.Mul(*block) for block in blocks]
        terms.append((int(weight), blocks_as_products))
        for F in blocks_as_products:
            if F not in averages:
                averages[F] = _average(F, variables)
    used = max(sum(F.has(v) for v in variables) for F in averages)
    name = PANELS if used == 1 else PAIRS if used == 2 else NESTED
    if len(terms) == 1:
        return Rule(name, _REASONS[name], averages[terms[0][1][0]])

    def cumulant(*K: np.ndarray) -> np.ndarray:
        values = {F: average(*K) for F, average in averages.items()}
        return sum(weight * math.prod(values[F] for F in Fs) for weight, Fs in terms)

    return Rule(name, _REASONS[name], cumulant)


def _average(F: sp.Expr, variables: tuple) -> Callable:
    """⟨F⟩ as a function of the entries of the covariance, as `Rule.function` takes them."""
    parts = [_product(factors, variables) for factors in _products(F, variables)]
    return parts[0] if len(parts) == 1 else lambda *K: sum(part(*K) for part in parts)


def _products(F: sp.Expr, variables: tuple) -> list[list[sp.Expr]]:
    """F as a sum of products: for each a factor of every variable, the first with its number."""
    factors = factors_by_variable(F, variables)
    if factors is not None:
        return [factors]
    parts = sp.Add.make_args(sp.expand(F))
    found = (factors_by_variable(part, variables) for part in parts)
    terms = [factors for factors in found if factors is not None]
    if len(terms) < len(parts):
        raise ValueError(
            "functions of several variables must be sums of products of functions of one variable "
            f'each in float64, got {F}; of two variables backend="mpmath" computes any other'
        )
    return terms


def _product(factors: list[sp.Expr], variables: tuple) -> Callable:
    """⟨Π f_i(x_i)⟩; factors that are numbers are taken out."""
    number = sp.Mul(*[f for f, v in zip(factors, variables, strict=True) if not f.has(v)])
    used = [i for i, (f, v) in enumerate(zip(factors, variables, strict=True)) if f.has(v)]
    functions = [_function(factors[i], variables[i]) for i in used]
    own = {pair: k for k, pair in enumerate(entry_indices(len(variables)))}
    needed = [own[used[i], used[j]] for i, j in entry_indices(len(used))]
    if not used:
        return lambda *K: np.zeros(np.shape(K[0])) + float(number)
    if len(used) == 1:
        average = _single(functions[0])
    elif len(used) == 2:
        average = _pair(functions[0], functions[1], connected=False)
    else:
        average = _several(functions)
    return lambda *K: float(number) * average(*(K[k] for k in needed))


def _function(F: sp.Expr, x: sp.Symbol) -> Function:
    """One object for one function, whatever its variable is called."""
    return function_of(F.xreplace({x: _h}), _h)


def _single(function: Function) -> Callable:
    """⟨f⟩ as a function of variances, an array of any shape."""
    means = Means(function)

    def average(K: np.ndarray) -> np.ndarray:
        K = np.asarray(K, dtype=float)
        return means(K.ravel(), tolerance()).reshape(K.shape)[()]

    return average


def _pair(f: Function, g: Function, connected: bool) -> Callable:
    """⟨f(x)g(y)⟩ or ⟨f(x);g(y)⟩ as a function of (K_xx, K_yy, K_xy), arrays that broadcast."""
    pairs = PairAverages(f, None if g is f else g, connected)
    one, other = Means(f), Means(g)

    def average(a: np.ndarray, b: np.ndarray, t: np.ndarray) -> np.ndarray:
        arrays = np.broadcast_arrays(*(np.asarray(k, dtype=float) for k in (a, b, t)))
        shape, (a, b, t) = arrays[0].shape, (k.ravel() for k in arrays)
        values = np.zeros(len(a))
        some = (a > 0) & (b > 0)
        if some.any():
            values[some] = pairs(a[some], b[some], t[some], tolerance(), kinds=1)[0].value
        if not some.all():
            # Limits where a variance is zero; two that are zero are one variable.
            a, b = a[~some], b[~some]
            independent = one(a, tolerance()) * other(b, tolerance())
            alike = (one.function.at_zero() * other.function.at_zero()).mean()
            joint = np.where((a > 0) | (b > 0), independent, alike)
            values[~some] = joint - independent if connected else joint
        return values.reshape(shape)[()]

    return average


def _several(functions: list[Function]) -> Callable:
    """⟨f(x) g(y) h(z) …⟩ as a function of the entries of the covariance."""
    size = len(functions)

    def average(*entries: np.ndarray) -> np.ndarray:
        arrays = np.broadcast_arrays(*(np.asarray(k, dtype=float) for k in entries))
        K = np.empty((arrays[0].size, size, size))
        for (i, j), values in zip(entry_indices(size), arrays, strict=True):
            K[:, i, j] = K[:, j, i] = values.ravel()
        rtol = max(tolerance(), SETTINGS.three_variables)
        averages = [products.average(functions, each, rtol) for each in K]
        return np.array(averages).reshape(arrays[0].shape)[()]

    return average


def mean_about(F: sp.Expr, x: sp.Symbol) -> Rule:
    """⟨F(h + m)⟩ of one variable as a function of its variance and the mean m."""
    means = Means(_function(F, x))

    def average(K: np.ndarray, mean: np.ndarray) -> np.ndarray:
        arrays = np.broadcast_arrays(np.asarray(K, dtype=float), np.asarray(mean, dtype=float))
        K, mean = (each.ravel() for each in arrays)
        return means.about(K, mean, tolerance()).reshape(arrays[0].shape)[()]

    return Rule(PANELS, _REASONS[PANELS], average)


def shifted(node: sp.Expr) -> tuple[sp.Expr, list[tuple[sp.Expr, sp.Expr]]] | None:
    """The mean m and Σ factor F(h) of an average ⟨F(h + m)⟩; None if it is no such average.

    Examples
    --------
    >>> y, m = sp.symbols("y m", real=True)
    >>> shifted(GaussianAverage((y + m) * sp.tanh(y + m - 1), y, 2))
    (m, [(1, y*tanh(y - 1))])
    """
    if not isinstance(node, GaussianAverage) or len(node.variables) != 1:
        return None
    F, (h,) = node.integrand, node.variables
    unknown = F.free_symbols - {h}
    for mean in sorted(_means(F, h, unknown), key=sp.default_sort_key):
        centred = F.xreplace({h: h - mean}).replace(lambda e: e.is_Add, sp.expand)
        parts = sp.Add.make_args(sp.expand(centred, deep=False))
        terms = [part.as_independent(h, as_Add=False) for part in parts]
        if not any(function.has(*unknown) for _, function in terms):
            return mean, terms
    return None


def _means(F: sp.Expr, h: sp.Expr, unknown: set) -> set[sp.Expr]:
    """Summands of the variable in sums of it and symbols."""
    means = set()
    for total in F.atoms(sp.Add):
        slope = total.diff(h)
        if slope != 0 and slope.is_number:
            _, offset = sp.expand(total - slope * h).as_independent(*unknown, as_Add=True)
            means.add(sp.expand(offset / slope))
    return means - {sp.S.Zero}


def precise_mean_about(F: sp.Expr, variable: sp.Expr) -> Rule:
    """`mean_about` with mpmath."""

    def function(K: mpmath.mpf, mean: mpmath.mpf) -> mpmath.mpf:
        digits = mpmath.mp.dps
        integrand = F.xreplace({variable: variable + sp.Float(mean, digits + 10)})
        return precise.average(integrand, (variable,), [[K]], digits)

    return Rule("panels", "one variable with a mean: Gauss-Legendre panels", function)
