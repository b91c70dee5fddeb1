"""The page of `verify`: what was checked in numbers, and what the papers print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mpmath

from fieldtheory.literature.checks import Check
from fieldtheory.literature.claim import Verdict, counted
from fieldtheory.literature.evidence import symbolically
from fieldtheory.report.document import Formula, Section, Table, Text, page_of

_SHOWN_DIGITS = 25
# Formulas that stand in a table, and the longest that are shown at all, as LaTeX.
_SHORT, _LONGEST = 120, 2000


def page(checks: Sequence[Check], verdicts: Sequence[Verdict], digits: int) -> str:
    """One HTML page with every check and every claim, formulas as MathML.

    Parameters
    ----------
    checks : sequence of Check
    verdicts : sequence of Verdict
    digits : int
        Digits of the checks.
    """
    papers = dict.fromkeys(verdict.claim.paper for verdict in verdicts)
    sections = [Section("Numbers", _numbers(checks, digits))] if checks else []
    sections += [
        Section(f"What {paper} prints", _claims([v for v in verdicts if v.claim.paper == paper]))
        for paper in papers
    ]
    words, passing = [v.word for v in verdicts], sum(check.passed for check in checks)
    return page_of(
        "Equations of the papers, held against the derivation",
        sections,
        highlights=[
            ("numbers that agree with mpmath", f"{passing} of {len(checks)}"),
            *((word, f"{words.count(word)} of {len(words)}") for word in dict.fromkeys(words)),
        ],
    )


def _numbers(checks: Sequence[Check], digits: int) -> list[Any]:
    failed = sum(not check.passed for check in checks)
    verdict = "All pass." if not failed else f"{failed} do not pass."
    groups = dict.fromkeys(check.group for check in checks)
    return [
        Text(
            f"{len(checks)} numbers were computed in two ways, in float64 and in mpmath with "
            f"{digits} digits, or as two sides of an identity in mpmath. {verdict} Differences are "
            f"relative. Up to {_SHOWN_DIGITS} digits are shown."
        ),
        *(_check_table(group, [c for c in checks if c.group == group]) for group in groups),
    ]


def _check_table(group: str, checks: Sequence[Check]) -> Table:
    columns = ["quantity", "float64", "mpmath", "difference", "verdict"]
    rows = [
        [
            check.quantity,
            check.float64 or None,
            _shortened(check.mpmath),
            check.difference,
            "passes" if check.passed else f"fails (> {check.tolerance:.0e})",
        ]
        for check in checks
    ]
    if not any(check.float64 for check in checks):
        columns.pop(1)
        rows = [[quantity, *others] for quantity, _, *others in rows]
    return Table(group.capitalize(), columns, rows, scientific=["difference"])


def _shortened(number: str) -> str:
    if len(number) <= _SHOWN_DIGITS:
        return number
    with mpmath.workdps(len(number)):
        return str(mpmath.nstr(mpmath.mpf(number), _SHOWN_DIGITS))


def _claims(verdicts: Sequence[Verdict]) -> list[Any]:
    failed = sum(not verdict.holds for verdict in verdicts)
    columns = ["equation", "what it gives", "where", "for", "verdict", "evidence", "note"]
    return [
        Text(
            f"{counted(len(verdicts), 'claim')}, held against the derivation in symbols or in "
            f"numbers. Not as printed: {failed}. Edition: {verdicts[0].claim.edition}."
        ),
        Table("Claims", columns, [_row(verdict) for verdict in verdicts]),
        *(_formula(v) for v in verdicts if v.found.formulas and len(_sides(v)) <= _LONGEST),
    ]


def _row(verdict: Verdict) -> list[Any]:
    claim, evidence = verdict.claim, verdict.found
    text = evidence.text
    if evidence.formulas:
        how = evidence.formulas[-1]
        text = f"${how}$" if len(how) <= _SHORT else "the formulas below"
    note = claim.note or None
    place = claim.equation, claim.subject, claim.region, evidence.quantifier or None
    return [*place, verdict.text, text, note]


def _formula(verdict: Verdict) -> Formula:
    claim = verdict.claim
    title = f"{claim.equation} {claim.subject}, {claim.region}: {verdict.text}"
    return Formula(title, _sides(verdict))


def _sides(verdict: Verdict) -> str:
    """Both sides of an equation; one that holds stands there once."""
    printed, derived, how = verdict.found.formulas
    if verdict.holds and verdict.claim.check is symbolically:
        return printed
    lines = rf"\mathrm{{printed:}} & {printed} \\ \mathrm{{derived:}} & {derived} \\ & {how}"
    return rf"\begin{{aligned}} {lines} \end{{aligned}}"
