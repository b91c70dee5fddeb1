"""What the averages over Gaussian variables have in common: bound variables and their measure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import sympy as sp
from sympy.printing.latex import LatexPrinter

from fieldtheory.averages.nodes.binding import covariance_symbols, replaced, substituted


class AverageNode(sp.Expr):
    """An unevaluated average of one or more functions over centred Gaussian variables.

    The arguments are the functions, then the tuple of the variables, then their covariance. The
    variables are bound: substitutions do not see them and do not capture them.

    Examples
    --------
    >>> import sympy as sp
    >>> from fieldtheory.averages import GaussianAverage
    >>> h, p = sp.symbols("h p", real=True)
    >>> average = GaussianAverage(sp.cos(p * h), h, 2)
    >>> average.functions, average.free_symbols
    ((cos(h*p),), {p})
    """

    is_commutative = True

    @property
    def functions(self) -> tuple[sp.Expr, ...]:
        """Functions under the average."""
        return self.args[:-2]

    @property
    def variables(self) -> sp.Tuple:
        """The bound variables h_1, ..., h_n."""
        return self.args[-2]

    @property
    def covariance(self) -> sp.ImmutableMatrix:
        """K, shape (n, n)."""
        return self.args[-1]

    @property
    def bound_symbols(self) -> list[sp.Expr]:
        """The variables that are averaged over."""
        return list(self.variables)

    @property
    def free_symbols(self) -> set:
        """The symbols of the integrand and the covariance but the variables."""
        inside = set().union(*(F.free_symbols for F in self.functions))
        return (inside - self.variables.free_symbols) | covariance_symbols(self.covariance)

    def _eval_is_real(self) -> bool | None:
        return True if all(F.is_real for F in self.functions) else None

    def _entry_slopes(self, symbol: sp.Expr) -> Iterator[tuple[sp.Expr, sp.Expr, sp.Expr]]:
        """Variables x, y and the derivative of their covariance, or half of that of a variance."""
        K = self.covariance
        if symbol in covariance_symbols(K):
            for i, x in enumerate(self.variables):
                for j, y in enumerate(self.variables[: i + 1]):
                    if (slope := K[i, j].diff(symbol)) != 0:
                        yield x, y, slope / 2 if i == j else slope

    def _eval_subs(self, old: sp.Expr, new: sp.Expr) -> sp.Expr:
        return self.func(*substituted(self, old, new))

    def _xreplace(self, rule: Any) -> tuple[sp.Expr, bool]:
        if self in rule or not isinstance(rule, Mapping):
            return super()._xreplace(rule)
        args, changed = replaced(self, rule)
        return (self.func(*args), True) if changed else (self, False)

    def _latex(self, printer: LatexPrinter) -> str:
        inside = r" \,;\, ".join(printer._print(F) for F in self.functions)
        return rf"\left\langle {inside} \right\rangle_{{{self.measure_latex(printer)}}}"

    def measure_latex(self, printer: LatexPrinter) -> str:
        """The subscript of the average; printers with a ``measure`` method choose the notation."""
        named = getattr(printer, "measure", None)
        K = self.covariance
        if named is not None:
            return named(self.variables, K)
        covariance = K[0, 0] if K.shape == (1, 1) else K
        return rf"\mathcal{{N}}\left(0, {printer._print(covariance)}\right)"
