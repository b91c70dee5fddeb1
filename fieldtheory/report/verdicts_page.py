"""The page of `verify`: what was checked in numbers, and what the papers print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mpmath

from fieldtheory.literature.checks import Check
from fieldtheory.literature.claim import Verdict, counted
from fieldtheory.literature.evidence import symbolically
from fieldtheory.report import document

_SHOWN_DIGITS = 25
# Formulas that stand in a table, and the longest that are shown at all, as LaTeX.
_SHORT, _LONGEST = 120, 2000


def page(checks: Sequence[Check], verdicts: Sequence[Verdict], digits: int) -> str:
    """One HTML page with every check to these digits and every claim, formulas as MathML."""
    words, passing = [v.word for v in verdicts], sum(check.passed for check in checks)
    groups = dict.fromkeys(check.group for check in checks)
    names = dict.fromkeys(verdict.claim.paper for verdict in verdicts)
    papers = [_of_paper(name, [v for v in verdicts if v.claim.paper == name]) for name in names]
    return document.page(
        "verdicts.html.j2",
        title="Equations of the papers, held against the derivation",
        titles=["Numbers"] * bool(checks) + [paper["title"] for paper in papers],
        highlights=[
            ("numbers that agree with mpmath", f"{passing} of {len(checks)}"),
            *((word, f"{words.count(word)} of {len(words)}") for word in dict.fromkeys(words)),
        ],
        groups=[_check_table(group, [c for c in checks if c.group == group]) for group in groups],
        count=len(checks),
        failed=len(checks) - passing,
        digits=digits,
        shown=_SHOWN_DIGITS,
        papers=papers,
    )


def _check_table(group: str, checks: Sequence[Check]) -> tuple[str, list[str], list[list[Any]]]:
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
    return group.capitalize(), columns, rows


def _shortened(number: str) -> str:
    if len(number) <= _SHOWN_DIGITS:
        return number
    with mpmath.workdps(len(number)):
        return str(mpmath.nstr(mpmath.mpf(number), _SHOWN_DIGITS))


def _of_paper(name: str, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """What the template shows of one paper."""
    formulas = []
    for verdict in verdicts:
        claim = verdict.claim
        if verdict.found.formulas and len(sides := _sides(verdict)) <= _LONGEST:
            place = f"{claim.equation} {claim.subject}, {claim.region}"
            formulas.append((f"{place}: {verdict.text}", sides))
    return {
        "title": f"What {name} prints",
        "claims": counted(len(verdicts), "claim"),
        "failed": sum(not verdict.holds for verdict in verdicts),
        "edition": verdicts[0].claim.edition,
        "rows": list(map(_row, verdicts)),
        "formulas": formulas,
    }


def _row(verdict: Verdict) -> list[Any]:
    claim, evidence = verdict.claim, verdict.found
    text = evidence.text
    if evidence.formulas:
        how = evidence.formulas[-1]
        text = f"${how}$" if len(how) <= _SHORT else "the formulas below"
    note = claim.note or None
    place = claim.equation, claim.subject, claim.region, evidence.quantifier or None
    return [*place, verdict.text, text, note]


def _sides(verdict: Verdict) -> str:
    """Both sides of an equation; one that holds stands there once."""
    printed, derived, how = verdict.found.formulas
    if verdict.holds and verdict.claim.check is symbolically:
        return printed
    lines = rf"\mathrm{{printed:}} & {printed} \\ \mathrm{{derived:}} & {derived} \\ & {how}"
    return rf"\begin{{aligned}} {lines} \end{{aligned}}"
