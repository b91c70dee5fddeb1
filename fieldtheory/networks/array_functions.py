"""Functions of NumPy, SciPy and PyTorch by their names, as functions of SymPy expressions.

No other library is imported.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import sympy as sp

from fieldtheory.networks.activation import Activation
from fieldtheory.networks.named_activations import (
    DEFINITIONS,
    clipped,
    registered_name,
    where,
    with_parameters,
)


def _clip(x: sp.Expr, *bounds: Any, **named: Any) -> sp.Expr:
    # Bounds are a_min and a_max or min and max for NumPy, the latter for PyTorch.
    limits = dict(zip(("low", "high"), bounds, strict=False))
    limits |= {{"in": "low", "ax": "high"}[key[-2:]]: value for key, value in named.items()}
    return clipped(x, **{key: value for key, value in limits.items() if value is not None})


def _rrelu(x: Any, lower: Any = 0.125, upper: Any = 1 / 3, training: Any = False) -> sp.Expr:
    if training:
        raise ValueError("its slope is drawn anew at every call in training; call eval() first")
    return with_parameters("leaky_relu", negative_slope=(plain(lower) + plain(upper)) / 2)(x)


def _dropout(x: Any, p: Any = 0.5, training: Any = True) -> Any:
    if training and p:
        raise ValueError("it drops at random in training; call eval() first")
    return x


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("add", "add_any"), lambda x, y: x + y),
    **dict.fromkeys(("subtract", "sub"), lambda x, y: x - y),
    **dict.fromkeys(("multiply", "mul"), lambda x, y: x * y),
    **dict.fromkeys(("divide", "true_divide", "div"), lambda x, y: x / y),
    **dict.fromkeys(("power", "float_power", "pow", "integer_pow"), lambda x, y: x**y),
    **dict.fromkeys(("negative", "neg"), lambda x: -x),
    "reciprocal": lambda x: 1 / x,
    "sqrt": sp.sqrt,
    "rsqrt": lambda x: 1 / sp.sqrt(x),
    "cbrt": sp.cbrt,
    "exp2": lambda x: 2**x,
    "expm1": lambda x: sp.exp(x) - 1,
    "log": sp.log,
    "log1p": lambda x: sp.log(1 + x),
    "log2": lambda x: sp.log(x, 2),
    "log10": lambda x: sp.log(x, 10),
    "logaddexp": lambda x, y: sp.log(sp.exp(x) + sp.exp(y)),
    "erfc": sp.erfc,
    "tan": sp.tan,
    "cosh": sp.cosh,
    **dict.fromkeys(("arcsin", "asin"), sp.asin),
    **dict.fromkeys(("arccos", "acos"), sp.acos),
    **dict.fromkeys(("arctanh", "atanh"), sp.atanh),
    **dict.fromkeys(("arccosh", "acosh"), sp.acosh),
    # The value at zero does not matter.
    "heaviside": lambda x, *at_zero: sp.Heaviside(x),
    "sinc": lambda x: sp.sin(sp.pi * x) / (sp.pi * x),
    "where": where,
    **dict.fromkeys(("clip", "clamp"), _clip),
    "threshold": lambda x, threshold, value: where(x > threshold, x, value),
    "rrelu": _rrelu,
    **dict.fromkeys(("dropout", "alpha_dropout", "feature_alpha_dropout"), _dropout),
    **dict.fromkeys(("greater", "gt"), sp.Gt),
    **dict.fromkeys(("greater_equal", "ge"), sp.Ge),
    **dict.fromkeys(("less", "lt"), sp.Lt),
    **dict.fromkeys(("less_equal", "le"), sp.Le),
    **dict.fromkeys(("equal", "eq"), sp.Eq),
    **dict.fromkeys(("not_equal", "ne"), sp.Ne),
    # Of two: with one, max and min are reductions.
    **dict.fromkeys(("maximum", "fmax"), lambda x, y: sp.Max(x, y)),
    **dict.fromkeys(("minimum", "fmin"), lambda x, y: sp.Min(x, y)),
    **dict.fromkeys(("bitwise_and", "logical_and", "and"), sp.And),
    **dict.fromkeys(("bitwise_or", "logical_or", "or"), sp.Or),
    **dict.fromkeys(("bitwise_not", "logical_not", "invert", "not"), sp.Not),
}
# Their arguments may be conditions.
_LOGICAL = ("where", "and", "or", "not", "invert")


def applied(
    name: str, inputs: Sequence[Any], options: Mapping[str, Any] | None = None
) -> tuple[sp.Expr, Activation | None]:
    """A function at expressions and numbers, and the activation that it is if it is one.

    Examples
    --------
    >>> h = sp.Symbol("h", real=True)
    >>> applied("softplus", [2 * h], {"beta": 3, "threshold": 1})[0]
    Piecewise((2*h, h > 1/6), (log(exp(6*h) + 1)/3, True))
    """
    values = [plain(value) for value in inputs]
    named = {key: plain(value) for key, value in (options or {}).items()}
    if not name.endswith(_LOGICAL):
        # A condition is one where it holds and zero elsewhere.
        values = [
            sp.Piecewise((1, value), (0, True))
            if isinstance(value, sp.logic.boolalg.Boolean) and not isinstance(value, sp.Symbol)
            else value
            for value in values
        ]
    if name in FUNCTIONS:
        return FUNCTIONS[name](*values, **named), None
    activation = registered(name, values[1:], named)
    return activation(values[0]), activation


def registered(name: str, parameters: Sequence[Any], options: Mapping[str, Any]) -> Activation:
    """The activation of a name with values of parameters, in PyTorch's order and names.

    Examples
    --------
    >>> registered("prelu", [sp.Rational(1, 4)], {}).name
    'leaky_relu(negative_slope=1/4)'
    """
    named = dict(options)
    if name == "prelu":
        name, parameters = "leaky_relu", [*parameters, *named.values()]
        named = {}
    registered_as = registered_name(name)
    if registered_as is None:
        raise TypeError(f"{name} is not one of them")
    if registered_as == "gelu":
        # An option of it is another activation here.
        registered_as = (
            "gelu_tanh" if named.pop("approximate", "none") in (True, "tanh") else "gelu"
        )
    bound = (
        inspect.signature(DEFINITIONS[registered_as].formula).bind(*parameters, **named).arguments
    )
    if not all(isinstance(value, sp.Expr) and value.is_number for value in bound.values()):
        raise TypeError(f"the parameters of {name} must be numbers")
    return with_parameters(registered_as, **bound)


def plain(value: Any) -> Any:
    """The SymPy object of a number of any library; decimal numbers are exact fractions."""
    if isinstance(value, float | np.floating):
        return sp.Rational(str(value)) if math.isfinite(value) else sp.sympify(float(value))
    if isinstance(value, bool | int | np.bool_ | np.integer):
        return sp.sympify(value.item() if isinstance(value, np.generic) else value)
    if hasattr(value, "item"):
        # An array or tensor of one number; others raise.
        return plain(value.item())
    return value
