"""Tables as text: digits, empty cells, long rows, and what is imported for them."""

import re
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


def test_a_wide_table_is_folded_behind_the_names_of_its_rows(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    names = [f"column {i}" for i in range(9)]
    rows = [{"layer": l} | {name: f"{name[-1]}{l}" + "x" * 12 for name in names} for l in (1, 2)]
    text = tables.table_text(rows, "wide")
    tables.print_table(rows, "wide")
    for shown, width in ((text, 80), (capsys.readouterr().out, 40)):
        lines = [line.rstrip() for line in shown.splitlines()]
        assert max(map(len, lines)) <= width
        heads = [re.split(r"  +", line.strip()) for line in lines if "layer" in line]
        assert [name for head in heads for name in head[1:]] == names
        for name in names:
            assert shown.count(f"{name[-1]}1" + "x" * 12) == 1
        assert sum(line.split()[:1] == ["2"] for line in lines) == len(heads) > 1


def test_sentences_are_broken_and_digits_are_not():
    rows = [{"name": "a", "number": "0.12345678901234567890", "what": "many words " * 12}]
    text = tables.table_text(rows, "claims")
    assert max(map(len, text.splitlines())) <= 80
    assert rows[0]["number"] in text and text.count("many") == 12


def test_html():
    page = tables.table_html([*ROWS, {"quantity": "<b> & $K$", "layer": 2, "K": 2.0}], "a < b")
    assert page.startswith("<table><caption>a &lt; b</caption><tr><th>quantity</th>")
    assert page.count("<tr>") == 4 and page.count("<td") == 9
    assert "&lt;b&gt; &amp; $K$" in page and "<td>0.333333</td>" in page and "<td></td>" in page


@pytest.mark.parametrize("show", [tables.table_text, tables.print_table])
def test_no_rows(show):
    with pytest.raises(ValueError, match="rows must hold at least one row, got none"):
        show([], "nothing")


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
