"""A printed equation as data: what the paper has, what the package derives, and who is right.

The verdict is never written down. It is what comes out when a `Claim` compares both sides, in
symbols or in numbers, and it carries the evidence with it:

- proved: both sides are the same for all values of their symbols;
- holds: they are at n points, or on n instances, such as depths and widths;
- holds with a convention: not as they stand, but under the convention that the claim names;
- misprint: not as they stand, but what the claim says is meant does;
- does not hold: neither; the evidence is the counterexample;
- not checkable here: it takes what the package has not, which the evidence names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from fieldtheory import validation
from fieldtheory.families import registered
from fieldtheory.literature.evidence import (
    WORDS,
    Check,
    Evidence,
    Points,
    at_least,
    in_float64,
    inside,
    not_here,
    numerically,
    shortened,
    slightly_wrong,
    symbolically,
)

COLUMNS = (
    *("paper", "equation", "subject", "printed", "derived", "region", "quantifier"),
    *("check", "verdict", "evidence", "note", "edition"),
)
PROVED, HOLDS, CONVENTION = "proved", "holds", "holds with a convention"
MISPRINT, FAILS, NOT_HERE = "misprint", "does not hold", "not checkable here"
VERDICT_WORDS = PROVED, HOLDS, CONVENTION, MISPRINT, FAILS, NOT_HERE
# The texts that were read.
EDITIONS = {
    "F25": "arXiv:2305.07715, version of 23 October 2025",
    "F23": "arXiv:2305.07715v1",
    "PDLT-B": "Cambridge University Press 2022, arXiv:2106.10165, appendix B",
    "SR": "PMLR 130 (AISTATS 2021), arXiv:2010.12859",
    **{paper: text for family in registered() for paper, (text, _) in family.papers.items()},
}

_INSTANCE = "on", "instance"

# Sizes that a region fixes, such as "L = 2", "D = 2" or "l = 2, 3".
_SIZES = re.compile(r"\b[LlDdN] = (\d+(?:(?:, | and | to )\d+)*)(?![\d/.])")


def counted(count: int, noun: str) -> str:
    """A number of things.

    Examples
    --------
    >>> counted(1, "claim"), counted(2, "claim")
    ('1 claim', '2 claims')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"


@dataclass(frozen=True, eq=False)
class Claim:
    """One equation or statement of a paper, with the derivation that it is held against.

    >>> import sympy as sp
    >>> from fieldtheory.literature.evidence import symbolically
    >>> x = sp.Symbol("x", positive=True)
    >>> double = Claim("F25", "(1)", "derivative of x²", 2 * x, lambda: sp.diff(x**2, x), "x > 0",
    ...                symbolically)
    >>> double.verdict().text, double.verdict().found.quantifier, double.control().agrees
    ('proved', 'for all x > 0', False)
    >>> single = Claim("F25", "(2)", "derivative of x²", x, lambda: sp.diff(x**2, x), "x > 0",
    ...                symbolically, meant=("2x", 2 * x))
    >>> single.verdict().text, single.verdict().evidence
    ('misprint: 2x', 'printed/derived = 1/2')
    """

    paper: str
    # Its number, or where it stands, and the quantity that it gives.
    equation: str
    subject: str
    # The formula of the paper, or a function that is called as ``derived`` is, and ours.
    printed: Any
    derived: Callable[..., Any]
    # Where the two are compared, and how, see `evidence`.
    region: str
    check: Check
    # Numbers that are put into both sides; generic ones for symbols that are left out.
    points: Points = field(default=({},))
    # What holds instead, or what the verdict means.
    note: str = ""
    # Of a misprint what is meant, in words and as printed side, perhaps with another derived one.
    meant: tuple[Any, ...] | None = None
    # A convention under which the printed side holds, and the derived side under it.
    convention: tuple[str, Callable[..., Any]] | None = None
    # Of a statement for all; counted from sizes that the region fixes, "L = 2", if left out.
    instances: int | None = None
    # A printed side that the check must reject; `slightly_wrong` if left out.
    wrong: Any = None

    @property
    def how(self) -> str:
        """Comparison of the two sides, in words."""
        return WORDS[self.check]

    @property
    def edition(self) -> str:
        """The text of the paper that was read."""
        return EDITIONS[self.paper]

    def verdict(self, digits: int = 50) -> Verdict:
        """Compare both sides."""
        digits = validation.integer("digits", digits, 20)
        evidence = self._compared(self.printed, self.derived, digits)
        return Verdict(self, evidence, self._word(evidence, digits))

    def control(self, digits: int = 20) -> Evidence:
        """The evidence of a wrong version, which must not agree."""
        evidence = self._compared(self.printed, self.derived, digits)
        if not evidence.agrees:
            return evidence
        if self.wrong is not None:
            return self._compared(self.wrong, self.derived, digits)
        return self._compared(*slightly_wrong(self.check, self.printed, self.derived), digits)

    def _compared(self, printed: Any, derived: Any, digits: int) -> Evidence:
        return self.check(printed, derived, self.points, digits)

    def _word(self, evidence: Evidence, digits: int) -> str:
        if evidence.agrees is None:
            return NOT_HERE
        if evidence.agrees:
            return HOLDS if evidence.count or self.sizes else PROVED
        if self.convention and self._compared(self.printed, self.convention[1], digits).agrees:
            return CONVENTION
        if self.meant:
            _, printed, *derived = self.meant
            sides = printed, derived[0] if derived else self.derived
            return MISPRINT if self._compared(*sides, digits).agrees else FAILS
        return FAILS

    @property
    def sizes(self) -> int:
        """Of how many instances the claim is, of a statement for all of them; 0 if of all."""
        if self.instances is not None:
            return self.instances
        match = _SIZES.search(self.region)
        if match is None:
            return 0
        first, *others = map(int, re.findall(r"\d+", match[1]))
        return others[-1] - first + 1 if " to " in match[1] else 1 + len(others)


# Fields of a `Claim` that differ between the cases of a statement.
Case = dict[str, Any]


def case(
    check: Check,
    region: str,
    printed: Any,
    derived: Callable[..., Any],
    note: str = "",
    **fields: Any,
) -> Case:
    """One case of a statement; parameters are fields of `Claim`, others by name."""
    sides = {"printed": printed, "derived": derived}
    return {"check": check, "region": region, **sides, "note": note, **fields}


# Cases by what is compared; arguments are those of `case` from the region on.
formula, bound = partial(case, symbolically), partial(case, at_least)
number, double = partial(case, numerically), partial(case, in_float64)
interval, unchecked = partial(case, inside), partial(case, not_here)


def claims_of(paper: str, statements: Mapping[str, Any]) -> tuple[Claim, ...]:
    """A `Claim` for every case of the statements of a paper, in their order.

    Examples
    --------
    >>> import sympy as sp
    >>> x = sp.Symbol("x", positive=True)
    >>> case = formula("x > 0", 2 * x, lambda: sp.diff(x**2, x), wrong=x)
    >>> claims = claims_of("F25", {"(1): derivative of x²": case})
    >>> [(claim.equation, claim.subject, claim.verdict().text) for claim in claims]
    [('(1)', 'derivative of x²', 'proved')]
    """
    claims = []
    for statement, cases in statements.items():
        equation, subject = statement.split(": ", 1)
        for fields in cases if isinstance(cases, list) else [cases]:
            claims.append(Claim(paper, equation, subject, **fields))
    return tuple(claims)


@dataclass(frozen=True, eq=False)
class Verdict:
    """Outcome of the check of a `Claim`; the word is one of ``VERDICT_WORDS``."""

    claim: Claim
    found: Evidence
    word: str

    @property
    def holds(self) -> bool:
        """Whether the equation holds as it is printed."""
        return bool(self.found.agrees)

    @property
    def text(self) -> str:
        """The word, with how often it holds, or with the convention or what is meant."""
        claim, count = self.claim, self.found.count or self.claim.sizes
        if self.word == HOLDS:
            kind = ("at", "point") if claim.check in (numerically, in_float64) else _INSTANCE
            return f"holds {kind[0]} {counted(count, kind[1])}"
        reasons = {
            CONVENTION: claim.convention and claim.convention[0],
            MISPRINT: claim.meant and claim.meant[0],
            NOT_HERE: self.found.text,
        }
        return f"{self.word}: {reasons[self.word]}" if self.word in reasons else self.word

    @property
    def evidence(self) -> str:
        """The deviation, or the expression in which the two sides differ, on a line."""
        return shortened(self.found.text)

    @property
    def row(self) -> dict[str, str]:
        """The verdict as a row of a table; both sides are shortened to a line."""
        claim, evidence = self.claim, self.found
        sides = shortened(evidence.printed), shortened(evidence.derived)
        values = (
            *(claim.paper, claim.equation, claim.subject, *sides),
            *(claim.region, evidence.quantifier, claim.how, self.text, self.evidence),
            *(claim.note, claim.edition),
        )
        return dict(zip(COLUMNS, values, strict=True))
