"""Rows of numbers as text: a table for a notebook, a terminal or a pipe.

rich lays the tables out and is imported when one is made, so that a result which can show itself
costs nothing until it does.
"""

from __future__ import annotations

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

    console = Console(markup=False, highlight=False, width=_NO_LIMIT, color_system=None)
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
    console = Console(markup=False, highlight=False)
    shown = console.width if console.is_terminal else _PIPE_WIDTH
    console.width = max(shown, _width(console, table))
    console.print(table)


def _width(console: Console, table: Table) -> int:
    from rich.measure import Measurement

    return Measurement.get(console, console.options.update(width=_NO_LIMIT), table).maximum


def _table(rows: Sequence[dict[str, Any]], title: str) -> Table:
    if not rows:
        raise ValueError("rows must hold at least one row, got none")
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
