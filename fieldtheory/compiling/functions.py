"""Symbolic results as NumPy, mpmath and JAX functions.

Averages with a closed form become that form; a connected correlator becomes a one-dimensional
integral over the covariance (Price's theorem) where the inner average has a closed form; every
other average goes to quadrature. The formulas are the symbolic ones, nothing is typed again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
import sympy as sp

from fieldtheory.averages import ConnectedCorrelator, GaussianAverage, numeric, precise
from fieldtheory.averages.node import without_deltas
from fieldtheory.averages.stable_forms import NUMPY, stable
from fieldtheory.validation import choice

BACKENDS = ("numpy", "mpmath", "jax")


def lambdify(arguments: Sequence[sp.Expr], expression: Any, backend: str = "numpy") -> Callable:
    """A numeric function of a symbolic result.

    Parameters
    ----------
    arguments : sequence of symbols
        In the order in which the function takes them.
    expression : sympy.Expr, matrix, or (nested) list of them
        May contain `GaussianAverage` and `ConnectedCorrelator` nodes.
    backend : {"numpy", "mpmath", "jax"}
        "numpy" broadcasts over arrays in float64; "mpmath" takes scalars and works to the
        precision ``mpmath.mp.dps`` at the time of the call; "jax" broadcasts over JAX arrays in
        float64 and works under jit, vmap, grad, jacfwd and the like. It needs the extra ``jax``
        and ``jax.config.update("jax_enable_x64", True)``. Averages are differentiated by Price's
        theorem, to any order; those without a closed form are integrated on the host, where an
        integral that does not converge raises JAX's error for a failed callback.

    Returns
    -------
    callable
        A matrix comes back as an array, its rows and columns on the last two axes (a list of
        lists with mpmath).

    Raises
    ------
    ValueError
        If the backend is unknown, a symbol is not among the arguments, or JAX computes in float32.
    ImportError
        If the backend is "jax" and JAX is not installed.

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
    translated, functions = translate(entries, backend)
    missing = _free_symbols(translated) - set(arguments)
    if missing:
        raise ValueError(
            f"arguments must contain every symbol of the expression, "
            f"missing {', '.join(sorted(map(str, missing)))}"
        )
    if backend == "jax":
        from fieldtheory.compiling import jax_functions

        return jax_functions.compiled(arguments, translated, functions, matrix)
    if backend == "mpmath":
        library = [functions, {"sqrt": lambda v: mpmath.sqrt(max(v, 0))}, "mpmath"]
        return sp.lambdify(list(arguments), translated, modules=library, cse=True)
    library = [functions, NUMPY, {"sqrt": _sqrt}, "scipy", "numpy"]
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
    values = np.asarray(result, dtype=float)
    return (values if values.shape == shape else np.broadcast_to(values, shape))[()]


def _sqrt(value: Any) -> Any:
    # Determinants of singular covariances come out as −0.0…01 by rounding.
    return np.sqrt(np.maximum(value, 0.0))


def _free_symbols(entries: Any) -> set:
    if isinstance(entries, list | tuple):
        return set().union(*map(_free_symbols, entries))
    return sp.sympify(entries).free_symbols


def translate(entries: Any, backend: str) -> tuple[Any, dict[str, Callable]]:
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
        # Innermost first: an average may stand in the covariance of another one.
        kinds = GaussianAverage | ConnectedCorrelator
        return sp.sympify(value).replace(lambda e: isinstance(e, kinds), one)

    return walk(entries), functions


def _resolve(node: sp.Expr, backend: str, functions: dict) -> sp.Expr:
    if backend == "jax":
        from fieldtheory.compiling import jax_functions

        function, values = jax_functions.averaged(node)
        return _call(function, values, functions)
    symbols: dict[sp.Expr, sp.Expr] = {}
    if backend == "numpy" and len(node.variables) == 2:
        # Entries of the covariance may be sums, in which its determinant is no longer seen.
        a, b = sp.symbols("a b", positive=True, cls=sp.Dummy)
        c = sp.Dummy("c", real=True)
        K = node.covariance
        symbols = {a: K[0, 0], b: K[1, 1], c: K[0, 1]}
        node = node.func(*node.args[:-1], [[a, c], [c, b]])
    value = node.doit()
    if value.has(sp.erf):
        # Steps at a distance come as exp(2K) (1 − erf √(2K)), which cancels and overflows.
        value = without_deltas(node)
    value = value.replace(
        lambda e: isinstance(e, GaussianAverage | ConnectedCorrelator),
        lambda e: integral(e, backend, functions),
    )
    return (stable(value, node.covariance) if backend == "numpy" else value).xreplace(symbols)


def integral(node: sp.Expr, backend: str, functions: dict) -> sp.Expr:
    """A call of a numeric function of the node's covariance."""
    unknown = _free_symbols(list(node.args[:-1])) - node.variables.free_symbols
    if unknown:
        names = ", ".join(sorted(map(str, unknown)))
        raise ValueError(f"expression must have a number for {names} inside the average {node}")
    if any(F.atoms(sp.DiracDelta, sp.core.function.AppliedUndef) for F in node.args[:-2]):
        raise ValueError(f"expression must have a known, continuous activation, got {node}")
    size = len(node.variables)
    if size > 2:
        raise ValueError(f"expression must average over at most two variables, got {node}")
    build = {
        (GaussianAverage, "numpy"): numeric.average,
        (GaussianAverage, "mpmath"): _average_mpmath,
        (ConnectedCorrelator, "numpy"): numeric.connected,
        (ConnectedCorrelator, "mpmath"): _connected_mpmath,
    }[type(node), backend]
    K = node.covariance
    values = [K[0, 0]] if size == 1 else [K[0, 0], K[1, 1], K[0, 1]]
    return _call(build(node), values, functions)


def _call(function: Callable, values: Sequence[sp.Expr], functions: dict) -> sp.Expr:
    """A call of a numeric function, which is entered under a new name."""
    name = f"average_{len(functions)}"
    functions[name] = function
    return sp.Function(name)(*values)


def _average_mpmath(node: GaussianAverage) -> Callable:
    F, variables = node.integrand, tuple(node.variables)
    return lambda *K: precise.average(F, variables, _matrix(K), mpmath.mp.dps)


def _matrix(entries: tuple) -> list[list]:
    if len(entries) == 1:
        return [[entries[0]]]
    a, b, c = entries
    return [[a, c], [c, b]]


def _connected_mpmath(node: ConnectedCorrelator) -> Callable:
    F, G, x, y = numeric.apart(node)

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
