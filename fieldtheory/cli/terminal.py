"""What commands share at the terminal: error lines, rows in every format, progress."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import json
import sys
import textwrap
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

from typer.core import TyperGroup

# What a terminal of few signs shows in place of mathematical ones.
_NEAREST = {
    **{"−": "-", "–": "-", "—": "-", "×": "x", "·": "*", "√": "sqrt ", "∂": "d", "∞": "infinity"},
    **{"⟨": "<", "⟩": ">", "≤": "<=", "≥": ">=", "≠": "!=", "≈": "~", "±": "+-", "→": "->"},
    **{"′": "'", "″": "''", "…": "...", "Σ": "sum", "Δ": "Delta ", "∫": "int"},
}
# How a table is printed.
Format = Literal["table", "csv", "json"]


class Commands(TyperGroup):
    """Commands that answer bad input with one line on stderr and exit code 2."""

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, standalone_mode: bool = True, **extra: Any
    ) -> Any:
        """Run a command, and turn what it raises into a line and an exit code."""
        try:
            with warnings.catch_warnings():
                warnings.showwarning = lambda message, *_, **__: echo(
                    f"warning: {' '.join(str(message).split())}", err=True
                )
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
            code = _refuse(_similar_option(error) or _named(error) or error.format_message())
        if standalone_mode:
            sys.exit(code if isinstance(code, int) else 0)
        return code

    def get_params(self, ctx: Any) -> list[Any]:
        """Its options, flags that are false if left out: typer loads pydantic to check a None."""
        options = super().get_params(ctx)
        for option in options:
            option.default = False
        return options


def echo(text: object, err: bool = False) -> None:
    """Print a line. Not typer's, which writes UTF-8 where the stream is ascii."""
    print(text, file=sys.stderr if err else sys.stdout, flush=True)


def write_anywhere() -> None:
    """Let stdout and stderr of any encoding take every text; see `_replaced`."""
    codecs.register_error("fieldtheory", _replaced)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="fieldtheory")


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """Signs that an encoding lacks: Greek letters by their names, others by what is nearest."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_ascii, error.object[error.start : error.end])), error.end


def _ascii(sign: str) -> str:
    name = unicodedata.name(sign, "")
    if name.startswith("GREEK SMALL LETTER "):
        return name.removeprefix("GREEK SMALL LETTER ").partition(" ")[0].lower()
    if name.startswith("GREEK CAPITAL LETTER "):
        return name.removeprefix("GREEK CAPITAL LETTER ").partition(" ")[0].capitalize()
    if sign in _NEAREST:
        return _NEAREST[sign]
    if name.startswith("BOX DRAWINGS"):
        return "-" if "HORIZONTAL" in name.split() else "|" if "VERTICAL" in name.split() else "+"
    plain = unicodedata.normalize("NFKD", sign).encode("ascii", "ignore").decode()
    return f"^{plain}" if "SUPERSCRIPT" in name and plain else plain or "?"


def _similar_option(error: Any) -> str:
    """The line for an option that names a parameter otherwise; empty for other errors."""
    name, context = getattr(error, "option_name", None), getattr(error, "ctx", None)
    if name is None or context is None:
        return ""
    from fieldtheory.networks.parameters import hint

    names = [option.name for option in context.command.params]
    option, _, symbol = hint(name.lstrip("-").replace("-", "_"), names).partition(" ")
    similar = f"--{option.replace('_', '-')} {symbol}".rstrip()
    return f"no such option {name}: did you mean {similar}?" if option else ""


def _named(error: Any) -> str:
    """The line for a value that is not allowed, with the value; empty for other errors."""
    param, cause = getattr(error, "param", None), error.__cause__
    if param is None or not hasattr(cause, "errors"):
        return ""
    first = cause.errors()[0]
    _, phrase, allowed = first["msg"].partition("Input should be ")
    _, choices, listed = first["msg"].partition("is not one of ")
    if not phrase and not choices:
        return ""
    allowed = f"one of {listed.rstrip('.')}" if choices else allowed.partition(", unable to")[0]
    return f"{param.opts[0]} must be {allowed}, got {first['input']!r}"


def _refuse(reason: Any) -> int:
    line = " ".join(str(reason).split())
    if line:
        echo(f"error: {line}", err=True)
    return 2


def print_rows(rows: Sequence[dict[str, Any]], format: Format, title: str) -> None:
    """Rows as a table for the eye (six digits), or as CSV or JSON with all digits."""
    if format != "table":
        write_rows(rows, list(rows[0]) if rows else [], format)
        return
    from fieldtheory.plotting.tables import print_table

    print_table(_without_rounding(list(map(_plain, rows))), title)


def write_rows(
    rows: Iterable[dict[str, Any]], columns: Sequence[str], format: Literal["csv", "json"]
) -> None:
    """Rows as CSV or JSON, each as soon as it is there."""
    if format == "csv":
        writer = csv.DictWriter(sys.stdout, columns, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow(_plain(row))
            sys.stdout.flush()
        return
    unicode, start = "utf" in (sys.stdout.encoding or "").lower(), "["
    for row in rows:
        text = json.dumps(_plain(row), indent=2, ensure_ascii=not unicode)
        print(start, textwrap.indent(text, "  "), sep="\n", end="", flush=True)
        start = ","
    echo("[]" if start == "[" else "\n]")


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row without NumPy's types."""
    return {k: v.item() if hasattr(v, "item") else v for k, v in row.items()}


# Columns in which large terms cancel, and the power of C of which their rounding is a small part.
_CANCELLING = {"mean_shift": 1, "mean_shift_2": 1, "var_C_2": 2, "cumulant_3": 3, "V": 2, "V_2": 2}


def _without_rounding(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows for the eye, with 0 for what is nothing but the rounding of terms that cancel."""
    # That of float64, relative to the terms that cancel.
    rounding = 1e-15
    sizes: dict[Any, float] = {}
    for row in rows:
        size = abs(row["C"]) if isinstance(row.get("C"), float) else 0.0
        sizes[row.get("layer")] = max(size, sizes.get(row.get("layer"), 0.0))
    return [
        {
            name: 0.0
            if name in _CANCELLING
            and isinstance(value, float)
            and abs(value) < rounding * sizes[row.get("layer")] ** _CANCELLING[name]
            else value
            for name, value in row.items()
        }
        for row in rows
    ]


def rows_or_logarithms(
    result: Any, logarithms: dict[str, str], **options: Any
) -> list[dict[str, Any]]:
    """The layers of a result in numbers, or where these exceed float64 in fields of logarithms.

    ``logarithms`` are the names of these fields, if the result has them, and of their columns.
    """
    try:
        rows: list[dict[str, Any]] = result.rows(**options)
        return rows
    except OverflowError:
        if any(options.values()) or not {*logarithms} <= {*result.table}:
            raise
        rows = result.rows(of=list(logarithms))
    return [{logarithms.get(n, n): value for n, value in row.items()} for row in rows]


@contextlib.contextmanager
def display(steps: int | None) -> Iterator[Callable[[int, str], None]]:
    """A progress display on stderr: a bar on a terminal, plain lines elsewhere."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:

        def line(step: int, text: str) -> None:
            echo(f"[{step}/{steps}] {text}" if steps else text, err=True)

        yield line
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    # What goes to a file or a pipe is not to be written by the console of the bar.
    redirect = sys.stdout.isatty()
    with Progress(*columns, console=console, transient=True, redirect_stdout=redirect) as bar:
        task = bar.add_task("starting", total=steps)

        def advance(step: int, text: str) -> None:
            bar.update(task, completed=step - 1 if steps else 0, description=text)

        yield advance
