"""Averages inside an expression put in numbers: closed forms, or calls of numeric functions.

Here it is decided how each average is evaluated; `lambdify` takes the value of that decision and
`explain` its words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from itertools import product
from typing import Any, NamedTuple

import mpmath
import sympy as sp
from sympy.core.function import AppliedUndef

from fieldtheory.averages import ConnectedCorrelator, GaussianAverage, routes
from fieldtheory.averages.choosing import Rule, choose
from fieldtheory.averages.integrands.breakpoints import has_steps
from fieldtheory.averages.nodes.base import AverageNode, entry_indices
from fieldtheory.averages.nodes.connected import two_factors
from fieldtheory.averages.nodes.deltas import DENSITY
from fieldtheory.averages.nodes.float_forms import (
    evaluated,
    holds_for_parallel,
    mpmath_code,
    numpy_code,
    stable,
    with_determinants,
)
from fieldtheory.averages.nodes.gaussian import without_deltas
from fieldtheory.averages.nodes.rounding import LIMIT, guarded, relative
from fieldtheory.compiling.numeric_functions import call, entries_of, integral, of_densities

# Where a function that is larger than a polynomial of this degree grows exponentially.
_FAR, _DEGREE = 1000, 20
# Functions whose averages over three and more variables have no closed form.
_NOT_ELEMENTARY = (sp.erf, sp.erfc, sp.tanh, sp.atan, sp.log, sp.DiracDelta)
_SINGULAR = ("δ-functions integrated",)
_CANCELS = "elementary integrals of every term, with mpmath: the terms cancel"
_GUARDED = "elementary integrals of every term; integrals where their rounding exceeds 1e-12"


class Decision(NamedTuple):
    """Form of an average before anything is integrated."""

    # A closed form, or averages that are left to integrate.
    value: sp.Expr
    # What was done to the average.
    notes: tuple[str, ...] = ()
    # The closed form as it was found, which more digits take.
    exact: sp.Expr | None = None
    # Whether its terms cancel nowhere.
    certain: bool = True


class Resolution(NamedTuple):
    """One average in numbers."""

    # A closed form, or an expression in calls of the numeric functions that were entered.
    value: sp.Expr
    # The averages left to rules; empty for a closed form.
    integrals: tuple[tuple[AverageNode, Rule], ...]
    # What was done to the average before.
    simplifications: tuple[str, ...]

    @property
    def name(self) -> str:
        """The rule that evaluates the average."""
        names = dict.fromkeys(rule.name for _, rule in self.integrals)
        return " and ".join(names) if names else routes.CLOSED

    @property
    def reason(self) -> str:
        """Why."""
        reasons = dict.fromkeys(rule.reason for _, rule in self.integrals)
        return "; ".join(reasons) if reasons else "elementary integrals of every term"


def translate(entries: Any, resolved: Callable[[AverageNode], sp.Expr]) -> Any:
    """Entries, alone or in (nested) lists, with every average replaced by what it resolves to."""
    if isinstance(entries, list | tuple):
        return [translate(entry, resolved) for entry in entries]
    # Innermost first: an average may stand in the covariance of another one.
    return sp.sympify(entries).replace(lambda e: isinstance(e, AverageNode), resolved)


def closed(expression: Any, exact: bool = False) -> Any:
    """Expressions, in lists or alone, with their averages in closed form where there is one."""

    def form(node: AverageNode) -> sp.Expr:
        named, symbols = _in_symbols(node)
        if not isinstance(named, AverageNode):
            return closed(named, exact).xreplace(symbols)
        decision = _decision(named, "numpy")
        if decision.exact is None:
            return node
        return (decision.exact if exact else decision.value).xreplace(symbols)

    return translate(expression, form)


@lru_cache(maxsize=64)
def is_closed(expression: sp.Expr) -> bool:
    """Whether an expression is made of closed forms alone.

    >>> x = sp.Symbol("x", real=True)
    >>> [is_closed(GaussianAverage(phi(x) ** 2, x, 1)) for phi in (sp.erf, sp.tanh)]
    [True, False]
    """
    return not closed(expression).has(AverageNode)


def resolve(node: AverageNode, backend: str, functions: dict[str, Callable]) -> Resolution:
    """Decide how an average is evaluated.

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
    """The closed form if there is one, else what is left to integrate."""
    singular = any(F.has(sp.DiracDelta) for F in node.functions)
    closed = node.doit(deltas=False) if _may_have_closed_form(node) else node
    if backend == "mpmath" and closed.has(sp.erf):
        # Steps at a distance come as exp(2K) (1 − erf √(2K)), in which any number of digits cancel.
        closed = node
    if not closed.has(AverageNode):
        form, notes = closed, _SINGULAR if singular else ()
        if backend == "mpmath":
            polynomial = closed.is_polynomial(*entries_of(node.covariance))
            certain = polynomial or not isinstance(node, ConnectedCorrelator)
        else:
            form = stable(closed, node.covariance) if len(node.variables) < 3 else closed
            notes = (*notes, *(("stable form in float64",) if form != closed else ()))
            certain = relative(form) <= LIMIT
        limit = not singular or any(map(grows, node.functions))
        if limit or _is_limit(closed, form, node, backend):
            return Decision(form, notes, closed, certain)
    if not singular:
        return Decision(node)
    parts = node.rewrite(GaussianAverage).replace(
        lambda e: isinstance(e, GaussianAverage), lambda e: without_deltas(e, doit=False)
    )
    return Decision(parts, () if parts.has(sp.DiracDelta) else _SINGULAR)


def _guarded(node: AverageNode, decision: Decision, backend: str) -> tuple[Rule, Sequence[sp.Expr]]:
    """The rule for a closed form whose terms may cancel, and its arguments."""
    exact, entries = sp.sympify(decision.exact), entries_of(node.covariance)
    # No integral has other symbols, more variables, functions without ends, or δ-functions alone.
    alone = len(node.variables) > 2 or not exact.free_symbols <= set(entries)
    alone |= any(F.has(sp.DiracDelta) or grows(F) for F in node.functions)
    if not exact.free_symbols <= set(entries):
        entries = sorted(exact.free_symbols, key=sp.default_sort_key)
    if backend == "mpmath":
        return Rule(routes.CLOSED, _CANCELS, evaluated(exact, entries, backend)), entries
    chosen = cache(lambda: choose(node).function)
    engine = None if alone else lambda *K: chosen()(*K)
    function = guarded(entries, decision.value, engine, lambda: exact)
    return Rule(routes.CLOSED, _GUARDED, function), entries


def closed_function(
    symbols: Sequence[sp.Expr], expression: Any, engine: Callable[..., Any]
) -> Callable[..., Any]:
    """An expression in averages that have closed forms, or a list, as a function of NumPy."""
    functions = {
        F for e in sp.flatten([expression]) for n in e.atoms(AverageNode) for F in n.functions
    }
    integrals = None if any(map(grows, functions)) else engine
    return guarded(symbols, closed(expression), integrals, lambda: closed(expression, exact=True))


@lru_cache(maxsize=256)
def grows(F: sp.Expr) -> bool:
    """Whether a function grows exponentially, so that panels do not end."""
    if not F.has(sp.exp, sp.sinh, sp.cosh):
        return False
    F = F.replace(sp.DiracDelta, lambda *_: sp.S.One)
    compiled = sp.lambdify(sorted(F.free_symbols, key=str), F, modules="mpmath")
    points = product((-_FAR, _FAR), repeat=len(F.free_symbols))
    # Steps times exponentials cancel in so many digits.
    with mpmath.workdps(4 * _FAR):
        return any(abs(compiled(*map(mpmath.mpf, point))) > _FAR**_DEGREE for point in points)


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
    """An average with symbols in place of the entries of its covariance, and their values."""
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
    """Whether one is looked for."""
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
