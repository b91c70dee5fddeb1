"""Values that are typed as text in a shell: activation functions, scales and kernels."""

from __future__ import annotations

import ast
import operator
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory.networks.activations import ACTIVATIONS, Activation, as_activation, h

_LONGEST = 200
_LARGEST_POWER = 20
_OPERATORS: dict[type, Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_FUNCTIONS: dict[str, Any] = {
    **{f.__name__: f for f in (sp.exp, sp.log, sp.sqrt, sp.cos, sp.tan, sp.sinh, sp.cosh)},
    **{f.__name__: f for f in (sp.atan, sp.asinh, sp.erfc, sp.sign, sp.Abs, sp.Max, sp.Min)},
    "abs": sp.Abs,
    "max": sp.Max,
    "min": sp.Min,
    **ACTIVATIONS,
}
_CONSTANTS: dict[str, sp.Expr] = {"h": h, "pi": sp.pi}


def activation(text: str) -> Activation:
    """φ from its name or an expression in h, such as "tanh(2*h)" or "h*erf(h)".

    The text is read as arithmetic, never executed: numbers, h, pi, + - * / **, and the functions
    exp, log, sqrt, cos, tan, sinh, cosh, atan, asinh, erfc, sign, abs, max, min and the names of
    registered activations.

    Raises
    ------
    ValueError
        For anything else; the message names it.

    Examples
    --------
    >>> activation("h*erf(2*h)").expression
    h*erf(2*h)
    """
    if text.isidentifier() and text != "h":
        return as_activation(text)
    if len(text) > _LONGEST:
        raise ValueError(f"activation must have at most {_LONGEST} characters, got {len(text)}")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"activation must be a name or an expression in h, got {text!r}") from None
    expression = _expression(tree.body)
    if not expression.has(h) or expression.has(sp.zoo, sp.nan, sp.oo, sp.I):
        raise ValueError(f"activation must be a real expression in h, got {text!r}")
    return Activation(expression, name=text.strip())


def _expression(node: ast.AST) -> sp.Expr:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        # A Rational keeps all digits in derivatives and in mpmath, a Float does not.
        return sp.Rational(str(node.value))
    if isinstance(node, ast.Name) and node.id in _CONSTANTS:
        return _CONSTANTS[node.id]
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_expression(node.operand))
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _expression(node.left), _expression(node.right)
        if isinstance(node.op, ast.Pow):
            _require_small(node, left, right)
        return _OPERATORS[type(node.op)](left, right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        if node.func.id in _FUNCTIONS:
            return _applied(node.func.id, [_expression(argument) for argument in node.args])
        raise ValueError(
            f"activation must be made of {', '.join(_FUNCTIONS)}, got function {node.func.id!r}"
        )
    found = ast.unparse(node)
    raise ValueError(f"activation must be an expression in the one symbol h, got {found!r} in it")


def _require_small(node: ast.BinOp, base: sp.Expr, exponent: sp.Expr) -> None:
    """Refuse powers that SymPy would take forever to write out, such as 9**9**9."""
    tower = isinstance(node.left, ast.BinOp) and not base.has(h)
    if tower or not (exponent.is_Rational and abs(exponent) <= _LARGEST_POWER):
        raise ValueError(
            f"activation must have powers of h, or of one number, with exponents up to "
            f"{_LARGEST_POWER}, got {ast.unparse(node)!r}"
        )


def _applied(name: str, arguments: list[sp.Expr]) -> sp.Expr:
    allowed = (2,) if name.lower() in ("max", "min") else (1,)
    if len(arguments) not in allowed:
        raise ValueError(
            f"activation must call {name} with {allowed[0]} argument(s), got {len(arguments)}"
        )
    return _FUNCTIONS[name](*arguments)


def numbers(name: str, text: str) -> float | list[float]:
    """A number, or a list of them separated by commas.

    Examples
    --------
    >>> numbers("branch_scale", "0.3"), numbers("branch_scale", "0.3,0.2")
    (0.3, [0.3, 0.2])
    """
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(
            f"{name} must be a number or numbers separated by commas, got {text!r}"
        ) from None
    return values[0] if len(values) == 1 else values


def kernel(text: str) -> float | np.ndarray:
    """K0: a variance "0.05", a matrix "0.05,0.03;0.03,0.05", or a .csv or .npy file with either.

    Raises
    ------
    ValueError
        If the text is none of these or the file cannot be read.

    Examples
    --------
    >>> kernel("0.05")
    0.05
    >>> kernel("0.05,0.03;0.03,0.05").shape
    (2, 2)
    """
    path = Path(text)
    if path.suffix.lower() in (".csv", ".npy"):
        return _kernel_file(path)
    rows = [numbers("K0", row) for row in text.split(";")]
    if len(rows) == 1 and isinstance(rows[0], float):
        return rows[0]
    lengths = {1 if isinstance(row, float) else len(row) for row in rows}
    if len(lengths) > 1 or lengths == {1}:
        raise ValueError(f"K0 must be a number or a square matrix a,b;b,c, got {text!r}")
    return np.array(rows)


def _kernel_file(path: Path) -> float | np.ndarray:
    if not path.is_file():
        raise ValueError(
            f"K0 must be a number, a matrix a,b;b,c or a file; there is no {str(path)!r}"
        )
    try:
        if path.suffix.lower() == ".npy":
            values = np.load(path, allow_pickle=False)
        else:
            values = np.loadtxt(path, delimiter=",", ndmin=2)
    except (OSError, ValueError, EOFError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"K0 cannot be read from {str(path)!r} ({reason})") from None
    return float(values.reshape(())) if values.size == 1 else values
