"""All claims of the papers by the numbers of equations, and their verdicts in one go."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module, resources

from fieldtheory import validation
from fieldtheory.families import registered
from fieldtheory.literature import (
    f23,
    f25_entropy,
    f25_prior,
    f25_propagators,
    f25_scaling,
    f25_theory,
    pdlt_kernels,
    pdlt_vertex,
    sr_inference,
    sr_kernels,
    sr_limits,
    sr_tangent,
    sr_universality,
)
from fieldtheory.literature.claim import EDITIONS, Claim, Verdict
from fieldtheory.literature.evidence import Evidence
from fieldtheory.numerics import chunks

# Of F25 and F23, K. Fischer, D. Dahmen, M. Helias, Field theory for optimal signal
# propagation in ResNets (2025, arXiv:2305.07715) and its earlier version; of PDLT-B, D. A. Roberts,
# S. Yaida, B. Hanin, The Principles of Deep Learning Theory (2022, arXiv:2106.10165), appendix B,
# "Residual learning"; of SR, S. Hayou, E. Clerico, B. He, G. Deligiannidis, A. Doucet, J. Rousseau,
# Stable ResNet (AISTATS 2021, arXiv:2010.12859); then those of families.
_OF_FAMILIES = [family.claims for family in registered() if family.claims]
_PARTS = (
    *(f25_prior, f25_theory, f25_propagators, f25_scaling, f25_entropy, f23),
    *(pdlt_kernels, pdlt_vertex, sr_kernels, sr_tangent, sr_limits, sr_universality, sr_inference),
    *map(import_module, _OF_FAMILIES),
)
PAPERS: dict[str, tuple[Claim, ...]] = {
    paper: tuple(claim for part in _PARTS for claim in part.CLAIMS if claim.paper == paper)
    for paper in EDITIONS
}


def claims(papers: Sequence[str] | None = None, equation: str | None = None) -> tuple[Claim, ...]:
    """The claims of some papers, or of all.

    Examples
    --------
    >>> {claim.paper for claim in claims(["F23"])}
    {'F23'}
    >>> [claim.equation for claim in claims(["F25"], "66")]
    ['(66)']
    """
    return tuple(PAPERS[paper][i] for paper, i in _places(papers, equation))


def verdicts(
    digits: int = 50,
    papers: Sequence[str] | None = None,
    progress: Callable[[str], None] | None = None,
    jobs: int = 1,
    equation: str | None = None,
) -> Iterator[Verdict]:
    """Verdicts on `claims` of some papers, or of all, each as soon as it is computed.

    Examples
    --------
    >>> found = verdicts(20, ["F23"])
    >>> [v.text for v in found if v.claim.equation == "(8)"]
    ["holds with a convention: φ'(0) = 1, where erf has 2/√π"]
    """
    digits = validation.integer("digits", digits, 20)
    validation.integer("jobs", jobs, 1)
    places = _places(papers, equation)

    def judged() -> Iterator[Verdict]:
        # A claim holds functions that stay in the process; what it finds is text.
        tasks = ((_evidence_and_word, *place, digits) for place in places)
        results = chunks.in_order(tasks, jobs, "verdicts in several processes")
        for (paper, index), (evidence, word) in zip(places, results, strict=True):
            verdict = Verdict(PAPERS[paper][index], evidence, word)
            if progress is not None:
                progress(f"{paper} {verdict.claim.equation}")
            yield verdict

    return judged()


def expected() -> dict[tuple[str, str, str], str]:
    """The verdict that every claim had when it was read last: a word by paper, equation and region.

    Examples
    --------
    >>> expected()["F25", "(66)", "every L"]
    'proved'
    """
    rows = table("expected_verdicts.tsv")
    return {(paper, equation, region): word for paper, equation, region, word in rows}


def table(name: str) -> list[list[str]]:
    """The rows of a table of this directory, and of those of families."""
    folders = map(resources.files, ("fieldtheory.literature", *_OF_FAMILIES))
    texts = [folder.joinpath(name).read_text("utf-8") for folder in folders]
    return [line.split("\t") for text in texts for line in text.splitlines()]


def changed(judged: Sequence[Verdict]) -> list[str]:
    """Verdicts that are not the expected ones, a line for each."""
    expected_words, lines = expected(), []
    for verdict in judged:
        claim = verdict.claim
        word = expected_words.get((claim.paper, claim.equation, claim.region), "not known")
        if verdict.word != word:
            name = f"{claim.paper} {claim.equation}, {claim.region}"
            lines.append(f"{name}: {verdict.word}, expected: {word}")
    return lines


def _places(papers: Sequence[str] | None, equation: str | None = None) -> list[tuple[str, int]]:
    if isinstance(papers, str):
        raise TypeError(f"papers must be a sequence of names, got {papers!r}")
    chosen = tuple(PAPERS) if papers is None else papers
    for paper in chosen:
        validation.choice("papers", paper, tuple(PAPERS))
    places = [(paper, i) for paper in chosen for i in range(len(PAPERS[paper]))]
    if equation is None:
        return places
    number = equation.strip("()")
    named = [(paper, i) for paper, i in places if names(PAPERS[paper][i].equation, number)]
    if not named:
        raise ValueError(
            f"equation must be a number that a claim of {', '.join(chosen)} names, got {equation!r}"
        )
    return named


def _evidence_and_word(paper: str, index: int, digits: int) -> tuple[Evidence, str]:
    verdict = PAPERS[paper][index].verdict(digits)
    return verdict.found, verdict.word


_NUMBER = r"(?:S|B\.)?\d+"
_PART = re.compile(rf"({_NUMBER})(?:–({_NUMBER}))?$")
_NAMED = re.compile(rf"\(({_NUMBER})\)(?:–\(({_NUMBER})\))?")
_ELSEWHERE = ("text", "line", "Fig", "section", "appendix", "footnote")


def numbers(ranges: str) -> list[str]:
    """The numbers in ranges.

    Examples
    --------
    >>> numbers("1, 3–5, S1–S2, B.9–B.10")
    ['1', '3', '4', '5', 'S1', 'S2', 'B.9', 'B.10']
    """
    parts = [_PART.match(part) for part in ranges.split(", ")]
    return _spelled_out((part[1], part[2]) for part in parts if part)


def numbers_in(equation: str) -> list[str]:
    """The numbers of the equations that a claim is on; text after an equation is not on it.

    >>> numbers_in("(46)–(48)"), numbers_in("(140), second line"), numbers_in("text after (51)")
    (['46', '47', '48'], ['140'], [])
    """
    elsewhere = equation.startswith(_ELSEWHERE)
    return [] if elsewhere else _spelled_out(_NAMED.findall(equation))


def names(equation: str, number: str) -> bool:
    """Whether a claim names an equation, also where it is on the text after it.

    Examples
    --------
    >>> names("text after (68)", "68"), names("(98), (99)", "68")
    (True, False)
    """
    return number in _spelled_out(_NAMED.findall(equation))


def _spelled_out(ranges: Iterable[tuple[str, str | None]]) -> list[str]:
    spelled = []
    for first, last in ranges:
        prefix = first.rstrip("0123456789")
        start, end = (int((n or first).removeprefix(prefix)) for n in (first, last))
        spelled += [f"{prefix}{n}" for n in range(start, end + 1)]
    return spelled
