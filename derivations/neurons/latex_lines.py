"""Sums of products of cumulants as LaTeX, in lines."""

from __future__ import annotations

from collections.abc import Iterable

import sympy as sp
from sympy.printing.latex import LatexPrinter

from neurons.cumulants import Average, Seen
from neurons.structure import Mode

_PRINTER = LatexPrinter()


def term(expr: sp.Expr) -> str:
    """A product: constants, what the layer shows, cumulants, averages."""
    number, product = expr.as_coeff_Mul()
    powers = product.as_powers_dict() if product != 1 else {}
    factors = sorted((f**n for f, n in powers.items()), key=_rank)
    shown = [_PRINTER.doprint(f) for f in factors]
    if abs(number) != 1 or not shown:
        shown.insert(0, _PRINTER.doprint(abs(number)))
    return ("-" if number < 0 else "") + r"\, ".join(shown)


def _rank(factor: sp.Expr) -> tuple[int, str]:
    base = factor.as_base_exp()[0]
    if base.is_Symbol:
        return 0, str(base)
    if base.func is Seen and len(base.args) == 2:
        return 1, str(base)
    return {Mode: 2, Average: 4}.get(base.func, 3), str(base)


def lines(left: str, terms: Iterable[sp.Expr], width: int, inside: str = "") -> str:
    """``left`` = a sum over several lines for ``split``; ``inside`` closes a bracket around it."""
    rows, row = [], ""
    for i, shown in enumerate(map(term, terms)):
        sign = "" if i == 0 else " "
        piece = shown if i == 0 else (f"- {shown[1:]}" if shown[0] == "-" else f"+ {shown}")
        if row and _width(row + piece) > width:
            rows.append(row)
            row = piece
        else:
            row += sign + piece
    rows.append(row)
    opening, closing = (r"\big[ ", rf" \big]_{{{inside}}}") if inside else ("", "")
    body = " \\\\ &\\quad ".join(rows)
    return f"{left} &= {opening}{body}{closing}"


def _width(text: str) -> int:
    """Characters, roughly: commands count as one, indices as a half."""
    for command in (r"\langle", r"\rangle", r"\psi", r"\delta", r"\beta", r"\lambda", r"\chi"):
        text = text.replace(command, "x")
    for mark in (r"\,", r"\left", r"\right", "{", "}", "_", "^", " "):
        text = text.replace(mark, "")
    return len(text)
