"""What `lambdify` does with every average of an expression, and why, as a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import sympy as sp

from fieldtheory.averages import routes
from fieldtheory.averages.nodes.base import AverageNode
from fieldtheory.averages.nodes.gaussian import GaussianAverage, simplified
from fieldtheory.compiling.translation import resolve
from fieldtheory.plotting.tables import table_html, table_text
from fieldtheory.validation import choice, excerpt

_TITLE, _NOTHING = "rules of evaluation", "no averages"
_ROUTES = "algorithms of the averages of this solution"
_BACKENDS = ("numpy", "mpmath")
# Averages longer than this are cut in plain text.
_WIDEST = 60


@dataclass(frozen=True)
class ExplainedAverage:
    """Evaluation of one average: the rule that was taken, why, and what was done before."""

    average: str
    latex: str
    variables: int
    rule: str
    reason: str
    simplifications: tuple[str, ...]

    def cells(self, average: str) -> dict[str, Any]:
        """The row of a table, with the average as text or as LaTeX."""
        return {
            "average": average,
            "variables": self.variables,
            "rule": self.rule,
            "reason": self.reason,
            "simplifications": "; ".join(self.simplifications),
        }


@dataclass(frozen=True)
class Explanation:
    """One row for every average of an expression; a table in a notebook and as text."""

    rows: tuple[ExplainedAverage, ...]

    def __str__(self) -> str:
        if not self.rows:
            return _NOTHING
        cells = [row.cells(_cut(row.average)) for row in self.rows]
        if not any(row.simplifications for row in self.rows):
            for row in cells:
                del row["simplifications"]
        return table_text(cells, _TITLE)

    def _repr_html_(self) -> str:
        if not self.rows:
            return f"<p>{_NOTHING}</p>"
        return table_html([row.cells(f"${row.latex}$") for row in self.rows], _TITLE)


@dataclass(frozen=True)
class Routes:
    """The algorithms that a solution took, by number of averages, the most frequent first."""

    averages: dict[str, int]

    def __str__(self) -> str:
        return table_text(self._rows, _ROUTES) if self.averages else _NOTHING

    def _repr_html_(self) -> str:
        return table_html(self._rows, _ROUTES) if self.averages else f"<p>{_NOTHING}</p>"

    @property
    def _rows(self) -> list[dict[str, Any]]:
        return [
            {"algorithm": name, "averages": count, "what it is for": routes.ROUTES[name]}
            for name, count in self.averages.items()
        ]


def explain(expression: Any, backend: str = "numpy") -> Explanation | Routes:
    """Algorithm that evaluates each average of an expression, or those of a solution, with reasons.

    The rows come from the decisions that `lambdify` and `solve` themselves take.

    Parameters
    ----------
    expression : Solution, sympy.Expr, matrix, or (nested) list of them
        A solution: the algorithms of the fields that have been computed so far, and of kernels and
        responses. Expressions with `GaussianAverage` and `ConnectedCorrelator` nodes: an average
        built with ``evaluate=False`` is simplified first, and the row says what that did.
    backend : {"numpy", "mpmath"}

    Returns
    -------
    Explanation or Routes
        With ``rows``, one for each different average, in the order in which they occur; of a
        solution, with ``averages``, their number by algorithm.

    Raises
    ------
    TypeError
        If ``expression`` holds anything else.
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
    >>> import fieldtheory as ft
    >>> s = ft.solve(ft.ResidualNetwork(depth=3, activation="relu"), [[0.5, 0.2], [0.2, 0.3]])
    >>> explain(s).averages
    {'closed form': 16, 'angles': 8}
    """
    if "rtol" in getattr(expression, "settings", ()):
        # What costs no more than the others.
        _ = expression.kernels, expression.response
        return Routes(dict(expression.averages.most_common()))
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
    try:
        expression = sp.sympify(value)
    except sp.SympifyError:
        wanted = "a SymPy expression, a matrix or a list of them"
        raise TypeError(f"expression must be {wanted}, got {excerpt(value)}") from None
    for part in sp.postorder_traversal(expression):
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
        rule = resolve(part, backend, {})
        yield _row(part, rule.name, rule.reason, [*notes, *rule.simplifications])


def _row(node: AverageNode, rule: str, reason: str, notes: list[str]) -> ExplainedAverage:
    return ExplainedAverage(
        str(node), sp.latex(node), len(node.variables), rule, reason, tuple(dict.fromkeys(notes))
    )


def _cut(cell: str) -> str:
    return cell if len(cell) <= _WIDEST else cell[: _WIDEST - 1] + "…"
