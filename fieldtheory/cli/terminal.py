"""What commands share at the terminal: error lines, tables, progress."""

from __future__ import annotations

import contextlib
import csv
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Any

import typer
from typer.core import TyperGroup


class Format(StrEnum):
    table = "table"
    csv = "csv"
    json = "json"


class Commands(TyperGroup):
    """Commands that answer bad input with one line on stderr and exit code 2."""

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, standalone_mode: bool = True, **extra: Any
    ) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _warn
                code = super().main(args, standalone_mode=False, **extra)
        except BrokenPipeError:
            # The reader of our output, such as head, has seen enough.
            sys.stderr.close()
            code = 1
        except (ValueError, TypeError, ArithmeticError, ImportError, OSError) as error:
            code = _refuse(error)
        except Exception as error:
            # Usage errors, of a class that typer keeps to itself.
            if not hasattr(error, "format_message"):
                raise
            code = _refuse(error.format_message())
        if standalone_mode:
            sys.exit(code if isinstance(code, int) else 0)
        return code


def _refuse(reason: Any) -> int:
    line = " ".join(str(reason).split())
    if line:
        typer.echo(f"error: {line}", err=True)
    return 2


def _warn(message: Any, *_: Any, **__: Any) -> None:
    typer.echo(f"warning: {' '.join(str(message).split())}", err=True)


def print_rows(rows: Sequence[dict[str, Any]], format: Format, title: str) -> None:
    """Rows as a table for the eye (six digits), or as CSV or JSON with all digits."""
    rows = [{k: v.item() if hasattr(v, "item") else v for k, v in row.items()} for row in rows]
    if format is Format.json:
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
    elif format is Format.csv:
        writer = csv.DictWriter(sys.stdout, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    else:
        _print_table(rows, title)


def table_text(rows: Sequence[dict[str, Any]], title: str) -> str:
    """Rows as the text of a table, with six digits, whatever the width of the terminal."""
    from rich.console import Console

    console = Console(markup=False, highlight=False, width=1000, color_system=None)
    with console.capture() as capture:
        console.print(_table(rows, title))
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def _print_table(rows: Sequence[dict[str, Any]], title: str) -> None:
    from rich.console import Console

    table = _table(rows, title)
    console = Console(markup=False, highlight=False)
    # Nothing is to be cut off: a pipe has no width, a narrow terminal breaks the lines.
    console.width = max(console.width if console.is_terminal else 200, _width(console, table))
    console.print(table)


def _width(console: Any, table: Any) -> int:
    from rich.measure import Measurement

    return Measurement.get(console, console.options.update(width=1000), table).maximum


def _table(rows: Sequence[dict[str, Any]], title: str) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="", box=box.SIMPLE_HEAD)
    for name, value in rows[0].items():
        table.add_column(name, justify="left" if isinstance(value, str) else "right", no_wrap=True)
    for row in rows:
        table.add_row(*map(_cell, row.values()))
    return table


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return format(value, ".6g") if isinstance(value, float) else str(value)


@contextlib.contextmanager
def display(steps: int | None) -> Iterator[Callable[[int, str], None]]:
    """A progress display on stderr: a bar on a terminal, plain lines elsewhere."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:

        def line(step: int, text: str) -> None:
            typer.echo(f"[{step}/{steps}] {text}" if steps else text, err=True)

        yield line
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    shown = (SpinnerColumn(), BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*shown, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=steps)

        def advance(step: int, text: str) -> None:
            bar.update(task, completed=step - 1 if steps else 0, description=text)

        yield advance
