"""Symbolic results as NumPy and mpmath functions.

Averages with a closed form become that form; a connected correlator becomes a one-dimensional
integral over the covariance (Price's theorem) where the inner average has a closed form; every
other average goes to quadrature. The formulas are the symbolic ones, nothing is typed again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import mpmath
import numpy as np
import sympy as sp

from fieldtheory.averages import ConnectedCorrelator, GaussianAverage, hermite, precise, quadrature
from fieldtheory.averages.node import without_deltas
from fieldtheory.averages.precise import separated
from fieldtheory.averages.steps import break_points, has_steps, pieces
from fieldtheory.validation import choice

BACKENDS = ("numpy", "mpmath")


def lambdify(arguments: Sequence[sp.Expr], expression: Any, backend: str = "numpy") -> Callable:
    """A numeric function of a symbolic result.

    Parameters
    ----------
    arguments : sequence of symbols
        In the order in which the function takes them.
    expression : sympy.Expr, matrix, or (nested) list of them
        May contain `GaussianAverage` and `ConnectedCorrelator` nodes.
    backend : {"numpy", "mpmath"}
        "numpy" broadcasts over arrays in float64; "mpmath" takes scalars and works to the
        precision ``mpmath.mp.dps`` at the time of the call.

    Returns
    -------
    callable
        A matrix comes back as an array (numpy; a list of lists with mpmath).

    Raises
    ------
    ValueError
        If the backend is unknown or a symbol is not among the arguments.

    Examples
    --------
    >>> import sympy as sp
    >>> h, K = sp.symbols("h K", positive=True)
    >>> second_moment = lambdify([K], GaussianAverage(sp.tanh(h) ** 2, h, K))
    >>> float(round(second_moment(0.5), 10))
    0.2736763079
    """
    choice("backend", backend, BACKENDS)
    matrix = isinstance(expression, sp.MatrixBase)
    entries = expression.tolist() if matrix else expression
    translated, functions = _translate(entries, backend)
    missing = _free_symbols(translated) - set(arguments)
    if missing:
        raise ValueError(
            f"arguments must contain every symbol of the expression, "
            f"missing {', '.join(sorted(map(str, missing)))}"
        )
    if backend == "mpmath":
        library = [functions, {"sqrt": lambda v: mpmath.sqrt(max(v, 0))}, "mpmath"]
        return sp.lambdify(list(arguments), translated, modules=library, cse=True)
    library = [functions, {"sqrt": _sqrt}, "scipy", "numpy"]
    compiled = sp.lambdify(list(arguments), translated, modules=library, cse=True)

    def function(*values: Any) -> Any:
        shape = np.broadcast_shapes(*map(np.shape, values))
        result = _broadcast(compiled(*values), shape)
        return np.moveaxis(np.array(result), (0, 1), (-2, -1)) if matrix else result

    return function


def _broadcast(result: Any, shape: tuple[int, ...]) -> Any:
    """Give entries that do not depend on the arguments the shape of those that do."""
    if isinstance(result, list):
        return [_broadcast(entry, shape) for entry in result]
    return np.broadcast_to(np.asarray(result, dtype=float), shape)[()]


def _sqrt(value: Any) -> Any:
    # Determinants of singular covariances come out as −0.0…01 by rounding.
    return np.sqrt(np.maximum(value, 0.0))


def _free_symbols(entries: Any) -> set:
    if isinstance(entries, list | tuple):
        return set().union(*map(_free_symbols, entries))
    return sp.sympify(entries).free_symbols


def _translate(entries: Any, backend: str) -> tuple[Any, dict[str, Callable]]:
    """Entries with every average replaced by its closed form or a named numeric function."""
    functions: dict[str, Callable] = {}
    known: dict[sp.Expr, sp.Expr] = {}

    def one(node: sp.Expr) -> sp.Expr:
        if node not in known:
            known[node] = _resolve(node, backend, functions)
        return known[node]

    def walk(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [walk(v) for v in value]
        value = sp.sympify(value)
        value = value.replace(lambda e: isinstance(e, ConnectedCorrelator), one)
        return value.replace(lambda e: isinstance(e, GaussianAverage), one)

    return walk(entries), functions


def _resolve(node: sp.Expr, backend: str, functions: dict) -> sp.Expr:
    value = node.doit()
    if value.has(sp.erf):
        # Steps at a distance come as exp(2K) (1 − erf √(2K)), which cancels and overflows.
        value = without_deltas(node)
    return value.replace(
        lambda e: isinstance(e, GaussianAverage | ConnectedCorrelator),
        lambda e: _integral(e, backend, functions),
    )


def _integral(node: sp.Expr, backend: str, functions: dict) -> sp.Expr:
    """A call of a numeric function of the node's covariance."""
    unknown = _free_symbols(list(node.args[:-1])) - node.variables.free_symbols
    if unknown:
        names = ", ".join(sorted(map(str, unknown)))
        raise ValueError(f"expression must have a number for {names} inside the average {node}")
    if node.atoms(sp.DiracDelta, sp.core.function.AppliedUndef):
        raise ValueError(f"expression must have a known, continuous activation, got {node}")
    size = len(node.variables)
    if size > 2:
        raise ValueError(f"expression must average over at most two variables, got {node}")
    build = {
        (GaussianAverage, "numpy"): _average_numpy,
        (GaussianAverage, "mpmath"): _average_mpmath,
        (ConnectedCorrelator, "numpy"): _connected_numpy,
        (ConnectedCorrelator, "mpmath"): _connected_mpmath,
    }[type(node), backend]
    name = f"average_{len(functions)}"
    functions[name] = build(node)
    K = node.covariance
    return sp.Function(name)(*([K[0, 0]] if size == 1 else [K[0, 0], K[1, 1], K[0, 1]]))


def _vectorised(variables: Sequence[sp.Expr], F: sp.Expr) -> Callable:
    # NumPy code for Max works on single numbers, and steps times overflowing functions give NaN.
    return sp.lambdify(list(variables), pieces(F, variables), modules=["scipy", "numpy"], cse=True)


def _kinks(F: sp.Expr, variable: sp.Expr) -> list[float]:
    return [float(p) for p in break_points(F, variable)] if has_steps(F) else []


def _average_numpy(node: GaussianAverage) -> Callable:
    F, variables = node.integrand, node.variables
    f, kinks = _vectorised(variables, F), [_kinks(F, v) for v in variables]
    if len(variables) == 1:
        return lambda K: quadrature.average_1d(f, K, kinks[0])
    integral = partial(quadrature.average_2d, f, kinks=kinks)
    products = None if has_steps(F) else separated(F, *variables)
    if products is None or len(products) > 1:
        return integral
    return _by_series(*products[0], tuple(variables), 0, integral)


def _by_series(
    F: sp.Expr, G: sp.Expr, variables: tuple, lowest: int, otherwise: Callable
) -> Callable:
    """The Mehler series of F(x) G(y), with an integral for the pairs where it is too slow."""
    f, g = (_vectorised([v], part) for v, part in zip(variables, (F, G), strict=True))

    def average(*K: Any) -> np.ndarray:
        a, b, c = np.broadcast_arrays(*(np.asarray(k, dtype=float) for k in K))
        flat = a.ravel(), b.ravel(), c.ravel()
        values, converged = hermite.series(f, g, *flat, lowest)
        if not converged.all():
            values[~converged] = otherwise(*(k[~converged] for k in flat))
        return values.reshape(a.shape)

    return average


def _average_mpmath(node: GaussianAverage) -> Callable:
    F, variables = node.integrand, tuple(node.variables)
    return lambda *K: precise.average(F, variables, _matrix(K), mpmath.mp.dps)


def _matrix(entries: tuple) -> list[list]:
    if len(entries) == 1:
        return [[entries[0]]]
    a, b, c = entries
    return [[a, c], [c, b]]


def _connected_numpy(node: ConnectedCorrelator) -> Callable:
    F, G, x, y = _separate(node)
    a, b = sp.symbols("a b", positive=True)
    t = sp.Symbol("t", real=True)
    slope = GaussianAverage(F.diff(x) * G.diff(y), (x, y), [[a, t], [t, b]]).doit()
    if not slope.has(GaussianAverage):
        price = lambdify([a, b, t], slope)
        nearest = _singularity(slope, a, b, t)
        compute: Callable = partial(quadrature.connected_by_price, price, nearest)
    else:
        kinks = _kinks(F, x), _kinks(G, y)
        f, g = _vectorised([x], F), _vectorised([y], G)
        compute = partial(quadrature.connected_2d, f, g, kinks=kinks)
        if not (has_steps(F) or has_steps(G)):
            compute = _by_series(F, G, (x, y), 1, compute)
    return (lambda K: compute(K, K, K)) if len(node.variables) == 1 else compute


def _singularity(slope: sp.Expr, a: sp.Expr, b: sp.Expr, t: sp.Expr) -> Callable | None:
    """The covariance t(a, b) at which an inverse root D(t)^{-n/2}, quadratic in t, diverges."""
    for power in slope.atoms(sp.Pow):
        base, exponent = sp.expand(power.base), power.exp
        if exponent.is_negative and not exponent.is_integer and base.is_polynomial(a, b, t):
            coefficients = sp.Poly(base, t).all_coeffs()
            if len(coefficients) == 3 and coefficients[0].is_negative and coefficients[1] == 0:
                return lambdify([a, b], sp.sqrt(-coefficients[2] / coefficients[0]))
    return None


def _connected_mpmath(node: ConnectedCorrelator) -> Callable:
    F, G, x, y = _separate(node)

    def connected(a: Any, b: Any = None, c: Any = None) -> Any:
        if b is None:
            b = c = a
        digits = mpmath.mp.dps
        with mpmath.workdps(2 * digits):
            # Guard digits: the two terms nearly cancel where the variables are weakly coupled.
            joint = precise.average(F * G, (x, y), [[a, c], [c, b]], digits + 10)
            apart = precise.average(F, (x,), [[a]], digits + 10)
            apart *= precise.average(G, (y,), [[b]], digits + 10)
            return joint - apart

    return connected


def _separate(node: ConnectedCorrelator) -> tuple[sp.Expr, sp.Expr, sp.Expr, sp.Expr]:
    """The observables F(x) and G(y); one shared variable counts as two equal ones."""
    (F, G), variables = node.observables, tuple(node.variables)
    if len(variables) == 1:
        x, y = variables[0], sp.Dummy("y", real=True)
        return F, G.xreplace({x: y}), x, y
    x, y = variables
    if F.has(y) or G.has(x):
        F, G = G, F
    if F.has(y) or G.has(x):
        raise ValueError(f"expression must correlate functions of one variable each, got {node}")
    return F, G, x, y
