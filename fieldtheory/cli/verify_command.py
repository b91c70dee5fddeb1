"""The command `verify`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from fieldtheory.cli.options import Digits
from fieldtheory.cli.terminal import display, echo, print_rows

if TYPE_CHECKING:
    from fieldtheory.literature.checks import Check
    from fieldtheory.literature.claim import Verdict


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
            show_default="F25,F23,PDLT-B,SR,PF",
        ),
    ] = None,
    equation: Annotated[
        str | None,
        typer.Option(help="Only claims on this equation, such as `113`; no numbers are checked."),
    ] = None,
    coverage: Annotated[
        bool,
        typer.Option("--coverage", help="Which equations have a verdict; nothing is checked."),
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
    et al. (2021), SR, and Peluchetti, Favaro (2020), PF, held against the derivation: proved, holds
    at some points, holds with a convention, misprint, does not hold, or not checkable here. The
    exit code is 1 if a number does not pass, or if a verdict is not the one that it was. It takes
    some two minutes at 50 digits.

    In csv and json there is a row for every check and every claim; the column kind says which. With
    --coverage there is one for every numbered equation.

    Examples:

        fieldtheory verify

        fieldtheory verify --paper F25 --equation 113

        fieldtheory verify --coverage

        fieldtheory verify --digits 100 --format csv > checks.csv

        fieldtheory verify --activations erf --papers F25

        fieldtheory verify --format html > verify.html
    """
    from fieldtheory.cli import values
    from fieldtheory.literature import checks, verdicts
    from fieldtheory.numerics import chunks

    named, chosen = values.names(activations), values.names(papers)
    if coverage:
        _print_coverage(chosen, format)
        return
    jobs = chunks.usable_processes()
    # Bad names are refused before the work.
    some = verdicts.claims(chosen, equation)
    with display(None) as progress:

        def checked(text: str) -> None:
            progress(0, f"checked: {text}")

        numbers = checks.run_checks(digits, checked, jobs, named) if equation is None else []
        judged = verdicts.verdicts(digits, chosen, checked, min(jobs, len(some)), equation)
    if format == "table":
        _print_tables(numbers, judged, digits)
    elif format == "html":
        from fieldtheory.report import verdicts_page

        echo(verdicts_page.page(numbers, judged, digits))
    elif format == "latex":
        from fieldtheory.report import errata_note

        echo(errata_note.document(judged))
    else:
        print_rows(_rows(numbers, judged), format, "checks and claims")
    changed = verdicts.changed(judged)
    for line in changed:
        echo(f"the verdict has changed: {line}", err=True)
    if changed or any(not check.passed for check in numbers):
        raise typer.Exit(1)


def _print_coverage(
    papers: Sequence[str] | None, format: Literal["table", "csv", "json", "html", "latex"]
) -> None:
    from fieldtheory.literature.coverage import coverage

    found = coverage(papers)
    if format == "csv" or format == "json":
        print_rows([row for paper in found for row in paper.rows], format, "equations")
        return
    total = covered = 0
    for paper in found:
        rows = paper.rows
        kinds = [row["kind"] for row in rows]
        verdict, definition = kinds.count("verdict"), kinds.count("definition")
        total, covered = total + len(rows), covered + verdict + definition
        missing = f"; open: {', '.join(paper.open)}" if paper.open else ""
        echo(
            f"{paper.paper}: {verdict + definition} of {len(rows)} numbered equations, {verdict} "
            f"with a verdict, {definition} definitions{missing}"
        )
    echo(f"{covered} of {total}")


def _print_tables(numbers: Sequence[Check], judged: Sequence[Verdict], digits: int) -> None:
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
        print_rows(rows, "table", f"{len(numbers)} checks")
        failed = sum(not c.passed for c in numbers)
        echo(f"{len(numbers) - failed} of {len(numbers)} checks pass.\n")
    claim_rows = [
        {
            "equation": f"{v.claim.paper} {v.claim.equation}",
            "what it gives": v.claim.subject,
            "where": v.claim.region,
            "for": v.found.quantifier,
            "verdict": v.text,
        }
        for v in judged
    ]
    print_rows(claim_rows, "table", f"{len(judged)} claims")
    for v in judged:
        if not v.holds:
            remark = f"; {v.claim.note}" if v.claim.note else ""
            echo(f"{v.claim.paper} {v.claim.equation}: {v.text}; {v.evidence}{remark}")
    words = [v.word for v in judged]
    counts = [f"{words.count(word)} {word}" for word in dict.fromkeys(words)]
    echo(f"{len(judged)} claims: {', '.join(counts)}.")


def _rows(numbers: Sequence[Check], judged: Sequence[Verdict]) -> list[dict[str, Any]]:
    """Checks and claims as rows of one table."""
    rows = [
        *({"kind": "check", **c.row} for c in numbers),
        *({"kind": "claim", **v.row} for v in judged),
    ]
    columns = dict.fromkeys(name for row in rows for name in row)
    return [dict.fromkeys(columns) | row for row in rows]
