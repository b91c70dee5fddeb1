"""A printed equation as data: what the paper has, what the package derives, and who is right.

The verdict is never written down. It is what comes out when a `Claim` compares both sides, in
symbols or in numbers, and it carries the evidence with it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import mpmath
import sympy as sp

from fieldtheory import validation
from fieldtheory.averages import ConnectedCorrelator, GaussianAverage, precise
from fieldtheory.theory.latex import latex

FLOAT64_TOLERANCE = 1e-12
COLUMNS = (
    *("paper", "equation", "subject", "printed", "derived"),
    *("region", "check", "verdict", "evidence", "note"),
)
_PRINTED, _DERIVED = r"\mathrm{printed}", r"\mathrm{derived}"
HOLDS, FAILS = "holds", "does not hold"

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
    """What a comparison found.

    Parameters
    ----------
    agrees : bool
        Whether both sides are the same.
    text : str
        The number or the expression that shows it.
    printed, derived : str
        Both sides where they differ most, shortened to a line.
    formulas : tuple of str
        Of expressions the LaTeX of printed, derived and of how they differ; empty for numbers.
    """

    agrees: bool
    text: str
    printed: str
    derived: str
    formulas: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Claim:
    """One equation or statement of a paper, with the derivation that it is held against.

    Parameters
    ----------
    paper : str
        "F25", "F23", "PDLT-B", "SR", "PF".
    equation : str
        Its number, or where it stands.
    subject : str
        The quantity that it gives.
    printed : Any
        The formula as the paper prints it, or a function that returns it, called as ``derived`` is.
    derived : callable
        The same quantity from the package; its arguments are those that ``check`` calls it with.
    region : str
        Where the two are compared.
    check : callable
        How they are compared: `symbolically`, `at_least`, `numerically`, `in_float64` or `inside`.
    points : sequence of mapping of sympy.Symbol to value, optional
        Where numbers are put into both sides; generic ones for symbols that are left out.
    note : str, optional
        What holds instead, or what the verdict means.

    Examples
    --------
    >>> x = sp.Symbol("x", positive=True)
    >>> double = Claim("F00", "(1)", "derivative of x²", 2 * x, lambda: sp.diff(x**2, x), "x > 0",
    ...                symbolically)
    >>> double.verdict().text
    'holds'
    >>> single = Claim("F00", "(2)", "derivative of x²", x, lambda: sp.diff(x**2, x), "x > 0",
    ...                symbolically)
    >>> single.verdict().text, single.verdict().evidence
    ('does not hold', 'printed/derived = 1/2')
    """

    paper: str
    equation: str
    subject: str
    printed: Any
    derived: Callable[..., Any]
    region: str
    check: Callable[[Claim, int], Evidence]
    points: Sequence[Mapping[sp.Symbol, Any]] = field(default=({},))
    note: str = ""

    @property
    def how(self) -> str:
        """How the two sides are compared, in words."""
        return _WORDS[self.check]

    def verdict(self, digits: int = 50) -> Verdict:
        """Compare both sides.

        Parameters
        ----------
        digits : int
            Digits of the comparison in numbers, at least 20.

        Returns
        -------
        Verdict

        Raises
        ------
        ValueError
            If ``digits`` < 20.
        UndecidedError
            If symbols neither simplify to zero nor differ in numbers.
        """
        digits = validation.integer("digits", digits, 20)
        return Verdict(self, self.check(self, digits))


# Where a paper says something, the subject, and how it is checked; of each a case, or a list of
# cases: the region, the printed side, the derived one, and if need be a note and points (`Claim`).
Case = tuple[Any, ...]
Statements = Mapping[tuple[str, str, Callable[[Claim, int], Evidence]], Case | list[Case]]


def claims_of(paper: str, statements: Statements) -> tuple[Claim, ...]:
    """A `Claim` for every case of the statements of a paper, in their order.

    Examples
    --------
    >>> x = sp.Symbol("x", positive=True)
    >>> statement = "(1)", "derivative of x²", symbolically
    >>> case = "x > 0", 2 * x, lambda: sp.diff(x**2, x)
    >>> [claim.verdict().text for claim in claims_of("F00", {statement: case})]
    ['holds']
    """
    optional = "note", "points"
    return tuple(
        Claim(
            *(paper, equation, subject, printed, derived, region, check),
            **dict(zip(optional, rest, strict=False)),
        )
        for (equation, subject, check), found in statements.items()
        for region, printed, derived, *rest in (found if isinstance(found, list) else [found])
    )


@dataclass(frozen=True, eq=False)
class Verdict:
    """What a `Claim` found when it was checked.

    Parameters
    ----------
    claim : Claim
    found : Evidence
    """

    claim: Claim
    found: Evidence

    @property
    def holds(self) -> bool:
        """Whether the printed equation holds."""
        return self.found.agrees

    @property
    def text(self) -> str:
        """ "holds" or "does not hold"."""
        return HOLDS if self.holds else FAILS

    @property
    def evidence(self) -> str:
        """The deviation, or the expression in which the two sides differ."""
        return self.found.text

    @property
    def row(self) -> dict[str, str]:
        """The verdict as a row of a table."""
        claim = self.claim
        values = (
            *(claim.paper, claim.equation, claim.subject, self.found.printed, self.found.derived),
            *(claim.region, claim.how, self.text, self.evidence, claim.note),
        )
        return dict(zip(COLUMNS, values, strict=True))


def symbolically(claim: Claim, digits: int) -> Evidence:
    """Whether two expressions, or matrices of them, are the same for all values of their symbols.

    ``derived`` is called without arguments. Averages over a φ left open are independent symbols.
    Both sides differ if they do at one point, in numbers; they agree if their difference simplifies
    to zero.

    Raises
    ------
    UndecidedError
        If it does neither.
    """
    given = claim.printed() if _is_function(claim.printed) else claim.printed
    printed, derived = _entries(given), _entries(claim.derived())
    for place, one in printed.items():
        other = derived[place]
        if not _same(one, other, claim.points, digits):
            text, how = _difference(one, other)
            formulas = latex(one), latex(other), how
            return Evidence(False, text + place, _shortened(one), _shortened(other), formulas)
    shown, formula = _shortened(given), latex(given)
    nothing = rf"{_PRINTED} - {_DERIVED} = 0"
    return Evidence(True, "printed − derived = 0", shown, shown, (formula, formula, nothing))


def at_least(claim: Claim, digits: int) -> Evidence:
    """Whether ``printed``, a lower bound, is nowhere above ``derived``, by the sign of the rest.

    ``derived`` is called without arguments. Both may be matrices.

    Raises
    ------
    UndecidedError
        If that sign is not known.
    """
    bounds, found = _entries(claim.printed), _entries(claim.derived())
    for place, bound in bounds.items():
        margin = sp.factor(sp.simplify(found[place] - bound))
        agrees = bool(margin.is_nonnegative)
        if not agrees and not margin.is_nonpositive:
            raise UndecidedError(f"the sign is not known: {_shortened(margin)}")
        text = f"derived − printed = {_shortened(margin)}{place}"
        if not agrees:
            break
    if agrees and len(bounds) > 1:
        text = f"derived − printed >= 0 in all {len(bounds)} entries"
    formulas = latex(bound), latex(found[place]), rf"{_DERIVED} - {_PRINTED} = {latex(margin)}"
    return Evidence(agrees, text, _shortened(bound), _shortened(found[place]), formulas)


def numerically(claim: Claim, digits: int) -> Evidence:
    """Whether two numbers agree to ``digits`` at every point, relative to the larger of 1 and both.

    ``derived`` is called with a point and the digits that its result must have; ``printed`` is an
    expression, or a function of the same arguments.
    """
    return _numbers(claim, digits, mpmath.mpf(10) ** -digits)


def in_float64(claim: Claim, digits: int) -> Evidence:
    """The same for what the package computes in float64; ``derived`` is called with the point."""
    return _numbers(claim, digits, mpmath.mpf(FLOAT64_TOLERANCE))


def inside(claim: Claim, digits: int) -> Evidence:
    """Whether numbers lie in the open interval ``printed``; ``derived`` returns them by name."""
    low, high = claim.printed() if _is_function(claim.printed) else claim.printed
    found = claim.derived()
    outside = {name: value for name, value in found.items() if not low < value < high}
    text, derived = (
        ", ".join(f"{value:.4g} at {name}" for name, value in shown.items())
        for shown in (outside or found, found)
    )
    return Evidence(not outside, text, f"from {low:g} to {high:g}", derived)


_WORDS: dict[Callable[[Claim, int], Evidence], str] = {
    symbolically: "in symbols",
    at_least: "in symbols",
    numerically: "in mpmath",
    in_float64: "in float64",
    inside: "in float64",
}


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
    found = set().union(*(side.atoms(*_AVERAGES) for side in sides))
    averages = sorted(found, key=sp.default_sort_key)
    symbols = {average: sp.Dummy("average", positive=True) for average in averages}
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
        raise UndecidedError(f"neither the same nor different: {_shortened(printed - derived)}")
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
    """How two sides differ, as text and as LaTeX: by their ratio, or by their difference."""
    (one, other), averages = _independent(printed, derived)
    rest = sp.factor(one - other).xreplace(averages)
    formula = rf"{_PRINTED} - {_DERIVED} = {latex(rest)}"
    found = [(f"printed − derived = {_shortened(rest)}", formula)]
    if other != 0:
        ratio = sp.simplify(one / other)
        if not set(averages) & ratio.free_symbols:
            both = rf"{_PRINTED} / {_DERIVED} = {latex(ratio)}"
            found.append((f"printed/derived = {_shortened(ratio)}", both))
    return min(found, key=lambda words: len(words[0]))


def _shortened(expr: sp.Expr) -> str:
    text = _plain(str(expr))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _plain(text: str) -> str:
    """The names of symbols, which are LaTeX, as a terminal shows them."""
    for name, sign in _SIGNS.items():
        text = text.replace(name, sign)
    return re.sub(r"\{([^{}]*)\}", r"\1", re.sub(r"\{([^{}]*)\}", r"\1", text))


def _numbers(claim: Claim, digits: int, tolerance: Any) -> Evidence:
    extra = () if claim.check is in_float64 else (digits,)
    found = []
    with mpmath.workdps(digits + _GUARD):
        for point in claim.points:
            derived = mpmath.mpmathify(claim.derived(point, *extra))
            if _is_function(claim.printed):
                printed = mpmath.mpmathify(claim.printed(point, *extra))
            else:
                printed = precise.mpf(sp.sympify(claim.printed).subs(point), digits + _GUARD)
            deviation = abs(printed - derived) / max(1, abs(printed), abs(derived))
            found.append((deviation, printed, derived, point))
        worst, printed, derived, point = max(found, key=lambda entry: entry[0])
        place = _plain(", ".join(f"{symbol} = {value}" for symbol, value in point.items()))
        where = f" at {place}" if place else ""
        text = f"largest deviation {mpmath.nstr(worst, 3)}{where}"
        agrees = bool(worst <= tolerance)
        shown = [mpmath.nstr(mpmath.chop(side, tolerance), 10) for side in (printed, derived)]
        if not agrees:
            short = [mpmath.nstr(side, 4) for side in (printed, derived)]
            text = f"{short[0]} printed, {short[1]} derived: {text}"
            if mpmath.isnan(printed):
                text = f"undefined as printed, {short[1]} derived{where}"
    return Evidence(agrees, text, *shown)
