"""Activation functions: φ as a SymPy expression with a name."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import sympy as sp

h = sp.Symbol("h", real=True)


@dataclass(frozen=True)
class Activation:
    """An activation function φ given by a SymPy expression in one symbol.

    Parameters
    ----------
    expression : sympy.Expr
        φ(h), an expression with exactly one free symbol (none for a constant is not allowed).
    name : str, optional
        What reports and files call it; the expression's text if left out.

    Raises
    ------
    TypeError
        If ``expression`` is not a SymPy expression.
    ValueError
        If it does not contain exactly one symbol.

    Examples
    --------
    >>> import sympy as sp
    >>> x = sp.Symbol("x")
    >>> Activation(x / (1 + sp.Abs(x)), name="softsign")(sp.Integer(1))
    1/2
    """

    expression: sp.Expr
    name: str = field(default="")

    def __post_init__(self) -> None:
        if not isinstance(self.expression, sp.Expr):
            raise TypeError(
                f"activation must be a SymPy expression in one symbol, got {self.expression!r}"
            )
        symbols = self.expression.free_symbols
        if len(symbols) != 1:
            found = ", ".join(sorted(map(str, symbols))) or "none"
            raise ValueError(
                f"activation must have exactly one symbol, got {found} in {self.expression}"
            )
        object.__setattr__(self, "expression", self.expression.xreplace({symbols.pop(): h}))
        object.__setattr__(self, "name", self.name or str(self.expression))

    def __call__(self, argument: Any) -> sp.Expr:
        """φ at ``argument``, a SymPy expression."""
        return self.expression.subs(h, argument)

    @cached_property
    def slope_at_zero(self) -> sp.Expr:
        """φ'(0); the mean of both sides where φ has a kink at zero."""
        return sp.simplify(self.expression.diff(h).subs(h, 0))

    def __repr__(self) -> str:
        return f"Activation({self.name!r}: {self.expression})"


def _registry() -> dict[str, Activation]:
    normal_cdf = (1 + sp.erf(h / sp.sqrt(2))) / 2
    # The tanh form neither overflows nor loses digits in its derivatives.
    logistic = (1 + sp.tanh(h / 2)) / 2
    expressions = {
        "erf": sp.erf(h),
        "tanh": sp.tanh(h),
        "relu": sp.Max(0, h),
        "leaky_relu": sp.Max(0, h) + sp.Min(0, h) / 100,
        "linear": h,
        "logistic": logistic,
        "gelu": h * normal_cdf,
        "swish": h * logistic,
        "sin": sp.sin(h),
    }
    return {name: Activation(expression, name) for name, expression in expressions.items()}


ACTIVATIONS = _registry()


def as_activation(value: str | Activation | sp.Expr) -> Activation:
    """The activation meant by a name, an `Activation` or a SymPy expression in one symbol.

    Parameters
    ----------
    value : str, Activation or sympy.Expr
        A name in ``ACTIVATIONS`` (erf, tanh, relu, leaky_relu with slope 1/100, linear,
        logistic, gelu, swish, sin; ``silu`` is swish), or φ itself.

    Raises
    ------
    ValueError
        For a name that is not registered or an expression without exactly one symbol.

    Examples
    --------
    >>> as_activation("relu").expression
    Max(0, h)
    """
    if isinstance(value, Activation):
        return value
    if isinstance(value, str):
        name = {"silu": "swish", "identity": "linear"}.get(value, value)
        if name not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise ValueError(f"activation must be one of {known}, got {value!r}")
        return ACTIVATIONS[name]
    return Activation(value)
