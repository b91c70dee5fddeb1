"""Numbers of equations, as the papers and the claims write them."""

from __future__ import annotations

import re
from collections.abc import Iterable

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

    Examples
    --------
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
