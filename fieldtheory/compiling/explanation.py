"""What `lambdify` does with every average of an expression, and why, as a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

import sympy as sp

from fieldtheory.averages.base import AverageNode
from fieldtheory.averages.gaussian import GaussianAverage
from fieldtheory.averages.simplification import simplified
from fieldtheory.compiling.translation import resolve
from fieldtheory.validation import choice

_HEADER = ("average", "variables", "rule", "reason", "simplifications")
_BACKENDS = ("numpy", "mpmath")
# Averages longer than this are cut in plain text.
_WIDEST = 60


@dataclass(frozen=True)
class ExplainedAverage:
    """How one average is evaluated.

    Parameters
    ----------
    average : str
        As plain text.
    latex : str
    variables : int
        Number of Gaussian variables.
    rule : str
        "closed form", "Price's theorem", "Mehler series", "orthants", "trapezoidal rule",
        "panels", ...
    reason : str
        Why that rule was taken.
    simplifications : tuple of str
        What was done to the average before.
    """

    average: str
    latex: str
    variables: int
    rule: str
    reason: str
    simplifications: tuple[str, ...]

    def cells(self) -> tuple[str, ...]:
        """The row of the table."""
        notes = "; ".join(self.simplifications)
        return self.average, str(self.variables), self.rule, self.reason, notes


@dataclass(frozen=True)
class Explanation:
    """One row for every average of an expression; a table in a notebook and as text.

    Parameters
    ----------
    rows : tuple of ExplainedAverage
    """

    rows: tuple[ExplainedAverage, ...]

    def __str__(self) -> str:
        table = [_HEADER, *(row.cells() for row in self.rows)]
        shown = [[_cut(average), *others] for average, *others in table]
        widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in shown
        ]
        return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in _HEADER)
        body = "".join(f"<tr>{_html(row)}</tr>" for row in self.rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def explain(expression: Any, backend: str = "numpy") -> Explanation:
    """Which rule evaluates each average of an expression, and why.

    The rows come from the decision that `lambdify` itself takes.

    Parameters
    ----------
    expression : sympy.Expr, matrix, or (nested) list of them
        With `GaussianAverage` and `ConnectedCorrelator` nodes. An average built with
        ``evaluate=False`` is simplified first, and the row tells what that did.
    backend : {"numpy", "mpmath"}
        JAX takes the values of "numpy".

    Returns
    -------
    Explanation
        With ``rows``, one for each different average, in the order in which they occur.

    Raises
    ------
    ValueError
        If the backend is unknown, or an average cannot be evaluated; as `lambdify`.

    Examples
    --------
    >>> h, K = sp.symbols("h K", positive=True)
    >>> moments = [GaussianAverage(f(h) ** 2, h, K) for f in (sp.erf, sp.tanh)]
    >>> for row in explain(moments).rows:
    ...     print(row.average, "by", row.rule)
    <erf(h)**2>_(K) by closed form
    <tanh(h)**2>_(K) by panels
    """
    choice("backend", backend, _BACKENDS)
    nodes = dict.fromkeys(_averages(expression))
    return Explanation(tuple(row for node in nodes for row in _rows(node, backend)))


def _averages(value: Any) -> Iterator[AverageNode]:
    """The averages of an expression, those inside a covariance before the outer one."""
    if isinstance(value, sp.MatrixBase):
        value = value.tolist()
    if isinstance(value, list | tuple):
        for entry in value:
            yield from _averages(entry)
        return
    for part in sp.postorder_traversal(sp.sympify(value)):
        if isinstance(part, AverageNode):
            yield part


def _rows(node: AverageNode, backend: str) -> Iterator[ExplainedAverage]:
    notes: list[str] = []
    value: sp.Expr = node
    if isinstance(node, GaussianAverage):
        value = simplified(GaussianAverage, node.integrand, node.variables, node.covariance, notes)
    parts = sorted(value.atoms(AverageNode), key=sp.default_sort_key)
    if value == node:
        parts = [node]
    if not parts:
        yield _row(node, "closed form", "nothing is left to average", notes)
    for part in parts:
        found = resolve(part, backend, {})
        yield _row(part, found.name, found.reason, [*notes, *found.simplifications])


def _row(node: AverageNode, rule: str, reason: str, notes: list[str]) -> ExplainedAverage:
    return ExplainedAverage(
        str(node), sp.latex(node), len(node.variables), rule, reason, tuple(dict.fromkeys(notes))
    )


def _cut(cell: str) -> str:
    return cell if len(cell) <= _WIDEST else cell[: _WIDEST - 1] + "…"


def _html(row: ExplainedAverage) -> str:
    _, *others = map(escape, row.cells())
    cells = [f"<td>${escape(row.latex)}$</td>", *(f"<td>{cell}</td>" for cell in others)]
    return "".join(cells)
