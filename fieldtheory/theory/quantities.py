"""Tables of quantities and their equations, one for each family, and their LaTeX."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, groupby
from typing import Any

import sympy as sp

from fieldtheory import validation
from fieldtheory.theory.typesetting.layout import Array, Equation, breakable, environment, page
from fieldtheory.theory.typesetting.widths import width

SYMBOLS = "symbols"
# What a table has: the equations of a quantity in a notation.
Rows = Callable[[Any], list[Any]]


def table(**rows: Rows) -> dict[str, Rows]:
    """The rows of a family and those that follow from its S21, S22 and G12."""

    def transposed(name: str, other: str) -> Rows:
        written = rf"{block_name(other)}^{{\mathsf{{T}}}}"
        return lambda n: [Equation(block_name(name), written), *rows[other](n)]

    S12 = transposed("S12", "S21")
    return rows | {
        "hessian": lambda n: [*zero("S11")(n), *S12(n), *rows["S22"](n)],
        "S11": zero("S11"),
        "S12": S12,
        "G21": transposed("G21", "G12"),
        "G22": zero("G22"),
    }


def zero(name: str) -> Rows:
    """A block that vanishes."""
    return lambda n: [Equation(block_name(name), sp.S.Zero)]


def block_name(name: str) -> str:
    """S_{21} for S21."""
    return f"{name[0]}_{{{name[1:]}}}"


G21_ROW = Equation("G_{21}", r"G_{12}^{\mathsf{T}}")


def known_quantities(quantity: Any, names: Iterable[str]) -> list[str]:
    """The quantities that are meant by a name or several, of those that there are.

    >>> known_quantities(["Saddle point", "g12"], ["saddle_point", "G12"])
    ['saddle_point', 'G12']
    """
    several = isinstance(quantity, list | tuple) and len(quantity) > 0
    wanted = quantity if several else [quantity]
    return [validation.quantity("quantity", name, names) for name in wanted]


def results_latex(
    quantities: Sequence[str],
    notation: Any,
    table: Mapping[str, Rows],
    numbered: bool = False,
    defined: set[Any] | None = None,
) -> str:
    """LaTeX of results one below the other, and of what stands in them, each equation once."""
    defined = set() if defined is None else defined
    blocks: list[Any] = []
    for quantity in quantities:
        equations = [e for e in table[quantity](notation) if (e.left, e.right) not in defined]
        defined |= {(e.left, e.right) for e in equations}
        for is_array, group in groupby(equations, key=lambda e: isinstance(e, Array)):
            block = list(group)
            blocks += block if is_array else [block]
    listed = list(chain(*([b] if isinstance(b, Array) else b for b in blocks)))
    of_fields = {"action", "kernels"}.intersection(quantities)
    below = notation.definitions(listed, stationary=not of_fields)
    if of_fields and len(quantities) > len(of_fields):
        note = r"\text{but in the action and the kernels}"
        below += [Equation(field, f"{field}_{{*}}", note) for field in notation.fields]
    below = [e for e in below if (e.left, e.right) not in defined]
    defined |= {(e.left, e.right) for e in below}
    return page([*blocks, below], notation.column, quantities[0] if numbered else "")


def symbols_latex(texts: Mapping[str, str], column: float, breaks: bool) -> str:
    """LaTeX of a list of symbols with what they mean, perhaps one that breaks across pages."""
    room = column - max(map(width, texts)) - 20
    lines = []
    for symbol, meaning in texts.items():
        # The mean width of a character in a text is 4.8 points.
        first, *others = textwrap.wrap(meaning, int(room / 4.8))
        lines += [rf"{symbol} &\quad \text{{{first}}}"]
        lines += [rf"&\quad \text{{{line}}}" for line in others]
    return breakable([environment(lines, "align*")]) if breaks else environment(lines)
