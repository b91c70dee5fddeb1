"""Tables as text: digits, empty cells, long rows, and what is imported for them."""

import io
import subprocess
import sys

import pytest

from fieldtheory.plotting import tables

ROWS = [{"quantity": "C", "layer": 1, "K": 1 / 3}, {"quantity": "K^[2]", "layer": 10, "K": None}]


def test_text():
    title, _, head, rule, first, second, end = tables.table_text(ROWS, "two kernels").split("\n")
    assert title == "two kernels"
    assert head.split() == ["quantity", "layer", "K"]
    assert set(rule) == {" ", "─"}
    assert first.split() == ["C", "1", "0.333333"]
    # Brackets are no markup here.
    assert second.split() == ["K^[2]", "10"]
    assert end == ""
    # Words start together, numbers end together.
    assert head.index("quantity") == first.index("C")
    assert head.index("layer") + 4 == first.index("1")


def test_nothing_is_cut_off_or_broken(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    long = [{f"column {i}": "x" * 20 for i in range(20)}]
    assert tables.table_text(long, "wide").count("x" * 20) == 20
    tables.print_table(long, "wide")
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines[: lines.index("") + 4] == tables.table_text(long, "wide").splitlines()


def test_a_terminal_wider_than_the_table_is_left_as_it_is(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("TERM", "xterm")
    tables.print_table(ROWS, "two kernels")
    assert "0.333333" in screen.getvalue()


def test_html():
    page = tables.table_html([*ROWS, {"quantity": "<b> & $K$", "layer": 2, "K": 2.0}], "a < b")
    assert page.startswith("<table><caption>a &lt; b</caption><tr><th>quantity</th>")
    assert page.count("<tr>") == 4 and page.count("<td") == 9
    assert "&lt;b&gt; &amp; $K$" in page and "<td>0.333333</td>" in page and "<td></td>" in page


@pytest.mark.parametrize("show", [tables.table_text, tables.print_table])
def test_no_rows(show):
    with pytest.raises(ValueError, match="rows must hold at least one row, got none"):
        show([], "nothing")


def test_no_rows_of_html():
    with pytest.raises(ValueError, match="rows must hold at least one row, got none"):
        tables.table_html([], "nothing")


def test_a_table_does_not_load_the_shell():
    program = (
        "import sys; from fieldtheory.plotting import tables; "
        "assert 'rich' not in sys.modules; tables.table_text([{'K': 1.0}], 'one'); "
        "sys.exit('typer' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_tables_are_plain_text_in_a_notebook(monkeypatch):
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    shown = []
    monkeypatch.setattr("rich.jupyter.display", lambda *args: shown.append(args))
    assert tables.table_text([{"K": 0.5}], "kernels").startswith("kernels")
    assert not shown
