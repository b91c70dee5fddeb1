"""The activation function φ: a SymPy expression with a name."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import sympy as sp

from fieldtheory.averages.integrands.breakpoints import Pieces, canonical, pieces_of
from fieldtheory.networks.existence import require_averages

h = sp.Symbol("h", real=True)

# Bits of a float.
_DOUBLE = 53


@dataclass(frozen=True)
class Activation:
    """An activation function φ given by a SymPy expression in one symbol.

    Parameters
    ----------
    expression : sympy.Expr
        φ(h), an expression with exactly one free symbol (none for a constant is not allowed). It
        is real and finite for every real h, up to removable singularities such as that of
        sin(h)/h, and grows more slowly than every exp(c h²), so that ⟨φ²⟩ exists for Gaussian h of
        any variance. Floats are taken as the decimal fractions that they print as. Where kinks
        cancel, as in max(h, 0) + min(h, 0), or have no closed form, it is kept as a Piecewise of
        its smooth pieces.
    name : str, optional
        What reports and files call it; the expression's text if left out.

    Raises
    ------
    TypeError
        If ``expression`` is not a SymPy expression.
    ValueError
        If it does not contain exactly one symbol, is not real or not finite somewhere, or grows so
        fast that its averages diverge; the message says where.

    Examples
    --------
    >>> import sympy as sp
    >>> x = sp.Symbol("x")
    >>> Activation(x / (1 + sp.Abs(x)), name="softsign")(sp.Integer(1))
    1/2
    >>> Activation(sp.sin(x) / x)(0)
    1
    """

    expression: sp.Expr
    name: str = field(default="")

    def __post_init__(self) -> None:
        if not isinstance(self.expression, sp.Expr):
            hint = ""
            if isinstance(self.expression, str):
                hint = (
                    "; networks take names and text, and fieldtheory.networks.activations."
                    f"as_activation({self.expression!r}) is the Activation"
                )
            raise TypeError(
                "activation must be a SymPy expression in one symbol, "
                f"got {self.expression!r}{hint}"
            )
        symbols = self.expression.free_symbols
        if len(symbols) != 1:
            found = ", ".join(sorted(map(str, symbols))) or "none"
            raise ValueError(
                f"activation must have exactly one symbol, got {found} in {self.expression}"
            )
        typed = self.expression.xreplace({symbols.pop(): h})
        exact = typed.xreplace({number: _exact(number) for number in typed.atoms(sp.Float)})
        require_averages(exact, h)
        expression = canonical(exact, h)
        if not expression.has(h):
            raise ValueError(f"activation must depend on its symbol, got {typed} = {expression}")
        object.__setattr__(self, "expression", expression)
        object.__setattr__(self, "name", self.name or str(typed))

    def __call__(self, argument: Any) -> sp.Expr:
        """φ at ``argument``, a SymPy expression or number; its limit where φ is 0/0."""
        value = self.expression.subs(h, argument := sp.sympify(argument))
        return sp.limit(self.expression, h, argument) if value.has(sp.nan) else value

    @cached_property
    def pieces(self) -> Pieces:
        """Its smooth pieces, breakpoints and jumps."""
        return pieces_of(self.expression, h)

    def sides(self, order: int, point: sp.Expr = sp.S.Zero) -> tuple[sp.Expr, sp.Expr]:
        """The derivative of an order just below and just above a point; infinite where it is."""
        found = []
        for branch, side in zip(self.pieces.around(point), "-+", strict=True):
            derivative = branch.diff(h, order)
            value = derivative.subs(h, point)
            if value.has(sp.nan, sp.zoo, sp.oo):
                value = sp.limit(derivative, h, point, side)
            found.append(sp.simplify(value))
        return found[0], found[1]

    @cached_property
    def slope_at_zero(self) -> sp.Expr:
        """φ'(0); the mean of both sides where φ has a kink at zero."""
        return sp.simplify(sp.Add(*self.sides(1)) / 2)

    def __repr__(self) -> str:
        return f"Activation({self.name!r}: {self.expression})"


def _exact(number: sp.Float) -> sp.Rational:
    """The decimal fraction that was typed, as in text: closed forms of floats lose digits."""
    return sp.Rational(repr(float(number)) if number._prec <= _DOUBLE else str(number))
