"""The command verify: checks and claims in every format, and the exit code."""

import csv
import io
import json

import pytest

from fieldtheory.literature import checks, f23, verdicts
from tests.cli.test_app import call
from tests.tables import slow


def check(difference):
    return checks.Check("averages", "M(K), erf", "0.5", "0.5", difference, 1e-12)


@pytest.fixture
def known(monkeypatch):
    """Checks and claims that are found at once, and what the command asks for."""
    asked = []
    numbers = checks.maximum_entropy_checks("erf", 20)
    judged = [c.verdict(20) for c in f23.CLAIMS if c.equation == "Fig. 5(c)"]

    def run_checks(digits, progress, jobs, activations):
        asked.append((digits, activations))
        progress("maximum entropy, erf")
        return numbers

    def all_verdicts(digits, papers, progress, jobs, equation):
        asked.append((digits, papers))
        return judged

    monkeypatch.setattr(checks, "run_checks", run_checks)
    monkeypatch.setattr(verdicts, "verdicts", all_verdicts)
    return numbers, judged, asked


def test_a_small_run_as_a_whole():
    result = call("verify", "--digits", 20, "--activations", "linear", "--papers", "F23")
    assert result.exit_code == 0
    assert "FAILS" not in result.stdout
    assert "34 of 34 checks pass." in result.stdout
    assert "F23 (8): holds with a convention: φ'(0) = 1, where erf has 2/√π; " in result.stdout
    assert result.stdout.rstrip().splitlines()[-1].startswith("22 claims: ")
    assert "checked: network\n" in result.stderr
    assert result.stderr.endswith("checked: F23 (S12)–(S14)\n")


def test_table(known):
    numbers, judged, _ = known
    result = call("verify", "--digits", 20)
    assert result.exit_code == 0
    for c in numbers:
        assert c.quantity in result.stdout
    for v in judged:
        # Long subjects are broken over lines.
        assert v.claim.subject[:10] in result.stdout
    assert "3 of 3 checks pass." in result.stdout
    assert result.stdout.rstrip().endswith("2 claims: 1 does not hold, 1 holds.")
    assert result.stderr == "checked: maximum entropy, erf\n"


def test_formats_have_a_row_for_every_check_and_every_claim(known):
    numbers, judged, _ = known
    from_json = json.loads(call("verify", "-f", "json").stdout)
    assert [row["kind"] for row in from_json] == ["check"] * 3 + ["claim"] * 2
    for row, number in zip(from_json, numbers, strict=False):
        expected = vars(number) | {"kind": "check", "passed": True}
        assert {name: row[name] for name in expected} == expected
        assert row["paper"] is None
    for row, verdict in zip(from_json[3:], judged, strict=True):
        assert {name: row[name] for name in verdict.row} == verdict.row
        assert row["mpmath"] is None
    text = call("verify", "-f", "csv").stdout
    from_csv = list(csv.DictReader(io.StringIO(text)))
    assert from_csv == [
        {name: "" if value is None else str(value) for name, value in row.items()}
        for row in from_json
    ]


@pytest.mark.parametrize(("form", "rows"), [slow("csv", 5), ("json", 4)])
def test_rows_are_written_as_they_come(known, monkeypatch, form, rows):
    """A run that ends early leaves what it had: three checks and one claim."""
    _, judged, _ = known

    def stopped(*_):
        yield judged[0]
        raise ValueError("stopped")

    monkeypatch.setattr(verdicts, "verdicts", stopped)
    result = call("verify", "-f", form)
    assert result.exit_code == 2 and result.stderr.endswith("error: stopped\n")
    kept = result.stdout if form == "csv" else result.stdout + "]"
    read = list(csv.reader(io.StringIO(kept))) if form == "csv" else json.loads(kept)
    assert len(read) == rows


def test_rows_are_not_written_by_the_bar_on_a_terminal(known, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    result = call("verify", "-f", "csv")
    assert len(result.stdout.splitlines()) == 6
    assert "\x1b" in result.stderr and "\x1b" not in result.stdout


def test_a_page_shows_formulas(known):
    _, judged, _ = known
    page = call("verify", "-f", "html").stdout
    assert page.startswith("<!DOCTYPE html>") and page.count("<tr>") >= 5
    for verdict in judged:
        assert verdict.claim.equation in page
    claim = next(c for c in f23.CLAIMS if c.verdict(20).found.formulas)
    from fieldtheory.report import verdicts_page

    page = verdicts_page.page([], [claim.verdict(20)], 20)
    assert '<math display="block"' in page and 'class="source"' not in page.split("</style>")[1]


def test_options_reach_the_checks(known):
    call("verify")
    call("verify", "--digits", 30, "-a", "erf, tanh", "--papers", "F25")
    assert known[2] == [(50, None), (50, None), (30, ["erf", "tanh"]), (30, ["F25"])]


@pytest.mark.parametrize("form", ["table", slow("csv"), slow("json")])
def test_exit_code_says_that_a_check_fails(known, monkeypatch, form):
    failing = [check(0.0), check(0.5)]
    monkeypatch.setattr(checks, "run_checks", lambda *_: failing)
    result = call("verify", "--format", form)
    assert result.exit_code == 1
    assert ("FAILS" if form == "table" else "alse") in result.stdout


@pytest.mark.parametrize("form", [slow("table"), "csv"])
def test_exit_code_says_that_a_verdict_changes(known, monkeypatch, form):
    monkeypatch.setattr(verdicts, "changed", lambda judged: ["F25 (66): misprint"])
    result = call("verify", "--format", form)
    assert result.exit_code == 1
    assert "the verdict has changed: F25 (66): misprint" in result.stderr


def test_one_equation_without_numbers():
    result = call("verify", "--paper", "F25", "--equation", "66", "--digits", 20, "-f", "json")
    assert result.exit_code == 0
    (row,) = json.loads(result.stdout)
    assert (row["equation"], row["verdict"], row["kind"]) == ("(66)", "proved", "claim")
    assert row["quantifier"].startswith("for all K^(0), ")


def test_both_sides_of_an_equation():
    result = call("verify", "--paper", "F25", "--equation", "113", "--digits", 20)
    assert result.exit_code == 0
    lines = [
        "F25 (113), first term: its bracket, ∂S/∂C̃^(0) + d_in C^(0)",
        "  printed:            N*ν_0 + σ_w,in**2*x·x",
        "  derived:            N*ν_0*σ_b,in**2 + σ_w,in**2*x·x",
        "  difference:         printed − derived = -N*ν_0*(σ_b,in - 1)*(σ_b,in + 1)",
        r"  printed, LaTeX:     N \nu_{0} + \sigma_{w,\mathrm{in}}^{2} x\cdot x",
        "3 claims: 1 does not hold, 2 misprint.",
    ]
    assert {*lines} <= {*result.stdout.splitlines()}


def test_coverage_is_counted_without_checks(monkeypatch):
    monkeypatch.setattr(checks, "run_checks", None)
    monkeypatch.setattr(verdicts, "verdicts", None)
    *table, total = call("verify", "--coverage").stdout.splitlines()
    numbered = [paper for paper in verdicts.PAPERS if paper not in ("DCL", "SPT")]
    sums = table[-len(numbered) :]
    assert [line.split(":")[0] for line in sums] == numbered
    assert total.endswith(" of 228") and sums[3].endswith(", 1 definition")
    assert any(line.split() == ["F25", "(66)", "verdict", "proved"] for line in table)
    rows = json.loads(call("verify", "--coverage", "--paper", "PF", "-f", "json").stdout)
    assert len(rows) == 17 and {row["kind"] for row in rows} <= {"verdict", "definition", "open"}
