"""Symbolic results as NumPy and mpmath functions.

Averages become closed forms where they have one that does not cancel, else calls of integrals.
The formulas are the symbolic ones, nothing is typed again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory.averages.nodes.float_forms import mpmath_code, numpy_code
from fieldtheory.compiling.translation import resolve, translate
from fieldtheory.validation import choice, excerpt

BACKENDS = ("numpy", "mpmath")


def lambdify(
    arguments: Sequence[sp.Expr], expression: Any, backend: str = "numpy"
) -> Callable[..., Any]:
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
        A matrix comes back as an array, its rows and columns on the last two axes (a list of
        lists with mpmath). Derivatives of averages of parallel signals are the limits of nearly
        parallel ones, ±∞ where these diverge: of signals that jump together.

    Raises
    ------
    TypeError
        If ``arguments`` is a single symbol.
    ValueError
        If the backend is unknown, a symbol is not among the arguments, or an average over three
        and more variables has no closed form with mpmath.
    ArithmeticError
        From the function, if an integral misses its tolerance: 1e-12 of the natural size,
        √(⟨f²⟩⟨g²⟩) of ⟨f g⟩, or diverges with terms of both signs (`QuadratureError`), or misses
        the digits asked for with mpmath (`PrecisionError`).

    Examples
    --------
    >>> import sympy as sp
    >>> from fieldtheory.averages import GaussianAverage
    >>> h, K = sp.symbols("h K", positive=True)
    >>> second_moment = lambdify([K], GaussianAverage(sp.tanh(h) ** 2, h, K))
    >>> float(round(second_moment(0.5), 10))
    0.2736763079
    """
    choice("backend", backend, BACKENDS)
    if isinstance(arguments, sp.Basic | str):
        raise TypeError(f"arguments must be a sequence of symbols, got {excerpt(arguments)}")
    matrix = isinstance(expression, sp.MatrixBase)
    entries = expression.tolist() if matrix else expression
    functions: dict[str, Callable[..., Any]] = {}
    one = cache(lambda node: resolve(node, backend, functions).value)
    translated = translate(entries, one)
    missing = _free_symbols(translated) - set(arguments)
    if missing:
        raise ValueError(
            f"arguments must contain every symbol of the expression, "
            f"missing {', '.join(sorted(map(str, missing)))}"
        )
    if backend == "mpmath":
        return mpmath_code(arguments, translated, functions)
    compiled = numpy_code(arguments, translated, functions)

    def function(*values: Any) -> Any:
        shapes = set(map(np.shape, values))
        # Arrays of one shape are usual, and `np.broadcast_shapes` is slow.
        shape = shapes.pop() if len(shapes) == 1 else np.broadcast_shapes(*shapes)
        result = _broadcast(compiled(*values), shape)
        return np.moveaxis(np.array(result), (0, 1), (-2, -1)) if matrix else result

    return function


def _broadcast(result: Any, shape: tuple[int, ...]) -> Any:
    """Give entries that do not depend on the arguments the shape of those that do."""
    if isinstance(result, list):
        return [_broadcast(entry, shape) for entry in result]
    values = np.asarray(result, dtype=float)
    return (values if values.shape == shape else np.broadcast_to(values, shape))[()]


def _free_symbols(entries: Any) -> set[Any]:
    if isinstance(entries, list | tuple):
        return set().union(*map(_free_symbols, entries))
    return sp.sympify(entries).free_symbols
