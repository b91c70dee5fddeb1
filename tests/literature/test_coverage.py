"""Coverage: every numbered equation is covered by a claim, or is a definition that stands there."""

from collections import Counter
from importlib import util
from pathlib import Path

import pytest

from fieldtheory.literature import coverage, verdicts
from fieldtheory.literature.verdicts import names, numbers, numbers_in

ROOT = Path(__file__).parents[2]
SIZES = {"F25": 132, "F23": 24, "PDLT-B": 45, "SR": 10, "PF": 17}


def test_all_numbers_of_the_papers_are_there():
    found = Counter(row["paper"] for row in coverage.coverage())
    assert found == SIZES and found.total() == 228


def test_claims_are_on_numbers_that_are_printed():
    for paper, claims in verdicts.PAPERS.items():
        claimed = {number for claim in claims for number in numbers_in(claim.equation)}
        ranges = [of for name, of, _ in coverage.DEFINITIONS if name == paper]
        defined = {number for of in ranges for number in numbers(of)}
        assert claimed | defined <= {*numbers(coverage.NUMBERED[paper])}
        # An equation with a verdict is no mere definition.
        assert not claimed & defined


def test_equations_have_their_verdicts():
    rows = {row["equation"]: row["by"] for row in coverage.coverage(["F25"])}
    assert rows["(66)"] == "proved"
    assert rows["(113)"] == "does not hold, 2 misprint"
    assert rows["(116)"] == "holds, misprint"
    assert rows["(1)"].startswith("fieldtheory.") or "/" in rows["(1)"]


def test_definitions_are_where_they_are_said_to_be():
    for paper, equations, where in coverage.DEFINITIONS:
        assert paper in SIZES and numbers(equations)
        assert (ROOT / where).is_file() if "/" in where else util.find_spec(where)


@pytest.mark.parametrize(
    ("equation", "expected"),
    [
        ("(46)–(48)", ["46", "47", "48"]),
        ("(B.24), (B.25)", ["B.24", "B.25"]),
        ("(11), Theorem 3.1", ["11"]),
        ("(S12)–(S14)", ["S12", "S13", "S14"]),
        ("text after (68)", []),
        ("line after (31)", []),
        ("Fig. 5(b), caption", []),
        ("section 3.1", []),
    ],
)
def test_numbers_in(equation, expected):
    assert numbers_in(equation) == expected
    assert all(names(equation, number) for number in expected)


def test_ranges():
    assert numbers("9–11, 13, S1–S3") == ["9", "10", "11", "13", "S1", "S2", "S3"]


def test_a_paper_that_is_not_there():
    with pytest.raises(ValueError, match="papers must"):
        coverage.coverage(["F24"])
    assert {row["paper"] for row in coverage.coverage(["SR"])} == {"SR"}
    # Those without numbered equations that were read.
    assert [*verdicts.PAPERS] == [*SIZES, "DCL", "SPT"]
