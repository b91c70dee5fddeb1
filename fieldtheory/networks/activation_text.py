"""Activation functions as text, read without executing it: as typed by hand, and exact in files.

One grammar holds both forms. By hand it is arithmetic in h, such as "0.3*h*erf(2*h)", in which a
decimal number is an exact fraction; in a file it is what ``sympy.srepr`` writes, in which numbers,
fractions and floats of any precision stay what they are.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable
from typing import Any

import sympy as sp

from fieldtheory.networks.activation import Activation, as_activation, h
from fieldtheory.networks.named_activations import (
    ACTIVATIONS,
    clipped,
    registered_name,
    similar,
    where,
)

# A word, or several joined as in "leaky-relu".
_NAME = r"[^\W\d]\w+([\s-]+\w{2,})*"

# What Python and SymPy raise for text and arguments that make no sense.
_FAULTS = (SyntaxError, TypeError, ValueError, AttributeError, RecursionError, MemoryError)

_OPERATORS: dict[type, Callable] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_CONDITIONS: dict[type, Callable] = {
    **{ast.Gt: sp.Gt, ast.GtE: sp.Ge, ast.Lt: sp.Lt, ast.LtE: sp.Le},
    **{ast.And: sp.And, ast.Or: sp.Or, ast.BitAnd: sp.And},
}
# After these a bar opens.
_OPENS = re.compile(r"(?:^|[(|,<>=&*/+-]|\b(?:if|else|and|or))\s*$")
_NAMES: dict[str, Any] = {
    "h": h,
    "pi": sp.pi,
    "E": sp.E,
    "true": sp.true,
    "false": sp.false,
}
# Functions by name with the fewest and the most arguments that they take.
_MANY = math.inf
_FUNCTIONS: dict[str, tuple[Callable, int, float]] = {
    **{"abs": (sp.Abs, 1, 1), "ln": (sp.log, 1, 1), "sqrt": (sp.sqrt, 1, 1)},
    **{
        c.__name__: (c, 1, 1)
        for c in (
            *(sp.Abs, sp.sign, sp.exp, sp.log, sp.erf, sp.erfc, sp.sin, sp.cos, sp.tan, sp.sinc),
            *(sp.asin, sp.acos, sp.atan, sp.sinh, sp.cosh, sp.tanh, sp.asinh, sp.acosh, sp.atanh),
            *(sp.sech,),
        )
    },
    **{"expm1": (lambda u: sp.exp(u) - 1, 1, 1), "log1p": (lambda u: sp.log(1 + u), 1, 1)},
    "Heaviside": (sp.Heaviside, 1, 2),
    **{
        c.__name__: (c, 2, 2)
        for c in (
            sp.functions.elementary.piecewise.ExprCondPair,
            *(sp.StrictGreaterThan, sp.GreaterThan, sp.StrictLessThan, sp.LessThan),
        )
    },
    **dict.fromkeys(("clip", "clamp"), (clipped, 3, 3)),
    "where": (where, 3, 3),
    **dict.fromkeys(("max", "maximum", "Max"), (sp.Max, 2, _MANY)),
    **dict.fromkeys(("min", "minimum", "Min"), (sp.Min, 2, _MANY)),
    **{c.__name__: (c, 2, _MANY) for c in (sp.And, sp.Or, sp.Piecewise)},
    **{c.__name__: (c, 1, _MANY) for c in (sp.Add, sp.Mul)},
}

# Their arguments may be conditions.
_LOGICAL = ("And", "Or", "ExprCondPair")


def _is_unary(name: str) -> bool:
    return name in _FUNCTIONS and _FUNCTIONS[name][1] == 1


class _Refused(ValueError):
    """A refusal in this module's own words."""


def activation_text(activation: Activation) -> str:
    """The name of a registered activation, otherwise its expression in the form of ``sympy.srepr``.

    Read again it gives an expression that is equal, whatever SymPy makes of what is typed.

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
    """φ from its name, from arithmetic in h such as "tanh(2*h)", or from `activation_text`.

    The name is that of a registered activation or of a function below: "sech" is "sech(h)".

    The text is read, never executed. Arithmetic has numbers, h or another letter, pi, E, + - * / **
    |h| and functions: the names of registered activations, abs, sign, sqrt, max, min, exp, expm1,
    log, ln, log1p, erfc, cos, tan, asin, acos, atan, sinh, cosh, asinh, acosh, atanh, sech, sinc,
    Heaviside, clip(x, low, high) and where(condition, x, y), also written x if condition else y,
    with conditions such as x > 0, -1 < x <= 1, and those joined by ``and`` and ``or``.

    Parameters
    ----------
    text : str
        At most 100 000 characters.
    name : str
        Name of an activation that is not registered; the text of its expression if left out.

    Returns
    -------
    Activation

    Raises
    ------
    ValueError
        For anything else; the message names it. Powers typed with ``**`` have exponents from −20 to
        20, and none may make numbers of more than 4000 bits, which SymPy would write out. And for
        what `Activation` refuses.

    Examples
    --------
    >>> activation_from_text("Hard Swish").name
    'hard_swish'
    >>> activation_from_text("x/(1 + abs(x))").expression
    h/(Abs(h) + 1)
    >>> activation_from_text("||x| - 1|").expression
    Abs(Abs(h) - 1)
    >>> activation_from_text("tanh(Mul(Integer(2), Symbol('h', real=True)))").expression
    tanh(2*h)
    """
    longest = 100_000
    text = text.strip()
    if registered := registered_name(text):
        return ACTIVATIONS[registered]
    if _is_unary(text.lower()):
        text = f"{text.lower()}(h)"
    if not text or (re.fullmatch(_NAME, text) and text not in _NAMES):
        names = ", ".join(ACTIVATIONS)
        raise ValueError(
            f"activation must be one of {names}, or an expression such as tanh(2*h), "
            f"got {_excerpt(text)}{similar(text)}"
        )
    if len(text) > longest:
        raise ValueError(f"activation must have at most {longest} characters, got {len(text)}")
    try:
        tree = ast.parse(_with_moduli(text), mode="eval")
        _name_argument(tree)
        expression = _value(tree.body)
    except _Refused as refusal:
        raise ValueError(str(refusal)) from None
    except _FAULTS as error:
        reason = " ".join(str(error).split())
        raise ValueError(
            f"activation must be a name or an expression in h, got {_excerpt(text)} ({reason})"
        ) from None
    real = isinstance(expression, sp.Expr) and not expression.has(sp.zoo, sp.nan, sp.oo, sp.I)
    if not (real and expression.has(h)):
        raise ValueError(f"activation must be a real expression in h, got {_excerpt(text)}")
    return Activation(expression, name)


@as_activation.register
def _of_text(value: str) -> Activation:
    return activation_from_text(value, value.strip())


def _with_moduli(text: str) -> str:
    """The text with abs(...) for |...|; a bar opens unless it follows a term."""
    # Signs before a bar that tell whether it opens.
    looked_at = 100
    if "|" not in text:
        return text
    parts: list[str] = []
    opened: list[str] = []
    before, paired = "", True
    for sign in text:
        opens = sign == "(" or (sign == "|" and bool(_OPENS.search(before)))
        if opens:
            opened.append(sign)
        elif sign in ")|":
            paired &= bool(opened) and opened.pop() == sign.replace(")", "(")
        parts.append(("abs(" if opens else ")") if sign == "|" else sign)
        # A bar that closes ends a term.
        before = before[-looked_at:] + (")" if sign == "|" and not opens else sign)
    if opened or not paired:
        raise _Refused(
            f"activation must have its bars in pairs, got {_excerpt(text)}; write abs(h)"
        )
    return "".join(parts)


def _name_argument(tree: ast.AST) -> None:
    """Call the one letter that an expression is in h."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    unknown = [node for node in names if node not in called and node.id not in _NAMES]
    letters = {node.id for node in unknown}
    if len(letters) == 1 and len(letters.pop()) == 1 and not any(n.id == "h" for n in names):
        for node in unknown:
            node.id = "h"


def _value(node: ast.AST) -> Any:
    """The SymPy object that a node stands for."""
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            # A Rational keeps all digits in derivatives and in mpmath, a Float does not.
            return sp.Rational(str(number))
        case ast.Constant(value=bool() as truth):
            return sp.true if truth else sp.false
        case ast.Name(id=name) if name in _NAMES:
            return _NAMES[name]
        case ast.Compare(left=left, ops=signs, comparators=right) if {*map(type, signs)} <= {
            *_CONDITIONS
        }:
            terms = [_term(each) for each in (left, *right)]
            pairs = zip(signs, terms, terms[1:], strict=False)
            return sp.And(*(_CONDITIONS[type(sign)](a, b) for sign, a, b in pairs))
        case ast.BoolOp(op=sign, values=conditions):
            return _CONDITIONS[type(sign)](*map(_condition, conditions))
        case ast.BinOp(left=left, op=ast.BitAnd(), right=right):
            return sp.And(_condition(left), _condition(right))
        case ast.IfExp(test=condition, body=x, orelse=y):
            return where(_condition(condition), _term(x), _term(y))
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in _OPERATORS:
            return _OPERATORS[type(sign)](_term(operand))
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _typed_power(node, _term(left), _term(right))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            return _OPERATORS[type(sign)](_term(left), _term(right))
        case ast.Call(func=ast.Name(id=name)):
            return _called(node, name)
    raise _Refused(
        f"activation must be an expression in the one symbol h, got {_excerpt(ast.unparse(node))}"
        f"{_hint(node)}"
    )


def _hint(node: ast.AST) -> str:
    """Spelling of the same here, if it can be guessed."""
    match node:
        case ast.BinOp(op=ast.BitXor()):
            return "; powers are written with **"
        case ast.Call(func=ast.Attribute(attr=name)):
            return f"; write {name}(...) without what stands before it"
        case ast.Name(id=name) if _is_unary(name) or registered_name(name):
            return f"; did you mean {name}(h)?"
    return ""


def _term(node: ast.AST) -> sp.Expr:
    """The same where only a term can stand, not a condition."""
    value = _value(node)
    if not isinstance(value, sp.Expr):
        raise _Refused(f"activation must be made of terms, got {_excerpt(ast.unparse(node))}")
    return value


def _condition(node: ast.AST) -> Any:
    """The same where only a condition can stand."""
    value = _value(node)
    if isinstance(value, sp.Expr):
        raise _Refused(
            f"activation must have conditions such as h > 0, got {_excerpt(ast.unparse(node))}"
        )
    return value


def _piece(node: ast.AST) -> Any:
    """A term and its condition, as a pair or as SymPy writes it."""
    match node:
        case ast.Tuple(elts=[term, condition]):
            return _term(term), _condition(condition)
    return _value(node)


def _called(node: ast.Call, name: str) -> Any:
    match name, node.args, node.keywords:
        case "Symbol", [ast.Constant(value="h")], _:
            return h
        case (
            "Float",
            [ast.Constant(value=str(digits))],
            [ast.keyword(arg="precision", value=ast.Constant(value=int(precision)))],
        ):
            return sp.Float(digits, precision=precision)
        case ("Integer", [_], []) | ("Rational", [_, _], []):
            return sp.Rational(*map(_integer, node.args))
        case "where", [condition, x, y], []:
            return where(_condition(condition), _term(x), _term(y))
        case "Piecewise", [_, *_], []:
            return sp.Piecewise(*map(_piece, node.args))
        case "Pow", [left, right], []:
            base, exponent = _term(left), _term(right)
            _require_small(node, base, exponent)
            return sp.Pow(base, exponent)
    function, fewest, most = _FUNCTIONS.get(name, (None, 1, 0))
    if function and fewest <= len(node.args) <= most and not node.keywords:
        read = _value if name in _LOGICAL else _term
        return function(*map(read, node.args))
    registered = registered_name(name)
    if registered and len(node.args) == 1 and not node.keywords:
        return ACTIVATIONS[registered](_term(node.args[0]))
    if function or registered:
        raise _Refused(
            f"activation must call {name} with its number of arguments, "
            f"got {_excerpt(ast.unparse(node))}"
        )
    typed = [key for key in _FUNCTIONS if key[0].islower()]
    raise _Refused(
        f"activation must be made of {', '.join(typed)} and named activations, "
        f"got function {name!r}{similar(name, typed)}"
    )


def _integer(node: ast.AST) -> int:
    value = ast.literal_eval(node) if isinstance(node, ast.Constant | ast.UnaryOp) else None
    if type(value) is not int:
        raise _Refused(f"activation must be made of numbers, got {_excerpt(ast.unparse(node))}")
    return value


def _typed_power(node: ast.BinOp, base: sp.Expr, exponent: sp.Expr) -> sp.Expr:
    largest_power = 20
    if not (exponent.is_Rational and abs(exponent) <= largest_power):
        raise _Refused(
            f"activation must have powers with exponents up to {largest_power}, "
            f"got {_excerpt(ast.unparse(node))}"
        )
    _require_small(node, base, exponent)
    return base**exponent


def _require_small(node: ast.AST, base: sp.Expr, exponent: sp.Expr) -> None:
    """Refuse powers of numbers that SymPy would write out with countless digits, as 9**9**9."""
    largest_bits = 4000
    numbers = [factor for factor in sp.Mul.make_args(base) if factor.is_number]
    parts = [part for factor in numbers for part in factor.atoms(sp.Rational)]
    bits = sum(max(abs(part.p), part.q).bit_length() for part in parts)
    if exponent.is_number and bits * abs(exponent) > largest_bits:
        raise _Refused(
            f"activation must have powers of numbers of at most {largest_bits} bits, "
            f"got {_excerpt(ast.unparse(node))}"
        )


def _excerpt(text: str) -> str:
    """The text in quotes, shortened to fit on a line."""
    return repr(text if len(text) <= 100 else f"{text[:97]}...")
