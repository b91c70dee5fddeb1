"""Symbolic results as JAX functions: compiled, batched and differentiated by JAX, in float64.

An average is one JAX function of its covariance. Its value is the closed form, or the float64
integral of the NumPy backend in a callback. Its derivative is not that of the code but the
symbolic one, Price's theorem, compiled when it is first needed; so it exists to any order and
stays finite at a singular covariance where the exact one does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from itertools import permutations
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory.averages.integrands.exact_differences import differences
from fieldtheory.averages.nodes.base import AverageNode
from fieldtheory.averages.nodes.float_forms import with_tails
from fieldtheory.averages.nodes.rounding import LIMIT, ClosedForm
from fieldtheory.averages.quadrature.compiled import in_float64
from fieldtheory.averages.rules import entry_indices
from fieldtheory.compiling.numeric_functions import call
from fieldtheory.compiling.translation import for_backend, translate


def require_jax() -> None:
    """Raise if JAX is not installed or computes in float32."""
    try:
        import jax.numpy as jnp
    except ImportError as error:
        raise ImportError(
            "the JAX backend needs jax: pip install fieldtheory-networks[jax]"
        ) from error
    if jnp.result_type(float) != np.float64:
        raise ValueError(
            "the JAX backend needs float64, got float32: "
            'call jax.config.update("jax_enable_x64", True) first'
        )


def compiled(
    arguments: Sequence[sp.Expr], entries: Any, functions: dict[str, Callable], matrix: bool
) -> Callable:
    """The JAX function of translated entries; see `fieldtheory.compiling.functions.lambdify`.

    Parameters
    ----------
    arguments : sequence of symbols
    entries : sympy.Expr or (nested) list of them
        Averages are calls of ``functions``.
    functions : dict
        JAX functions by name.
    matrix : bool
        Whether the entries are the rows of a matrix.

    Returns
    -------
    callable
        Of arrays that broadcast; float64.
    """
    require_jax()
    import jax
    import jax.numpy as jnp

    code = _code(arguments, entries, functions)

    def function(*values: Any) -> Any:
        require_jax()
        arrays = _arrays(values)
        shape = arrays[0].shape if arrays else ()
        result = jax.tree.map(
            lambda entry: jnp.broadcast_to(jnp.asarray(entry, dtype=float), shape), code(*arrays)
        )
        return jnp.moveaxis(jnp.array(result), (0, 1), (-2, -1)) if matrix else result

    return function


def resolved(node: AverageNode, functions: dict[str, Callable]) -> sp.Expr:
    """An average as a call of a JAX function; what `translate` takes."""
    function, values = averaged(node)
    return call(function, values, functions)


def averaged(node: AverageNode) -> tuple[Callable, list[sp.Expr]]:
    """An average as a JAX function, and what to call it with.

    Parameters
    ----------
    node : GaussianAverage or ConnectedCorrelator

    Returns
    -------
    function : callable
        Of the variances, the covariances and the parameters of the integrand.
    values : list of sympy.Expr
        Those of ``node``.
    """
    require_jax()
    *integrands, variables, K = node.args
    size = len(variables)
    indices = entry_indices(size)

    def renamed(order: Sequence[int]) -> list[sp.Expr]:
        names = {variables[old]: _variable(new) for new, old in enumerate(order)}
        return [F.xreplace(names) for F in integrands]

    # In symbols and an order of its own, an average is one function wherever it occurs.
    order = min(
        permutations(range(size)), key=lambda o: sorted(map(sp.default_sort_key, renamed(o)))
    )
    parameters = set().union(*(F.free_symbols for F in integrands)) - set(variables)
    ordered = sorted(parameters, key=sp.default_sort_key)
    expression = type(node)(
        *renamed(order),
        [_variable(i) for i in range(size)],
        sp.Matrix(size, size, lambda i, j: _covariance(min(i, j), max(i, j))),
    )
    symbols = (*(_covariance(i, j) for i, j in indices), *ordered)
    values = [K[order[i], order[j]] for i, j in indices]
    return _differentiable(expression, symbols), [*values, *ordered]


def _arrays(values: Sequence[Any]) -> list:
    """Float64 arrays of one shape."""
    import jax.numpy as jnp

    return jnp.broadcast_arrays(*(jnp.asarray(v, dtype=float) for v in values))


@cache
def _variable(i: int) -> sp.Dummy:
    return sp.Dummy(f"h_{i + 1}", real=True)


@cache
def _covariance(i: int, j: int) -> sp.Dummy:
    name = f"K_{i + 1}{j + 1}"
    return sp.Dummy(name, positive=True) if i == j else sp.Dummy(name, real=True)


@lru_cache(maxsize=512)
def _differentiable(expression: sp.Expr, symbols: tuple[sp.Expr, ...]) -> Callable:
    """A JAX function of the symbols that is differentiated as the expression, not as its code."""
    import jax
    import jax.numpy as jnp
    from jax.custom_derivatives import SymbolicZero

    closed, integrals = translate(expression, for_backend("numpy"))
    functions = {name: _in_jax(function) for name, function in integrals.items()}
    code = _code(symbols, closed, functions)

    @cache
    def slope(symbol: sp.Expr) -> Callable:
        return compiled(symbols, *translate(expression.diff(symbol), resolved), matrix=False)

    @jax.custom_jvp
    def function(*values: Any) -> Any:
        return jnp.broadcast_to(jnp.asarray(code(*values), dtype=float), values[0].shape)

    @partial(function.defjvp, symbolic_zeros=True)
    def tangent(values: tuple, changes: tuple) -> tuple[Any, Any]:
        value = function(*values)
        total = jnp.zeros_like(value)
        for symbol, change in zip(symbols, changes, strict=True):
            # A slope that is not needed may be infinite, or take another integral.
            if not isinstance(change, SymbolicZero):
                total += slope(symbol)(*values) * change
        return value, total

    return lambda *values: function(*_arrays(values))


def _in_jax(average: Callable) -> Callable:
    """A NumPy function as one of JAX; a closed form, but on the host where its terms cancel."""
    host = _on_host(average)
    if not isinstance(average, ClosedForm):
        return host
    import jax
    import jax.numpy as jnp

    guarded = average.guarded
    code = _code(guarded.symbols, with_tails(guarded.with_errors), {})

    def function(*values: Any) -> Any:
        value, error = (jnp.broadcast_to(each, values[0].shape) for each in code(*values))
        lost = ~(error <= LIMIT * jnp.abs(value))
        where_lost = partial(jnp.where, lost)
        return jax.lax.cond(lost.any(), lambda: where_lost(host(*values), value), lambda: value)

    return function


def _on_host(average: Callable) -> Callable:
    """A NumPy function of arrays of one shape as a JAX function."""
    import jax

    def on_arrays(*values: Any) -> np.ndarray:
        return np.asarray(average(*map(np.asarray, values)), dtype=float)

    def function(*values: Any) -> Any:
        shape = jax.ShapeDtypeStruct(values[0].shape, np.float64)
        return jax.pure_callback(on_arrays, shape, *values, vmap_method="broadcast_all")

    return function


def _code(arguments: Sequence[sp.Expr], entries: Any, functions: dict[str, Callable]) -> Callable:
    from jax.scipy import special

    own = {"sqrt": _sqrt, "loggamma": special.gammaln, **exact_differences()}
    library = [functions, own, "jax", special]
    return sp.lambdify(list(arguments), in_float64(entries), modules=library, cse=True)


def exact_differences() -> dict[str, Callable]:
    """The functions that `float_forms.NUMPY` names."""
    import jax.numpy as jnp
    from jax.scipy import special

    return differences(jnp, _determinant) | {"complement": special.erfc}


def _sqrt(value: Any) -> Any:
    import jax
    import jax.numpy as jnp

    # Zero where rounding makes a vanishing value negative, with the slope of the root at zero.
    return jnp.sqrt(value + jax.lax.stop_gradient(jnp.maximum(-value, 0.0)))


def _determinant(K_xx: Any, K_yy: Any, K_xy: Any) -> Any:
    # As in `exact_differences`, but in products that need no rounding: XLA fuses them into sums.
    import jax.numpy as jnp

    (a, a_low), (b, b_low), (c, c_low) = map(_halves, (K_xx, K_yy, K_xy))
    mixed, remainder = _sum(a * b_low, a_low * b)
    mixed, more = _sum(mixed, -2 * c * c_low)
    remainder = remainder + more + (a_low * b_low - c_low * c_low)
    return jnp.maximum((a * b - c * c + mixed) + remainder, 0.0)


def _sum(x: Any, y: Any) -> tuple[Any, Any]:
    """x + y as a rounded sum and the rest, exactly (Knuth)."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def _halves(x: Any) -> tuple[Any, Any]:
    """The leading 26 bits, rounded, and the other 26."""
    import jax.numpy as jnp
    from jax.lax import bitcast_convert_type

    bits = (bitcast_convert_type(x, jnp.int64) + (1 << 26)) & -(1 << 27)
    high = bitcast_convert_type(bits, jnp.float64)
    return high, x - high
