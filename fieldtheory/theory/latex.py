"""LaTeX in the notation of the papers.

Averages carry the measure N(0, K^(l)) of their layer instead of its entries, derivatives of φ are
primes, and matrices wider than ten columns are arrays, since `pmatrix` stops at ten.
"""

from __future__ import annotations

import re
from typing import Any

import sympy as sp
from sympy.printing.latex import LatexPrinter

_PMATRIX_COLUMNS = 10
_LAYER = re.compile(r"\^\{\((.*)\)\}")


class TheoryPrinter(LatexPrinter):
    """SymPy's LaTeX printer with the measures and primes of the papers.

    Expressions that it has printed once it does not print again: in a propagator of ten layers
    the same averages stand thousands of times.
    """

    def __init__(self, settings: dict[str, Any] | None = None) -> None:
        super().__init__(settings)
        self._printed: dict[sp.Expr, str] = {}

    def _print(self, expr: Any, **options: Any) -> str:
        if options or not isinstance(expr, sp.Expr):
            return super()._print(expr, **options)
        if expr not in self._printed:
            self._printed[expr] = super()._print(expr)
        return self._printed[expr]

    def measure(self, variables: sp.Tuple, K: sp.ImmutableMatrix) -> str:
        """N(0, K^(l)) for signals of one layer, N(0, K^(k,l)) for those of two, N(0, K) for all."""
        layers = [_LAYER.search(str(v)) for v in variables]
        if not all(layers):
            shown = K[0, 0] if K.shape == (1, 1) else K
            return rf"\mathcal{{N}}\left(0, {self._print(shown)}\right)"
        names = list(dict.fromkeys(match.group(1) for match in layers if match))
        index = rf"^{{({','.join(names)})}}" if len(names) < 3 else ""
        return rf"\mathcal{{N}}(0, K{index})"

    def _print_Derivative(self, expr: sp.Derivative) -> str:
        function, *counts = expr.args
        if isinstance(function, sp.core.function.AppliedUndef) and len(counts) == 1:
            return self._primed(function, int(counts[0][1]))
        return super()._print_Derivative(expr)

    def _primed(self, function: sp.Expr, order: int, power: str = "") -> str:
        name = self._print(sp.Symbol(type(function).__name__))
        prime = "'" * order if order < 4 else rf"^{{({order})}}"
        arguments = ", ".join(self._print(a) for a in function.args)
        body = rf"{name}{prime}({arguments})"
        return rf"{{{body}}}^{{{power}}}" if power else body

    def _print_Function(self, expr: sp.Expr, exp: str | None = None) -> str:
        if isinstance(expr, sp.core.function.AppliedUndef):
            name = self._print(sp.Symbol(type(expr).__name__))
            arguments = ", ".join(self._print(a) for a in expr.args)
            return rf"{name}({arguments}){f'^{{{exp}}}' if exp else ''}"
        return super()._print_Function(expr, exp)

    def _print_Pow(self, expr: sp.Pow) -> str:
        if isinstance(expr.base, sp.Derivative) and expr.exp.is_Integer and expr.exp > 0:
            return f"{self._print(expr.base)}^{{{self._print(expr.exp)}}}"
        return super()._print_Pow(expr)

    def _print_MatrixBase(self, expr: sp.MatrixBase) -> str:
        rows = [" & ".join(self._print(entry) for entry in row) for row in expr.tolist()]
        body = r" \\ ".join(rows)
        if expr.cols <= _PMATRIX_COLUMNS:
            return rf"\begin{{pmatrix}} {body} \end{{pmatrix}}"
        return rf"\left(\begin{{array}}{{{'c' * expr.cols}}} {body} \end{{array}}\right)"


def latex(value: Any) -> str:
    """LaTeX of an expression, matrix or equation in the notation of the papers.

    Parameters
    ----------
    value : sympy object

    Returns
    -------
    str
        Without delimiters.

    Examples
    --------
    >>> from fieldtheory.averages import GaussianAverage
    >>> from fieldtheory.theory.notation import kernel, phi, signal
    >>> h = signal(1)
    >>> print(latex(GaussianAverage(phi(h).diff(h) ** 2, h, kernel(1))))
    \\left\\langle \\phi'(h^{(1)})^{2} \\right\\rangle_{\\mathcal{N}(0, K^{(1)})}
    """
    return TheoryPrinter({"order": None}).doprint(value)


def aligned(equations: list[tuple[str, str]]) -> str:
    """Equations left = right, one below the other."""
    lines = [f"{left} &= {right}" for left, right in equations]
    return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"
