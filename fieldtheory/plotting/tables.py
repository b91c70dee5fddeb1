"""Rows of numbers as text or HTML: a table for a notebook, a terminal or a pipe.

rich lays the tables of text out and is imported when one is made, so that a result which can show
itself costs nothing until it does.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_PIPE_WIDTH = 200
_NO_LIMIT = 1000


def table_text(rows: Sequence[dict[str, Any]], title: str) -> str:
    """Rows as the text of a table, whatever the width of the terminal.

    Parameters
    ----------
    rows : sequence of dict
        All with the same keys, which head the columns; numbers are shown with six digits, None as
        an empty cell.
    title : str
        The line above the table.

    Returns
    -------
    str
        Without blanks at the ends of its lines.

    Raises
    ------
    ValueError
        If there is no row.

    Examples
    --------
    >>> print(table_text([{"layer": 1, "K": 0.123456789}, {"layer": 2, "K": None}], "kernels"))
    kernels
    <BLANKLINE>
      layer          K
     ──────────────────
          1   0.123457
          2
    <BLANKLINE>
    """
    from rich.console import Console

    console = Console(
        markup=False, highlight=False, width=_NO_LIMIT, color_system=None, force_jupyter=False
    )
    with console.capture() as capture:
        console.print(_table(rows, title))
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def print_table(rows: Sequence[dict[str, Any]], title: str) -> None:
    """Print rows as a table that is never cut off.

    A pipe has no width; a terminal narrower than the table breaks its lines.

    Parameters
    ----------
    rows : sequence of dict
    title : str
        As for `table_text`.

    Raises
    ------
    ValueError
        If there is no row.

    Examples
    --------
    >>> print_table([{"K": 0.5}], "kernels")
    kernels
    <BLANKLINE>
       K
     ─────
      0.5
    <BLANKLINE>
    """
    from rich.console import Console

    table = _table(rows, title)
    console = Console(markup=False, highlight=False, force_jupyter=False)
    shown = console.width if console.is_terminal else _PIPE_WIDTH
    console.width = max(shown, _width(console, table))
    console.print(table)


def table_html(rows: Sequence[dict[str, Any]], caption: str) -> str:
    """Rows as a table for a notebook.

    Parameters
    ----------
    rows : sequence of dict
        As for `table_text`; formulas between dollar signs are set by the notebook.
    caption : str
        The line above the table.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If there is no row.

    Examples
    --------
    >>> table_html([{"layer": 1, "K < 1": 0.123456789}], "kernels")
    '<table><caption>kernels</caption><tr><th>layer</th><th>K &lt; 1</th></tr><tr><td>1</td>...'
    """
    _require_rows(rows)
    head = "".join(f"<th>{html.escape(name)}</th>" for name in rows[0])
    body = "".join(
        "<tr>" + "".join(_html_cell(value) for value in row.values()) + "</tr>" for row in rows
    )
    return f"<table><caption>{html.escape(caption)}</caption><tr>{head}</tr>{body}</table>"


def _html_cell(value: Any) -> str:
    aligned = " style='text-align:left'" if isinstance(value, str) else ""
    return f"<td{aligned}>{html.escape(_cell(value))}</td>"


def _width(console: Console, table: Table) -> int:
    from rich.measure import Measurement

    return Measurement.get(console, console.options.update(width=_NO_LIMIT), table).maximum


def _table(rows: Sequence[dict[str, Any]], title: str) -> Table:
    _require_rows(rows)
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="", box=box.SIMPLE_HEAD)
    for name, value in rows[0].items():
        table.add_column(name, justify="left" if isinstance(value, str) else "right", no_wrap=True)
    for row in rows:
        table.add_row(*map(_cell, row.values()))
    return table


def _require_rows(rows: Sequence[dict[str, Any]]) -> None:
    if not rows:
        raise ValueError("rows must hold at least one row, got none")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return format(value, ".6g") if isinstance(value, float) else str(value)
