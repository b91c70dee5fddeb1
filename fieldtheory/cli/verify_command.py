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
        typer.Option(help="Papers whose claims are checked.", show_default="F25,F23,PDLT-B,SR,PF"),
    ] = None,
    format: Annotated[
        Literal["table", "csv", "json", "html"],
        typer.Option("--format", "-f", help="How to print them; html is a page with formulas."),
    ] = "table",
) -> None:
    """Check the numbers to many digits, and what the papers print.

    Numbers: Price's theorem for some activations, averages, connected correlators, a whole network
    and maximum entropy, each computed in two ways. Claims: equations of Fischer, Dahmen, Helias
    (2025), F25, its earlier version, F23, Roberts, Yaida, Hanin (2022), appendix B, PDLT-B, Hayou
    et al. (2021), SR, and Peluchetti, Favaro (2020), PF, held against the derivation. The exit code
    is 1 if a number does not pass. It takes about two minutes at 50 digits.

    In csv and json there is a row for every check and every claim; the column kind says which.

    Examples:

        fieldtheory verify

        fieldtheory verify --digits 100 --format csv > checks.csv

        fieldtheory verify --activations erf --papers F25

        fieldtheory verify --format html > verify.html
    """
    from fieldtheory.cli import values
    from fieldtheory.literature import checks, verdicts
    from fieldtheory.numerics import chunks

    named, chosen = values.names(activations), values.names(papers)
    jobs = chunks.usable_processes()
    # Bad names are refused before the work.
    verdicts.claims(chosen)
    with display(None) as progress:

        def checked(text: str) -> None:
            progress(0, f"checked: {text}")

        numbers = checks.run_checks(digits, checked, jobs, named)
        judged = verdicts.verdicts(digits, chosen, checked, jobs)
    if format == "table":
        _print_tables(numbers, judged, digits)
    elif format == "html":
        from fieldtheory.report import verdicts_page

        echo(verdicts_page.page(numbers, judged, digits))
    else:
        print_rows(_rows(numbers, judged), format, "checks and claims")
    if any(not check.passed for check in numbers):
        raise typer.Exit(1)


def _print_tables(numbers: Sequence[Check], judged: Sequence[Verdict], digits: int) -> None:
    check_rows = [
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
    print_rows(check_rows, "table", f"{len(numbers)} checks")
    failed = sum(not c.passed for c in numbers)
    echo(f"{len(numbers) - failed} of {len(numbers)} checks pass.\n")
    claim_rows = [
        {
            "equation": f"{v.claim.paper} {v.claim.equation}",
            "what it gives": v.claim.subject,
            "where": v.claim.region,
            "verdict": v.text,
        }
        for v in judged
    ]
    print_rows(claim_rows, "table", f"{len(judged)} claims")
    for v in judged:
        if not v.holds:
            remark = f"; {v.claim.note}" if v.claim.note else ""
            echo(f"{v.claim.paper} {v.claim.equation} does not hold: {v.evidence}{remark}")
    echo(f"{sum(v.holds for v in judged)} of {len(judged)} claims hold as printed.")


def _rows(numbers: Sequence[Check], judged: Sequence[Verdict]) -> list[dict[str, Any]]:
    """Checks and claims as rows of one table."""
    rows = [
        *({"kind": "check", **c.row} for c in numbers),
        *({"kind": "claim", **v.row} for v in judged),
    ]
    columns = dict.fromkeys(name for row in rows for name in row)
    return [dict.fromkeys(columns) | row for row in rows]
