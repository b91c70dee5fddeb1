"""Averages inside an expression put in numbers: closed forms, or calls of numeric functions.

Here it is decided how each average is evaluated; `lambdify` takes the value of that decision and
`explain` its words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import mpmath
import numpy as np
import sympy as sp
from sympy.core.function import AppliedUndef

from fieldtheory.averages import ConnectedCorrelator, GaussianAverage, numeric, precise, shifted
from fieldtheory.averages.choosing import choose
from fieldtheory.averages.integrals.vectorising import in_float64
from fieldtheory.averages.integrands.steps import break_points, has_steps
from fieldtheory.averages.nodes.base import AverageNode
from fieldtheory.averages.nodes.cancelling_forms import cancels, guarded, without_signs
from fieldtheory.averages.nodes.checked_forms import keeps_digits
from fieldtheory.averages.nodes.gaussian import without_deltas
from fieldtheory.averages.nodes.stable_forms import NUMPY, stable, with_angles
from fieldtheory.averages.rules import CLOSED_FORM, Rule, entry_indices

# What the closed forms of several variables are looked for in: no Gaussians, no error functions.
_NOT_ELEMENTARY = (sp.erf, sp.erfc, sp.tanh, sp.atan, sp.log, sp.DiracDelta)


class Resolution(NamedTuple):
    """One average in numbers.

    Parameters
    ----------
    value : sympy.Expr
        A closed form, or an expression in calls of the numeric functions that were entered.
    integrals : tuple of (node, Rule)
        The averages left to rules; empty for a closed form.
    simplifications : tuple of str
        What was done to the average before.
    """

    value: sp.Expr
    integrals: tuple[tuple[AverageNode, Rule], ...]
    simplifications: tuple[str, ...]

    @property
    def name(self) -> str:
        """The rule that evaluates the average."""
        names = dict.fromkeys(rule.name for _, rule in self.integrals)
        return " and ".join(names) if names else CLOSED_FORM

    @property
    def reason(self) -> str:
        """Why."""
        reasons = dict.fromkeys(rule.reason for _, rule in self.integrals)
        return "; ".join(reasons) if reasons else "elementary integrals of every term"


def translate(
    entries: Any, resolved: Callable[[AverageNode, dict[str, Callable]], sp.Expr]
) -> tuple[Any, dict[str, Callable]]:
    """Entries with every average replaced, and the numeric functions that stand for some.

    Parameters
    ----------
    entries : sympy.Expr or (nested) list of them
    resolved : callable
        (node, functions) -> expression; it enters numeric functions under new names.

    Returns
    -------
    entries : the same nesting
    functions : dict
        Numeric functions by name.
    """
    functions: dict[str, Callable] = {}
    known: dict[sp.Expr, sp.Expr] = {}

    def one(node: AverageNode) -> sp.Expr:
        if node not in known:
            known[node] = resolved(node, functions)
        return known[node]

    def walk(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [walk(v) for v in value]
        # Innermost first: an average may stand in the covariance of another one.
        return sp.sympify(value).replace(lambda e: isinstance(e, AverageNode), one)

    return walk(entries), functions


def for_backend(backend: str) -> Callable[[AverageNode, dict[str, Callable]], sp.Expr]:
    """What `translate` takes for "numpy" or "mpmath"."""
    return lambda node, functions: resolve(node, backend, functions).value


@lru_cache(maxsize=64)
def is_closed(expression: sp.Expr) -> bool:
    """Whether NumPy computes an expression without integrals.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> [is_closed(GaussianAverage(phi(x) ** 2, x, 1)) for phi in (sp.erf, sp.tanh)]
    [True, False]
    """
    if not expression.has(AverageNode):
        return True

    def without_rules(node: AverageNode, _: dict[str, Callable]) -> sp.Expr:
        if len(node.variables) == 2:
            node = node.func(*node.args[:-1], _named(node.covariance)[0])
        return _closed(node)[0] if isinstance(node, AverageNode) else node

    return not translate(expression, without_rules)[0].has(AverageNode)


def resolve(node: AverageNode, backend: str, functions: dict[str, Callable]) -> Resolution:
    """Decide how an average is evaluated.

    Parameters
    ----------
    node : GaussianAverage or ConnectedCorrelator
    backend : {"numpy", "mpmath"}
    functions : dict
        Gets the numeric functions that the value calls.

    Returns
    -------
    Resolution

    Raises
    ------
    ValueError
        If a function of the node is unknown, holds other symbols, or cannot be integrated.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> resolve(GaussianAverage(sp.tanh(x) ** 2, x, 1), "numpy", {}).name
    'panels'
    """
    symbols: dict[sp.Expr, sp.Expr] = {}
    size, correlator = len(node.variables), isinstance(node, ConnectedCorrelator)
    if size > 2 or (backend == "numpy" and (size == 2 or correlator)):
        # Entries of the covariance may be sums, in which its determinant is no longer seen.
        covariance, symbols = _named(node.covariance)
        node = node.func(*node.args[:-1], covariance)
        if not isinstance(node, AverageNode):
            inner = _translated(node, backend, functions)
            return inner._replace(value=inner.value.xreplace(symbols))
    value, notes = _closed(node)
    # At the magnitudes where closed forms are tried narrow bells are zero.
    narrow = correlator and backend == "numpy" and numeric.bells_in(node) is not None
    if narrow or (correlator and not _is_exact(value, node.covariance, backend)):
        value, notes = node, []
    integrals: list[tuple[AverageNode, Rule]] = []

    def integrated(left: AverageNode) -> sp.Expr:
        rule, call = integral(left, backend, functions)
        integrals.append((left, rule))
        return call

    value = value.replace(lambda e: isinstance(e, AverageNode), integrated)
    if backend == "numpy":
        rewritten = (
            with_angles(stable(value, node.covariance), node.covariance) if size <= 2 else value
        )
        if rewritten != value:
            notes.append("stable form in float64")
        value = rewritten
        if isinstance(node, GaussianAverage) and not integrals and size <= 2:
            value = _where_it_keeps_digits(value, node, functions, notes)
    return Resolution(value.xreplace(symbols), tuple(integrals), tuple(notes))


def _where_it_keeps_digits(
    form: sp.Expr, node: GaussianAverage, functions: dict[str, Callable], notes: list[str]
) -> sp.Expr:
    """A closed form, or a call of what integrates where it is a small difference of its terms."""
    K = node.covariance
    symbols = [K[i, j] for i, j in entry_indices(len(node.variables))]
    known = all(entry.is_Symbol for entry in symbols) and form.free_symbols <= set(symbols)
    if not known or any(F.atoms(sp.DiracDelta, AppliedUndef) for F in node.functions):
        return form
    compiled = numpy_code(symbols, [form, without_signs(form)], {})
    if not cancels(form, symbols, compiled):
        return form
    rule = choose(node)
    notes.append(f"{rule.name} where the closed form is a small difference")
    return call(guarded(compiled, rule.function), symbols, functions)


def _translated(value: sp.Expr, backend: str, functions: dict[str, Callable]) -> Resolution:
    """An expression in averages as one resolution."""
    integrals: list = []
    notes: list[str] = []

    def one(node: AverageNode) -> sp.Expr:
        found = resolve(node, backend, functions)
        integrals.extend(found.integrals)
        notes.extend(found.simplifications)
        return found.value

    value = value.replace(lambda e: isinstance(e, AverageNode), one)
    return Resolution(value, tuple(integrals), tuple(dict.fromkeys(notes)))


def _named(K: sp.ImmutableMatrix) -> tuple[sp.ImmutableMatrix, dict[sp.Expr, sp.Expr]]:
    """The covariance in symbols of its own, zeros of three and more variables kept."""
    size = K.shape[0]
    symbols: dict[sp.Expr, sp.Expr] = {}
    named = K.as_mutable()
    for i, j in entry_indices(size):
        if size > 2 and K[i, j] == 0:
            continue
        symbol = _entry("ab"[i] if i == j and size == 2 else "c", i, j)
        symbols[symbol] = K[i, j]
        named[i, j] = named[j, i] = symbol
    return named.as_immutable(), symbols


@lru_cache
def _entry(name: str, i: int, j: int) -> sp.Dummy:
    """Always the same, so that closed forms in it are found once."""
    kind = {"positive": True} if i == j else {"real": True}
    return sp.Dummy(name, **kind)


def _closed(node: AverageNode) -> tuple[sp.Expr, list[str]]:
    """The closed form, or what is left to integrate after the δ-functions."""
    singular = any(F.has(sp.DiracDelta) for F in node.functions)
    if _is_simple(node):
        value = node.doit()
        if value.has(sp.erf):
            # Steps at a distance come as exp(2K) (1 − erf √(2K)), which cancels and overflows.
            value = without_deltas(node)
    elif singular:
        by_averages = node.rewrite(GaussianAverage)
        value = by_averages.replace(lambda e: isinstance(e, GaussianAverage), without_deltas)
    else:
        value = node.doit() if _is_elementary(node) else node
    done = singular and not value.has(sp.DiracDelta)
    return value, ["δ-functions integrated"] if done else []


def _is_exact(value: sp.Expr, K: sp.ImmutableMatrix, backend: str) -> bool:
    """Whether a closed form of ⟨F;G⟩ is no difference of nearly equal terms."""
    entries = K.free_symbols
    if value.has(AverageNode) or K.shape[0] > 2 or not value.free_symbols <= entries:
        return True
    if value.is_polynomial(*entries):
        return True
    if backend == "mpmath":
        return False
    symbols = [K[i, j] for i, j in entry_indices(K.shape[0])]
    return keeps_digits(value, K, numpy_code(symbols, stable(value, K), {}))


def _is_simple(node: AverageNode) -> bool:
    """Whether the node is an average of up to two variables, or correlates two functions of one."""
    if isinstance(node, GaussianAverage):
        return len(node.variables) <= 2
    return isinstance(node, ConnectedCorrelator) and numeric.apart(node) is not None


def _is_elementary(node: AverageNode) -> bool:
    """Whether the functions are polynomials times exponentials, sines, cosines of linear forms."""
    variables = tuple(node.variables)
    for F in node.functions:
        if F.has(*_NOT_ELEMENTARY) or F.atoms(AppliedUndef) or has_steps(F):
            return False
        for e in F.atoms(sp.exp, sp.sin, sp.cos, sp.sinh, sp.cosh):
            argument = e.args[0]
            if not argument.is_polynomial(*variables):
                return False
            if sp.Poly(argument, *variables).total_degree() > 1:
                return False
    return True


def integral(
    node: AverageNode, backend: str, functions: dict[str, Callable]
) -> tuple[Rule, sp.Expr]:
    """The rule for an average and a call of it as a function of the covariance."""
    unknown = set().union(*(F.free_symbols for F in node.functions)) - set(node.variables)
    if unknown and unknown <= node.covariance.free_symbols and (found := shifted.shifted(node)):
        return _with_mean(found, node.covariance[0, 0], backend, functions)
    if unknown:
        names = ", ".join(sorted(map(str, unknown)))
        raise ValueError(f"expression must have a number for {names} inside the average {node}")
    if any(F.atoms(sp.DiracDelta, AppliedUndef) for F in node.functions):
        raise ValueError(f"expression must have a known, continuous activation, got {node}")
    rule = choose(node) if backend == "numpy" else _precise_rule(node)
    K = node.covariance
    values = [K[i, j] for i, j in entry_indices(len(node.variables))]
    return rule, call(rule.function, values, functions)


def _precise_rule(node: AverageNode) -> Rule:
    """The rule for an average with mpmath, to the digits at the time of the call."""
    size, variables = len(node.variables), tuple(node.variables)
    for F, v in product(node.functions, variables):
        if has_steps(F) and F.has(v):
            break_points(F, v)
    if size > 2:
        raise ValueError(
            "expression must have a closed form for averages over more than two variables with "
            f"mpmath, got {node}"
        )
    indices = entry_indices(size)

    def function(*entries: Any) -> Any:
        K = [
            [entries[indices.index((min(i, j), max(i, j)))] for j in range(size)]
            for i in range(size)
        ]
        return precise.cumulant(node.functions, variables, K, mpmath.mp.dps)

    if size == 1:
        return Rule("panels", "one variable", function)
    return Rule("Mehler series or nested panels", "two variables", function)


def _with_mean(
    node: shifted.Shifted, K: sp.Expr, backend: str, functions: dict[str, Callable]
) -> tuple[Rule, sp.Expr]:
    """The rule for an average of one variable with a mean, and calls of it."""
    make = shifted.rule if backend == "numpy" else shifted.precise_rule
    rules = [make(F, node.variable) for _, F in node.terms]
    calls = [call(rule.function, [K, node.mean], functions) for rule in rules]
    factors = (factor for factor, _ in node.terms)
    return rules[0], sp.Add(*[f * c for f, c in zip(factors, calls, strict=True)])


def call(function: Callable, values: Sequence[sp.Expr], functions: dict) -> sp.Expr:
    """A call of a numeric function, which is entered under a new name."""
    name = f"average_{len(functions)}"
    functions[name] = function
    return sp.Function(name)(*values)


def numpy_code(
    arguments: Sequence[sp.Expr], entries: Any, functions: dict[str, Callable]
) -> Callable:
    """The NumPy function of translated entries."""
    library = [functions, NUMPY, {"sqrt": _sqrt}, "scipy", "numpy"]
    return sp.lambdify(list(arguments), in_float64(entries), modules=library, cse=True)


def _sqrt(value: Any) -> Any:
    # Determinants of singular covariances come out as −0.0…01 by rounding.
    return np.sqrt(np.maximum(value, 0.0))
