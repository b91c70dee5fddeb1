"""The command `verify`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from fieldtheory.cli.options import Digits
from fieldtheory.cli.terminal import display, echo, print_rows, write_rows
from fieldtheory.families import registered

if TYPE_CHECKING:
    from fieldtheory.literature.checks import Check
    from fieldtheory.literature.claim import Verdict

_PAPERS = *("F25", "F23", "PDLT-B", "SR"), *(paper for f in registered() for paper in f.papers)
# Columns of both sides of an equation.
_SIDES = (
    *("printed", "derived", "difference"),
    *("printed_latex", "derived_latex", "difference_latex"),
)


def verify(
    digits: Digits = 50,
    activations: Annotated[
        str | None,
        typer.Option(
            "--activations",
            "-a",
            help="Activations to check, such as `erf,tanh`.",
            show_default="erf, tanh, relu, leaky_relu, linear, logistic, gelu, swish, sin",
        ),
    ] = None,
    papers: Annotated[
        str | None,
        typer.Option(
            "--papers",
            "--paper",
            help="Papers whose claims are checked.",
            show_default=",".join(_PAPERS),
        ),
    ] = None,
    equation: Annotated[
        str | None,
        typer.Option(
            help="Only claims on this equation, such as `113`, both sides as text and LaTeX; no "
            "numbers are checked.",
        ),
    ] = None,
    coverage: Annotated[
        bool,
        typer.Option("--coverage", help="The equations and their verdicts; nothing is checked."),
    ] = False,
    format: Annotated[
        Literal["table", "csv", "json", "html", "latex"],
        typer.Option(
            "--format",
            "-f",
            help="How to print them; html is a page with formulas, latex a note on what does not "
            "hold as printed.",
        ),
    ] = "table",
) -> None:
    """Check the numbers to many digits, and what the papers print.

    Numbers: Price's theorem for some activations, averages, connected correlators, a whole network
    and maximum entropy, each computed in two ways. Claims: equations of Fischer, Dahmen, Helias
    (2025), F25, its earlier version, F23, Roberts, Yaida, Hanin (2022), appendix B, PDLT-B, Hayou
    et al. (2021), SR, and of the papers of families, held against the derivation: proved, holds at
    some points, holds with a convention, misprint, does not hold, or not checkable here. The
    exit code is 1 if a number does not pass, or if a verdict is not the one that it was. It takes
    some two minutes at 50 digits. One equation takes two to five seconds, (116) and (137) of F25,
    whose averages of two signals are summed to 50 digits, about ten.

    In csv and json there is a row for every check and every claim, written as soon as it is there;
    the column kind says which. With --equation there are the printed and the derived side and their
    difference, as text and as LaTeX. With --coverage there is a row for every numbered equation,
    with the verdicts that its claims had when they were checked last.

    Examples:

        fieldtheory verify

        fieldtheory verify --paper F25 --equation 113

        fieldtheory verify --coverage

        fieldtheory verify --digits 100 --format csv > checks.csv

        fieldtheory verify --activations erf --papers F25

        fieldtheory verify --format html > verify.html
    """
    from fieldtheory.cli import values
    from fieldtheory.literature import checks, claim, verdicts
    from fieldtheory.numerics import chunks

    named, chosen = values.names(activations), values.names(papers)
    if coverage:
        _print_coverage(chosen, format)
        return
    jobs = chunks.usable_processes()
    # Bad names are refused before the work.
    some = verdicts.claims(chosen, equation)
    numbers: list[Check] = []
    judged: list[Verdict] = []
    columns = ["kind", *(f.name for f in fields(checks.Check)), "passed", *claim.COLUMNS]
    if equation is not None:
        columns = ["kind", *claim.COLUMNS, *_SIDES[2:]]
    with display(None) as progress:

        def checked(text: str) -> None:
            progress(0, f"checked: {text}")

        passing = checks.run_checks(digits, checked, jobs, named) if equation is None else ()
        # Few claims take less than the start of a process.
        jobs = min(jobs, len(some)) if equation is None else 1
        holding = verdicts.verdicts(digits, chosen, checked, jobs, equation)

        def rows() -> Iterator[dict[str, Any]]:
            """Checks and claims as rows of one table, each as soon as it is there."""
            blank = dict.fromkeys(columns)
            for check in passing:
                numbers.append(check)
                yield blank | {"kind": "check"} | check.row
            for verdict in holding:
                judged.append(verdict)
                sides = _sides(verdict) if equation is not None else {}
                yield blank | {"kind": "claim"} | verdict.row | sides

        if format == "csv" or format == "json":
            write_rows(rows(), columns, format)
        else:
            list(rows())
    if format == "table":
        _print_tables(numbers, judged, digits, equation)
    elif format == "html":
        from fieldtheory.report import verdicts_page

        echo(verdicts_page.page(numbers, judged, digits))
    elif format == "latex":
        from fieldtheory.report import errata_note

        echo(errata_note.document(judged))
    changed = verdicts.changed(judged)
    for line in changed:
        echo(f"the verdict has changed: {line}", err=True)
    if changed or any(not check.passed for check in numbers):
        raise typer.Exit(1)


def _sides(verdict: Verdict) -> dict[str, str]:
    """Both sides of an equation and how they differ, as text and as LaTeX."""
    from fieldtheory.report.errata_note import ascii_formula, tex

    evidence = verdict.found
    text = evidence.printed, evidence.derived, evidence.text
    formulas = map(ascii_formula, evidence.formulas) if evidence.formulas else map(tex, text)
    return dict(zip(_SIDES, (*text, *formulas), strict=True))


def _print_coverage(papers: Sequence[str] | None, format: Any) -> None:
    from fieldtheory.literature.claim import counted
    from fieldtheory.literature.coverage import coverage

    if format == "html" or format == "latex":
        raise ValueError(f"format must be table, csv or json with --coverage, got {format!r}")
    rows = coverage(papers)
    print_rows(rows, format, "verdicts of the numbered equations, and where definitions stand")
    if format != "table":
        return
    for paper, of_paper in groupby(rows, key=lambda row: row["paper"]):
        by_kind: dict[str, list[str]] = {"verdict": [], "definition": [], "open": []}
        for row in of_paper:
            by_kind[row["kind"]].append(row["equation"].strip("()"))
        verdict, definition, missing = by_kind.values()
        echo(
            f"{paper}: {len(verdict + definition)} of {len(verdict + definition + missing)} "
            f"numbered equations, {len(verdict)} with a verdict, "
            f"{counted(len(definition), 'definition')}"
            + (f"; open: {', '.join(missing)}" if missing else "")
        )
    echo(f"{sum(row['kind'] != 'open' for row in rows)} of {len(rows)}")


def _print_tables(
    numbers: Sequence[Check], judged: Sequence[Verdict], digits: int, equation: str | None
) -> None:
    from fieldtheory.literature.claim import counted

    if numbers:
        rows = [
            {
                "group": c.group,
                "quantity": c.quantity,
                "float64": c.float64,
                f"mpmath, first of {digits} digits": c.mpmath[:22],
                "difference": f"{c.difference:.1e}",
                "verdict": "passes" if c.passed else "FAILS",
            }
            for c in numbers
        ]
        print_rows(rows, "table", counted(len(numbers), "check"))
        passed = sum(c.passed for c in numbers)
        echo(f"{passed} of {counted(len(numbers), 'check')} pass.\n")
    if equation is None:
        rows = [
            {
                "equation": f"{v.claim.paper} {v.claim.equation}",
                "what it gives": v.claim.subject,
                "where": v.claim.region,
                "for": v.found.quantifier,
                "verdict": v.text,
            }
            for v in judged
        ]
        print_rows(rows, "table", counted(len(judged), "claim"))
    for v in judged:
        title, note = f"{v.claim.paper} {v.claim.equation}", v.claim.note
        if equation is not None:
            echo(f"{title}: {v.claim.subject}")
            lines = {"where": v.claim.region, "for": v.found.quantifier, "verdict": v.text}
            lines |= ({"note": note} if note else {}) | _sides(v)
            for name, text in lines.items():
                echo(f"  {name.replace('_latex', ', LaTeX') + ':':<20}{text}")
            echo("")
        elif not v.holds:
            echo(f"{title}: {v.text}; {v.evidence}{f'; {note}' if note else ''}")
    words = [v.word for v in judged]
    counts = [f"{words.count(word)} {word}" for word in dict.fromkeys(words)]
    echo(f"{counted(len(judged), 'claim')}: {', '.join(counts)}.")
