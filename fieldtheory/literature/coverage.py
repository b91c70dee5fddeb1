"""Which numbered equations of the papers have a verdict, which are definitions, which are open.

Nothing is checked here: an equation is covered if a claim names its number, with the verdict that
it had last, or if it is listed in a table of definitions with the module or page that uses it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from fieldtheory.families import registered
from fieldtheory.literature.verdicts import (
    PAPERS,
    claims,
    expected,
    numbers,
    numbers_in,
    table,
)

# The numbers that the papers print: F25 has none from 33 to 36, 43, 44 and from 117 to 120.
NUMBERED = {
    "F25": "1–32, 37–42, 45–116, 121–142",
    "F23": "1–9, S1–S15",
    "PDLT-B": "B.1–B.45",
    "SR": "1–10",
    **{paper: text for family in registered() for paper, (_, text) in family.papers.items()},
}
# Of equations that define what others use, or restate a definition: the paper, their numbers, and
# the module or page that has them.
DEFINITIONS = table("definitions.tsv")


def coverage(papers: Sequence[str] | None = None) -> list[dict[str, str]]:
    """A row for every numbered equation of some papers, or of all: its verdicts or definition.

    Examples
    --------
    >>> rows = coverage(["SR"])
    >>> len(rows), rows[2]["kind"]
    (10, 'verdict')
    """
    claims(papers)
    rows, expected_words = [], expected()
    for paper in PAPERS if papers is None else papers:
        words: dict[str, list[str]] = {}
        for claim in PAPERS[paper]:
            for number in numbers_in(claim.equation):
                word = expected_words[paper, claim.equation, claim.region]
                words.setdefault(number, []).append(word)
        uses = [(numbers(ranges), where) for of, ranges, where in DEFINITIONS if of == paper]
        defined = {number: where for ranges, where in uses for number in ranges}
        for number in numbers(NUMBERED[paper]):
            counts, where = Counter(words.get(number, [])), defined.get(number, "")
            kind = "verdict" if counts else "definition" if where else "open"
            by = [f"{n} {word}" if n > 1 else word for word, n in counts.items()] or [where]
            row = {"paper": paper, "equation": f"({number})", "kind": kind}
            rows.append(row | {"by": ", ".join(by)})
    return rows
