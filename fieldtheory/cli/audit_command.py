"""The command `audit`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from fieldtheory.cli.options import INTENTS, OutputFormat
from fieldtheory.cli.resuming import require_place
from fieldtheory.cli.terminal import echo, print_rows
from fieldtheory.cli.user_modules import imported


def audit(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:NAME",
            help="A torch module, or a function or class that gives one without arguments; MODULE "
            "may be a file such as gpt.py.",
            show_default=False,
        ),
    ],
    intent: Annotated[
        str | None,
        typer.Option(
            "--intent",
            "-i",
            help=f"{INTENTS}, or module:name of your own.",
            show_default="each role is compared over the layers",
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="An .html file for the whole page.")] = None,
    format: OutputFormat = "table",
) -> None:
    """Hold the weights and signals of a torch model against how it was meant to start.

    Every parameter has a law and a deviation with its error. An intent says which it was meant to
    have: a name, or a mapping from patterns of names such as "*.c_proj.weight" to deviations, laws
    or functions. The exit code is 1 if something deviates, all tests together to a probability of
    0.001 that a correct model is called wrong. Signals are those of random inputs.

    In csv and json there is a row for every tensor; meant, factor and z are empty where nothing
    deviates, z also where no chance can do it, such as zeros or NaN in place of numbers.

    Examples:

        fieldtheory audit gpt.py:build --intent gpt2

        fieldtheory audit mypackage.layers:model --html audit.html

        fieldtheory audit gpt.py:build -i gpt.py:intent -f csv > tensors.csv
    """
    require_place(html, ".html", name="html")
    meant = imported("intent", intent) if intent and ":" in intent else intent
    built = imported("model", model)
    from fieldtheory import audits, validation

    if isinstance(built, type) or not validation.is_torch_module(built):
        built = built() if callable(built) else built
    result = audits.audit(built, intent=meant)
    if html is not None:
        from fieldtheory.report import document

        picture = result.plot()._repr_png_()
        title = f"Audit of {model}"
        document.page("audit.html.j2", html, title=title, content=result.to_html(), picture=picture)
    if format == "table":
        echo(result)
    else:
        print_rows([_finite(row) for row in result.rows()], format, "")
    if not result.ok:
        raise typer.Exit(1)


def _finite(row: dict[str, object]) -> dict[str, object]:
    """A row with None for NaN and infinities, which JSON does not have."""
    return {
        n: None if isinstance(value, float) and not math.isfinite(value) else value
        for n, value in row.items()
    }
