"""The activation function φ: a SymPy expression with a name."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, singledispatch
from typing import Any

import sympy as sp

from fieldtheory.averages.integrands.breakpoints import Pieces, canonical, pieces_of
from fieldtheory.networks.existence import require_averages

h = sp.Symbol("h", real=True)


@singledispatch
def as_activation(value: Any) -> Activation:
    """The activation meant by a name, text, an expression, an `Activation` or a function.

    `activation_text` registers as the reader of text, `callables` as that of functions.

    Parameters
    ----------
    value : str, sympy.Expr, Activation or callable
        A name in ``ACTIVATIONS``: erf, tanh, relu, leaky_relu, linear, logistic, gelu, swish, sin,
        gelu_tanh, quick_gelu, elu, selu, celu, softplus, softsign, mish, hard_tanh, hard_sigmoid,
        hard_swish, relu6, squared_relu, softshrink, hardshrink, tanhshrink, log_sigmoid, arctan,
        arcsinh, sinh, isru, gaussian, abs, sign, heaviside, cos, square, cubic, log_cosh, exp; or a
        synonym such as sigmoid, silu, atan, step, relu2. Case, blanks, hyphens and underscores do
        not matter. Formulas and sources are in ``named_activations.DEFINITIONS``.
        Or arithmetic in one letter, such as "x/(1 + abs(x))", see `activation_from_text`.
        Or a SymPy expression in one symbol. Or a function or module of NumPy, SciPy, math, SymPy,
        PyTorch, such as ``np.tanh`` and ``torch.nn.ELU(0.5)``, or a function of one's own,
        see `activation_of_callable`.

    Raises
    ------
    TypeError
        For anything else.
    ValueError
        For a name that is not known, text or a function that cannot be read, and what `Activation`
        refuses.

    Examples
    --------
    >>> from fieldtheory.networks.activations import as_activation
    >>> as_activation("relu").expression
    Max(0, h)
    >>> as_activation("x/(1 + abs(x))").expression
    h/(Abs(h) + 1)
    >>> import math
    >>> as_activation(math.tanh), as_activation(lambda x: x**2 + x).expression
    (Activation('tanh': tanh(h)), h**2 + h)
    """
    raise NotImplementedError("fieldtheory.networks.activations loads the readers")


@dataclass(frozen=True)
class Activation:
    """An activation function φ: a SymPy expression in one symbol.

    Parameters
    ----------
    expression : sympy.Expr, or what `as_activation` reads
        φ(h), an expression with exactly one free symbol (none for a constant is not allowed), or a
        name, text or function that stands for one. It is real and finite for every real h, up to
        removable singularities such as that of sin(h)/h, and grows more slowly than every
        exp(c h²), so that ⟨φ²⟩ exists for Gaussian h of any variance. Floats are taken as the
        decimal fractions that they print as. Where kinks cancel, as in max(h, 0) + min(h, 0), or
        have no closed form, it is kept as a Piecewise of its smooth pieces.
    name : str, optional
        What reports and files call it; the registered name or the expression's text if left out.

    Raises
    ------
    TypeError
        If ``expression`` is none of these.
    ValueError
        If it cannot be read, does not contain exactly one symbol, is not real or not finite
        somewhere, or grows so fast that its averages diverge; the message says where.

    Examples
    --------
    >>> import sympy as sp
    >>> x = sp.Symbol("x")
    >>> Activation(x / (1 + sp.Abs(x)), name="softsign")(sp.Integer(1))
    1/2
    >>> Activation(sp.sin(x) / x)(0), Activation("gelu", name="mine")(0)
    (1, 0)
    """

    expression: sp.Expr
    name: str = field(default="")

    def __post_init__(self) -> None:
        if not isinstance(self.expression, sp.Expr) or isinstance(self.expression, sp.Lambda):
            read = as_activation(self.expression)
            object.__setattr__(self, "expression", read.expression)
            object.__setattr__(self, "name", self.name or read.name)
            return
        symbols = self.expression.free_symbols
        if len(symbols) != 1:
            names = ", ".join(sorted(map(str, symbols))) or "none"
            raise ValueError(
                f"activation must have exactly one symbol, got {names} in {self.expression}"
            )
        typed = self.expression.xreplace({symbols.pop(): h})
        written = typed.xreplace({number: exact(number) for number in typed.atoms(sp.Float)})
        require_averages(written, h)
        expression = canonical(written, h)
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
        values = []
        for branch, side in zip(self.pieces.around(point), "-+", strict=True):
            derivative = branch.diff(h, order)
            value = derivative.subs(h, point)
            if value.has(sp.nan, sp.zoo, sp.oo):
                value = sp.limit(derivative, h, point, side)
            values.append(sp.simplify(value))
        return values[0], values[1]

    @cached_property
    def slope_at_zero(self) -> sp.Expr:
        """φ'(0); the mean of both sides where φ has a kink at zero."""
        return sp.simplify(sp.Add(*self.sides(1)) / 2)

    def __repr__(self) -> str:
        return f"Activation({self.name!r}: {self.expression})"


@as_activation.register
def _of_activation(value: Activation | sp.Expr) -> Activation:
    return value if isinstance(value, Activation) else Activation(value)


def of_table(expression: sp.Expr, name: str) -> Activation:
    """A named activation, whose averages are known to exist: it is not probed."""
    activation = object.__new__(Activation)
    object.__setattr__(activation, "expression", canonical(expression, h))
    object.__setattr__(activation, "name", name)
    return activation


def exact(number: sp.Float) -> sp.Rational:
    """The decimal fraction that was typed, as in text: closed forms of floats lose digits."""
    # Bits of a float.
    double = 53
    return sp.Rational(repr(float(number)) if number._prec <= double else str(number))
