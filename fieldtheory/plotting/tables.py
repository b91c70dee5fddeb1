"""Rows of numbers as text or HTML: a table for a notebook, a terminal or a pipe.

rich lays the tables of text out and is imported when one is made, so that a result which can show
itself costs nothing until it does.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table


def table_text(rows: Sequence[dict[str, Any]], title: str) -> str:
    """Rows as the text of a table that fits 80 columns: a wider one is folded.

    >>> print(table_text([{"layer": 1, "K": 0.123456789}, {"layer": 2, "K": None}], "kernels"))
    kernels
    <BLANKLINE>
      layer          K
     ──────────────────
          1   0.123457
          2
    <BLANKLINE>
    """
    # Columns of a text or a pipe; a wider table is folded.
    width = 80
    from rich.console import Console

    console = Console(
        markup=False, highlight=False, width=width, color_system=None, force_jupyter=False
    )
    with console.capture() as capture:
        for table in _tables(rows, title, width):
            console.print(table, crop=False)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def print_table(rows: Sequence[dict[str, Any]], title: str) -> None:
    """Print rows as a table that fits the terminal, 80 columns in a pipe; see `table_text`.

    >>> print_table([{"K": 0.5}], "kernels")
    kernels
    <BLANKLINE>
       K
     ─────
      0.5
    <BLANKLINE>
    """
    from rich.console import Console

    console = Console(markup=False, highlight=False, force_jupyter=False)
    for table in _tables(rows, title, console.width):
        console.print(table, crop=False)


def table_html(rows: Sequence[dict[str, Any]], caption: str) -> str:
    """Rows as a table for a notebook.

    >>> table_html([{"layer": 1, "K < 1": 0.123456789}], "kernels")
    '<table><caption>kernels</caption><tr><th>layer</th><th>K &lt; 1</th></tr><tr><td>1</td>...'
    """
    _require_rows(rows)
    left = " style='text-align:left'"
    head = "".join(f"<th>{html.escape(name)}</th>" for name in rows[0])
    body = ""
    for row in rows:
        cells = [
            f"<td{left if isinstance(value, str) else ''}>{html.escape(_cell(value))}</td>"
            for value in row.values()
        ]
        body += f"<tr>{''.join(cells)}</tr>"
    return f"<table><caption>{html.escape(caption)}</caption><tr>{head}</tr>{body}</table>"


def _tables(rows: Sequence[dict[str, Any]], title: str, width: int) -> list[Table]:
    """One table, or if it is too wide several with the rows' names in front of each."""
    # Columns that a text needs before its lines are broken, where there is too little room.
    broken = 24
    _require_rows(rows)
    names = list(rows[0])
    cells = [[_cell(value) for value in row.values()] for row in rows]
    columns = dict(zip(names, zip(*cells, strict=True), strict=True))
    # A column has three blanks, the table one more.
    wide = {name: 3 + max(map(len, (name, *columns[name]))) for name in names}
    texts = {name for name in names if isinstance(rows[0][name], str)}
    if 1 + sum(wide.values()) > width:
        # Digits and names are not broken, sentences are.
        long = {n for n in texts if wide[n] > broken and any(" " in c for c in columns[n])}
        wide |= dict.fromkeys(long, broken)
    # As many columns as tell the rows apart.
    distinct = (n for n in range(1, 5) if len({tuple(row[:n]) for row in cells}) == len(cells))
    keys = names[: next(distinct, 1)]
    groups, free = [keys], width - 1 - sum(wide[name] for name in keys)
    left = free
    for name in names[len(keys) :]:
        if wide[name] > left and groups[-1] != keys:
            groups.append(keys)
            left = free
        groups[-1] = [*groups[-1], name]
        left -= wide[name]
    return [
        _table({name: columns[name] for name in group}, texts, title if not i else "")
        for i, group in enumerate(groups)
    ]


def _table(columns: dict[str, Sequence[str]], texts: set[str], title: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", title_style="", box=box.SIMPLE_HEAD)
    for name, cells in columns.items():
        broken = name in texts and any(" " in cell for cell in cells)
        justify: Any = "left" if name in texts else "right"
        table.add_column(name, justify=justify, no_wrap=not broken, overflow="fold")
    for row in zip(*columns.values(), strict=True):
        table.add_row(*row)
    return table


def _require_rows(rows: Sequence[dict[str, Any]]) -> None:
    if not rows:
        raise ValueError("rows must hold at least one row, got none")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return format(value, ".6g") if isinstance(value, float) else str(value)
