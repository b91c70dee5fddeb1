"""Activation functions as text: as typed by hand, and exact in files.

By hand it is arithmetic in h, such as "0.3*h*erf(2*h)", in which a decimal number is an exact
fraction; in a file it is what ``sympy.srepr`` writes. SymPy evaluates text, so its syntax tree is
admitted first: numbers, names, operators and calls of the functions below, and nothing else.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

import sympy as sp
from sympy.parsing.sympy_parser import auto_number, rationalize

from fieldtheory.networks.activation import (
    ACTIVATIONS,
    Activation,
    as_activation,
    clipped,
    exact,
    h,
    registered_name,
    similar,
    where,
    with_parameters,
)

# A word, or several joined as in "leaky-relu".
_NAME = r"[^\W\d]\w+([\s-]+\w{2,})*"
_LONGEST = 100_000
# Of a typed exponent, and of a power of numbers, which SymPy writes out as 9**9**9.
_LARGEST_POWER, _LARGEST_BITS = 20, 4000
# What Python and SymPy raise for text and arguments that make no sense.
_FAULTS = (
    *(SyntaxError, TypeError, ValueError, AttributeError, ArithmeticError),
    *(RecursionError, MemoryError),
)
# After these a bar opens, among so many signs before it.
_LOOKED_AT = 100
_OPENS = re.compile(r"(?:^|[(|,<>=&*/+\[-]|\b(?:if|else|and|or))\s*$")


class _Refused(ValueError):
    """A refusal in this module's own words."""


def _pow(base: sp.Expr, exponent: sp.Expr) -> sp.Expr:
    numbers = [factor for factor in sp.Mul.make_args(base) if factor.is_number]
    parts = [part for factor in numbers for part in factor.atoms(sp.Rational)]
    bits = sum(max(abs(part.p), part.q).bit_length() for part in parts)
    if exponent.is_number and bits * abs(exponent) > _LARGEST_BITS:
        raise _Refused(
            f"activation must have powers of numbers of at most {_LARGEST_BITS} bits, "
            f"got a power {exponent} of a number of {bits} bits"
        )
    return sp.Pow(base, exponent)


def _typed_power(base: sp.Expr, exponent: sp.Expr) -> sp.Expr:
    if not (exponent.is_Rational and abs(exponent) <= _LARGEST_POWER):
        raise _Refused(
            f"activation must have powers with exponents up to {_LARGEST_POWER}, "
            f"got {_excerpt(f'({base})**({exponent})')}"
        )
    return _pow(base, exponent)


def _term(value: Any) -> sp.Expr:
    if not isinstance(value, sp.Expr):
        raise _Refused(f"activation must be made of terms, got {str(value)!r}")
    return value


def _condition(value: Any) -> Any:
    if isinstance(value, sp.Expr):
        raise _Refused(f"activation must have conditions such as h > 0, got {str(value)!r}")
    return value


_NAMES = {"h": h, "pi": sp.pi, "E": sp.E, "true": sp.true, "false": sp.false}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{
        function.__name__: function
        for function in (
            *(sp.Abs, sp.sign, sp.exp, sp.log, sp.erf, sp.erfc, sp.sin, sp.cos, sp.tan, sp.sinc),
            *(sp.asin, sp.acos, sp.atan, sp.sinh, sp.cosh, sp.tanh, sp.asinh, sp.acosh, sp.atanh),
            *(sp.sech, sp.Heaviside, sp.Piecewise),
            *(sp.StrictGreaterThan, sp.GreaterThan, sp.StrictLessThan, sp.LessThan),
            sp.functions.elementary.piecewise.ExprCondPair,
        )
    },
    **{"abs": sp.Abs, "ln": sp.log, "sqrt": sp.sqrt},
    **{"expm1": lambda x: sp.exp(x) - 1, "log1p": lambda x: sp.log(1 + x)},
    **dict.fromkeys(("clip", "clamp"), lambda x, low, high: clipped(x, low, high)),
    **dict.fromkeys(("max", "maximum", "Max"), lambda x, y, *more: sp.Max(x, y, *more)),
    **dict.fromkeys(("min", "minimum", "Min"), lambda x, y, *more: sp.Min(x, y, *more)),
    "Add": lambda *terms: sp.Add(*map(_term, terms)),
    "Mul": lambda *terms: sp.Mul(*map(_term, terms)),
    "And": lambda *conditions: sp.And(*map(_condition, conditions)),
    "Or": lambda *conditions: sp.Or(*map(_condition, conditions)),
    "where": lambda condition, x, y: where(_condition(condition), x, y),
    **{"Pow": _pow, "Integer": sp.Rational, "Rational": sp.Rational},
}
_SIGNS = ast.operator | ast.unaryop | ast.boolop | ast.cmpop
_SYNTAX = (
    *(ast.Expression, ast.Load, ast.Tuple, ast.Compare, ast.BoolOp, ast.IfExp),
    *(ast.UnaryOp, ast.USub, ast.UAdd, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow),
    *(ast.And, ast.Or, ast.BitAnd, ast.Gt, ast.GtE, ast.Lt, ast.LtE),
)


def activation_text(activation: Activation) -> str:
    """The name of a registered activation, otherwise its expression as SymPy writes it.

    Examples
    --------
    >>> activation_text(ACTIVATIONS["tanh"]), activation_text(Activation(sp.tanh(2 * h)))
    ('tanh', "tanh(Mul(Integer(2), Symbol('h', real=True)))")
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


@as_activation.register
def activation_from_text(text: str, name: str | None = None) -> Activation:
    """φ from its name, from arithmetic in h or another letter, or from `activation_text`.

    Examples
    --------
    >>> activation_from_text("Hard Swish").name, activation_from_text("sech").expression
    ('hard_swish', sech(h))
    >>> activation_from_text("||x| - 1|/max(x, 2)").expression
    Abs(Abs(h) - 1)/Max(2, h)
    >>> activation_from_text("x if -1 < x <= 1 else 0.1*x").expression
    Piecewise((h, (h <= 1) & (h > -1)), (h/10, True))
    >>> activation_from_text("tanh(Mul(Integer(2), Symbol('h', real=True)))").expression
    tanh(2*h)
    """
    text = text.strip()
    name = text if name is None else name
    if registered := registered_name(text):
        return with_parameters(registered)
    if text.lower() in _FUNCTIONS:
        text = f"{text.lower()}(h)"
    if not text or (re.fullmatch(_NAME, text) and text not in _NAMES):
        names = ", ".join(ACTIVATIONS)
        raise ValueError(
            f"activation must be one of {names}, or an expression such as tanh(2*h), "
            f"got {_excerpt(text)}{similar(text)}"
        )
    if len(text) > _LONGEST:
        raise ValueError(f"activation must have at most {_LONGEST} characters, got {len(text)}")
    try:
        expression = _expression(text)
    except _Refused as refusal:
        raise ValueError(str(refusal)) from None
    except _FAULTS as error:
        reason = " ".join(str(error).replace("<lambda>() ", "").split())
        bars = "; write abs(h)" if "|" in text else ""
        raise ValueError(
            f"activation must be a name or an expression in h, got {_excerpt(text)}{bars} "
            f"({reason})"
        ) from None
    real = isinstance(expression, sp.Expr) and not expression.has(sp.zoo, sp.nan, sp.oo, sp.I)
    if not (real and expression.has(h)):
        raise ValueError(f"activation must be a real expression in h, got {_excerpt(text)}")
    return Activation(expression, name)


def _expression(text: str) -> Any:
    """What SymPy makes of text, once its syntax tree is admitted."""
    text = re.sub(r"Symbol\('h'(, real=True)?\)", "h", text)
    text = re.sub(
        r"Float\('(-?[\d.]+(?:e[+-]?\d{1,3})?)', precision=(\d{1,4})\)", _as_fraction, text
    )
    # abs[...] for |...|, whose pairs Python checks; see ``_OPENS``.
    before, *parts = text.split("|")
    for part in parts:
        before += ("abs[" if _OPENS.search(before[-_LOOKED_AT:]) else "]") + part
    tree = ast.parse(before, mode="eval")
    functions = _admitted(tree)
    text = ast.unparse(_Calls().visit(tree))
    # Decimal numbers as exact fractions, which keep all digits in derivatives and in mpmath.
    scope = _NAMES | _FUNCTIONS | functions | {"typed_power": _typed_power}
    return sp.parse_expr(text, scope, (auto_number, rationalize), {"__builtins__": {}})


def _as_fraction(match: re.Match[str]) -> str:
    value = exact(sp.Float(match[1], precision=int(match[2])))
    return f"Rational({value.p}, {value.q})"


def _admitted(tree: ast.AST) -> dict[str, Any]:
    """The functions that a tree calls; all that is not in the grammar is refused."""
    nodes = [*ast.walk(tree)]
    called = {n.func for n in nodes if isinstance(n, ast.Call)}
    called |= {n.value for n in nodes if isinstance(n, ast.Subscript)}
    names = [n for n in nodes if isinstance(n, ast.Name) and n not in called]
    letters = {n.id for n in names} - {*_NAMES}
    if len(letters) == 1 and len(letters.pop()) == 1 and not any(n.id == "h" for n in names):
        # The one letter that an expression is in.
        for letter in names:
            letter.id = letter.id if letter.id in _NAMES else "h"
    functions: dict[str, Any] = {}
    for node in nodes:
        match node:
            case ast.Constant(value=value):
                known = type(value) in (int, float, bool)
            case ast.Name(id=name):
                known = node in called or name in _NAMES
            case (
                ast.Call(func=ast.Name(id=name), keywords=[])
                | ast.Subscript(value=ast.Name(id="abs" as name))
            ):
                functions[name], known = _function(name), True
            case _:
                signs = (part for part in ast.iter_child_nodes(node) if isinstance(part, _SIGNS))
                known = all(isinstance(part, _SYNTAX) for part in (node, *signs))
        if not known:
            raise _Refused(
                "activation must be an expression in the one symbol h, "
                f"got {_excerpt(ast.unparse(node))}{_hint(node)}"
            )
    return functions


def _function(name: str) -> Callable[..., Any]:
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    if registered := registered_name(name):
        return ACTIVATIONS[registered]
    typed = [key for key in _FUNCTIONS if key[0].islower()]
    raise _Refused(
        f"activation must be made of {', '.join(typed)} and named activations, "
        f"got function {name!r}{similar(name, typed)}"
    )


def _hint(node: ast.AST) -> str:
    """Spelling of the same here, if it can be guessed."""
    match node:
        case ast.BinOp(op=ast.BitXor()):
            return "; powers are written with **"
        case ast.Call(func=ast.Attribute(attr=name)):
            return f"; write {name}(...) without what stands before it"
        case ast.Name(id=name) if name in _FUNCTIONS or registered_name(name):
            return f"; did you mean {name}(h)?"
    return ""


class _Calls(ast.NodeTransformer):
    """Syntax that SymPy objects lack, and powers, which are checked, as calls of functions."""

    def visit(self, node: ast.AST) -> ast.AST:
        """The node with calls inside it, as a call."""
        node = self.generic_visit(node)
        match node:
            case ast.BinOp(left=x, op=ast.Pow(), right=y):
                return _call("typed_power", x, y)
            case ast.BinOp(left=x, op=ast.BitAnd(), right=y):
                return _call("And", x, y)
            case ast.BoolOp(op=sign, values=conditions):
                return _call(type(sign).__name__, *conditions)
            case ast.IfExp(test=condition, body=x, orelse=y):
                return _call("where", condition, x, y)
            case ast.Compare(left=x, ops=[_, _, *_] as signs, comparators=right):
                pairs = zip([x, *right], signs, right, strict=False)
                return _call("And", *(ast.Compare(a, [sign], [b]) for a, sign, b in pairs))
            case ast.Subscript(value=x, slice=argument):
                return ast.Call(x, [argument], [])
        return node


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name), [*arguments], [])


def _excerpt(text: str) -> str:
    """The text in quotes, shortened to fit on a line."""
    return repr(text if len(text) <= 100 else f"{text[:97]}...")
