"""Equations set within the width of a column: broken into lines, matrices as tables of entries.

What `width` estimates to be too wide is taken apart: sums between their terms, then products
between their factors, then what stands in brackets, whose brackets then no longer grow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import Any

import sympy as sp

from fieldtheory.theory.typesetting.latex import TheoryPrinter, is_average, latex, matrix
from fieldtheory.theory.typesetting.layer_quantities import PairSum, layer_indices
from fieldtheory.theory.typesetting.widths import BINARY, RELATION, TEXT_WIDTH, width

_INDENT, _GAP = 10.0, 20.0
# Before these a formula given as text may be broken.
_BREAKS = ("+", "-", r"\quad", r"\qquad", r"\times", r"\sim")
_FULL = 0.4


@dataclass(frozen=True)
class Equation:
    """left = right, for what is noted behind it; a text is broken outside its brackets alone."""

    left: str
    right: sp.Expr | str
    note: str = ""
    relation: str = "="


@dataclass(frozen=True)
class Array:
    """A block of the Hessian or propagator: a matrix, or a table of entries where that is wide.

    ``factor`` is taken out of all entries, ``names`` are those of rows and columns; of a symmetric
    one half of the entries is enough.
    """

    left: str
    right: sp.ImmutableMatrix
    factor: sp.Expr
    names: Sequence[str]
    symmetric: bool = False

    def entries(self) -> list[Equation]:
        """The entries that do not vanish, row by row, those of order 1/N times N."""
        below = (1 / self.factor).is_Symbol
        front = f"{latex(1 / self.factor)} " if below else ""
        places = [(i, j) for i in range(self.right.rows) for j in range(self.right.cols)]
        return [
            Equation(
                f"{front}{self.left}^{{{layer_indices(self.names[i], self.names[j])}}}",
                _over(self.right[i, j], self.factor if below else sp.S.One),
            )
            for i, j in places
            if self.right[i, j] != 0 and not (self.symmetric and i > j)
        ]


@dataclass(frozen=True)
class _Piece:
    """Text that is not broken, its depth in brackets, and whether it goes on with a product."""

    text: str
    depth: float
    factor: bool = False


class Setter(TheoryPrinter):
    """Prints expressions line by line."""

    def lines(self, expr: sp.Expr | str, first: float, later: float) -> list[str]:
        """An expression in lines of given widths."""
        text = expr if isinstance(expr, str) else self._print(expr)
        if width(text) <= first:
            return [text]
        pieces = _text_pieces(text) if isinstance(expr, str) else self._pieces(expr, later, 0)
        return _filled(list(pieces), first, later)

    def _pieces(self, expr: sp.Expr, room: float, depth: float) -> Iterator[_Piece]:
        text = self._print(expr)
        # An exponent or a root that is not alone on its line still leaves room for its neighbours.
        if width(text) <= (room if depth == 0 else 0.8 * room):
            yield _Piece(text, depth)
        elif isinstance(expr, sp.Add):
            yield from self._terms(expr, room, depth)
        elif isinstance(expr, sp.Mul):
            yield from self._factors(expr, room, depth + 0.5)
        elif isinstance(expr, sp.Sum | sp.Product | PairSum):
            pairs = isinstance(expr, PairSum)
            sign = expr.sign if pairs else self.sum_sign(expr)
            inner = expr.args[0]
            brackets = (r" \Bigl(", r"\Bigr)") if inner.is_Add else ("", "")
            yield from self._opened(sign + brackets[0], inner, brackets[1], room, depth)
        elif isinstance(expr, sp.log | sp.exp):
            name = r"\ln" if isinstance(expr, sp.log) else r"\exp"
            inner = expr.args[0]
            if is_average(inner):
                pieces = list(self._pieces(inner, room, depth))
                yield _Piece(f"{name} {pieces[0].text}", depth)
                yield from pieces[1:]
            else:
                yield from self._opened(rf"{name}\Bigl(", inner, r"\Bigr)", room, depth)
        elif is_average(expr):
            yield from self._average(expr, room, depth)
        elif isinstance(expr, sp.Pow) and expr.exp.is_Integer and expr.exp > 0:
            yield from self._opened(r"\Bigl[", expr.base, rf"\Bigr]^{{{expr.exp}}}", room, depth)
        else:
            yield _Piece(text, depth)

    def _terms(self, expr: sp.Add, room: float, depth: float) -> Iterator[_Piece]:
        for place, term in enumerate(self.ordered_terms(expr)):
            negative = self._print(term).startswith("-")
            pieces = list(self._pieces(-term if negative else term, room - 12, depth))
            sign = "- " if negative else "+ " if place else ""
            yield _Piece(sign + pieces[0].text, depth)
            yield from pieces[1:]

    def _factors(self, expr: sp.Mul, room: float, depth: float) -> Iterator[_Piece]:
        number, above, below = self.ordered_factors(expr)
        q = number.q if number.is_Rational else 1
        front = abs(number.p) if number.is_Rational else abs(number)
        coefficient = self.product(below, first=str(q) if q != 1 else "")
        start = "- " if number.is_negative else ""
        if coefficient:
            start += rf"\frac{{{self._print(sp.sympify(front))}}}{{{coefficient}}}"
        elif front != 1:
            start += self._print(sp.sympify(front))
        goes_on = False
        for factor in above:
            pieces = self._factor(factor, room, depth)
            if start and width(f"{start} {pieces[0].text}") > 0.8 * room:
                yield _Piece(start, depth, goes_on)
                start, goes_on = "", True
            *before, last = [
                _Piece(f"{start} {pieces[0].text}".strip(), depth, goes_on),
                *pieces[1:],
            ]
            yield from before
            # Coefficients stay with what follows them.
            if len(pieces) == 1 and not re.search(r"rangle|left|Bigr|sum|prod", last.text):
                start = last.text
                continue
            yield last
            start, goes_on = "", True
        if start:
            yield _Piece(start, depth, goes_on)

    def _factor(self, factor: sp.Expr, room: float, depth: float) -> list[_Piece]:
        if not isinstance(factor, sp.Add):
            return list(self._pieces(factor, room, depth))
        text = self.product([factor], bracket=True)
        if width(text) <= 0.8 * room:
            return [_Piece(text, depth, True)]
        return list(self._opened(r"\Bigl(", factor, r"\Bigr)", room, depth))

    def _opened(
        self, left: str, inner: sp.Expr, right: str, room: float, depth: float
    ) -> Iterator[_Piece]:
        pieces = list(self._pieces(inner, room - width(left) - width(right), depth + 1))
        pieces[0] = _Piece(f"{left} {pieces[0].text}", depth)
        last = pieces[-1]
        pieces[-1] = _Piece(f"{last.text} {right}", last.depth, last.factor)
        yield from pieces

    def _average(self, expr: sp.Expr, room: float, depth: float) -> Iterator[_Piece]:
        closing = rf"\Bigr\rangle_{{{expr.measure_latex(self)}}}"
        opening = r"\Bigl\langle"
        for place, function in enumerate(expr.functions):
            last = place == len(expr.functions) - 1
            end = closing if last else r"\,;"
            yield from self._opened(opening if place == 0 else "", function, end, room, depth)


def _text_pieces(text: str) -> Iterator[_Piece]:
    """A formula given as text in pieces, which may be broken in brackets of fixed size alone."""
    piece, closed, fixed, start = "", 0, 0, 0
    for word in text.split():
        if closed == 0 and piece and word in _BREAKS:
            yield _Piece(piece, start)
            piece, start = "", fixed
        piece = f"{piece} {word}".strip()
        closed += len(re.findall(r"\{|\\(?:left|Bigl|begin)(?![a-z])", word))
        closed -= len(re.findall(r"\}|\\(?:right|Bigr|end)(?![a-z])", word))
        fixed += word.startswith(r"\bigl") or word.endswith(r"\bigl(")
        fixed -= word.startswith(r"\bigr")
    yield _Piece(piece, start)


def page(blocks: Sequence[Any], column: float = TEXT_WIDTH, labels: str = "") -> str:
    """Blocks of equations one below the other: lists of `Equation`, or an `Array`.

    Examples
    --------
    >>> x, y = sp.symbols("x y")
    >>> print(page([[Equation("y", x**2), Equation("x", sp.sqrt(y))]]))
    \\begin{aligned}
    y &= x^{2} \\\\
    x &= \\sqrt{y}
    \\end{aligned}
    """
    setter = Setter({"order": None})
    # The estimate may be a few per cent too small; an equation's number takes "(99)" and a gap.
    room = 0.97 * column - (33 if labels else 0)
    if labels:
        return _numbered(setter, blocks, room, labels)
    parts = []
    for block in blocks:
        if isinstance(block, Array):
            whole = _array(setter, block, room)
            parts.append(whole.replace("&", "", 1) if whole else _table(setter, block, room))
        elif block:
            parts.append(_equations(setter, block, room))
    if len(parts) == 1:
        return parts[0]
    return environment([f"&{text}" for text in parts])


def _numbered(setter: Setter, blocks: Sequence[Any], room: float, labels: str) -> str:
    """Blocks as `align`, the last line of an equation with its number and label."""
    counts: dict[str, int] = {}

    def labelled(left: str, lines: Sequence[str]) -> list[str]:
        # Letters and numbers of the left-hand side, such as tilde-C-l for C̃^(l).
        plain = re.sub(r"\\(mathrm|mathcal|mathsf|frac|left|right)(?![a-z])", "", left)
        name = "-".join(re.findall(r"[A-Za-z0-9]+", plain.replace("'", "prime")))
        counts[name] = counts.get(name, 0) + 1
        name = f"{labels}:{name}" + (f"-{counts[name]}" if counts[name] > 1 else "")
        return [
            *(rf"{x} \nonumber" for x in lines[:-1]),
            rf"{lines[-1]} \label{{{name}}}",
        ]

    parts = []
    for block in filter(None, blocks):
        whole = _array(setter, block, room) if isinstance(block, Array) else None
        if whole:
            parts.append(environment(labelled(block.left, [whole]), "align"))
            continue
        equations = block.entries() if isinstance(block, Array) else block
        equation_lines = zip(equations, _block_lines(setter, equations, room), strict=True)
        lines = [labelled(equation.left, own) for equation, own in equation_lines]
        parts.append(environment(list(chain(*lines)), "align"))
    return breakable(parts)


def breakable(displays: Sequence[str]) -> str:
    """Displays that may break across pages."""
    return "\n".join(["{\\allowdisplaybreaks", *displays, "}"])


def _over(expr: sp.Expr, factor: sp.Expr) -> sp.Expr:
    """An expression without a factor that its terms have in common."""
    return sp.Add(*(term / factor for term in sp.Add.make_args(expr)))


def _array(setter: Setter, array: Array, room: float) -> str | None:
    """A matrix in brackets behind its factor, None where that is too wide."""
    inner = array.right.applyfunc(lambda entry: _over(entry, array.factor))
    inline = Setter({"order": None, "fold_short_frac": True})
    rows = [[inline._print(entry) for entry in row] for row in inner.tolist()]
    front = f"{setter._print(array.factor)} " if array.factor != 1 else ""
    text = f"{array.left} &= {front}{matrix(rows)}"
    return text if width(text.replace("&", "", 1)) <= room else None


def _equations(setter: Setter, equations: Sequence[Equation], room: float) -> str:
    lines = list(chain(*_block_lines(setter, equations, room)))
    if len(lines) == 1:
        return lines[0].replace("&", "", 1)
    return environment(lines)


def _block_lines(setter: Setter, equations: Sequence[Equation], room: float) -> list[list[str]]:
    """The lines of each equation; one alone that is too wide has its left side on a line."""
    left = max(width(e.left) for e in equations) + RELATION
    lines = [list(_equation_lines(setter, e, room - left)) for e in equations]
    widths = [width(line.split("&", 1)[1]) for line in chain(*lines)]
    if len(lines) == 1 and max(widths[0] - RELATION, *widths[1:], 0) > room - left:
        (only,) = equations
        _, *others = _equation_lines(setter, replace(only, left=""), room - RELATION - _INDENT)
        first = setter.lines(only.right, room - RELATION - _INDENT, room - 2 * _INDENT)[0]
        lines = [[f"&{only.left}", rf"&\quad {only.relation} {first}", *others]]
    return lines


def _equation_lines(setter: Setter, equation: Equation, room: float) -> Iterator[str]:
    lines = setter.lines(equation.right, room, room - _INDENT)
    note = rf" \quad ({equation.note})" if equation.note else ""
    if note and width(lines[-1] + note) + _INDENT <= room:
        lines[-1] += note
        note = ""
    yield f"{equation.left} &{equation.relation} {lines[0]}"
    yield from (rf"&\quad {line}" for line in lines[1:])
    if note:
        yield f"&{note.lstrip()}"


def _table(setter: Setter, array: Array, room: float) -> str:
    """Entries side by side, as many in a row as the column has room for."""
    cells = array.entries()
    texts = [(e.left, setter._print(e.right)) for e in cells]
    for columns in (4, 3, 2):
        rows = [texts[i : i + columns] for i in range(0, len(texts), columns)]
        widths = [
            max(width(c[0]) for c in column if c) + max(width(c[1]) for c in column if c)
            for column in zip_longest(*rows)
        ]
        if sum(widths) + columns * RELATION + (columns - 1) * (_GAP + 10) <= room:
            lines = [r" \quad & ".join(f"{left} &= {right}" for left, right in r) for r in rows]
            return environment(lines) if len(lines) > 1 else lines[0].replace("&", "")
    return _equations(setter, cells, room)


def environment(lines: Sequence[str], name: str = "aligned") -> str:
    """Lines in an environment of amsmath."""
    return f"\\begin{{{name}}}\n" + " \\\\\n".join(lines) + f"\n\\end{{{name}}}"


def _filled(pieces: Sequence[_Piece], first: float, later: float) -> list[str]:
    """Pieces joined into lines, broken where brackets are few and not at the line's start."""
    lines: list[str] = []
    waiting = list(pieces)
    while waiting:
        room, fits = later if lines else first, 1
        if lines and waiting[0].factor:
            room -= BINARY
        while fits < len(waiting) and width(_joined(waiting[: fits + 1])) <= room:
            fits += 1
        if fits < len(waiting):
            # Before the outermost piece that leaves the line half full.
            widths = ((n, width(_joined(waiting[:n]))) for n in range(1, fits + 1))
            places = [n for n, filled in widths if filled >= _FULL * room]
            fits = min(places or [fits], key=lambda n: (waiting[n].depth, -n))
        line = re.sub(r"^\\q?quad ", "", _joined(waiting[:fits]))
        if lines and waiting[0].factor:
            line = rf"\times {line}"
        lines.append(line)
        waiting = waiting[fits:]
    return lines


def _joined(pieces: Sequence[_Piece]) -> str:
    return " ".join(piece.text for piece in pieces)
