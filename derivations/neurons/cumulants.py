"""The symbols of the derivation: functions of one neuron, cumulants of neurons, series in 1/N."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

import sympy as sp

# What one neuron adds to the kernel of the next layer, less its mean.
D = sp.Symbol("D")
# The power of ε = 1/N at which series end.
HIGHEST = 2


def function(a: int) -> sp.Symbol:
    """χ_a."""
    return sp.Symbol(rf"\chi_{{{a}}}")


def arguments(functions: Sequence[sp.Expr], printer) -> str:
    """The arguments of a cumulant."""
    return r",\, ".join(printer.doprint(f) for f in functions)


class Moved(sp.Function):
    """P_j ψ_a."""

    def _latex(self, printer) -> str:
        j, a = self.args
        return rf"P_{{{j}}} \psi_{{{a}}}"


class Average(sp.Function):
    """⟨f⟩ of a Gaussian neuron, of order one; zero for D."""

    @classmethod
    def eval(cls, f):
        return sp.S.Zero if f == D else None

    def _latex(self, printer, exp: str = "") -> str:
        shown = rf"\langle {printer.doprint(self.args[0])} \rangle"
        return rf"{shown}^{{{exp}}}" if exp else shown


class Cumulant(sp.Function):
    """The coefficient of ε^k in the joint cumulant of functions of different neurons."""

    @classmethod
    def eval(cls, order, *functions):
        ordered = tuple(sorted(functions, key=sp.default_sort_key))
        return None if ordered == functions else cls(order, *ordered)

    def _latex(self, printer, exp: str = "") -> str:
        order, *functions = self.args
        name = {1: f"m_{{{order}}}", 2: f"g_{{{order}}}", 3: "g_{3}"}[len(functions)]
        power = f"^{{{exp}}}" if exp else ""
        return f"{name}{power}({arguments(functions, printer)})"


class Seen(sp.Function):
    """The coefficient of ε^k in the cumulant of ``count`` times d and of functions."""

    names: ClassVar = {
        (1, 0): r"\delta",
        (2, 0): "q",
        (3, 0): "t",
        (1, 1): "s",
        (2, 1): "w",
        (1, 2): "u",
    }

    @classmethod
    def eval(cls, order, count, *functions):
        ordered = tuple(sorted(functions, key=sp.default_sort_key))
        return None if ordered == functions else cls(order, count, *ordered)

    def _latex(self, printer, exp: str = "") -> str:
        order, count, *functions = self.args
        name = f"{self.names[int(count), len(functions)]}_{{{order}}}"
        power = f"^{{{exp}}}" if exp else ""
        inside = f"({arguments(functions, printer)})" if functions else ""
        return f"{name}{power}{inside}"


def times(*factors: tuple[sp.Expr, ...]) -> tuple[sp.Expr, ...]:
    """The product of series in ε, each given by its coefficients of ε^0, ε^1 and ε^2."""
    found = (sp.S.One, sp.S.Zero, sp.S.Zero)
    for factor in factors:
        found = tuple(
            sp.Add(*[found[i] * factor[k - i] for i in range(k + 1)]) for k in range(HIGHEST + 1)
        )
    return tuple(map(sp.expand, found))


def plus(terms: Iterable[tuple[sp.Expr, ...]]) -> tuple[sp.Expr, ...]:
    """The sum of series in ε."""
    return tuple(sp.expand(sp.Add(*column)) for column in zip(*terms, strict=True))
