"""Activation functions as text in files: exact, and read without executing it."""

from __future__ import annotations

import ast
from typing import Any

import sympy as sp

from fieldtheory.networks.activations import ACTIVATIONS, Activation, h

_CLASSES: dict[str, Any] = {
    c.__name__: c
    for c in (
        *(sp.Add, sp.Mul, sp.Pow, sp.Integer, sp.Rational, sp.Abs, sp.sign, sp.Max, sp.Min),
        *(sp.exp, sp.log, sp.erf, sp.erfc, sp.sin, sp.cos, sp.tan, sp.sinh, sp.cosh, sp.tanh),
        *(sp.asin, sp.acos, sp.atan, sp.asinh, sp.acosh, sp.atanh, sp.sech, sp.sinc),
        *(sp.Heaviside, sp.Piecewise, sp.functions.elementary.piecewise.ExprCondPair),
        *(sp.StrictGreaterThan, sp.GreaterThan, sp.StrictLessThan, sp.LessThan, sp.And, sp.Or),
    )
}
_CONSTANTS: dict[str, Any] = {"pi": sp.pi, "E": sp.E, "true": sp.true, "false": sp.false}


def activation_text(activation: Activation) -> str:
    """The name of a registered activation, otherwise its expression in the form of ``sympy.srepr``.

    The form that a shell takes, such as "erf(0.3*h)", would turn decimal numbers into fractions;
    this one gives back an expression that is equal.

    Raises
    ------
    ValueError
        If the expression has a function that `activation_from_text` does not know.

    Examples
    --------
    >>> activation_text(ACTIVATIONS["tanh"])
    'tanh'
    >>> activation_text(Activation(sp.tanh(2 * h)))
    "tanh(Mul(Integer(2), Symbol('h', real=True)))"
    """
    if ACTIVATIONS.get(activation.name) == activation:
        return activation.name
    text = sp.srepr(activation.expression)
    try:
        same = activation_from_text(text, activation.name) == activation
    except ValueError as error:
        raise ValueError(f"activation cannot be written to a file: {error}") from None
    if not same:
        raise ValueError(
            f"activation cannot be written to a file: {activation.expression} is not in the form "
            "that SymPy brings it to"
        )
    return text


def activation_from_text(text: str, name: str = "") -> Activation:
    """The activation of `activation_text`, with a name of its own if it is not registered.

    Raises
    ------
    ValueError
        If the text is anything but a registered name or an expression made of known functions.

    Examples
    --------
    >>> activation_from_text("tanh(Mul(Integer(2), Symbol('h', real=True)))").expression
    tanh(2*h)
    """
    if text in ACTIVATIONS:
        return ACTIVATIONS[text]
    try:
        return Activation(_node(ast.parse(text, mode="eval").body), name)
    except (SyntaxError, TypeError, RecursionError, MemoryError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"activation must be an expression in h ({reason})") from None


def _node(node: ast.AST) -> Any:
    match node:
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.Call(func=ast.Name(id="Symbol"), args=[ast.Constant(value="h")]):
            return h
        case ast.Call(
            func=ast.Name(id="Float"),
            args=[ast.Constant(value=str(digits))],
            keywords=[ast.keyword(arg="precision", value=ast.Constant(value=int(precision)))],
        ):
            return sp.Float(digits, precision=precision)
        case ast.Call(func=ast.Name(id=("Integer" | "Rational") as name), args=args, keywords=[]):
            return _CLASSES[name](*map(_integer, args))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _CLASSES:
            arguments = [_node(argument) for argument in args]
            if name == "Pow":
                _require_irrational(*arguments)
            return _CLASSES[name](*arguments)
    raise ValueError(f"activation must be made of known functions, got {ast.unparse(node)!r}")


def _integer(node: ast.AST) -> int:
    value = ast.literal_eval(node) if isinstance(node, ast.Constant | ast.UnaryOp) else None
    if type(value) is not int:
        raise ValueError(f"activation must be made of numbers, got {ast.unparse(node)!r}")
    return value


def _require_irrational(base: sp.Expr, exponent: sp.Expr) -> None:
    """Refuse powers that SymPy writes out, for ever if large; it leaves none in an expression."""
    fraction = exponent.is_Rational and 0 < exponent < 1
    if base.is_Rational and not fraction and not exponent.has(h):
        raise ValueError(f"activation must be made of irrational powers, got {base}**({exponent})")
