"""How a printed side is held against a derived one: in symbols, in numbers, in an interval.

Every check is called with the printed side, a function that returns the derived one, the points at
which numbers are put in, and the digits of the comparison; it returns `Evidence`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import mpmath
import sympy as sp
from sympy.core.function import AppliedUndef

from fieldtheory.averages import ConnectedCorrelator, GaussianAverage, precise
from fieldtheory.theory.typesetting.latex import latex

Points = Sequence[Mapping[sp.Symbol, Any]]

FLOAT64_TOLERANCE = 1e-12
_PRINTED, _DERIVED = r"\mathrm{printed}", r"\mathrm{derived}"

# How far a wrong version is off that shows that a check notices.
ERROR = sp.Rational(1, 10**10)
_GUARD = 10
_LONGEST = 160
_SIGNS = {
    r"\sigma^{2}": "σ²",
    r"\sigma": "σ",
    r"\rho": "ρ",
    r"\nu": "ν",
    r"\phi": "φ",
    "phi(": "φ(",
    r"\mathcal{V}": "V",
    r"\tilde{C}": "C̃",
    r"\mathrm": "",
}
_AVERAGES = (GaussianAverage, ConnectedCorrelator)


class UndecidedError(ArithmeticError):
    """Two sides could be shown neither to agree nor to differ."""


@dataclass(frozen=True)
class Evidence:
    """Result of a comparison.

    Parameters
    ----------
    agrees : bool or None
        Whether both sides are the same; None if nothing here can tell.
    text : str
        The number or the expression that shows it.
    printed, derived : str
        Both sides where they differ most.
    formulas : tuple of str
        Of expressions the LaTeX of printed, derived and of how they differ; empty for numbers.
    quantifier : str
        For what the sides were compared: all values of some symbols, points, or instances.
    count : int
        How many points or instances; 0 for all values.
    """

    agrees: bool | None
    text: str
    printed: str
    derived: str
    formulas: tuple[str, ...] = ()
    quantifier: str = ""
    count: int = 0


Check = Callable[[Any, Any, Points, int], Evidence]


def symbolically(printed: Any, derived: Any, points: Points, digits: int) -> Evidence:
    """Whether two expressions, or matrices of them, are the same for all values of their symbols.

    ``derived`` is called without arguments. Averages over a φ left open are independent symbols.
    Both sides differ if they do at one point, in numbers; they agree if their difference simplifies
    to zero.

    Raises
    ------
    UndecidedError
        If it does neither.
    """
    sides = printed() if _is_function(printed) else printed, derived()
    ones, others = map(_entries, sides)
    every = _all_values([*ones.values(), *others.values()])
    for place, one in ones.items():
        other = others[place]
        if not _same(one, other, points, digits):
            text, how = _difference(one, other)
            formulas = latex(one), latex(other), how
            return Evidence(False, text + place, plain(one), plain(other), formulas, every)
    agreeing = *map(latex, sides), rf"{_PRINTED} - {_DERIVED} = 0"
    one_text, other_text = map(plain, sides)
    return Evidence(True, "printed − derived = 0", one_text, other_text, agreeing, every)


def at_least(printed: Any, derived: Any, points: Points, digits: int) -> Evidence:
    """Whether ``printed``, a lower bound, is nowhere above ``derived``, by the sign of the rest."""
    bounds, entries = _entries(printed), _entries(derived())
    every = _all_values([*bounds.values(), *entries.values()])
    for place, bound in bounds.items():
        margin = sp.factor(sp.simplify(entries[place] - bound))
        agrees = bool(margin.is_nonnegative)
        if not agrees and not margin.is_nonpositive:
            raise UndecidedError(f"the sign is not known: {shortened(plain(margin))}")
        text = f"derived − printed = {plain(margin)}{place}"
        if not agrees:
            break
    if agrees and len(bounds) > 1:
        text = f"derived − printed >= 0 in all {len(bounds)} entries"
    formulas = latex(bound), latex(entries[place]), rf"{_DERIVED} - {_PRINTED} = {latex(margin)}"
    return Evidence(agrees, text, plain(bound), plain(entries[place]), formulas, every)


def numerically(printed: Any, derived: Any, points: Points, digits: int) -> Evidence:
    """Whether two numbers agree to ``digits`` at every point, relative to the larger of 1 and both.

    ``derived`` is called with a point and the digits that its result must have; ``printed`` is an
    expression, or a function of the same arguments.
    """
    return _numbers(printed, derived, points, digits, (digits,), mpmath.mpf(10) ** -digits)


def in_float64(printed: Any, derived: Any, points: Points, digits: int) -> Evidence:
    """The same for what the package computes in float64; ``derived`` is called with the point."""
    return _numbers(printed, derived, points, digits, (), mpmath.mpf(FLOAT64_TOLERANCE))


def inside(printed: Any, derived: Any, points: Points, digits: int) -> Evidence:
    """Whether numbers lie in the open interval ``printed``; ``derived`` returns them by name."""
    low, high = printed() if _is_function(printed) else printed
    by_name = derived()
    outside = {name: value for name, value in by_name.items() if not low < value < high}
    text, derived_text = (
        ", ".join(f"{value:.4g} at {name}" for name, value in values.items())
        for values in (outside or by_name, by_name)
    )
    between, names = f"from {low:g} to {high:g}", ", ".join(by_name)
    return Evidence(not outside, text, between, derived_text, (), f"for {names}", len(by_name))


def at(name: str, places: Iterable[Any], value: Callable[[Any], Any]) -> dict[str, float]:
    """Numbers by name for `inside`, the values of a function at some places.

    Examples
    --------
    >>> at("L", (10, 20), lambda L: 1 / L)
    {'L = 10': 0.1, 'L = 20': 0.05}
    """
    return {f"{name} = {place:g}": float(value(place)) for place in places}


def not_here(printed: Any, derived: Any, points: Points, digits: int) -> Evidence:
    """Neither holds nor fails here; ``derived`` is called for what is missing."""
    missing = str(derived())
    return Evidence(None, missing, str(printed), missing)


WORDS: dict[Check, str] = {
    symbolically: "in symbols",
    at_least: "in symbols",
    numerically: "in mpmath",
    in_float64: "in float64",
    inside: "in float64",
    not_here: "not checked",
}


def slightly_wrong(check: Check, printed: Any, derived: Any) -> tuple[Any, Any]:
    """Both sides with a wrong printed one that a check with any force rejects."""
    if check is inside:
        values = derived()
        return (max(values.values()), float("inf")), lambda: values
    if _is_function(printed):
        return (lambda *point: _off(printed(*point))), derived
    return _off(printed), derived


def _off(side: Any) -> Any:
    if isinstance(side, sp.MatrixBase):
        return side.applyfunc(_off)
    return side * (1 + ERROR) if side != 0 else ERROR


def _all_values(sides: Iterable[sp.Expr]) -> str:
    """ "for all L, σ_w > 0" by the symbols of expressions and what they stand for."""
    sides = list(sides)
    symbols = set().union(*(side.free_symbols for side in sides))
    kinds: dict[str, list[str]] = {}
    for symbol in sorted(symbols, key=sp.default_sort_key):
        sign = " > 0" if symbol.is_positive else " >= 0" if symbol.is_nonnegative else ""
        kind = "integer " if symbol.is_integer else "real " if symbol.is_real and not sign else ""
        kinds.setdefault(f"{kind}|{sign}", []).append(plain(symbol))
    words = [", ".join(names).join(kind.split("|")) for kind, names in kinds.items()]
    words += ["every φ"] if any(side.atoms(AppliedUndef) for side in sides) else []
    return f"for all {'; '.join(words)}" if words else "without parameters"


def _is_function(side: Any) -> bool:
    # SymPy's symbols can be called, too.
    return callable(side) and not isinstance(side, sp.Basic)


def _entries(side: Any) -> dict[str, sp.Expr]:
    """The entries of an expression or a matrix by where they stand, as words."""
    if not isinstance(side, sp.MatrixBase):
        return {"": sp.sympify(side)}
    rows, columns = side.shape
    places = itertools.product(range(rows), range(columns))
    return {f" at [{k},{l}]": side[k, l] for k, l in places}


def _independent(*sides: sp.Expr) -> tuple[list[sp.Expr], dict[sp.Dummy, sp.Expr]]:
    """Expressions with a symbol for every average, and the averages by symbol."""
    nodes = set().union(*(side.atoms(*_AVERAGES) for side in sides))
    averages = sorted(nodes, key=sp.default_sort_key)
    # Their names have an order, so that a difference is factored in one way.
    symbols = {a: sp.Dummy(f"average_{i:03}", positive=True) for i, a in enumerate(averages)}
    reduced = [side.xreplace(symbols) for side in sides]
    return reduced, {symbol: average for average, symbol in symbols.items()}


def _same(
    printed: sp.Expr, derived: sp.Expr, points: Sequence[Mapping[sp.Symbol, Any]], digits: int
) -> bool:
    (one, other), _ = _independent(printed, derived)
    for point in _trials(one.free_symbols | other.free_symbols, points):
        first, second = (side.subs(point).evalf(digits + _GUARD) for side in (one, other))
        if abs(first - second) > (abs(first) + abs(second)) * sp.Float(10) ** -digits:
            return False
    if sp.simplify(sp.expand_log(one - other, force=True)) != 0:
        raise UndecidedError(
            f"neither the same nor different: {shortened(plain(printed - derived))}"
        )
    return True


def _trials(
    symbols: Iterable[sp.Symbol], points: Sequence[Mapping[sp.Symbol, Any]]
) -> list[dict[sp.Symbol, Any]]:
    """Numbers for all symbols: those of the points, else generic ones, integers where need be."""
    generic = {
        symbol: sp.prime(i + 5)
        if symbol.is_integer
        else sp.Rational(sp.prime(i + 5), sp.prime(i + 7))
        for i, symbol in enumerate(sorted(symbols, key=sp.default_sort_key))
    }
    return [{symbol: point.get(symbol, generic[symbol]) for symbol in generic} for point in points]


def _difference(printed: sp.Expr, derived: sp.Expr) -> tuple[str, str]:
    """Ratio or difference of two sides, the shorter one, as text and as LaTeX."""
    (one, other), averages = _independent(printed, derived)
    difference = sp.factor(one - other).xreplace(averages)
    formula = rf"{_PRINTED} - {_DERIVED} = {latex(difference)}"
    forms = [(f"printed − derived = {plain(difference)}", formula)]
    if other != 0:
        ratio = sp.simplify(one / other)
        if not set(averages) & ratio.free_symbols:
            both = rf"{_PRINTED} / {_DERIVED} = {latex(ratio)}"
            forms.append((f"printed/derived = {plain(ratio)}", both))
    return min(forms, key=lambda words: len(words[0]))


def shortened(text: str) -> str:
    """A text of one line, cut where it is longer, with the entry of a matrix that it ends with."""
    text, place = re.fullmatch(r"(.*?)( at \[\d+,\d+\])?", text).groups("")  # type: ignore[union-attr]
    return (text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…") + place


def plain(expression: Any) -> str:
    """An expression, whose symbols have names in LaTeX, as a terminal shows it."""
    text = str(expression)
    for name, sign in _SIGNS.items():
        text = text.replace(name, sign)
    return re.sub(r"\{([^{}]*)\}", r"\1", re.sub(r"\{([^{}]*)\}", r"\1", text))


def _numbers(
    printed: Any, derived: Any, points: Points, digits: int, extra: tuple[int, ...], tolerance: Any
) -> Evidence:
    def value(side: Any, point: Mapping[sp.Symbol, Any]) -> tuple[Any, Any]:
        """A side as it stands, an expression or a number, and its number."""
        computed = side(point, *extra) if _is_function(side) else side
        if isinstance(computed, sp.Basic):
            return computed, integrated(computed, point, digits)
        return computed, mpmath.mpmathify(computed)

    compared = []
    with mpmath.workdps(digits + _GUARD):
        for point in points:
            sides = value(printed, point), value(derived, point)
            one, other = (number for _, number in sides)
            deviation = abs(one - other) / max(1, abs(one), abs(other))
            compared.append((deviation, one, other, point, [side for side, _ in sides]))
        worst, one, other, point, expressions = max(compared, key=lambda entry: entry[0])
        where = f" at {_place(point)}" if point else ""
        text = f"largest deviation {mpmath.nstr(worst, 3)}{where}"
        agrees = bool(worst <= tolerance)
        texts = [mpmath.nstr(mpmath.chop(side, tolerance), 10) for side in (one, other)]
        difference = mpmath.nstr(mpmath.chop(one - other, tolerance), 4)
        if not agrees:
            short = [mpmath.nstr(side or 0, 4) for side in (one, other)]
            text = f"{short[0]} printed, {short[1]} derived: {text}"
            if mpmath.isnan(one):
                text = f"undefined as printed, {short[1]} derived{where}"
    formulas: tuple[str, ...] = ()
    if any(map(_is_formula, expressions)):
        at_point = [
            latex(sp.Eq(symbol, number, evaluate=False)) for symbol, number in point.items()
        ]
        how = rf"{_PRINTED} - {_DERIVED} = {difference}"
        if mpmath.isnan(one):
            how = rf"{_PRINTED} \text{{ is undefined}}"
        both = map(partial(_with_number, latex), expressions, texts)
        formulas = *both, r",\quad ".join([how, *at_point])
    one_text, other_text = map(partial(_with_number, plain), expressions, texts)
    places = "; ".join(_place(point) for point in points if point)
    every = f"at {places}" if places else "at one point"
    return Evidence(agrees, text, one_text, other_text, formulas, every, len(points))


def integrated(expr: sp.Expr, values: Mapping[Any, Any], digits: int) -> Any:
    """An expression at a point, with every average in it integrated rather than in closed form."""
    expr = expr.subs(values)
    numbers = {a: a.evalf(digits + _GUARD) for a in expr.atoms(GaussianAverage)}
    return precise.mpf(expr.xreplace(numbers), digits + _GUARD)


def _is_formula(side: Any) -> bool:
    return isinstance(side, sp.Basic) and not side.is_Number


def _with_number(form: Callable[[Any], str], side: Any, number: str) -> str:
    """A formula with its number, or the number alone."""
    if not _is_formula(side):
        return number
    return form(side) if number == "nan" else f"{form(side)} = {number}"


def _place(point: Mapping[Any, Any]) -> str:
    return plain(", ".join(f"{symbol} = {value}" for symbol, value in point.items()))
