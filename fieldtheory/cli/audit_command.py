"""The command `audit`."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from fieldtheory.cli.options import INTENTS, OutputFormat
from fieldtheory.cli.terminal import echo, print_rows
from fieldtheory.cli.user_modules import imported


def _show_intents(is_asked: bool) -> None:
    if is_asked:
        from fieldtheory.audits.intents import INTENT_ROWS

        print_rows(INTENT_ROWS, "table", "intents; L layers, in and out the fans of a matrix")
        raise typer.Exit()


def audit(
    model: Annotated[
        str, typer.Argument(metavar="MODULE:NAME", help="A torch module, or what builds it.")
    ],
    intent: Annotated[
        str | None, typer.Option("--intent", "-i", help=f"{INTENTS}, or module:name of your own.")
    ] = None,
    format: OutputFormat = "table",
    intents: Annotated[
        bool,
        typer.Option(
            "--intents", callback=_show_intents, is_eager=True, help="Show what intents mean."
        ),
    ] = False,
) -> None:
    """Hold the weights and signals of a torch model against how it was meant to start.

    An intent says which law and size parameters were meant to have: a name, or a mapping from
    patterns of names such as "*.c_proj.weight"; --intents shows what names mean. Without one, each
    role is compared over the layers.
    MODULE may be a file. Signals are those of random inputs. The exit code is 1 if something
    deviates, which a correct model does with a probability of 0.001.

    In csv and json there is a row for every tensor; tested, meant, factor and z are empty where
    nothing was tested, z also where no chance can do it, such as zeros or NaN in place of numbers.

    Examples:

        fieldtheory audit gpt.py:build --intent gpt2

        fieldtheory audit gpt.py:build -i gpt.py:intent -f csv > tensors.csv
    """
    meant = imported("intent", intent) if intent and ":" in intent else intent
    built = imported("model", model)
    from fieldtheory import audits, validation

    is_built = validation.is_torch_module(built) and not isinstance(built, type)
    if callable(built) and not is_built:
        validation.require_arguments("model", built)
        built = built()
    result = audits.audit(built, intent=meant)
    rows, ends = result.rows(), (math.inf, -math.inf)
    if format == "table":
        echo(result)
    else:
        rows = [{n: None if v != v or v in ends else v for n, v in r.items()} for r in rows]
        print_rows(rows, format, "")
    if not result.ok:
        raise typer.Exit(1)
