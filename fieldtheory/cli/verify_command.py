"""The command `verify`."""

from __future__ import annotations

from typing import Any

import typer

from fieldtheory.cli.options import Digits, OutputFormat
from fieldtheory.cli.terminal import Format, display, print_rows


def verify(digits: Digits = 50, format: OutputFormat = Format.table) -> None:
    """Check identities and float64 numbers against high-precision numbers.

    Price's theorem for every activation, averages, connected correlators, a whole network, and the
    maximum-entropy condition of Fischer, Dahmen, Helias (2025), each computed in two ways. The exit
    code is 1 if a check fails. It takes about a minute or two at 50 digits.

    Examples:

        fieldtheory verify

        fieldtheory verify --digits 100 --format csv > checks.csv
    """
    import os

    from fieldtheory.literature import checks

    with display(None) as progress:
        found = checks.run_checks(
            digits, lambda text: progress(0, f"checked: {text}"), min(os.cpu_count() or 1, 8)
        )
    rows: list[dict[str, Any]]
    if format is Format.table:
        rows = [
            {
                "group": c.group,
                "quantity": c.quantity,
                "float64": c.float64,
                f"mpmath, first of {digits} digits": c.mpmath[:22],
                "difference": f"{c.difference:.1e}",
                "verdict": "passes" if c.passed else "FAILS",
            }
            for c in found
        ]
    else:
        rows = [{**vars(c), "passed": c.passed} for c in found]
    print_rows(rows, format, f"{len(found)} checks")
    failed = sum(not c.passed for c in found)
    if format is Format.table:
        for c in found:
            if c.note:
                typer.echo(f"{c.quantity} = {c.mpmath[:22]}: {c.note}")
        typer.echo(f"{len(found) - failed} of {len(found)} checks pass.")
    if failed:
        raise typer.Exit(1)
