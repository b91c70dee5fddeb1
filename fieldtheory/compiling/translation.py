"""Averages inside an expression put in numbers: closed forms, or calls of numeric functions.

Here it is decided how each average is evaluated; `lambdify` takes the value of that decision and
`explain` its words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from typing import Any, NamedTuple

import sympy as sp
from sympy.core.function import AppliedUndef

from fieldtheory.averages import ConnectedCorrelator, GaussianAverage
from fieldtheory.averages.choosing import choose, two_factors
from fieldtheory.averages.errors import QuadratureError
from fieldtheory.averages.integrands.breakpoints import has_steps
from fieldtheory.averages.nodes.base import AverageNode
from fieldtheory.averages.nodes.closed_forms import DENSITY
from fieldtheory.averages.nodes.float_forms import (
    evaluated,
    holds_for_parallel,
    stable,
    with_determinants,
)
from fieldtheory.averages.nodes.gaussian import without_deltas
from fieldtheory.averages.nodes.rounding import LIMIT, ClosedForm, Guarded, relative
from fieldtheory.averages.rules import CLOSED_FORM, Rule, entry_indices
from fieldtheory.compiling.numeric_functions import (
    call,
    entries_of,
    grows,
    integral,
    mpmath_code,
    numpy_code,
    of_densities,
)

# Functions whose averages over three and more variables have no closed form.
_NOT_ELEMENTARY = (sp.erf, sp.erfc, sp.tanh, sp.atan, sp.log, sp.DiracDelta)
_SINGULAR = ("δ-functions integrated",)
_CANCELS = "elementary integrals of every term, with mpmath: the terms cancel"
_GUARDED = "elementary integrals of every term; integrals where their rounding exceeds 1e-12"


class Decision(NamedTuple):
    """Form of an average before anything is integrated.

    Parameters
    ----------
    value : sympy.Expr
        A closed form, or averages that are left to integrate.
    notes : tuple of str
        What was done to the average.
    exact : sympy.Expr, optional
        The closed form as it was found, which more digits take.
    certain : bool
        Whether its terms cancel nowhere.
    """

    value: sp.Expr
    notes: tuple[str, ...] = ()
    exact: sp.Expr | None = None
    certain: bool = True


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
    replaced: dict[sp.Expr, sp.Expr] = {}

    def one(node: AverageNode) -> sp.Expr:
        if node not in replaced:
            replaced[node] = resolved(node, functions)
        return replaced[node]

    def walk(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [walk(v) for v in value]
        # Innermost first: an average may stand in the covariance of another one.
        return sp.sympify(value).replace(lambda e: isinstance(e, AverageNode), one)

    return walk(entries), functions


def for_backend(backend: str) -> Callable[[AverageNode, dict[str, Callable]], sp.Expr]:
    """Argument of `translate` for "numpy" or "mpmath"."""
    return lambda node, functions: resolve(node, backend, functions).value


def closed(expression: Any, exact: bool = False) -> Any:
    """Expressions, in lists or alone, with their averages in closed form where there is one.

    Parameters
    ----------
    expression : sympy.Expr or (nested) list of them
    exact : bool
        Whether forms are those of mpmath, else of float64.
    """

    def form(node: AverageNode, _: dict[str, Callable]) -> sp.Expr:
        named, symbols = _in_symbols(node)
        if not isinstance(named, AverageNode):
            return closed(named, exact).xreplace(symbols)
        decision = _decision(named, "numpy")
        if decision.exact is None:
            return node
        return (decision.exact if exact else decision.value).xreplace(symbols)

    return translate(expression, form)[0]


@lru_cache(maxsize=64)
def is_closed(expression: sp.Expr) -> bool:
    """Whether an expression is made of closed forms alone.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> [is_closed(GaussianAverage(phi(x) ** 2, x, 1)) for phi in (sp.erf, sp.tanh)]
    [True, False]
    """
    return not closed(expression).has(AverageNode)


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
    node, symbols = _in_symbols(node)
    if not isinstance(node, AverageNode):
        inner = _translated(node, backend, functions)
        return inner._replace(value=inner.value.xreplace(symbols))
    decision = _decision(node, backend)
    value: sp.Expr = decision.value
    rules: list[tuple[AverageNode, Rule]] = []
    if not decision.certain:
        rule, arguments = _guarded(node, decision, backend)
        rules.append((node, rule))
        value = call(rule.function, arguments, functions)

    def integrated(left: AverageNode) -> sp.Expr:
        rule, call = integral(left, backend, functions)
        rules.append((left, rule))
        return call

    value = value.replace(lambda e: isinstance(e, AverageNode), integrated)
    if (rules and decision.certain) or value.has(DENSITY):
        value = with_determinants(value, node.covariance)
    if value.has(DENSITY):
        arguments = sorted(value.free_symbols, key=sp.default_sort_key)
        value = call(of_densities(value, arguments, backend, functions), arguments, functions)
    return Resolution(value.xreplace(symbols), tuple(rules), decision.notes)


@lru_cache(maxsize=512)
def _decision(node: AverageNode, backend: str) -> Decision:
    """The closed form if there is one, else what is left to integrate.

    With mpmath a closed form that cancels is left to integrals where these have the digits. One
    that δ-functions leave is not taken if it is 0/0 for parallel signals.
    """
    singular = any(F.has(sp.DiracDelta) for F in node.functions)
    closed = node.doit(deltas=False) if _may_have_closed_form(node) else node
    if backend == "mpmath" and closed.has(sp.erf):
        # Steps at a distance come as exp(2K) (1 − erf √(2K)), in which any number of digits cancel.
        closed = node
    if not closed.has(AverageNode):
        decision = _of_closed_form(closed, node, backend, _SINGULAR if singular else ())
        if not singular or grows(node) or _is_limit(closed, decision.value, node, backend):
            return decision
    if not singular:
        return Decision(node)
    parts = node.rewrite(GaussianAverage).replace(
        lambda e: isinstance(e, GaussianAverage), lambda e: without_deltas(e, doit=False)
    )
    return Decision(parts, () if parts.has(sp.DiracDelta) else _SINGULAR)


def _of_closed_form(
    closed: sp.Expr, node: AverageNode, backend: str, notes: tuple[str, ...]
) -> Decision:
    if backend == "mpmath":
        is_difference = isinstance(node, ConnectedCorrelator)
        is_difference &= not closed.is_polynomial(*entries_of(node.covariance))
        return Decision(closed, notes, closed, not is_difference)
    form = stable(closed, node.covariance) if len(node.variables) < 3 else closed
    notes = (*notes, *(("stable form in float64",) if form != closed else ()))
    return Decision(form, notes, closed, relative(form) <= LIMIT)


def _guarded(node: AverageNode, decision: Decision, backend: str) -> tuple[Rule, Sequence[sp.Expr]]:
    """The rule for a closed form whose terms may cancel, and its arguments."""
    exact, entries = sp.sympify(decision.exact), entries_of(node.covariance)
    # No integral has other symbols, more variables, functions without ends, or δ-functions alone.
    digits = not exact.free_symbols <= set(entries) or len(node.variables) > 2 or grows(node)
    if not exact.free_symbols <= set(entries):
        entries = sorted(exact.free_symbols, key=sp.default_sort_key)
    if backend == "mpmath":
        return Rule(CLOSED_FORM, _CANCELS, evaluated(exact, entries, backend)), entries

    @cache
    def integral() -> Callable:
        return choose(node).function

    alone = digits or any(F.has(sp.DiracDelta) for F in node.functions)
    engine = None if alone else lambda *K: [integral()(*K)]
    guarded = _guarded_forms(entries, [decision.value], _or_digits(engine, entries, [exact]))
    return Rule(CLOSED_FORM, _GUARDED, ClosedForm(guarded)), entries


def _guarded_forms(
    symbols: Sequence[sp.Expr], forms: Sequence[sp.Expr], otherwise: Callable
) -> Guarded:
    compiled = lambda *of: numpy_code(of[0], of[1], {})  # noqa: E731
    return Guarded(tuple(forms), tuple(symbols), compiled, otherwise)


def closed_function(
    symbols: Sequence[sp.Expr], expressions: Sequence[sp.Expr], engine: Callable
) -> Callable[..., list[Any]]:
    """Closed forms as a function of NumPy, and another one where their terms cancel.

    Parameters
    ----------
    symbols : sequence of symbols
    expressions : sequence of sympy.Expr
        With averages that have closed forms.
    engine : callable
        Of arrays (m,) of the symbols: a list of the same values. More digits take its place if
        functions grow exponentially, or where no panels resolve its integrals.
    """
    nodes = set().union(*(e.atoms(AverageNode) for e in expressions))
    integrals = None if any(map(grows, nodes)) else engine
    other = _or_digits(integrals, symbols, closed(list(expressions), exact=True))
    return _guarded_forms(symbols, closed(list(expressions)), other)


def _or_digits(
    engine: Callable | None, symbols: Sequence[sp.Expr], exact: Sequence[sp.Expr]
) -> Callable[..., list[Any]]:
    """Integrals; more digits of closed forms where there are none or no panels resolve them."""

    @cache
    def precise() -> list[Callable]:
        return [evaluated(e, symbols, "numpy") for e in exact]

    def values(*K: Any) -> list[Any]:
        if engine is not None:
            with suppress(QuadratureError):
                return list(engine(*K))
        return [function(*K) for function in precise()]

    return values


def _is_limit(value: sp.Expr, form: sp.Expr, node: AverageNode, backend: str) -> bool:
    """Whether the code of a closed form is its limit for parallel signals."""
    entries = entries_of(node.covariance)
    if len(node.variables) != 2 or not value.free_symbols <= set(entries):
        return True
    code = numpy_code if backend == "numpy" else mpmath_code
    return holds_for_parallel(value, entries, code(entries, form, {}))


def _translated(value: sp.Expr, backend: str, functions: dict[str, Callable]) -> Resolution:
    """An expression in averages as one resolution."""
    integrals: list = []
    notes: list[str] = []

    def one(node: AverageNode) -> sp.Expr:
        resolution = resolve(node, backend, functions)
        integrals.extend(resolution.integrals)
        notes.extend(resolution.simplifications)
        return resolution.value

    value = value.replace(lambda e: isinstance(e, AverageNode), one)
    return Resolution(value, tuple(integrals), tuple(dict.fromkeys(notes)))


def _in_symbols(node: AverageNode) -> tuple[sp.Expr, dict[sp.Expr, sp.Expr]]:
    """An average with symbols in place of the entries of its covariance, and their values.

    `stable` finds determinants of symbols alone. Zeros of three and more variables stay.
    """
    K, size = node.covariance, len(node.variables)
    symbols: dict[sp.Expr, sp.Expr] = {}
    named = K.as_mutable()
    for i, j in entry_indices(size):
        if size > 2 and K[i, j] == 0:
            continue
        symbol = _entry("ab"[i] if i == j and size < 3 else "c", i, j)
        symbols[symbol] = K[i, j]
        named[i, j] = named[j, i] = symbol
    return node.func(*node.args[:-1], named.as_immutable()), symbols


@lru_cache
def _entry(name: str, i: int, j: int) -> sp.Dummy:
    """Always the same, so that closed forms in it are found once."""
    kind = {"positive": True} if i == j else {"real": True}
    return sp.Dummy(name, **kind)


def _may_have_closed_form(node: AverageNode) -> bool:
    """Whether one is looked for.

    Up to two variables, or functions of one variable each: always. Else for polynomials times
    exponentials, sines and cosines of linear forms, as others may take minutes.
    """
    variables = tuple(node.variables)
    if len(variables) <= 2 and (len(node.functions) == 1 or two_factors(node) is not None):
        return True
    for F in node.functions:
        if F.has(*_NOT_ELEMENTARY) or F.atoms(AppliedUndef) or has_steps(F):
            return False
        for e in F.atoms(sp.exp, sp.sin, sp.cos, sp.sinh, sp.cosh):
            (argument,) = e.args
            if not argument.is_polynomial(*variables):
                return False
            if sp.Poly(argument, *variables).total_degree() > 1:
                return False
    return True
