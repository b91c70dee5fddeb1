"""How wide a formula is on paper: an estimate from the characters, in points.

For the fonts of LaTeX's `article` at 10 pt in displayed formulas. It serves to break lines; tests
compare it with TeX.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

TEXT_WIDTH = 345.0
_TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|[^\s]")
_SCRIPT = 0.8
_LETTERS = dict(
    zip(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
        map(
            float,
            "5.3 4.3 4.3 5.2 4.7 5.9 5.2 5.8 3.5 4.7 5.5 3.2 8.8 6.0 4.9 5.0 4.8 4.8 4.7 3.6 5.7 "
            "5.2 7.4 5.7 5.3 5.1 7.5 8.1 7.9 8.3 8.0 7.8 7.9 9.1 5.2 6.5 9.2 6.8 10.8 9.1 7.9 7.8 "
            "7.9 7.7 6.7 7.2 7.9 8.1 10.8 9.1 8.0 7.5".split(),
        ),
        strict=True,
    )
)
RELATION, BINARY = 13.4, 12.3
_WIDTHS = _LETTERS | {
    **dict.fromkeys("0123456789", 5.0),
    **dict.fromkeys("=<>", RELATION),
    **dict.fromkeys("+-", BINARY),
    **dict.fromkeys("()", 3.9),
    **dict.fromkeys("[]|./", 2.8),
    **dict.fromkeys(",;", 4.5),
    **dict.fromkeys("'*", 3.0),
    **dict.fromkeys((r"\leq", r"\le", r"\geq", r"\neq", r"\sim", r"\approx", r"\equiv"), RELATION),
    **dict.fromkeys((r"\langle", r"\rangle"), 5.0),
    **dict.fromkeys((r"\exp", r"\max", r"\min"), 18.5),
    **dict.fromkeys((r"\dots", r"\cdots", r"\ldots"), 13.3),
    **dict.fromkeys((r"\displaystyle", r"\textstyle", r"\limits"), 0.0),
    **dict.fromkeys((r"\bigl", r"\bigr", r"\Bigl", r"\Bigr"), 2.5),
    **dict.fromkeys((r"\left", r"\right"), 3.2),
    r"\,": 1.7,
    r"\;": 2.8,
    r"\ ": 3.4,
    r"\quad": 10.0,
    r"\qquad": 20.0,
    r"\ln": 10.0,
    r"\tanh": 21.5,
    r"\sin": 14.0,
    r"\cos": 15.0,
    r"\cdot": 7.3,
    r"\times": BINARY,
    r"\sum": 16.2,
    r"\prod": 14.6,
    r"\int": 8.4,
    r"\infty": 10.0,
    r"\partial": 5.9,
    r"\rho": 5.2,
    r"\sigma": 6.1,
    r"\gamma": 5.8,
    r"\nu": 5.6,
    r"\phi": 6.0,
    r"\eta": 5.4,
    r"\chi": 6.3,
    r"\delta": 4.9,
    r"\pi": 6.1,
    r"\alpha": 6.5,
    r"\beta": 6.2,
    r"\theta": 4.9,
    r"\Theta": 7.8,
    r"\psi": 6.9,
}
_UPRIGHT = {r"\mathrm": 5.3, r"\text": 5.0, r"\operatorname": 5.3, r"\mathsf": 6.5}
_OTHER_SYMBOL, _UNKNOWN = 8.0, 10.0


@lru_cache(maxsize=4096)
def width(latex: str) -> float:
    """The estimated width of a formula in points.

    Examples
    --------
    >>> round(width("a + b")), round(width(r"\\frac{a + b}{2}"))
    (22, 24)
    """
    tokens = iter(_TOKEN.findall(latex))
    return _run(tokens, 1.0, None)


def _run(tokens: Iterator[str], size: float, end: str | None) -> float:
    """Everything up to ``end``; a superscript stands above its subscript."""
    total, scripts = 0.0, [0.0, 0.0]
    large = False
    for token in tokens:
        if token == end:
            break
        if token in "^_":
            script = _group(tokens, max(size * _SCRIPT, 0.64))
            if large:
                total += max(0.0, script - 14.0)
            else:
                scripts[token == "^"] = script
            continue
        total += max(scripts)
        scripts = [0.0, 0.0]
        large = token in (r"\sum", r"\prod", r"\min") and size == 1.0
        total += _atom(token, tokens, size)
    return total + max(scripts)


def _atom(token: str, tokens: Iterator[str], size: float) -> float:
    if token == "{":
        return _run(tokens, size, "}")
    if token == r"\frac":
        inner = size if size == 1.0 else size * _SCRIPT
        return max(_group(tokens, inner), _group(tokens, inner)) + 2.4
    if token == r"\sqrt":
        return 8.5 * size + _group(tokens, size)
    if token in (r"\tilde", r"\bar", r"\hat", r"\dot"):
        return _group(tokens, size)
    if token in _UPRIGHT:
        return _UPRIGHT[token] * size * _length(tokens)
    if token == r"\mathcal":
        _length(tokens)
        return 9.8 * size
    if token == r"\mathbb":
        _length(tokens)
        return 5.6 * size
    if token == r"\substack":
        next(tokens)
        return _rows(tokens, size, "}")
    if token == r"\begin":
        name = _name(tokens)
        if name == "array":
            _name(tokens)
        brackets = {"pmatrix": 15.0, "cases": 12.0}.get(name, 0.0)
        return brackets + _rows(tokens, size, r"\end", 0.0 if name == "aligned" else 10.0)
    if size < 1.0 and token in "=<>+-":
        return 7.8 * size
    if token in "+-" or len(token) == 1:
        return _WIDTHS.get(token, _OTHER_SYMBOL) * size
    return _WIDTHS.get(token, _UNKNOWN) * size


def _group(tokens: Iterator[str], size: float) -> float:
    return _atom(next(tokens), tokens, size)


def _length(tokens: Iterator[str]) -> int:
    """The number of characters of an argument."""
    return len(_name(tokens))


def _name(tokens: Iterator[str]) -> str:
    """The argument of a command as it stands."""
    if (first := next(tokens)) != "{":
        return first
    text, depth = "", 1
    for token in tokens:
        depth += (token == "{") - (token == "}")
        if depth == 0:
            break
        text += token
    return text


def _rows(tokens: Iterator[str], size: float, end: str, gap: float = 0.0) -> float:
    """The width of a table: of its widest cells, column by column."""
    cells, depth = [""], 0
    rows = [cells]
    for token in tokens:
        if depth == 0 and token == end:
            break
        depth += token in ("{", r"\begin")
        depth -= token in ("}", r"\end")
        if depth == 0 and token == "&":
            cells.append("")
        elif depth == 0 and token == r"\\":
            cells = [""]
            rows.append(cells)
        else:
            cells[-1] += token + " "
    if end == r"\end":
        _name(tokens)
    columns = max(map(len, rows))
    widths = [max(width(row[c]) for row in rows if c < len(row)) for c in range(columns)]
    return size * (sum(widths) + gap * (columns - 1))
