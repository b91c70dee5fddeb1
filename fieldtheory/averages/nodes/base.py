"""What the averages over Gaussian variables have in common: bound variables and their measure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import sympy as sp
from sympy.printing.latex import LatexPrinter


class AverageNode(sp.Expr):
    """An unevaluated average of one or more functions over centred Gaussian variables.

    The arguments are the functions, then the tuple of the variables, then their covariance. The
    variables are bound: substitutions do not see them and do not capture them.

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


# Allowed relative excess of a squared covariance over the product of the variances.
_ROUNDING = 1e-10


def as_variables(variables: Any) -> sp.Tuple:
    """The variables as a tuple of different symbols, or raise."""
    names = variables if isinstance(variables, list | tuple | sp.Tuple) else (variables,)
    for name in names:
        if not isinstance(name, sp.Symbol | sp.Indexed | sp.Function):
            raise TypeError(f"variables must be SymPy symbols, got {name!r}")
    if len(set(names)) != len(names):
        raise ValueError(f"variables must be different from each other, got {tuple(names)}")
    return sp.Tuple(*names)


def as_covariance(K: Any, size: int) -> sp.ImmutableMatrix:
    """K as a symmetric matrix of a size, or raise."""
    if isinstance(K, sp.ImmutableDenseMatrix):
        matrix = K
    elif hasattr(K, "__len__") or isinstance(K, sp.MatrixBase):
        try:
            matrix = sp.ImmutableMatrix(K)
        except (TypeError, ValueError):
            raise ValueError(f"K must be a symmetric matrix, got {K!r}") from None
    else:
        matrix = sp.ImmutableMatrix([[K]])
    if matrix.shape != (size, size):
        raise ValueError(
            f"K must have shape ({size}, {size}), one row for each variable, got {matrix.shape}"
        )
    _check(matrix)
    return matrix


@lru_cache(maxsize=4096)
def _check(K: sp.ImmutableMatrix) -> None:
    """Raise if K is not symmetric or the numbers among its entries rule out a covariance."""
    if K != K.T:
        raise ValueError(f"K must be symmetric, got {K.tolist()}")
    for value in K:
        if value is sp.S.NaN or value.is_extended_real is False or value.is_infinite:
            raise ValueError(f"K must be real and finite, got the entry {value}")
    for i in range(K.shape[0]):
        if K[i, i].is_negative:
            raise ValueError(f"K must be positive semidefinite, got the variance {K[i, i]}")
        for j in range(i):
            a, b, c = K[i, i], K[j, j], K[i, j]
            numbers = a.is_Number and b.is_Number and c.is_Number
            certain = (a == 0 or b == 0) and c.is_zero is False
            if certain or (numbers and c**2 > a * b * (1 + _ROUNDING)):
                raise ValueError(
                    f"K must be positive semidefinite, got the covariance {c} "
                    f"of variables of variance {a} and {b}"
                )


@lru_cache(maxsize=4096)
def covariance_symbols(K: sp.ImmutableMatrix) -> frozenset:
    """The free symbols of K."""
    return frozenset(K.free_symbols)


def substituted(node: sp.Expr, old: sp.Expr, new: sp.Expr) -> list[sp.Expr]:
    """The arguments of a node after a substitution, which does not see bound variables."""
    *inner, variables, K = node.args
    if old in covariance_symbols(K) or not old.is_Symbol:
        K = K.subs(old, new)
    if not old.has(*variables):
        if _captured(sp.sympify(new), variables):
            *inner, variables = _renamed((*inner, variables), variables)
        *inner, variables = (part.subs(old, new) for part in (*inner, variables))
    return [*inner, variables, K]


def replaced(node: sp.Expr, rule: Mapping) -> tuple[list[sp.Expr], bool]:
    """The arguments of a node after an exact replacement, and whether it changed any."""
    *inner, variables, K = node.args
    if any(_captured(new, variables) for old, new in rule.items() if old not in variables):
        *inner, variables = _renamed((*inner, variables), variables)
    # A joint covariance is large and most replacements touch the integrand alone.
    untouched = all(old.is_Symbol and old not in covariance_symbols(K) for old in rule)
    results = [part._xreplace(rule) for part in (*inner, variables)]
    results.append((K, False) if untouched else K._xreplace(rule))
    return [part for part, _ in results], any(changed for _, changed in results)


def _captured(new: sp.Expr, variables: sp.Tuple) -> bool:
    return not new.is_Number and new.has(*variables)


def _renamed(parts: Iterable[sp.Expr], variables: sp.Tuple) -> list[sp.Expr]:
    """The parts with new names for the bound variables."""
    fresh = {v: sp.Dummy(str(v), real=v.is_real) for v in variables}
    return [part.xreplace(fresh) for part in parts]


def entry_indices(size: int) -> list[tuple[int, int]]:
    """The entries of a covariance in the order in which rules take them.

    >>> entry_indices(3)
    [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)]
    """
    upper = [(i, j) for i in range(size) for j in range(i + 1, size)]
    return [(i, i) for i in range(size)] + upper


def times(factor: sp.Expr, expr: sp.Expr) -> sp.Expr:
    """The product, distributed over the summands so that equal ones can cancel."""
    return sp.Add(*[factor * term for term in sp.Add.make_args(expr)])
