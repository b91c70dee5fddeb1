"""Which numbered equations of the papers have a verdict, which are definitions, which are open.

Nothing is checked here: an equation is covered if a claim names its number, or if it is listed
in a table of definitions with the module or page that uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fieldtheory.literature.equation_numbers import numbers, numbers_in
from fieldtheory.literature.verdicts import PAPERS, claims, table

# The numbers that the papers print: F25 has none from 33 to 36, 43, 44 and from 117 to 120.
NUMBERED = {
    "F25": "1–32, 37–42, 45–116, 121–142",
    "F23": "1–9, S1–S15",
    "PDLT-B": "B.1–B.45",
    "SR": "1–10",
    "PF": "1–17",
}
# Of equations that define what others use, or restate a definition: the paper, their numbers, and
# the module or page that has them.
DEFINITIONS = table("definitions.tsv")


@dataclass(frozen=True)
class Coverage:
    """Of one paper, how each of its numbered equations is covered.

    Parameters
    ----------
    paper : str
    equations : tuple of str
        Their numbers, in order.
    claims : dict
        By number how many claims there are on it.
    definitions : dict
        By number the module or page that uses it.
    """

    paper: str
    equations: tuple[str, ...]
    claims: dict[str, int]
    definitions: dict[str, str]

    @property
    def open(self) -> tuple[str, ...]:
        """Numbers that are neither."""
        return tuple(n for n in self.equations if not {n} & {*self.claims, *self.definitions})

    @property
    def rows(self) -> list[dict[str, str]]:
        """A row for every equation."""
        found = []
        for number in self.equations:
            count, where = self.claims.get(number, 0), self.definitions.get(number, "")
            kind = "verdict" if count else "definition" if where else "open"
            what = f"{count} claim{'s' if count > 1 else ''}" if count else where
            equation = f"({number})"
            found.append({"paper": self.paper, "equation": equation, "kind": kind, "by": what})
        return found


def coverage(papers: Sequence[str] | None = None) -> list[Coverage]:
    """How the numbered equations of some papers, or of all, are covered.

    Parameters
    ----------
    papers : sequence of str, optional
        Of "F25", "F23", "PDLT-B", "SR" and "PF".

    Returns
    -------
    list of Coverage

    Raises
    ------
    ValueError
        For an unknown paper.

    Examples
    --------
    >>> found = coverage(["PF"])[0]
    >>> len(found.equations), found.definitions["4"]
    (17, 'docs/theory/diffusions.md')
    """
    claims(papers)
    found = []
    for paper in PAPERS if papers is None else papers:
        counts: dict[str, int] = {}
        for claim in PAPERS[paper]:
            for number in numbers_in(claim.equation):
                counts[number] = counts.get(number, 0) + 1
        uses = [(numbers(ranges), where) for of, ranges, where in DEFINITIONS if of == paper]
        defined = {number: where for ranges, where in uses for number in ranges}
        found.append(Coverage(paper, tuple(numbers(NUMBERED[paper])), counts, defined))
    return found
